-- Prepared transactions while columns are added and dropped: their changes are committed or rolled
-- back in rows with other columns than at the time of the change. InnoDB keeps such a table locked
-- after a crash.
--! cheetah-only
CREATE TABLE t (a INT PRIMARY KEY, b INT, d TEXT, e VARCHAR(30), KEY b (b)) ENGINE=CHEETAH;
INSERT INTO t SELECT seq, seq % 10, IF(seq % 4 = 1, REPEAT('x', 20000), seq), CONCAT('e', seq) FROM seq_1_to_200;
ALTER TABLE t ADD f INT DEFAULT 5 AFTER a, ALGORITHM=INSTANT;
XA START 'back';
UPDATE t SET d = REPEAT('n', 20000), b = 77 WHERE a IN (8, 9);
UPDATE t SET e = 'changed', f = 6 WHERE a = 13;
DELETE FROM t WHERE a IN (10, 17);
INSERT INTO t VALUES (1000, 1, 1, REPEAT('y', 30000), 'new');
UPDATE t SET a = 2000 WHERE a = 21;
XA END 'back';
XA PREPARE 'back';
--! connection other
XA START 'stay';
UPDATE t SET d = REPEAT('m', 20000), b = 78 WHERE a IN (48, 49);
UPDATE t SET e = 'changed', f = 6 WHERE a = 53;
DELETE FROM t WHERE a IN (50, 57);
INSERT INTO t VALUES (1001, 1, 1, REPEAT('z', 30000), 'new');
UPDATE t SET a = 2001 WHERE a = 61;
XA END 'stay';
XA PREPARE 'stay';
--! connection default
--! kill
ALTER TABLE t DROP e, ADD z INT DEFAULT 9 FIRST, ALGORITHM=INSTANT;
INSERT INTO t VALUES (3, 3000, 4, 5, REPEAT('q', 25000));
UPDATE t SET z = 10 WHERE a = 100;
--! kill
ALTER TABLE t DROP f, ADD y VARCHAR(10) NOT NULL DEFAULT 'why' AFTER b, ALGORITHM=INSTANT;
XA ROLLBACK 'back';
XA COMMIT 'stay';
CHECK TABLE t EXTENDED;
SELECT z, a, b, y, LENGTH(d), LEFT(d, 3) FROM t WHERE a IN (8, 9, 10, 13, 17, 21, 48, 49, 50, 53, 57, 61, 100, 1000, 1001, 2000, 2001, 3000) ORDER BY a;
SELECT COUNT(*), SUM(a), SUM(z), SUM(LENGTH(d)), SUM(CRC32(d)) FROM t;
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (b) WHERE b > 9;
--! kill
CHECK TABLE t EXTENDED;
SELECT COUNT(*), SUM(a), SUM(z), SUM(LENGTH(d)), SUM(CRC32(d)) FROM t;
ALTER TABLE t DROP d, ALGORITHM=INSTANT;
UPDATE t SET b = b + 1;
OPTIMIZE TABLE t;
CHECK TABLE t EXTENDED;
SELECT COUNT(*), SUM(a), SUM(b), SUM(z), MIN(y), MAX(y) FROM t;
-- EXCHANGE of tables that have the same columns now but had different columns before.
CREATE TABLE p (a INT PRIMARY KEY, b INT, c INT) ENGINE=CHEETAH PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (200));
CREATE TABLE x (a INT PRIMARY KEY, c INT) ENGINE=CHEETAH;
INSERT INTO p SELECT seq, seq, seq FROM seq_1_to_199;
INSERT INTO x SELECT seq, seq * 10 FROM seq_1_to_50;
ALTER TABLE x ADD b INT DEFAULT 7 AFTER a, ALGORITHM=INSTANT;
ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE x;
SELECT COUNT(*), SUM(a), SUM(b), SUM(c) FROM p;
SELECT COUNT(*), SUM(a), SUM(b), SUM(c) FROM x;
ALTER TABLE p DROP b, ALGORITHM=INSTANT;
UPDATE p SET c = c + 1 WHERE a % 2 = 0;
CHECK TABLE p, x EXTENDED;
SELECT COUNT(*), SUM(a), SUM(c) FROM p;
ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE x;
DROP TABLE t, p, x;
--! end
