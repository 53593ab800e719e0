-- FULLTEXT keys: definitions, searches, ranks, and rows that change.
CREATE TABLE a (id INT PRIMARY KEY, title VARCHAR(200), body TEXT, FULLTEXT KEY ft (title, body)) DEFAULT CHARSET=utf8mb4;
INSERT INTO a VALUES (1, 'MySQL Tutorial', 'DBMS stands for DataBase ...'),
  (2, 'How To Use MySQL Well', 'After you went through a ...'),
  (3, 'Optimizing MySQL', 'In this tutorial we will show ...'),
  (4, '1001 MySQL Tricks', '1. Never run mysqld as root. 2. ...'),
  (5, 'MySQL vs. YourSQL', 'In the following database comparison ...'),
  (6, 'MySQL Security', 'When configured properly, MySQL ...'),
  (7, NULL, NULL), (8, '', 'database'), (9, 'don''t can''t it''s', 'O''Reilly_media 42 007');
ANALYZE TABLE a;
SHOW CREATE TABLE a;
SHOW INDEX FROM a;
-- Natural language.
SELECT id, ROUND(MATCH (title, body) AGAINST ('database'), 4) r FROM a WHERE MATCH (title, body) AGAINST ('database');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('database tutorial' IN NATURAL LANGUAGE MODE);
SELECT id, ROUND(MATCH (title, body) AGAINST ('tutorial'), 4) FROM a ORDER BY id;
SELECT id, ROUND(MATCH (title, body) AGAINST ('mysql security'), 4) r FROM a ORDER BY r DESC, id;
SELECT COUNT(*) FROM a WHERE MATCH (title, body) AGAINST ('database');
SELECT COUNT(IF(MATCH (title, body) AGAINST ('database'), 1, NULL)) FROM a;
SELECT id FROM a WHERE MATCH (body, title) AGAINST ('database') ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('DATABASE') ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('the for in');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('');
SELECT id FROM a WHERE MATCH (title, body) AGAINST (NULL);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('nowhere');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('don''t');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('reilly_media');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('O''Reilly_media');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('1001 007') ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"following database"') ORDER BY id;
-- Boolean.
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('+MySQL -YourSQL' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('+mysql +tutorial' IN BOOLEAN MODE) ORDER BY id;
SELECT id, ROUND(MATCH (title, body) AGAINST ('+mysql tutorial' IN BOOLEAN MODE), 4) r FROM a
  WHERE MATCH (title, body) AGAINST ('+mysql tutorial' IN BOOLEAN MODE) ORDER BY r DESC, id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('+mysql ~tutorial' IN BOOLEAN MODE) ORDER BY id;
SELECT id, ROUND(MATCH (title, body) AGAINST ('+mysql +(>tutorial <database)' IN BOOLEAN MODE), 4) r FROM a
  WHERE MATCH (title, body) AGAINST ('+mysql +(>tutorial <database)' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('tut*' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('+mysql -tut*' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"stands for database"' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"database for stands"' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"mysql dbms"' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"tutorial show" @3' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"tutorial show" @4' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"following comparison" @2' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"following comparison" @3' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('+the +mysql' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('-mysql' IN BOOLEAN MODE);
--! error 1064
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('mysql++' IN BOOLEAN MODE);
--! error 1064
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('+' IN BOOLEAN MODE);
--! error 1064
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('(mysql' IN BOOLEAN MODE);
--! error 1064
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('mysql)' IN BOOLEAN MODE);
--! error 1064
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('*' IN BOOLEAN MODE);
--! error 1064
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('"mysql"@' IN BOOLEAN MODE);
--! error 1064
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('word@example.com' IN BOOLEAN MODE);
-- Query expansion.
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('tricks' WITH QUERY EXPANSION) ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('nowhere' WITH QUERY EXPANSION) ORDER BY id;
-- Columns without their own index.
SELECT id FROM a WHERE MATCH (title) AGAINST ('mysql');
SELECT id FROM a WHERE MATCH (title) AGAINST ('mysql' IN BOOLEAN MODE);
SELECT id FROM a WHERE MATCH (id, body) AGAINST ('mysql');
-- Rows change.
UPDATE a SET body = 'a zebra in the database' WHERE id = 2;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('zebra went') ORDER BY id;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('well') ORDER BY id;
UPDATE a SET id = 20 WHERE id = 2;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('zebra well') ORDER BY id;
UPDATE a SET title = 'zebra' WHERE MATCH (title, body) AGAINST ('security');
SELECT id, title FROM a WHERE MATCH (title, body) AGAINST ('zebra security') ORDER BY id;
DELETE FROM a WHERE id = 20;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('zebra') ORDER BY id;
DELETE FROM a WHERE MATCH (title, body) AGAINST ('tricks');
SELECT COUNT(*) FROM a;
REPLACE INTO a VALUES (1, 'replaced words', 'giraffe'), (30, 'new row', 'giraffe');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('giraffe dbms') ORDER BY id;
INSERT INTO a VALUES (1, 'x', 'y') ON DUPLICATE KEY UPDATE body = 'okapi';
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('giraffe okapi') ORDER BY id;
INSERT IGNORE INTO a VALUES (1, 'ignored', 'ignored'), (31, 'kept', 'kept');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('ignored kept') ORDER BY id;
CHECK TABLE a;
-- A rollback removes words.
BEGIN;
INSERT INTO a VALUES (40, 'lion', 'tiger');
SAVEPOINT s;
INSERT INTO a VALUES (41, 'lion', 'puma');
ROLLBACK TO s;
COMMIT;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('lion puma') ORDER BY id;
BEGIN;
DELETE FROM a WHERE id = 40;
UPDATE a SET body = 'lion' WHERE id = 31;
ROLLBACK;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('lion kept') ORDER BY id;
--! cheetah-only
-- A transaction finds its own words at once; other transactions find them after its commit.
BEGIN;
INSERT INTO a VALUES (50, 'panther', 'panther');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('panther');
--! connection b
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('panther');
--! connection default
COMMIT;
--! connection b
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('panther');
--! connection default
DELETE FROM a WHERE id = 50;
--! end
-- The table is emptied and filled again.
TRUNCATE TABLE a;
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('mysql giraffe lion');
INSERT INTO a VALUES (1, 'giraffe', 'lion');
SELECT id FROM a WHERE MATCH (title, body) AGAINST ('mysql giraffe lion');
DROP TABLE a;
-- Indexes are added, dropped and renamed.
CREATE TABLE b (id INT PRIMARY KEY AUTO_INCREMENT, x VARCHAR(100), y TEXT, z INT, KEY (z)) DEFAULT CHARSET=latin1;
INSERT INTO b (x, y, z) VALUES ('quick brown fox', 'jumps', 1), ('lazy dog', 'over the quick', 2), (NULL, 'fox', 3);
CREATE FULLTEXT INDEX fx ON b (x);
SELECT id FROM b WHERE MATCH (x) AGAINST ('quick fox') ORDER BY id;
ALTER TABLE b ADD FULLTEXT INDEX fy (y);
SELECT id FROM b WHERE MATCH (y) AGAINST ('quick fox') ORDER BY id;
ALTER TABLE b ADD FULLTEXT INDEX fxy (x, y);
SELECT id FROM b WHERE MATCH (x, y) AGAINST ('quick fox') ORDER BY id;
SHOW CREATE TABLE b;
INSERT INTO b (x, y, z) VALUES ('fox', 'fox', 4);
SELECT id FROM b WHERE MATCH (x) AGAINST ('fox') ORDER BY id;
SELECT id FROM b WHERE MATCH (y) AGAINST ('fox') ORDER BY id;
ALTER TABLE b RENAME INDEX fx TO renamed;
SELECT id FROM b WHERE MATCH (x) AGAINST ('fox') ORDER BY id;
ALTER TABLE b DROP INDEX fy;
SELECT id FROM b WHERE MATCH (y) AGAINST ('fox') ORDER BY id;
ALTER TABLE b ADD COLUMN w INT FIRST, ADD KEY (w);
INSERT INTO b (x, y, z) VALUES ('badger', 'fox', 5);
SELECT id FROM b WHERE MATCH (x, y) AGAINST ('badger') ORDER BY id;
ALTER TABLE b MODIFY x VARCHAR(300);
SELECT id FROM b WHERE MATCH (x) AGAINST ('badger') ORDER BY id;
ALTER TABLE b CHANGE x xx VARCHAR(300);
SELECT id FROM b WHERE MATCH (xx) AGAINST ('badger') ORDER BY id;
ALTER TABLE b FORCE;
SELECT id FROM b WHERE MATCH (xx, y) AGAINST ('quick badger') ORDER BY id;
ALTER TABLE b DROP COLUMN xx;
SHOW CREATE TABLE b;
RENAME TABLE b TO c;
SELECT id FROM c WHERE MATCH (y) AGAINST ('fox') ORDER BY id;
ALTER TABLE c DROP PRIMARY KEY, MODIFY id INT, ADD PRIMARY KEY (z);
SELECT id FROM c WHERE MATCH (y) AGAINST ('fox') ORDER BY id;
CHECK TABLE c;
DROP TABLE c;
-- Other keys of rows.
CREATE TABLE h (t TEXT, FULLTEXT (t)) DEFAULT CHARSET=utf8mb4;
INSERT INTO h VALUES ('alpha beta'), ('beta gamma'), ('gamma delta');
SELECT t FROM h WHERE MATCH (t) AGAINST ('beta') ORDER BY t;
SELECT t, ROUND(MATCH (t) AGAINST ('gamma'), 4) FROM h ORDER BY t;
UPDATE h SET t = 'beta epsilon' WHERE t LIKE 'gamma%';
DELETE FROM h WHERE t LIKE 'alpha%';
SELECT t FROM h WHERE MATCH (t) AGAINST ('beta gamma') ORDER BY t;
CREATE TABLE k (s VARCHAR(40), n INT, t TEXT, PRIMARY KEY (s, n), FULLTEXT (t), FULLTEXT (s)) DEFAULT CHARSET=utf8mb4;
INSERT INTO k VALUES ('one word', 1, 'some text'), ('two words', 2, 'other text'), ('Two Words', 3, 'third');
SELECT s, n FROM k WHERE MATCH (t) AGAINST ('text') ORDER BY n;
SELECT s, n FROM k WHERE MATCH (s) AGAINST ('words') ORDER BY n;
UPDATE k SET s = 'three', n = 7 WHERE n = 2;
SELECT s, n FROM k WHERE MATCH (t) AGAINST ('other') ORDER BY n;
SELECT s, n FROM k WHERE MATCH (s) AGAINST ('words three') ORDER BY n;
-- Joins, unions, subqueries, prepared statements.
CREATE TABLE j (n INT PRIMARY KEY, label VARCHAR(20));
INSERT INTO j VALUES (1, 'first'), (3, 'third'), (7, 'seventh');
SELECT j.label, k.s FROM j JOIN k USING (n) WHERE MATCH (k.t) AGAINST ('text third') ORDER BY n;
SELECT j.label, ROUND(MATCH (k.t) AGAINST ('text'), 4) FROM k LEFT JOIN j USING (n) ORDER BY k.n;
SELECT label FROM j WHERE n IN (SELECT n FROM k WHERE MATCH (t) AGAINST ('text'));
SELECT n FROM k WHERE MATCH (t) AGAINST ('third') UNION SELECT n FROM k WHERE MATCH (s) AGAINST ('three') ORDER BY n;
PREPARE p FROM 'SELECT n FROM k WHERE MATCH (t) AGAINST (?) ORDER BY n';
SET @w = 'text';
EXECUTE p USING @w;
SET @w = 'third';
EXECUTE p USING @w;
DEALLOCATE PREPARE p;
SELECT n FROM k WHERE MATCH (t) AGAINST ('text') AND n > 1;
SELECT n FROM k WHERE n = 7 AND MATCH (t) AGAINST ('other') > 0;
SELECT n FROM k WHERE NOT MATCH (t) AGAINST ('text') ORDER BY n;
SELECT n FROM k ORDER BY MATCH (t) AGAINST ('third') DESC, n LIMIT 1;
UPDATE j, k SET k.t = 'joined text' WHERE j.n = k.n AND MATCH (k.t) AGAINST ('third');
SELECT n FROM k WHERE MATCH (t) AGAINST ('joined');
DELETE k FROM k JOIN j USING (n) WHERE MATCH (k.t) AGAINST ('joined');
SELECT n FROM k WHERE MATCH (t) AGAINST ('text') ORDER BY n;
DROP TABLE h, k, j;
-- Children that follow their parents.
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE q (id INT PRIMARY KEY, p INT, t TEXT, FULLTEXT (t), FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO p VALUES (1), (2);
INSERT INTO q VALUES (1, 1, 'parent one'), (2, 2, 'parent two');
INSERT INTO q VALUES (3, 9, 'parent none');
DELETE FROM p WHERE id = 1;
UPDATE p SET id = 5;
SELECT id, p FROM q WHERE MATCH (t) AGAINST ('parent') ORDER BY id;
CHECK TABLE q;
DROP TABLE q, p;
-- Collations.
CREATE TABLE u (id INT PRIMARY KEY, t TEXT, FULLTEXT (t)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
INSERT INTO u VALUES (1, 'Straße Café naïve'), (2, 'STRASSE cafe'), (3, 'Ελληνικά κείμενα'), (4, '日本語 テキスト'), (5, 'ßß ÀÉÎ õäö');
SELECT id FROM u WHERE MATCH (t) AGAINST ('cafe') ORDER BY id;
SELECT id FROM u WHERE MATCH (t) AGAINST ('strasse') ORDER BY id;
SELECT id FROM u WHERE MATCH (t) AGAINST ('ελληνικα') ORDER BY id;
SELECT id FROM u WHERE MATCH (t) AGAINST ('日本語') ORDER BY id;
SELECT id FROM u WHERE MATCH (t) AGAINST ('aei' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM u WHERE MATCH (t) AGAINST ('naï*' IN BOOLEAN MODE) ORDER BY id;
ALTER TABLE u CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
SELECT id FROM u WHERE MATCH (t) AGAINST ('cafe') ORDER BY id;
SELECT id FROM u WHERE MATCH (t) AGAINST ('CAFE') ORDER BY id;
ALTER TABLE u CONVERT TO CHARACTER SET latin1 COLLATE latin1_swedish_ci;
DROP TABLE u;
CREATE TABLE u (id INT PRIMARY KEY, t VARCHAR(200), FULLTEXT (t)) DEFAULT CHARSET=latin1;
INSERT INTO u VALUES (1, 'Grüße aus Köln'), (2, 'grusse koln');
SELECT id FROM u WHERE MATCH (t) AGAINST ('koln') ORDER BY id;
SELECT id FROM u WHERE MATCH (t) AGAINST ('gruss*' IN BOOLEAN MODE) ORDER BY id;
DROP TABLE u;
-- Refused definitions.
CREATE TABLE v (id INT, FULLTEXT (id));
CREATE TABLE v (id INT PRIMARY KEY, a VARCHAR(10) CHARSET latin1, b VARCHAR(10) CHARSET utf8mb4, FULLTEXT (a, b));
CREATE TABLE v (id INT PRIMARY KEY, a VARBINARY(10), FULLTEXT (a));
--! cheetah-only
CREATE TABLE v (id INT PRIMARY KEY, a TEXT COLLATE utf8mb4_uca1400_as_cs, FULLTEXT (a));
CREATE TABLE v (id INT PRIMARY KEY, a TEXT, b TEXT AS (a), FULLTEXT (b));
--! end
-- Apostrophes, underscores, digits, and separators of words.
CREATE TABLE w (id INT PRIMARY KEY, t TEXT, FULLTEXT (t)) DEFAULT CHARSET=utf8mb4;
INSERT INTO w VALUES (1, 'don''t l''eau rock''n''roll O''Neill''s'), (2, 'under_score 3D-print e-mail'), (3, 'a''b''cdef ''quoted'' twice''''over'),
  (4, 'tab	new
line,comma.point;semi:colon'), (5, 'xy xyz abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcde');
--! for SELECT 'don' UNION SELECT 'eau' UNION SELECT 'rock' UNION SELECT 'roll' UNION SELECT 'neill' UNION SELECT 'under_score' UNION SELECT 'under' UNION SELECT '3D' UNION SELECT 'print' UNION SELECT 'mail' UNION SELECT 'cdef' UNION SELECT 'quoted' UNION SELECT 'twice' UNION SELECT 'over' UNION SELECT 'new line' UNION SELECT 'semi colon' UNION SELECT 'xy' UNION SELECT 'xyz'
SELECT id FROM w WHERE MATCH (t) AGAINST ('$1') ORDER BY id;
SELECT id FROM w WHERE MATCH (t) AGAINST ('+$1' IN BOOLEAN MODE) ORDER BY id;
SELECT id FROM w WHERE MATCH (t) AGAINST ('"$1"' IN BOOLEAN MODE) ORDER BY id;
--! end
SELECT id FROM w WHERE MATCH (t) AGAINST ('abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd');
SELECT id FROM w WHERE MATCH (t) AGAINST ('abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcde');
SELECT id FROM w WHERE MATCH (t) AGAINST ('+xyz +xy' IN BOOLEAN MODE);
SELECT id FROM w WHERE MATCH (t) AGAINST ('"print mail"' IN BOOLEAN MODE);
SELECT id FROM w WHERE MATCH (t) AGAINST ('"print e-mail"' IN BOOLEAN MODE);
DROP TABLE w;
-- A phrase compares words that are too long for the index completely: also with words of the same
-- beginning, and with a word of just the maximum length.
SET @long = REPEAT('abcdefghij', 20);
--! for SELECT 'utf8mb4_unicode_ci' UNION SELECT 'utf8mb4_bin' UNION SELECT 'latin1_swedish_ci'
CREATE TABLE w (id INT PRIMARY KEY, t TEXT COLLATE $1, FULLTEXT (t));
INSERT INTO w SELECT seq, CONCAT('some ', LEFT(@long, 76 + seq), ' thing') FROM seq_1_to_124;
INSERT INTO w SELECT 200 + seq, CONCAT('some ', LEFT(@long, 76 + seq), 'x thing') FROM seq_1_to_124;
SELECT id FROM w WHERE MATCH (t) AGAINST (CONCAT('"some ', LEFT(@long, 84), ' thing"') IN BOOLEAN MODE);
SELECT id FROM w WHERE MATCH (t) AGAINST (CONCAT('"some ', LEFT(@long, 85), ' thing"') IN BOOLEAN MODE);
SELECT id FROM w WHERE MATCH (t) AGAINST (CONCAT('"some ', LEFT(@long, 85), '"') IN BOOLEAN MODE);
SELECT id FROM w WHERE MATCH (t) AGAINST (CONCAT('"some ', LEFT(@long, 84), 'x"'));
SELECT id FROM w WHERE MATCH (t) AGAINST (CONCAT('"some ', LEFT(@long, 168), ' thing"'));
SELECT id FROM w WHERE MATCH (t) AGAINST (CONCAT('"some ', LEFT(@long, 169), ' thing"'));
SELECT id FROM w WHERE MATCH (t) AGAINST (CONCAT('"some ', UPPER(LEFT(@long, 200)), ' thing"'));
DROP TABLE w;
--! end
