-- Two connections: writers wait, time out, deadlock, and are killed.
CREATE TABLE t (id INT PRIMARY KEY, v INT);
CREATE TABLE u (id INT PRIMARY KEY, v INT);
INSERT INTO t VALUES (1, 1), (2, 2);
INSERT INTO u VALUES (1, 1), (2, 2);
--! connection a
SET innodb_lock_wait_timeout = 1;
--! cheetah-only
SET cheetah_lock_wait_timeout = 1;
--! end
BEGIN;
UPDATE t SET v = 10 WHERE id = 1;
--! connection b
SET innodb_lock_wait_timeout = 1;
--! cheetah-only
SET cheetah_lock_wait_timeout = 1;
--! end
BEGIN;
INSERT INTO u VALUES (3, 3);
UPDATE t SET v = 20 WHERE id = 1;
SELECT COUNT(*) FROM u;
COMMIT;
SELECT COUNT(*) FROM u;
--! connection a
SELECT * FROM t ORDER BY id;
COMMIT;
--! connection b
UPDATE t SET v = 20 WHERE id = 1;
SELECT * FROM t ORDER BY id;
-- A wait that ends well.
--! connection a
SET innodb_lock_wait_timeout = 20;
--! cheetah-only
SET cheetah_lock_wait_timeout = 20;
--! end
BEGIN;
UPDATE t SET v = 30 WHERE id = 1;
--! connection b
SET innodb_lock_wait_timeout = 20;
--! cheetah-only
SET cheetah_lock_wait_timeout = 20;
--! end
SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT;
SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE WAIT 1;
--! send
UPDATE t SET v = v + 1 WHERE id = 1;
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(b) AND info LIKE 'UPDATE%'
--! connection a
COMMIT;
--! connection b
--! reap
SELECT * FROM t ORDER BY id;
-- Killing a waiter.
--! connection a
BEGIN;
UPDATE t SET v = 40 WHERE id = 1;
--! connection b
BEGIN;
INSERT INTO u VALUES (4, 4);
--! send
UPDATE t SET v = v + 1 WHERE id = 1;
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(b) AND info LIKE 'UPDATE%'
--! connection a
--! ignore
KILL QUERY $ID(b);
--! connection b
--! reap
SELECT COUNT(*) FROM u;
ROLLBACK;
--! connection a
COMMIT;
SELECT * FROM t ORDER BY id;
SELECT COUNT(*) FROM u;
-- A deadlock: both engines choose a victim; both transactions end, and one of them receives error
-- 1213 (or 1205).
--! cheetah-only
SET cheetah_lock_wait_timeout = 3;
--! connection b
SET cheetah_lock_wait_timeout = 3;
--! connection a
BEGIN;
UPDATE t SET v = 50 WHERE id = 1;
--! connection b
BEGIN;
UPDATE u SET v = 60 WHERE id = 1;
--! send
UPDATE t SET v = 61 WHERE id = 1;
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(b) AND info LIKE 'UPDATE%'
--! connection a
UPDATE u SET v = 51 WHERE id = 1;
ROLLBACK;
--! connection b
--! reap
ROLLBACK;
--! end
--! connection default
SELECT SUM(v) > 0 FROM t;
UPDATE t SET v = 1;
UPDATE u SET v = 1;
-- DDL waits for open transactions, and a connection that ends releases its locks.
--! connection c
BEGIN;
UPDATE t SET v = 70;
--! connection default
SET lock_wait_timeout = 1;
ALTER TABLE t ADD x INT;
DROP TABLE t;
TRUNCATE t;
--! disconnect c
ALTER TABLE t ADD x INT;
SELECT * FROM t ORDER BY id;
-- KILL QUERY in the middle of scans and writes.
CREATE TABLE s (id INT PRIMARY KEY, k INT, p VARCHAR(200), KEY (k));
INSERT INTO s SELECT seq, seq % 1000, REPEAT('p', 100) FROM seq_1_to_20000;
--! connection k
--! send
SELECT COUNT(*) FROM s x, s y, s z WHERE x.p < CONCAT(y.p, z.p) AND x.id + y.id + z.id < 0;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(k) AND info LIKE 'SELECT%'
--! ignore
KILL QUERY $ID(k);
--! connection k
--! numbers
--! reap
--! send
UPDATE s SET p = CONCAT(p, (SELECT COUNT(*) FROM seq_1_to_3000 q WHERE q.seq > s.id)), k = k + 1;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(k) AND info LIKE 'UPDATE%' AND time_ms > 100
--! ignore
KILL QUERY $ID(k);
--! connection k
--! numbers
--! reap
SELECT COUNT(*), SUM(k), SUM(LENGTH(p)) FROM s;
SELECT COUNT(*) FROM s FORCE INDEX (k) WHERE k >= 0;
--! send
DELETE s FROM s JOIN seq_1_to_20000 q ON q.seq = s.id WHERE (SELECT COUNT(*) FROM seq_1_to_3000 w WHERE w.seq > s.id) >= 0;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(k) AND info LIKE 'DELETE%' AND time_ms > 100
--! ignore
KILL QUERY $ID(k);
--! connection k
--! numbers
--! reap
SELECT COUNT(*), SUM(k) FROM s;
--! any
--! send
ALTER TABLE s ADD COLUMN more INT DEFAULT 7, ADD INDEX (p, k), ALGORITHM=COPY;
--! connection default
--! ignore
KILL QUERY $ID(k);
--! connection k
--! reap
SELECT COUNT(*), SUM(k) FROM s;
SET max_statement_time = 0.2;
--! numbers
SELECT COUNT(*) FROM s x, s y, s z WHERE x.p < CONCAT(y.p, z.p) AND x.id + y.id + z.id < 0;
SET max_statement_time = 0;
CHECK TABLE s EXTENDED;
