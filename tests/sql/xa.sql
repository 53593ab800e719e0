-- XA transactions: every statement of them, in every state, with savepoints, errors, and other
-- connections.
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(50), c TEXT, KEY (b));
CREATE TABLE u (a INT AUTO_INCREMENT PRIMARY KEY, b INT UNIQUE);
INSERT INTO t SELECT seq, CONCAT('b', seq % 7), REPEAT('c', seq * 100) FROM seq_1_to_100;
-- Two-phase commits in one connection.
XA START 'x1';
INSERT INTO t VALUES (200, 'new', REPEAT('n', 20000));
UPDATE t SET b = 'changed' WHERE a <= 10;
DELETE FROM t WHERE a > 95 AND a < 200;
SELECT COUNT(*), SUM(CRC32(c)) FROM t;
XA END 'x1';
SELECT COUNT(*) FROM t;
XA PREPARE 'x1';
XA RECOVER;
SELECT COUNT(*) FROM t;
INSERT INTO t VALUES (201, '', '');
COMMIT;
ROLLBACK;
XA START 'x2';
XA COMMIT 'x1' ONE PHASE;
XA COMMIT 'x1';
XA RECOVER;
SELECT COUNT(*), SUM(CRC32(b)), SUM(CRC32(c)) FROM t;
CHECK TABLE t EXTENDED;
XA START 'x1';
DELETE FROM t;
INSERT INTO u (b) VALUES (1), (2), (3);
XA END 'x1';
XA PREPARE 'x1';
XA ROLLBACK 'x1';
XA RECOVER;
SELECT COUNT(*), SUM(CRC32(b)), SUM(CRC32(c)) FROM t;
SELECT COUNT(*) FROM u;
CHECK TABLE t, u EXTENDED;
-- One-phase commit, and rollback without XA PREPARE.
XA START 'x1';
INSERT INTO u (b) VALUES (10);
XA END 'x1';
XA COMMIT 'x1' ONE PHASE;
XA START 'x1';
INSERT INTO u (b) VALUES (11);
XA END 'x1';
XA ROLLBACK 'x1';
XA START 'x1';
INSERT INTO u (b) VALUES (12);
XA ROLLBACK 'x1';
XA PREPARE 'x1';
XA END 'x1';
XA COMMIT 'x1';
XA ROLLBACK 'x1';
SELECT b FROM u ORDER BY b;
-- Resumed transactions.
XA START 'x1';
INSERT INTO u (b) VALUES (20);
XA END 'x1';
XA START 'x1' RESUME;
INSERT INTO u (b) VALUES (21);
XA END 'x1';
XA PREPARE 'x1';
XA COMMIT 'x1';
SELECT b FROM u ORDER BY b;
-- Savepoints and failed statements.
XA START 'x1';
SAVEPOINT one;
INSERT INTO u (b) VALUES (30), (31);
SAVEPOINT two;
INSERT INTO u (b) VALUES (32), (20);
INSERT INTO u (b) VALUES (33);
ROLLBACK TO SAVEPOINT two;
INSERT INTO u (b) VALUES (34);
RELEASE SAVEPOINT one;
XA END 'x1';
SAVEPOINT three;
XA PREPARE 'x1';
XA COMMIT 'x1';
SELECT b FROM u ORDER BY b;
XA START 'x1';
SAVEPOINT one;
INSERT INTO u (b) VALUES (40);
ROLLBACK TO SAVEPOINT one;
XA END 'x1';
XA PREPARE 'x1';
XA RECOVER;
XA COMMIT 'x1';
SELECT b FROM u WHERE b >= 40;
-- XIDs with two parts, with a format, and with binary bytes.
XA START 'global', 'branch', 7;
INSERT INTO u (b) VALUES (50);
XA END 'global', 'branch', 7;
XA PREPARE 'global', 'branch', 7;
XA RECOVER;
XA RECOVER FORMAT = 'SQL';
XA COMMIT 'global';
XA COMMIT 'global', 'branch', 7;
XA START X'00ff61', X'', 2147483647;
INSERT INTO u (b) VALUES (51);
XA END X'00ff61', X'', 2147483647;
XA PREPARE X'00ff61', X'', 2147483647;
XA RECOVER FORMAT = 'SQL';
XA ROLLBACK X'00ff61', X'', 2147483647;
SELECT b FROM u WHERE b >= 50;
-- Transactions that only read, and empty transactions.
XA START 'x1';
SELECT COUNT(*) FROM t;
XA END 'x1';
XA PREPARE 'x1';
XA COMMIT 'x1';
XA START 'x1';
XA END 'x1';
XA PREPARE 'x1';
XA ROLLBACK 'x1';
-- Refused statements, and implicit commits.
XA START 'x1';
XA START 'x3';
BEGIN;
CREATE TABLE v (a INT);
ALTER TABLE t ADD COLUMN d INT;
XA END 'x3';
XA END 'x1';
INSERT INTO u (b) VALUES (60);
XA ROLLBACK 'x1';
XA START '';
XA COMMIT 'nobody';
XA ROLLBACK 'nobody';
BEGIN;
XA START 'x1';
XA COMMIT 'nobody';
COMMIT;
-- A client disconnects after XA PREPARE: another client ends the transaction.
--! connection one
XA START 'gone';
INSERT INTO u (b) VALUES (70);
UPDATE t SET b = 'gone' WHERE a = 1;
XA END 'gone';
XA PREPARE 'gone';
--! connection default
XA COMMIT 'gone';
XA START 'gone';
--! disconnect one
--! wait SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE id = $ID(one)
XA RECOVER;
XA START 'gone';
SET innodb_lock_wait_timeout = 1, cheetah_lock_wait_timeout = 1, lock_wait_timeout = 1;
UPDATE t SET b = 'mine' WHERE a = 1;
DROP TABLE t;
XA COMMIT 'gone';
XA RECOVER;
SELECT b FROM u WHERE b >= 70;
SELECT b FROM t WHERE a = 1;
--! connection two
XA START 'gone';
INSERT INTO u (b) VALUES (71);
DELETE FROM t;
XA END 'gone';
XA PREPARE 'gone';
--! disconnect two
--! connection default
--! wait SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE id = $ID(two)
XA ROLLBACK 'gone';
XA RECOVER;
SELECT b FROM u WHERE b >= 70;
SELECT COUNT(*) FROM t;
-- The changes of a client that disconnects before XA PREPARE are rolled back.
--! connection three
XA START 'gone';
INSERT INTO u (b) VALUES (72);
XA END 'gone';
--! disconnect three
--! connection default
--! wait SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE id = $ID(three)
XA RECOVER;
SELECT b FROM u WHERE b >= 70;
-- The server is killed.
XA START 'k1';
INSERT INTO u (b) VALUES (80);
XA END 'k1';
XA PREPARE 'k1';
--! connection four
XA START 'k2', 'b', 2;
UPDATE t SET c = REPEAT('k', 50000), b = 'k2';
XA END 'k2', 'b', 2;
XA PREPARE 'k2', 'b', 2;
--! kill
--! connection five
--! unordered
XA RECOVER;
XA COMMIT 'k1';
XA ROLLBACK 'k2', 'b', 2;
XA RECOVER;
SELECT b FROM u WHERE b >= 70;
SELECT COUNT(*), SUM(CRC32(b)), SUM(CRC32(c)) FROM t;
CHECK TABLE t, u EXTENDED;
XA START 'k3';
DELETE FROM t WHERE a > 50;
INSERT INTO t SELECT seq, 'k3', REPEAT('3', 9000) FROM seq_300_to_320;
XA END 'k3';
XA PREPARE 'k3';
--! restart
--! connection six
XA RECOVER;
XA COMMIT 'k3';
SELECT COUNT(*), SUM(CRC32(b)), SUM(CRC32(c)) FROM t;
CHECK TABLE t, u EXTENDED;
