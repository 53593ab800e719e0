-- DISABLE KEYS as in every dump: it has an effect if the table is empty for all transactions, or if
-- the session allows it; otherwise both engines give the same note.
CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(20), KEY b (b), KEY c (c)) ENGINE=$ENGINE;
INSERT INTO t SELECT seq, seq % 100, CONCAT('v', seq) FROM seq_1_to_1000;
/*!40000 ALTER TABLE t DISABLE KEYS */;
SHOW WARNINGS;
INSERT INTO t VALUES (5000, 5, 'x');
--! columns possible_keys,key
EXPLAIN SELECT * FROM t WHERE b = 5;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b = 5;
/*!40000 ALTER TABLE t ENABLE KEYS */;
SHOW WARNINGS;
--! columns Key_name,Seq_in_index,Comment
SHOW INDEX FROM t;
-- One row that waits for its commit, or that an open transaction has deleted.
CREATE TABLE one (a INT PRIMARY KEY, b INT, KEY b (b)) ENGINE=$ENGINE;
XA START 'one';
INSERT INTO one VALUES (1, 1);
XA END 'one';
XA PREPARE 'one';
--! connection other
SET lock_wait_timeout = 1;
ALTER TABLE one DISABLE KEYS;
--! connection default
XA COMMIT 'one';
ALTER TABLE one DISABLE KEYS;
SHOW WARNINGS;
ALTER TABLE one ENABLE KEYS;
SHOW WARNINGS;
-- Statements that copy the table, and prepared statements.
ALTER TABLE t DISABLE KEYS, ADD COLUMN d INT DEFAULT 3, ALGORITHM=COPY;
SHOW WARNINGS;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b = 5;
ALTER TABLE t DISABLE KEYS, COMMENT 'c';
SHOW WARNINGS;
PREPARE p FROM 'ALTER TABLE t DISABLE KEYS';
EXECUTE p;
SHOW WARNINGS;
LOCK TABLES t WRITE;
ALTER TABLE t DISABLE KEYS;
SHOW WARNINGS;
INSERT INTO t VALUES (6000, 6, 'y', 6);
ALTER TABLE t ENABLE KEYS;
UNLOCK TABLES;
--! columns Key_name,Seq_in_index,Comment
SHOW INDEX FROM t;
CHECK TABLE t EXTENDED;
--! cheetah-only
-- An empty table: its keys are disabled until ENABLE KEYS, also if the load is interrupted and
-- repeated.
CREATE TABLE e (a INT PRIMARY KEY, b INT, KEY b (b)) ENGINE=$ENGINE;
ALTER TABLE e DISABLE KEYS;
SHOW WARNINGS;
INSERT INTO e VALUES (1, 1), (2, 2);
--! columns Key_name,Comment
SHOW INDEX FROM e;
ALTER TABLE e DISABLE KEYS;
SHOW WARNINGS;
--! columns Key_name,Comment
SHOW INDEX FROM e;
ALTER TABLE e ADD COLUMN c INT, ALGORITHM=COPY;
--! columns Key_name,Comment
SHOW INDEX FROM e;
ALTER TABLE e ENABLE KEYS;
SHOW WARNINGS;
--! columns Key_name,Comment
SHOW INDEX FROM e;
CHECK TABLE e EXTENDED;
-- Deleted rows that an older snapshot still sees.
--! connection other
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection default
DELETE FROM e;
ALTER TABLE e DISABLE KEYS;
SHOW WARNINGS;
--! connection other
SELECT COUNT(*) FROM e FORCE INDEX (b) WHERE b > 0;
COMMIT;
--! connection default
TRUNCATE TABLE e;
ALTER TABLE e DISABLE KEYS;
SHOW WARNINGS;
-- ENABLE KEYS in the same statement as a copy.
INSERT INTO e VALUES (1, 1, 1);
ALTER TABLE e ENABLE KEYS, ADD COLUMN d INT, ALGORITHM=COPY;
--! columns Key_name,Comment
SHOW INDEX FROM e;
-- The session allows it.
SET cheetah_disable_keys = ON;
ALTER TABLE e DISABLE KEYS;
SHOW WARNINGS;
--! columns Key_name,Comment
SHOW INDEX FROM e;
ALTER TABLE e ENABLE KEYS;
DROP TABLE e;
--! end
DROP TABLE t, one;
