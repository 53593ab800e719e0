-- Indexes that are added while there are older snapshots, an open writer, and a prepared
-- transaction.
--! cheetah-only
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c INT, KEY b (b));
INSERT INTO t SELECT seq, MD5(seq), seq FROM seq_1_to_5000;
-- An older snapshot cannot read the new index, but can read the others.
--! connection old
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection default
DELETE FROM t WHERE a <= 100;
ALTER TABLE t ADD INDEX c (c), ALGORITHM=NOCOPY, LOCK=NONE;
--! connection old
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > '';
SELECT COUNT(*) FROM t FORCE INDEX (c) WHERE c > 0;
ROLLBACK;
SELECT COUNT(*) FROM t FORCE INDEX (c) WHERE c > 0;
-- ALTER waits for an open writer.
--! connection writer
BEGIN;
UPDATE t SET c = c + 100000 WHERE a > 4900;
--! connection adding
--! send
ALTER TABLE t ADD INDEX c2 (c, a), DROP INDEX c, ALGORITHM=NOCOPY, LOCK=NONE;
--! connection writer
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(adding) AND state = 'Waiting for table metadata lock'
UPDATE t SET c = c + 1 WHERE a = 4950;
COMMIT;
--! connection adding
--! reap
SELECT (SELECT SUM(c) FROM t FORCE INDEX (c2) WHERE c > 100000) = (SELECT SUM(c) FROM t IGNORE INDEX (c2) WHERE c > 100000) AS same;
CHECK TABLE t EXTENDED;
-- A transaction that a disconnected client has prepared blocks ADD INDEX until it is decided, also
-- after a restart.
CREATE TABLE x (a INT PRIMARY KEY, b INT);
INSERT INTO x SELECT seq, seq FROM seq_1_to_1000;
--! connection gone
XA START 'x';
DELETE FROM x WHERE a <= 10;
XA END 'x';
XA PREPARE 'x';
--! disconnect gone
--! connection default
SET cheetah_lock_wait_timeout = 1, lock_wait_timeout = 1;
ALTER TABLE x ADD INDEX b (b), ALGORITHM=NOCOPY, LOCK=NONE;
--! restart
SET cheetah_lock_wait_timeout = 1, lock_wait_timeout = 1;
ALTER TABLE x ADD INDEX b (b), ALGORITHM=NOCOPY, LOCK=NONE;
XA ROLLBACK 'x';
ALTER TABLE x ADD INDEX b (b), ALGORITHM=NOCOPY, LOCK=NONE;
SELECT COUNT(*) FROM x FORCE INDEX (b) WHERE b > 0;
CHECK TABLE x EXTENDED;
--! end
