-- CREATE OR REPLACE, CREATE .. SELECT, LIKE, IF NOT EXISTS, errors, DROP, TRUNCATE, RENAME, DROP
-- DATABASE, unusual names.
CREATE TABLE t (a INT PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
CREATE TABLE t (a INT);
CREATE TABLE IF NOT EXISTS t (z INT);
CREATE OR REPLACE TABLE t (a INT PRIMARY KEY, b INT, KEY (b));
SELECT * FROM t;
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE TABLE s AS SELECT * FROM t;
SHOW CREATE TABLE s;
CREATE TABLE s2 (id INT AUTO_INCREMENT PRIMARY KEY, b INT UNIQUE) SELECT b FROM t;
SELECT * FROM s2 ORDER BY id;
CREATE TABLE s3 (a INT PRIMARY KEY) SELECT 1 a UNION ALL SELECT 1;
SHOW TABLES LIKE 's3';
CREATE TABLE s3 (a INT PRIMARY KEY) IGNORE SELECT 1 a UNION ALL SELECT 1;
CREATE TABLE s4 (a INT PRIMARY KEY, c INT) REPLACE SELECT 1 a, 5 c UNION ALL SELECT 1, 6;
SELECT * FROM s4;
CREATE OR REPLACE TABLE s4 (a INT PRIMARY KEY) SELECT 1 a UNION ALL SELECT 1;
SHOW TABLES LIKE 's4';
CREATE TABLE l LIKE t;
CREATE OR REPLACE TABLE l LIKE t;
SHOW CREATE TABLE l;
INSERT INTO l SELECT * FROM t;
TRUNCATE l;
SELECT COUNT(*) FROM l;
DROP TABLE l, nosuch;
DROP TABLE IF EXISTS l, nosuch;
RENAME TABLE t TO t1, s TO t, t1 TO s;
SELECT * FROM s ORDER BY a;
--! cheetah-only
RENAME TABLE s TO nosuchdb.s;
--! end
RENAME TABLE s TO t;
CREATE DATABASE sqltest_b;
RENAME TABLE s TO sqltest_b.moved;
SELECT * FROM sqltest_b.moved ORDER BY a;
CREATE TABLE sqltest_b.x AS SELECT * FROM sqltest_b.moved;
CREATE TABLE sqltest_b.p (a INT) PARTITION BY HASH (a) PARTITIONS 3;
SHOW TABLES FROM sqltest_b;
DROP DATABASE sqltest_b;
CREATE DATABASE sqltest_b;
SHOW TABLES FROM sqltest_b;
CREATE TABLE sqltest_b.moved (a INT PRIMARY KEY);
SELECT * FROM sqltest_b.moved;
DROP DATABASE sqltest_b;
CREATE TABLE dupcol (a INT, A INT);
CREATE TABLE dupkey (a INT, KEY k (a), KEY k (a));
CREATE TABLE twopk (a INT PRIMARY KEY, b INT PRIMARY KEY);
--! error 1072
CREATE TABLE nokey (a INT, KEY (b));
--! error 1064
CREATE TABLE nocols ();
CREATE TABLE e1 (a INT) ENGINE=nosuch;
CREATE TABLE `with space` (`a b` INT PRIMARY KEY, `ключ` INT, KEY `i x` (`ключ`));
INSERT INTO `with space` VALUES (1, 2);
CREATE TABLE `#hash/slash\back.dot` (a INT PRIMARY KEY);
INSERT INTO `#hash/slash\back.dot` VALUES (1);
CREATE TABLE `таблица_表_😀` (a INT);
CREATE TABLE `таблица_表` (a INT PRIMARY KEY);
INSERT INTO `таблица_表` VALUES (3);
CREATE TABLE `a``b'c"d$%&*()` (a INT PRIMARY KEY);
INSERT INTO `a``b'c"d$%&*()` VALUES (4);
CREATE TABLE `UPPER` (a INT PRIMARY KEY);
CREATE TABLE `upper` (a INT PRIMARY KEY);
INSERT INTO `UPPER` VALUES (5);
SELECT (SELECT COUNT(*) FROM `UPPER`), (SELECT COUNT(*) FROM `upper`);
CREATE TABLE `con` (a INT);
CREATE TABLE `#sql-mine` (a INT PRIMARY KEY);
INSERT INTO `#sql-mine` VALUES (1);
CREATE TABLE `trailing ` (a INT);
CREATE TABLE `x#p#y` (a INT PRIMARY KEY);
INSERT INTO `x#p#y` VALUES (1);
CREATE TABLE `abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd` (`abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd` INT, KEY `abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd` (`abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd`));
CREATE TABLE `表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表表` (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 2;
CREATE TABLE `表表表表表表表表表表表表表表表表` (a INT PRIMARY KEY) PARTITION BY HASH (a) (PARTITION `часть один`, PARTITION `表`);
INSERT INTO `表表表表表表表表表表表表表表表表` VALUES (1), (2), (3);
SELECT a FROM `表表表表表表表表表表表表表表表表` ORDER BY a;
ALTER TABLE `with space` RENAME TO `#`, ADD COLUMN `` INT;
-- (When a copying ALTER TABLE renames a table with such a name, the server leaves its old .frm file
-- behind, with every engine.)
ALTER TABLE `with space` ADD COLUMN `c/d` INT;
ALTER TABLE `with space` RENAME TO `#`;
SELECT * FROM `#`;
ALTER TABLE `#hash/slash\back.dot` ADD b INT;
SHOW TABLES;
--! restart
SELECT * FROM `#hash/slash\back.dot`;
SELECT * FROM `таблица_表`;
SELECT * FROM `a``b'c"d$%&*()`;
SELECT * FROM `#sql-mine`;
SELECT COUNT(*) FROM `表表表表表表表表表表表表表表表表`;
RENAME TABLE `таблица_表` TO `2`, `#` TO `таблица_表`;
SELECT * FROM `таблица_表`;
CREATE DATABASE `sqltest #/база`;
CREATE TABLE `sqltest #/база`.`t/1` (a INT PRIMARY KEY);
INSERT INTO `sqltest #/база`.`t/1` VALUES (9);
--! restart
SELECT * FROM `sqltest #/база`.`t/1`;
DROP DATABASE `sqltest #/база`;
DROP TABLE `UPPER`;
SELECT * FROM `upper`;
-- Many small tables are created and dropped.
--! for SELECT seq, seq FROM mysql.seq_1_to_40
CREATE TABLE many$1 (a INT PRIMARY KEY, b INT, KEY (b));
INSERT INTO many$1 VALUES ($1, $1);
--! end
SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'many%';
--! for SELECT seq, seq FROM mysql.seq_1_to_40
DROP TABLE many$1;
--! end
