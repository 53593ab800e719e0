-- Consistent reads of every kind, at every isolation level, with concurrent transactions.
CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT, body VARCHAR(100), KEY k (k), KEY kv (k, v));
INSERT INTO t SELECT seq, seq * 10, seq * 100, CONCAT('body ', seq) FROM seq_1_to_6;
--! connection w
SET innodb_lock_wait_timeout = 1;
--! cheetah-only
SET cheetah_lock_wait_timeout = 1;
--! end
--! connection r
SET innodb_lock_wait_timeout = 1;
--! cheetah-only
SET cheetah_lock_wait_timeout = 1;
--! end
-- A reader waits for no writer, and sees the committed rows: by every index, by key and by range,
-- with and without rows.
--! connection w
BEGIN;
UPDATE t SET v = v + 1, body = 'changed' WHERE id <= 3;
UPDATE t SET k = 45 WHERE id = 4;
UPDATE t SET id = 50 WHERE id = 5;
DELETE FROM t WHERE id = 6;
INSERT INTO t VALUES (7, 70, 700, 'new');
--! connection r
SELECT * FROM t ORDER BY id;
SELECT COUNT(*) FROM t;
SELECT * FROM t WHERE id = 1;
SELECT * FROM t WHERE id IN (4, 5, 6, 7, 50) ORDER BY id;
SELECT * FROM t FORCE INDEX (k) WHERE k >= 0 ORDER BY k;
SELECT * FROM t FORCE INDEX (k) WHERE k = 40;
SELECT * FROM t FORCE INDEX (k) WHERE k = 45;
SELECT * FROM t FORCE INDEX (k) WHERE k = 60;
SELECT k, v FROM t FORCE INDEX (kv) WHERE k >= 0 ORDER BY k, v;
SELECT k, v FROM t FORCE INDEX (kv) WHERE k BETWEEN 40 AND 50 ORDER BY k DESC, v DESC;
SELECT id FROM t FORCE INDEX (k) WHERE k > 35 ORDER BY k DESC;
SELECT MIN(k), MAX(k), SUM(v) FROM t;
SELECT MIN(id), MAX(id) FROM t;
SELECT * FROM t FORCE INDEX (k) WHERE k BETWEEN 10 AND 60 AND v % 2 = 1 ORDER BY k;
SELECT a.id, b.id FROM t a JOIN t b ON b.k = a.k + 10 ORDER BY a.id;
SELECT * FROM t WHERE id = 2 OR k = 60 ORDER BY id;
CHECKSUM TABLE t;
-- The writer sees its own changes.
--! connection w
SELECT * FROM t ORDER BY id;
SELECT COUNT(*) FROM t;
SELECT k, v FROM t FORCE INDEX (kv) WHERE k >= 0 ORDER BY k, v;
SELECT * FROM t FORCE INDEX (k) WHERE k = 40;
SELECT * FROM t FORCE INDEX (k) WHERE k = 45;
SAVEPOINT s;
DELETE FROM t WHERE id < 3;
INSERT INTO t VALUES (1, 11, 111, 'again');
SELECT * FROM t WHERE id < 4 ORDER BY id;
SELECT k, v FROM t FORCE INDEX (kv) WHERE k < 31 ORDER BY k, v;
ROLLBACK TO s;
SELECT * FROM t WHERE id < 4 ORDER BY id;
SELECT k, v FROM t FORCE INDEX (kv) WHERE k < 31 ORDER BY k, v;
--! connection r
SELECT * FROM t ORDER BY id;
--! connection w
ROLLBACK;
SELECT * FROM t ORDER BY id;
SELECT k, v FROM t FORCE INDEX (kv) WHERE k >= 0 ORDER BY k, v;
--! connection r
SELECT * FROM t ORDER BY id;
-- REPEATABLE READ: all statements see the state at the first read.
--! connection r
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
BEGIN;
--! connection w
UPDATE t SET v = v + 1 WHERE id = 1;
--! connection r
SELECT id, v FROM t ORDER BY id;
--! connection w
UPDATE t SET v = v + 1, k = k + 1;
DELETE FROM t WHERE id = 2;
INSERT INTO t VALUES (2, 21, 222, 'second life'), (8, 80, 800, 'eight');
--! connection r
SELECT id, k, v FROM t ORDER BY id;
SELECT COUNT(*) FROM t;
SELECT id FROM t FORCE INDEX (k) WHERE k >= 0 ORDER BY k;
SELECT k, v FROM t FORCE INDEX (kv) WHERE k >= 0 ORDER BY k;
SELECT * FROM t WHERE id = 8;
SELECT * FROM t FORCE INDEX (k) WHERE k = 80;
SELECT * FROM t FORCE INDEX (k) WHERE k = 20;
SELECT * FROM t FORCE INDEX (k) WHERE k = 21;
COMMIT;
SELECT id, k, v FROM t ORDER BY id;
-- Many versions of a row, and of a row that is repeatedly inserted and deleted.
BEGIN;
SELECT * FROM t WHERE id IN (1, 9) ORDER BY id;
--! connection w
--! for SELECT seq FROM seq_1_to_20
UPDATE t SET v = v + $1, k = k + $1 WHERE id = 1;
INSERT INTO t VALUES (9, $1, $1, 'comes and goes');
DELETE FROM t WHERE id = 9;
--! end
--! connection r
SELECT * FROM t WHERE id IN (1, 9) ORDER BY id;
SELECT COUNT(*) FROM t FORCE INDEX (k) WHERE k >= 0;
SELECT COUNT(*) FROM t FORCE INDEX (PRIMARY) WHERE id > 0;
COMMIT;
SELECT * FROM t WHERE id IN (1, 9) ORDER BY id;
-- READ COMMITTED: each statement sees the state at its own start.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN;
SELECT id, v FROM t ORDER BY id;
--! connection w
UPDATE t SET v = 7 WHERE id = 3;
DELETE FROM t WHERE id = 4;
--! connection r
SELECT id, v FROM t ORDER BY id;
SELECT COUNT(*) FROM t;
--! connection w
BEGIN;
UPDATE t SET v = 8 WHERE id = 3;
--! connection r
SELECT id, v FROM t WHERE id = 3;
--! connection w
COMMIT;
--! connection r
SELECT id, v FROM t WHERE id = 3;
COMMIT;
-- READ UNCOMMITTED reads committed rows; InnoDB shows changes that may be rolled back.
SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
--! connection w
BEGIN;
UPDATE t SET v = 9 WHERE id = 3;
--! connection r
--! cheetah-only
SELECT id, v FROM t WHERE id = 3;
--! end
--! connection w
COMMIT;
--! connection r
SELECT id, v FROM t WHERE id = 3;
-- A snapshot at the start; only REPEATABLE READ has one for the whole transaction.
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection w
UPDATE t SET v = 10 WHERE id = 3;
--! connection r
SELECT id, v FROM t WHERE id = 3;
COMMIT;
SELECT id, v FROM t WHERE id = 3;
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;
--! connection w
UPDATE t SET v = 11 WHERE id = 3;
--! connection r
SELECT id, v FROM t WHERE id = 3;
COMMIT;
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
--! any
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection w
UPDATE t SET v = 12 WHERE id = 3;
--! connection r
SELECT id, v FROM t WHERE id = 3;
COMMIT;
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
-- A snapshot does not apply to the transaction's own changes: a change uses the newest row.
BEGIN;
SELECT id, v FROM t WHERE id = 3;
--! connection w
UPDATE t SET v = 100 WHERE id = 3;
--! connection r
UPDATE t SET v = v + 1 WHERE id = 3;
SELECT id, v FROM t WHERE id = 3;
SELECT id, v FROM t WHERE id = 3 FOR UPDATE;
SELECT id, v FROM t WHERE id = 3 LOCK IN SHARE MODE;
COMMIT;
-- A change finds rows that other transactions have inserted; a read does not.
BEGIN;
SELECT COUNT(*) FROM t;
--! connection w
INSERT INTO t VALUES (20, 200, 2000, 'unseen');
--! connection r
SELECT COUNT(*) FROM t;
UPDATE t SET body = 'met' WHERE id = 20;
SELECT * FROM t WHERE id >= 20;
SELECT COUNT(*) FROM t;
INSERT INTO t VALUES (20, 1, 1, 'twice');
ROLLBACK;
DELETE FROM t WHERE id = 20;
-- Locking reads wait for a writer, and a writer waits for locking reads.
--! connection w
BEGIN;
UPDATE t SET v = 1 WHERE id = 1;
--! connection r
SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE;
SELECT v FROM t WHERE id = 1 FOR UPDATE;
SELECT v >= 0 FROM t WHERE id = 1;
--! connection w
COMMIT;
--! connection r
BEGIN;
SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE;
--! connection w
SELECT v FROM t WHERE id = 1;
SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE;
UPDATE t SET v = 2 WHERE id = 1;
--! connection r
COMMIT;
-- SERIALIZABLE: reads inside a transaction lock rows; a single-statement read does not.
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE;
--! connection w
BEGIN;
UPDATE t SET v = 3 WHERE id = 1;
--! connection r
SELECT v FROM t WHERE id = 1;
BEGIN;
SELECT v FROM t WHERE id = 1;
ROLLBACK;
--! connection w
COMMIT;
--! connection r
BEGIN;
SELECT v FROM t WHERE id = 1;
--! connection w
UPDATE t SET v = 4 WHERE id = 1;
--! connection r
COMMIT;
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
-- Statements that write the rows that they read: locking reads at REPEATABLE READ, a snapshot at
-- READ COMMITTED.
CREATE TABLE target (id INT PRIMARY KEY, v INT);
INSERT INTO target VALUES (1, 0);
--! connection w
BEGIN;
UPDATE t SET v = v + 1000;
--! connection r
INSERT INTO target SELECT id + 10, v FROM t;
REPLACE INTO target SELECT id + 10, v FROM t;
UPDATE target SET v = (SELECT MAX(v) FROM t);
DELETE FROM target WHERE v < (SELECT MIN(v) FROM t);
SET @m = (SELECT MAX(v) FROM t);
CREATE TABLE made AS SELECT id, v FROM t;
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
INSERT INTO target SELECT id + 10, v FROM t;
REPLACE INTO target SELECT id + 10, v FROM t;
UPDATE target SET v = (SELECT MAX(v) FROM t) WHERE id = 1;
DELETE FROM target WHERE v < (SELECT MIN(v) FROM t);
SET @m = (SELECT MAX(v) FROM t);
CREATE TABLE made AS SELECT id, v FROM t;
SELECT * FROM target ORDER BY id;
SELECT * FROM made ORDER BY id;
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
--! connection w
ROLLBACK;
-- HANDLER reads a snapshot, too.
--! connection w
BEGIN;
UPDATE t SET v = v + 1000, k = k + 1;
--! connection r
HANDLER t OPEN;
HANDLER t READ `PRIMARY` FIRST;
HANDLER t READ k FIRST LIMIT 3;
BEGIN;
HANDLER t READ `PRIMARY` = (1);
--! connection w
COMMIT;
--! connection r
HANDLER t READ `PRIMARY` = (1);
COMMIT;
HANDLER t READ `PRIMARY` = (1);
HANDLER t CLOSE;
-- Stored functions and triggers inside a statement.
CREATE FUNCTION newest() RETURNS INT READS SQL DATA RETURN (SELECT MAX(v) FROM t);
--! connection w
BEGIN;
UPDATE t SET v = v + 1000;
--! connection r
SELECT newest() > 0;
SELECT newest() = (SELECT MAX(v) FROM t);
--! connection w
COMMIT;
-- Large values of old versions.
CREATE TABLE b (id INT PRIMARY KEY, body LONGTEXT);
INSERT INTO b SELECT seq, REPEAT(CHAR(96 + seq), 100000) FROM seq_1_to_4;
--! connection r
BEGIN;
SELECT id, LENGTH(body), MD5(body) FROM b ORDER BY id;
--! connection w
UPDATE b SET body = REPEAT('z', 50000) WHERE id = 1;
UPDATE b SET body = 'short' WHERE id = 2;
DELETE FROM b WHERE id = 3;
UPDATE b SET id = 44 WHERE id = 4;
--! connection r
SELECT id, LENGTH(body), MD5(body) FROM b ORDER BY id;
COMMIT;
SELECT id, LENGTH(body), MD5(body) FROM b ORDER BY id;
-- Tables without a primary key, and partitions.
CREATE TABLE h (a INT, b INT, KEY (a));
INSERT INTO h SELECT seq, seq FROM seq_1_to_5;
CREATE TABLE p (a INT PRIMARY KEY, b INT) PARTITION BY HASH (a) PARTITIONS 3;
INSERT INTO p SELECT seq, seq FROM seq_1_to_9;
BEGIN;
SELECT * FROM h ORDER BY a, b;
SELECT COUNT(*), SUM(b) FROM p;
--! connection w
UPDATE h SET b = 0 WHERE a = 3;
DELETE FROM h WHERE a = 4;
UPDATE p SET b = 0;
DELETE FROM p WHERE a = 5;
INSERT INTO p VALUES (100, 100);
--! connection r
SELECT * FROM h ORDER BY a, b;
SELECT * FROM h FORCE INDEX (a) WHERE a >= 3 ORDER BY a;
SELECT COUNT(*), SUM(b) FROM p;
SELECT * FROM p ORDER BY a;
COMMIT;
SELECT COUNT(*), SUM(b) FROM p;
-- A table emptied or rebuilt after the snapshot (for a renamed table see older_snapshots.sql), and
-- a temporary table.
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection w
TRUNCATE h;
INSERT INTO h VALUES (1, 1);
--! connection r
--! ignore
SELECT * FROM h;
COMMIT;
SELECT * FROM h;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection w
ALTER TABLE h ADD c INT DEFAULT 5, ALGORITHM=COPY;
INSERT INTO h VALUES (2, 2, 2);
--! connection r
--! ignore
SELECT * FROM h;
COMMIT;
SELECT * FROM h ORDER BY a;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection w
RENAME TABLE h TO h2;
INSERT INTO h2 VALUES (3, 3, 3);
--! connection r
COMMIT;
SELECT * FROM h2 ORDER BY a;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
CREATE TEMPORARY TABLE tmp (a INT PRIMARY KEY, b INT);
INSERT INTO tmp VALUES (1, 1), (2, 2);
SELECT * FROM tmp ORDER BY a;
SELECT COUNT(*) FROM tmp;
ALTER TABLE tmp ADD c INT DEFAULT 7, ALGORITHM=COPY;
SELECT * FROM tmp ORDER BY a;
TRUNCATE tmp;
INSERT INTO tmp VALUES (3, 3, 3);
SELECT * FROM tmp ORDER BY a;
SELECT COUNT(*) FROM tmp;
COMMIT;
-- LOCK TABLES in a transaction of several statements.
SET autocommit = 0;
LOCK TABLES t READ;
SELECT COUNT(*) FROM t;
--! connection w
SET lock_wait_timeout = 1;
SELECT COUNT(*) FROM t;
UPDATE t SET v = 5 WHERE id = 1;
--! connection r
UNLOCK TABLES;
LOCK TABLES t WRITE;
UPDATE t SET v = 6 WHERE id = 1;
--! connection w
SELECT COUNT(*) FROM t;
--! connection r
COMMIT;
SELECT v FROM t WHERE id = 1;
UNLOCK TABLES;
SET autocommit = 1;
--! connection w
SELECT v FROM t WHERE id = 1;
-- A view, a subquery, a union and a read inside a procedure see the same state.
CREATE VIEW seen AS SELECT id, v FROM t WHERE v > 0;
--! delimiter $$
CREATE PROCEDURE twice() BEGIN SELECT SUM(v) FROM t; UPDATE t SET v = v + 1 WHERE id = 2; SELECT SUM(v) FROM t; END$$
--! delimiter ;
--! connection r
BEGIN;
SELECT COUNT(*), SUM(v) FROM seen;
--! connection w
UPDATE t SET v = v + 10;
--! connection r
SELECT (SELECT SUM(v) FROM seen) - SUM(v) FROM t;
SELECT 1, SUM(v) FROM t UNION ALL SELECT 2, SUM(v) FROM seen;
CALL twice();
ROLLBACK;
CALL twice();
-- ROLLBACK TO SAVEPOINT releases tables that were read without locks.
CREATE TABLE g (a INT PRIMARY KEY);
INSERT INTO g VALUES (1);
BEGIN;
SAVEPOINT s;
SELECT * FROM g LOCK IN SHARE MODE;
ROLLBACK TO s;
--! connection w
TRUNCATE g;
--! connection r
COMMIT;
BEGIN;
SAVEPOINT s;
SELECT * FROM g;
ROLLBACK TO s;
--! connection w
TRUNCATE g;
--! connection r
COMMIT;
