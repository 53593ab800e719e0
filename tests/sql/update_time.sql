-- UPDATE_TIME: the time of the last change of a table by a committed transaction since the start of
-- the server, as in InnoDB.
CREATE VIEW changed AS SELECT table_name, update_time IS NOT NULL AS is_told,
 update_time BETWEEN NOW() - INTERVAL 10 MINUTE AND NOW() + INTERVAL 1 SECOND AS is_now FROM information_schema.tables
 WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE';
CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(10));
CREATE TABLE o (a INT PRIMARY KEY);
SELECT * FROM changed ORDER BY table_name;
-- A rolled-back change, a read, a lock, and a statement that finds no row do not count as changes.
SELECT * FROM t FOR UPDATE;
BEGIN;
INSERT INTO t VALUES (1, 1, 'a');
ROLLBACK;
BEGIN;
INSERT INTO o VALUES (1);
SAVEPOINT s;
INSERT INTO t VALUES (1, 1, 'a');
ROLLBACK TO s;
SELECT * FROM changed ORDER BY table_name;
COMMIT;
UPDATE t SET b = 2 WHERE a = 7;
SELECT * FROM changed ORDER BY table_name;
INSERT INTO t VALUES (1, 1, 'a');
SELECT * FROM changed ORDER BY table_name;
-- Changes in place, RENAME and TRUNCATE keep the time; a copy is a new table.
ALTER TABLE t ADD KEY (b), ALGORITHM=INPLACE;
ALTER TABLE t ADD d INT, ALGORITHM=INSTANT;
TRUNCATE t;
RENAME TABLE t TO r;
SELECT * FROM changed ORDER BY table_name;
ALTER TABLE r FORCE, ALGORITHM=COPY;
CREATE TABLE s SELECT * FROM o;
SELECT * FROM changed ORDER BY table_name;
DELETE FROM o;
INSERT INTO r (a) VALUES (1);
SELECT * FROM changed ORDER BY table_name;
-- Loads, partitions, sequences, children that follow their parents.
CREATE TABLE l (a INT PRIMARY KEY);
INSERT INTO l SELECT seq FROM seq_1_to_100000;
CREATE TABLE p (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 3;
CREATE SEQUENCE q;
SELECT NEXT VALUE FOR q;
CREATE TABLE parent (a INT PRIMARY KEY);
CREATE TABLE child (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES parent (a) ON DELETE SET NULL);
SELECT * FROM changed ORDER BY table_name;
INSERT INTO p VALUES (5);
SELECT * FROM changed WHERE table_name = 'p';
SELECT partition_name, update_time IS NOT NULL FROM information_schema.partitions WHERE table_schema = DATABASE() AND table_name = 'p' ORDER BY 1;
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (1, 1);
SELECT * FROM changed ORDER BY table_name;
-- Two-phase commit, also if another connection commits.
CREATE TABLE x (a INT PRIMARY KEY);
--! connection a
XA START 'update time';
INSERT INTO x VALUES (1);
XA END 'update time';
XA PREPARE 'update time';
--! disconnect a
--! connection default
SELECT * FROM changed WHERE table_name = 'x';
--! wait SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE info LIKE 'XA%'
XA COMMIT 'update time';
SELECT * FROM changed WHERE table_name = 'x';
-- A cascade changes the child, too.
--! restart
SELECT * FROM changed ORDER BY table_name;
DELETE FROM parent;
SELECT * FROM changed WHERE table_name IN ('parent', 'child') ORDER BY table_name;
DROP VIEW changed;
