-- Statements under LOCK TABLES .. WRITE, like those of a dump: the table is locked as a whole,
-- unless a prepared transaction still has locks in it.
CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(20), UNIQUE KEY b (b)) ENGINE=$ENGINE;
CREATE TABLE other (a INT PRIMARY KEY) ENGINE=$ENGINE;
INSERT INTO t SELECT seq, seq * 10, CONCAT('c', seq) FROM seq_1_to_50;
LOCK TABLES t WRITE, other WRITE;
INSERT INTO t VALUES (100, 1000, 'new'), (101, 1010, 'new'), (102, 1020, 'new');
INSERT INTO t VALUES (103, 1030, 'in vain'), (101, 1, 'twice');
INSERT IGNORE INTO t VALUES (103, 1030, 'new'), (101, 1, 'twice'), (104, 1000, 'twice');
INSERT INTO t VALUES (101, 5, '') ON DUPLICATE KEY UPDATE c = 'changed';
REPLACE INTO t VALUES (105, 1020, 'instead');
UPDATE t SET b = b + 1 WHERE a > 40;
UPDATE t SET b = 10 WHERE a IN (2, 3);
DELETE FROM t WHERE a % 7 = 0;
INSERT INTO other SELECT a FROM t;
SELECT COUNT(*), SUM(a), SUM(b) FROM t;
--! connection second
SET lock_wait_timeout = 1;
SELECT COUNT(*) FROM t;
INSERT INTO t VALUES (200, 2000, '');
--! connection default
UNLOCK TABLES;
--! connection second
SELECT COUNT(*), SUM(a), SUM(b) FROM t;
INSERT INTO t VALUES (200, 2000, '');
DELETE FROM t WHERE a = 200;
-- The locks of a transaction that continues.
--! connection default
SET autocommit = 0;
LOCK TABLES t WRITE;
COMMIT;
INSERT INTO t VALUES (300, 3000, '');
--! cheetah-only
--! connection second
SELECT lock_mode, lock_type, lock_table FROM information_schema.cheetah_locks;
--! connection default
--! end
ROLLBACK;
UNLOCK TABLES;
SET autocommit = 1;
-- Prepared transactions have no connection after a crash, so no metadata lock keeps other sessions
-- from the table.
--! cheetah-only
XA START 'x';
INSERT INTO t VALUES (400, 4000, 'prepared');
UPDATE t SET c = 'prepared' WHERE a = 1;
DELETE FROM t WHERE a = 2;
XA END 'x';
XA PREPARE 'x';
--! kill
SET innodb_lock_wait_timeout = 1, cheetah_lock_wait_timeout = 1;
LOCK TABLES t WRITE;
INSERT INTO t VALUES (401, 4010, 'free'), (402, 4020, 'free');
INSERT INTO t VALUES (400, 1, 'in the way');
INSERT INTO t VALUES (403, 4000, 'in the way');
UPDATE t SET c = 'in the way' WHERE a = 1;
DELETE FROM t WHERE a = 2;
UPDATE t SET c = 'free' WHERE a = 3;
UNLOCK TABLES;
XA COMMIT 'x';
LOCK TABLES t WRITE;
INSERT INTO t VALUES (400, 1, 'twice');
INSERT INTO t VALUES (2, 4040, 'free again');
UNLOCK TABLES;
SELECT a, b, c FROM t WHERE a IN (1, 2, 3) OR a >= 400 ORDER BY a;
CHECK TABLE t EXTENDED;
--! end
