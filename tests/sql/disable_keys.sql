-- ALTER TABLE .. DISABLE KEYS and ENABLE KEYS: queries give the same results at any moment. InnoDB
-- ignores both statements, with a note.
SET cheetah_disable_keys = ON;
CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b INT, c VARCHAR(60), d TEXT, u INT, v INT AS (b % 10) VIRTUAL, KEY b (b), KEY c (c, b), KEY d (d(20)), UNIQUE u (u), KEY v (v)) ENGINE=$ENGINE;
INSERT INTO t (b, c, d, u) SELECT seq * 7919 % 997, CONCAT('text ', seq % 300), IF(seq % 500 = 9, REPEAT('large', 5000), CONCAT('d', seq)), seq FROM seq_1_to_2000;
--! any
ALTER TABLE t DISABLE KEYS;
INSERT INTO t (b, c, d, u) SELECT seq * 7919 % 997, CONCAT('text ', seq % 300), CONCAT('d', seq), seq FROM seq_2001_to_4000;
UPDATE t SET b = b + 1000 WHERE a BETWEEN 100 AND 300;
UPDATE t SET a = a + 100000 WHERE a BETWEEN 400 AND 420;
DELETE FROM t WHERE a BETWEEN 500 AND 600;
REPLACE INTO t (a, b, c, d, u) VALUES (7, 5000, 'replaced', 'd', 7), (900001, 5001, 'new', 'd', 8);
--! numbers
INSERT INTO t (b, c, u) VALUES (1, 'duplicate', 9);
START TRANSACTION;
UPDATE t SET c = 'taken back', b = -1;
SELECT COUNT(*), SUM(b) FROM t WHERE c = 'taken back';
ROLLBACK;
SELECT COUNT(*), SUM(a) FROM t WHERE b BETWEEN 100 AND 300;
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (b) WHERE b BETWEEN 100 AND 300;
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (c) WHERE c LIKE 'text 7%';
SELECT b, COUNT(*) FROM t FORCE INDEX (b) GROUP BY b ORDER BY b DESC LIMIT 5;
SELECT MIN(b), MAX(b), MAX(c) FROM t;
SELECT COUNT(*) FROM t FORCE INDEX (v) WHERE v = 3;
SELECT COUNT(*) FROM t WHERE u = 77;
SELECT COUNT(DISTINCT t1.a) FROM t AS t1 JOIN t AS t2 ON t1.b = t2.b WHERE t2.a < 20;
CHECK TABLE t EXTENDED;
--! any
ANALYZE TABLE t;
SELECT COUNT(*), SUM(b) FROM t;
--! kill
SET cheetah_disable_keys = ON;
SELECT COUNT(*), SUM(a) FROM t WHERE b BETWEEN 100 AND 300;
CHECK TABLE t EXTENDED;
INSERT INTO t (b, c, u) VALUES (150, 'after the crash', 100000);
SELECT COUNT(*), SUM(a) FROM t WHERE b BETWEEN 100 AND 300;
--! any
ALTER TABLE t ENABLE KEYS;
CHECK TABLE t EXTENDED;
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (b) WHERE b BETWEEN 100 AND 300;
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (c) WHERE c LIKE 'text 7%';
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (d) WHERE d LIKE 'large%';
SELECT COUNT(*) FROM t FORCE INDEX (v) WHERE v = 3;
SELECT MIN(b), MAX(b), MAX(c) FROM t;
UPDATE t SET b = b - 1, c = CONCAT(c, '!') WHERE a % 7 = 0;
DELETE FROM t WHERE b = 150;
CHECK TABLE t EXTENDED;
--! kill
SET cheetah_disable_keys = ON;
CHECK TABLE t EXTENDED;
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (b) WHERE b BETWEEN 100 AND 300;
-- The statements of a dump: under LOCK TABLES, one after the other.
CREATE TABLE dump LIKE t;
LOCK TABLES dump WRITE, t READ;
--! any
ALTER TABLE dump DISABLE KEYS;
INSERT INTO dump (a, b, c, d, u) SELECT a, b, c, d, u FROM t WHERE a <= 1000;
INSERT INTO dump (a, b, c, d, u) SELECT a, b, c, d, u FROM t WHERE a > 1000;
SELECT COUNT(*), SUM(a) FROM dump WHERE b BETWEEN 100 AND 300;
--! any
ALTER TABLE dump ENABLE KEYS;
SELECT COUNT(*), SUM(a) FROM dump FORCE INDEX (b) WHERE b BETWEEN 100 AND 300;
INSERT INTO dump (a, b, c) VALUES (999999, 200, 'last');
SELECT COUNT(*), SUM(a) FROM dump FORCE INDEX (b) WHERE b BETWEEN 100 AND 300;
UNLOCK TABLES;
CHECK TABLE dump EXTENDED;
-- Other statements on a table with disabled keys.
--! any
ALTER TABLE dump DISABLE KEYS;
TRUNCATE dump;
INSERT INTO dump (a, b, c, d, u) SELECT a, b, c, d, u FROM t;
RENAME TABLE dump TO dump2;
SELECT COUNT(*), SUM(a) FROM dump2 WHERE b BETWEEN 100 AND 300;
ALTER TABLE dump2 ADD e INT DEFAULT 5, ALGORITHM=COPY;
SELECT COUNT(*), SUM(a + e) FROM dump2 WHERE b BETWEEN 100 AND 300;
CHECK TABLE dump2 EXTENDED;
--! any
ALTER TABLE dump2 ENABLE KEYS, ADD f INT;
SELECT COUNT(*), SUM(a + e) FROM dump2 FORCE INDEX (b) WHERE b BETWEEN 100 AND 300;
CHECK TABLE dump2 EXTENDED;
--! any
ALTER TABLE dump2 DISABLE KEYS;
OPTIMIZE TABLE dump2;
SELECT COUNT(*), SUM(a + e) FROM dump2 WHERE b BETWEEN 100 AND 300;
CHECK TABLE dump2 EXTENDED;
--! any
ALTER TABLE dump2 ENABLE KEYS;
SELECT COUNT(*), SUM(a + e) FROM dump2 FORCE INDEX (b) WHERE b BETWEEN 100 AND 300;
CHECK TABLE dump2 EXTENDED;
-- The server finds duplicates of USING HASH through the index, which stays enabled; indexes of
-- partitions stay enabled, too.
CREATE TABLE h (a INT PRIMARY KEY, b TEXT, c INT, UNIQUE (b) USING HASH, KEY (c)) ENGINE=$ENGINE;
--! any
ALTER TABLE h DISABLE KEYS;
INSERT INTO h VALUES (1, 'one', 1), (2, 'two', 2);
--! numbers
INSERT INTO h VALUES (3, 'one', 3);
--! any
ALTER TABLE h ENABLE KEYS;
CHECK TABLE h EXTENDED;
CREATE TABLE p (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=$ENGINE PARTITION BY HASH (a) PARTITIONS 3;
--! any
ALTER TABLE p DISABLE KEYS;
INSERT INTO p SELECT seq, seq % 10 FROM seq_1_to_100;
SELECT COUNT(*) FROM p FORCE INDEX (b) WHERE b = 3;
--! any
ALTER TABLE p ENABLE KEYS;
CHECK TABLE p EXTENDED;
CREATE TEMPORARY TABLE tmp (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=$ENGINE;
--! any
ALTER TABLE tmp DISABLE KEYS;
INSERT INTO tmp SELECT seq, seq % 10 FROM seq_1_to_100;
SELECT COUNT(*) FROM tmp FORCE INDEX (b) WHERE b = 3;
--! cheetah-only
-- SHOW INDEX shows disabled keys, also after a restart; HANDLER cannot use them; DISABLE KEYS may
-- be repeated; older snapshots cannot read the new indexes.
ALTER TABLE t DISABLE KEYS;
ALTER TABLE t DISABLE KEYS;
--! columns Key_name,Seq_in_index,Comment
SHOW INDEX FROM t;
--! restart
SET cheetah_disable_keys = ON;
--! columns Key_name,Seq_in_index,Comment
SHOW INDEX FROM t;
EXPLAIN SELECT * FROM t FORCE INDEX (b) WHERE b = 5;
HANDLER t OPEN;
HANDLER t READ b FIRST;
HANDLER t READ u = (77);
HANDLER t CLOSE;
--! connection old
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection default
ALTER TABLE t ENABLE KEYS;
ALTER TABLE t ENABLE KEYS;
--! columns Key_name,Seq_in_index,Comment
SHOW INDEX FROM t;
--! connection old
SELECT COUNT(*) > 0 FROM t;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b = 5;
ROLLBACK;
--! connection default
EXPLAIN SELECT * FROM t FORCE INDEX (b) WHERE b = 5;
--! end
-- A table with disabled keys cannot become a partition, because the server could not see its
-- disabled keys.
CREATE TABLE loose (id INT PRIMARY KEY, a INT, KEY (a));
INSERT INTO loose VALUES (1, 10), (2, 20);
CREATE TABLE parts (id INT PRIMARY KEY, a INT, KEY (a)) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
--! cheetah-only
ALTER TABLE loose DISABLE KEYS;
ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE loose;
ALTER TABLE loose ENABLE KEYS;
--! end
ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE loose;
SELECT id FROM parts FORCE INDEX (a) WHERE a > 5 ORDER BY a;
CHECK TABLE parts EXTENDED;
DROP TABLE parts, loose;
