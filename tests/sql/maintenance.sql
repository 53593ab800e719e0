-- SHOW TABLE STATUS, ANALYZE, CHECK, OPTIMIZE, REPAIR, CHECKSUM, FLUSH, information_schema, DISABLE
-- KEYS, CACHE INDEX.
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(100), c INT, KEY (b), KEY (c)) COMMENT = 'a comment';
INSERT INTO t SELECT seq, CONCAT('b', seq), seq % 10 FROM seq_1_to_1234;
--! cheetah-only
--! columns Name,Rows,Auto_increment,Collation,Comment
SHOW TABLE STATUS LIKE 't';
--! end
--! cheetah-only
SELECT table_rows, table_comment FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 't';
--! end
DELETE FROM t WHERE a > 1000;
BEGIN;
INSERT INTO t VALUES (5000, 'x', 1);
ROLLBACK;
ANALYZE TABLE t;
CHECK TABLE t;
CHECK TABLE t QUICK;
CHECK TABLE t FAST;
CHECK TABLE t EXTENDED;
CHECK TABLE t CHANGED;
CHECK TABLE t FOR UPGRADE;
OPTIMIZE TABLE t;
--! ignore
REPAIR TABLE t;
CHECKSUM TABLE t, nosuch;
CHECKSUM TABLE t QUICK;
FLUSH TABLES;
FLUSH TABLES t WITH READ LOCK;
UNLOCK TABLES;
SELECT COUNT(*), SUM(a) FROM t;
--! columns Table,Non_unique,Key_name,Seq_in_index,Column_name,Collation,Sub_part,Null,Index_type
SHOW INDEX FROM t;
SELECT index_name, column_name, seq_in_index, nullable, index_type FROM information_schema.statistics WHERE table_schema = '$DB' ORDER BY 1, 3;
-- The table has rows, so both statements are ignored, with a note.
ALTER TABLE t DISABLE KEYS;
INSERT INTO t VALUES (6000, 'disabled', 1);
ALTER TABLE t ENABLE KEYS;
SELECT a FROM t FORCE INDEX (b) WHERE b = 'disabled';
--! columns Table,Op,Msg_type
CACHE INDEX t IN default;
ANALYZE TABLE t PERSISTENT FOR ALL;
SELECT column_name, min_value, max_value FROM mysql.column_stats WHERE db_name = '$DB' ORDER BY 1;
SELECT engine, COUNT(*) FROM information_schema.tables WHERE table_schema = '$DB' GROUP BY engine;
--! restart
--! cheetah-only
SELECT table_rows FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 't';
--! end
CHECK TABLE t;
LOCK TABLES t WRITE;
INSERT INTO t VALUES (7000, 'locked', 1);
UPDATE t SET c = c + 1 WHERE a < 100;
ALTER TABLE t ADD d INT;
SELECT COUNT(*) FROM t;
UNLOCK TABLES;
LOCK TABLES t READ;
INSERT INTO t VALUES (7001, 'locked', 1, 1);
SELECT COUNT(*) FROM t;
UNLOCK TABLES;
SHOW FULL COLUMNS FROM t;
SHOW ENGINE nosuchengine STATUS;
