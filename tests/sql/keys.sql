-- Prefix keys, NULLs, DESC parts, composite keys, no primary key, long keys, limits.
CREATE TABLE p (id INT PRIMARY KEY, a VARCHAR(100), b TEXT, c BLOB, KEY a (a(3)), KEY b (b(4)), KEY ab (a(2), b(2) DESC), UNIQUE c (c(5)));
INSERT INTO p VALUES (1, 'abcdef', 'abcdef', 'abcdef'), (2, 'abcxyz', 'abcdxyz', 'abcdxyz'), (3, 'abc', 'abcd', 'abcd'), (4, 'ab', 'ab', 'ab'), (5, '', '', ''), (6, NULL, NULL, NULL), (7, 'zzz', 'zz', 'zz'), (8, NULL, NULL, NULL);
INSERT INTO p VALUES (9, 'q', 'q', 'abcdeQQQ');
SELECT id FROM p FORCE INDEX (a) WHERE a = 'abcxyz';
SELECT id FROM p FORCE INDEX (a) WHERE a >= 'abcy';
SELECT id FROM p FORCE INDEX (a) WHERE a < 'abcy';
SELECT id FROM p FORCE INDEX (b) WHERE b BETWEEN 'abcdd' AND 'abcdz';
SELECT id FROM p FORCE INDEX (ab) WHERE a = 'abcdef' AND b > 'aa';
SELECT id, a FROM p FORCE INDEX (a) ORDER BY a, id;
SELECT id FROM p FORCE INDEX (b) WHERE b LIKE 'abcd%' ORDER BY id;
SELECT MIN(a), MAX(a), MIN(b), MAX(b), MIN(c), MAX(c) FROM p;
SELECT MAX(a) FROM p WHERE a < 'abcx';
SELECT COUNT(DISTINCT a), COUNT(*) FROM p;
SELECT a, COUNT(*) FROM p GROUP BY a ORDER BY a;
CREATE TABLE n (a INT, b INT, c VARCHAR(10), UNIQUE abc (a, b DESC, c), KEY b (b));
INSERT INTO n VALUES (1, NULL, 'x'), (1, NULL, 'x'), (NULL, NULL, NULL), (NULL, NULL, NULL), (1, 1, NULL), (1, 1, NULL), (1, 1, 'x'), (2, 0, '');
INSERT INTO n VALUES (1, 1, 'X ');
SELECT * FROM n FORCE INDEX (abc) ORDER BY a, b DESC, c;
SELECT * FROM n FORCE INDEX (abc) WHERE a = 1 AND b IS NULL;
SELECT * FROM n FORCE INDEX (abc) WHERE a IS NULL;
SELECT * FROM n FORCE INDEX (abc) WHERE a = 1 AND b = 1 AND c IS NULL;
SELECT COUNT(*) FROM n FORCE INDEX (b) WHERE b IS NOT NULL;
SELECT COUNT(*) FROM n FORCE INDEX (b) WHERE b <=> NULL;
UPDATE n SET b = 5 WHERE b IS NULL AND a IS NULL;
DELETE FROM n WHERE c IS NULL LIMIT 1;
SELECT COUNT(*), COUNT(a), COUNT(b), COUNT(c) FROM n;
UPDATE n SET b = 1, c = 'x' WHERE a = 1 AND b IS NULL;
CREATE TABLE d (a INT, b INT, c INT, PRIMARY KEY (a DESC, b ASC, c DESC), KEY k1 (b DESC), KEY k2 (c DESC, a));
INSERT INTO d SELECT x.seq, y.seq, z.seq FROM seq_1_to_8 x, seq_1_to_8 y, seq_1_to_8 z;
SELECT * FROM d WHERE a = 3 AND b > 6 ORDER BY b, c DESC;
SELECT * FROM d ORDER BY a DESC, b, c DESC LIMIT 5;
SELECT * FROM d ORDER BY a, b DESC, c LIMIT 5;
SELECT * FROM d FORCE INDEX (k2) WHERE c BETWEEN 3 AND 5 AND a = 2 ORDER BY c DESC, a LIMIT 10;
SELECT b, COUNT(*) FROM d FORCE INDEX (k1) WHERE b < 4 GROUP BY b ORDER BY b DESC;
SELECT MIN(a), MAX(a), MIN(b), MAX(b), MIN(c), MAX(c) FROM d;
SELECT MIN(b) FROM d WHERE a = 4;
SELECT MAX(c) FROM d WHERE a = 4 AND b = 2;
SELECT MAX(a) FROM d FORCE INDEX (k2) WHERE c = 7;
SELECT a, MIN(b), MAX(b) FROM d GROUP BY a ORDER BY a;
DELETE FROM d WHERE a > 2 AND b < 7;
SELECT COUNT(*), SUM(a * 100 + b * 10 + c) FROM d FORCE INDEX (k2) WHERE c > 0;
CREATE TABLE np (a INT, b VARCHAR(10), KEY (a));
INSERT INTO np VALUES (1, 'one'), (1, 'one'), (2, NULL), (NULL, 'n');
DELETE FROM np WHERE a = 1 LIMIT 1;
UPDATE np SET a = a + 1 ORDER BY a DESC;
SELECT * FROM np ORDER BY a, b;
CREATE TABLE nn (a INT NOT NULL, b INT NOT NULL, UNIQUE ua (a), UNIQUE ub (b));
INSERT INTO nn SELECT seq, 100 - seq FROM seq_1_to_50;
SELECT * FROM nn WHERE b BETWEEN 60 AND 64 ORDER BY b;
UPDATE nn SET a = a + 50;
UPDATE nn SET a = 51 WHERE b = 98;
SELECT COUNT(*), SUM(a), SUM(b) FROM nn;
CREATE TABLE wide_key (a VARCHAR(768) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY, b VARCHAR(768) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, c INT, KEY b (b), KEY c (c));
INSERT INTO wide_key SELECT CONCAT(REPEAT('prefix ', 100), LPAD(seq, 10, '0')), CONCAT(REPEAT('😀', 700), LPAD(1000 - seq, 10, '0')), seq % 7 FROM seq_1_to_1000;
INSERT INTO wide_key VALUES (REPEAT('ß', 768), REPEAT('z', 768), 1), (REPEAT('z', 768), '', 2), (REPEAT('字', 768), REPEAT('字', 768), 3);
INSERT INTO wide_key VALUES (REPEAT('ß', 768), 'dup', 1);
INSERT INTO wide_key VALUES (CONCAT(REPEAT('PREFIX ', 100), '0000000500'), 'dup', 1);
SELECT COUNT(*), MIN(c), MAX(RIGHT(a, 10)) FROM wide_key;
SELECT RIGHT(a, 10), RIGHT(b, 10) FROM wide_key FORCE INDEX (b) WHERE b > CONCAT(REPEAT('😀', 700), '0000000990') ORDER BY b;
SELECT RIGHT(a, 10) FROM wide_key WHERE a BETWEEN CONCAT(REPEAT('prefix ', 100), '0000000500') AND CONCAT(REPEAT('prefix ', 100), '0000000505') ORDER BY a DESC;
SELECT RIGHT(a, 10) FROM wide_key FORCE INDEX (c) WHERE c = 3 ORDER BY a LIMIT 5;
UPDATE wide_key SET a = CONCAT('Q', LEFT(a, 700), c, RIGHT(a, 10)) WHERE c < 3;
DELETE FROM wide_key WHERE c = 4;
SELECT COUNT(*), SUM(CRC32(a)), SUM(CRC32(b)) FROM wide_key;
--! for SELECT 'utf8mb4_uca1400_ai_ci', 'utf8mb4' UNION SELECT 'utf8mb4_uca1400_as_cs', 'utf8mb4' UNION SELECT 'utf8mb4_nopad_bin', 'utf8mb4' UNION SELECT 'utf8mb4_czech_ci', 'utf8mb4' UNION SELECT 'utf32_unicode_ci', 'utf32' UNION SELECT 'latin2_czech_cs', 'latin2' UNION SELECT 'utf8mb4_german2_ci', 'utf8mb4'
CREATE TABLE wk (a VARCHAR(768) PRIMARY KEY, b VARCHAR(768), UNIQUE b (b)) CHARACTER SET $2 COLLATE $1;
-- The order of the rows decides which duplicate the error names: here the lowest key.
--! numbers
INSERT INTO wk SELECT CONCAT(REPEAT('long common prefix ', 38), LPAD(seq, 10, '0')), CONCAT(LPAD(seq * 7 % 301, 6, '0'), REPEAT('zzzzz', 150)) FROM seq_1_to_300;
INSERT INTO wk SELECT UPPER(a), 'x' FROM wk LIMIT 1;
SELECT COUNT(*), SUM(CRC32(a)) FROM wk FORCE INDEX (b) WHERE b > '000100';
SELECT RIGHT(a, 10) FROM wk WHERE a > CONCAT(REPEAT('long common prefix ', 38), '0000000295') ORDER BY a DESC;
DROP TABLE wk;
--! end
-- Limits of the server and of InnoDB.
SET @cols = (SELECT GROUP_CONCAT('c', seq, ' INT') FROM seq_1_to_64);
SET @keys = (SELECT GROUP_CONCAT('KEY k', seq, ' (c', seq, ')') FROM seq_1_to_63);
EXECUTE IMMEDIATE CONCAT('CREATE TABLE k64 (', @cols, ', PRIMARY KEY (c64), ', @keys, ')');
INSERT INTO k64 SELECT seq, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, -seq, seq FROM seq_1_to_200;
SELECT COUNT(*) FROM k64 FORCE INDEX (k63) WHERE c63 < -100;
UPDATE k64 SET c31 = c64 WHERE c64 % 2;
SELECT COUNT(*), SUM(c31) FROM k64 FORCE INDEX (k31) WHERE c31 <> 31;
EXECUTE IMMEDIATE CONCAT('CREATE TABLE k65 (', @cols, ', PRIMARY KEY (c64), ', @keys, ', KEY k65 (c1, c2))');
SET @cols = (SELECT GROUP_CONCAT('c', seq) FROM seq_1_to_32);
--! ignore
EXECUTE IMMEDIATE CONCAT('ALTER TABLE k64 DROP KEY k1, ADD KEY parts (', @cols, ')');
SELECT COUNT(*) FROM k64 FORCE INDEX (parts) WHERE c1 > 190 AND c2 = 2;
SET @cols = (SELECT GROUP_CONCAT('c', seq) FROM seq_1_to_33);
EXECUTE IMMEDIATE CONCAT('ALTER TABLE k64 ADD KEY parts33 (', @cols, ')');
--! numbers
CREATE TABLE l1 (a VARCHAR(769) CHARACTER SET utf8mb4, PRIMARY KEY (a));
CREATE TABLE l2 (a VARCHAR(3072) CHARACTER SET latin1, PRIMARY KEY (a));
--! numbers
CREATE TABLE l3 (a VARCHAR(3073) CHARACTER SET latin1, UNIQUE KEY (a(3073)));
--! numbers
CREATE TABLE l4 (a VARCHAR(4000) CHARACTER SET latin1, KEY (a));
SHOW CREATE TABLE l4;
--! numbers
CREATE TABLE l5 (a TEXT, KEY (a(800)));
--! numbers
CREATE TABLE l6 (a TEXT, KEY (a));
CREATE TABLE l7 (a VARCHAR(60000) CHARACTER SET latin1, b VARCHAR(6000) CHARACTER SET latin1);
CREATE TABLE l8 (a BLOB PRIMARY KEY);
INSERT INTO l2 VALUES (REPEAT('a', 3072)), (REPEAT('b', 3072)), (CONCAT(REPEAT('a', 3071), 'b'));
SELECT LENGTH(a), RIGHT(a, 2) FROM l2 ORDER BY a DESC;
CREATE TABLE l9 (a VARCHAR(1000) CHARACTER SET latin1, b VARCHAR(1000) CHARACTER SET latin1, c VARCHAR(1000) CHARACTER SET latin1, KEY k (a, b, c));
INSERT INTO l9 SELECT REPEAT(CHAR(65 + seq % 26), 1000), REPEAT('b', 1000), REPEAT(CHAR(97 + seq % 7), 1000) FROM seq_1_to_200;
SELECT LEFT(a, 1), LEFT(c, 1) FROM l9 FORCE INDEX (k) WHERE a > 'W' ORDER BY a, b, c;
CREATE TABLE lu (id INT PRIMARY KEY, b LONGTEXT, c VARCHAR(5000), UNIQUE (b), UNIQUE (c, id));
INSERT INTO lu VALUES (1, REPEAT('u', 100000), REPEAT('c', 5000));
INSERT INTO lu VALUES (2, REPEAT('U', 100000), 'x');
INSERT INTO lu VALUES (2, REPEAT('v', 100000), REPEAT('c', 5000));
UPDATE lu SET b = REPEAT('u', 100000) WHERE id = 2;
INSERT IGNORE INTO lu VALUES (3, REPEAT('v', 100000), 'x'), (4, 'w', 'x');
REPLACE INTO lu VALUES (5, 'W', 'y');
SELECT id, LENGTH(b), LENGTH(c) FROM lu ORDER BY id;
