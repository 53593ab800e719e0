-- The requirements of the documents about InnoDB's compression and row counts that formats.sql does
-- not cover: docs/users/innodb.md lists them.
--
-- F10: the file format version of every table is visible.
CREATE TABLE f10 (a INT PRIMARY KEY, b INT, KEY (b));
--! cheetah-only
SELECT format_version BETWEEN 1 AND 9 AS has_version, compression FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'f10';
--! end
-- F11: the size of each table on disk, although all tables share files. It is the sum of the
-- table's indexes; all tables together are not larger than the files.
CREATE TABLE f11_small (a INT PRIMARY KEY, b CHAR(40));
CREATE TABLE f11_large LIKE f11_small;
INSERT INTO f11_small SELECT seq, MD5(seq) FROM seq_1_to_2000;
INSERT INTO f11_large SELECT seq, MD5(seq) FROM seq_1_to_20000;
--! cheetah-only
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT SUM(table_name = 'f11_large' AND stored_bytes BETWEEN 300000 AND 900000) AS large, SUM(table_name = 'f11_small' AND stored_bytes BETWEEN 30000 AND 90000) AS small FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB';
SELECT t.table_name, t.allocated_bytes = t.stored_bytes + t.free_bytes AS adds_up, t.stored_bytes = SUM(i.stored_bytes) AS is_sum FROM information_schema.CHEETAH_TABLES t JOIN information_schema.CHEETAH_INDEXES i USING (table_schema, table_name) WHERE t.table_schema = '$DB' AND t.table_name LIKE 'f11%' GROUP BY t.table_name, t.allocated_bytes, t.stored_bytes, t.free_bytes ORDER BY 1;
SELECT data_length = (SELECT stored_data_bytes FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'f11_large') AS same FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 'f11_large';
--! end
-- F12: several indexes at once on a loaded table.
CREATE TABLE f12 (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(40) NOT NULL, c DATETIME, d INT);
INSERT INTO f12 SELECT seq, seq * 7919 % 20011, MD5(seq), '2020-01-01' + INTERVAL seq * 37 MINUTE, IF(seq % 11 = 0, NULL, seq % 100) FROM seq_1_to_20000;
ALTER TABLE f12 ADD INDEX a (a), ADD UNIQUE INDEX b (b), ADD INDEX cd (c, d), ADD INDEX d (d);
CHECK TABLE f12 EXTENDED;
SELECT COUNT(*), SUM(id) FROM f12 FORCE INDEX (a) WHERE a BETWEEN 500 AND 5000;
SELECT id FROM f12 FORCE INDEX (b) WHERE b = MD5(777);
SELECT COUNT(*), MIN(id) FROM f12 FORCE INDEX (cd) WHERE c >= '2020-06-01' AND c < '2020-07-01';
SELECT COUNT(*), SUM(id) FROM f12 FORCE INDEX (d) WHERE d IS NULL;
INSERT INTO f12 VALUES (20001, 1, MD5(777), NULL, NULL);
ALTER TABLE f12 DROP INDEX a, DROP INDEX d, ADD INDEX da (d, a);
SHOW CREATE TABLE f12;
CHECK TABLE f12 EXTENDED;
-- F13: the same on texts in utf8 and utf8mb4, which old versions of InnoDB could not sort.
--! for SELECT ELT(seq, 'utf8mb3', 'utf8mb4', 'latin1'), ELT(seq, 'utf8mb3_general_ci', 'utf8mb4_unicode_ci', 'latin1_german2_ci') FROM mysql.seq_1_to_3
CREATE TABLE f13_$1 (id INT PRIMARY KEY, a VARCHAR(60), b CHAR(20), c TEXT) DEFAULT CHARSET=$1 COLLATE=$2;
INSERT INTO f13_$1 SELECT seq, CONCAT(ELT(1 + seq % 6, 'Muller', 'Müller', 'MUELLER', 'straße', 'STRASSE', 'é'), ' ', seq % 1000), ELT(1 + seq % 3, 'Ä', 'a', 'A '), REPEAT('ö', seq % 50) FROM seq_1_to_5000;
ALTER TABLE f13_$1 ADD INDEX a (a), ADD INDEX ba (b, a), ADD INDEX c (c(10));
CHECK TABLE f13_$1 EXTENDED;
SELECT COUNT(*), SUM(id) FROM f13_$1 FORCE INDEX (a) WHERE a = 'MÜLLER 7';
SELECT COUNT(*), SUM(id) FROM f13_$1 FORCE INDEX (ba) WHERE b = 'a' AND a BETWEEN 'm' AND 'n';
SELECT COUNT(*), SUM(id) FROM f13_$1 FORCE INDEX (c) WHERE c LIKE 'öööö%';
--! end
-- F14: without a primary key, equal rows are separate rows, and each can be changed alone.
CREATE TABLE f14 (a INT, b VARCHAR(20), KEY (a));
INSERT INTO f14 SELECT seq % 10, 'same' FROM seq_1_to_3000;
UPDATE f14 SET b = 'one' WHERE a = 3 LIMIT 1;
DELETE FROM f14 WHERE a = 4 LIMIT 5;
SELECT a, b, COUNT(*) FROM f14 GROUP BY a, b ORDER BY a, b;
SELECT COUNT(*) FROM f14;
CHECK TABLE f14 EXTENDED;
SHOW CREATE TABLE f14;
--! cheetah-only
-- The cost: a number of up to nine bytes in each row and each index entry. Consecutive numbers take
-- almost no space on disk.
CREATE TABLE f14_key (a INT, b VARCHAR(20), id INT AUTO_INCREMENT PRIMARY KEY, KEY (a));
INSERT INTO f14_key (a, b) SELECT seq % 10, 'same' FROM seq_1_to_3000;
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT MAX(stored_bytes) < 1.5 * MIN(stored_bytes) AS alike FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name IN ('f14', 'f14_key');
--! end
-- V10: after a load in the order of the keys, pages are 15/16 full.
CREATE TABLE v10_source (a INT PRIMARY KEY, b INT, c CHAR(60), KEY b (b));
INSERT INTO v10_source SELECT seq, seq * 7919 % 60013, SHA1(seq) FROM seq_1_to_40000;
CREATE TABLE v10 (PRIMARY KEY (a), KEY b (b)) SELECT * FROM v10_source ORDER BY a;
ALTER TABLE v10_source FORCE, ALGORITHM=COPY;
--! cheetah-only
SELECT table_name, index_name, fill_percent BETWEEN 91 AND 95 AS is_15_of_16 FROM information_schema.CHEETAH_INDEXES WHERE table_schema = '$DB' AND table_name LIKE 'v10%' ORDER BY 1, 2;
--! end
