-- The victim of a deadlock of two transactions: the transaction with less work or, among equals,
-- the last requester. InnoDB chooses the same victim.
CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b));
INSERT INTO t SELECT seq, 0 FROM seq_1_to_60;
--! for WITH work (no, first, second, first_wants, second_wants) AS (VALUES (1, 'UPDATE t SET b = 1 WHERE a = 1', 'UPDATE t SET b = 1 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 1'), (2, 'UPDATE t SET b = 1 WHERE a IN (1, 11)', 'UPDATE t SET b = 1 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 1'), (3, 'UPDATE t SET b = 1 WHERE a = 1', 'UPDATE t SET b = 1 WHERE a IN (2, 12)', 'UPDATE t SET b = 2 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 1'), (4, 'SELECT a FROM t WHERE a = 1 FOR UPDATE', 'SELECT a FROM t WHERE a = 2 FOR UPDATE', 'SELECT a FROM t WHERE a = 2 FOR UPDATE', 'SELECT a FROM t WHERE a = 1 FOR UPDATE'), (5, 'UPDATE t SET b = 1 WHERE a = 1', 'SELECT a FROM t WHERE a = 2 FOR UPDATE', 'UPDATE t SET b = 2 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 1'), (6, 'SELECT a FROM t WHERE a = 1 FOR UPDATE', 'UPDATE t SET b = 1 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 2', 'UPDATE t SET b = 2 WHERE a = 1'), (7, 'SELECT a FROM t WHERE a = 1 LOCK IN SHARE MODE', 'SELECT a FROM t WHERE a = 1 LOCK IN SHARE MODE', 'UPDATE t SET b = 2 WHERE a = 1', 'UPDATE t SET b = 2 WHERE a = 1'), (8, 'DELETE FROM t WHERE a = 1', 'DELETE FROM t WHERE a = 2', 'DELETE FROM t WHERE a = 2', 'DELETE FROM t WHERE a = 1'), (9, 'INSERT INTO t VALUES (101, 1)', 'INSERT INTO t VALUES (102, 1)', 'INSERT INTO t VALUES (102, 1)', 'INSERT INTO t VALUES (101, 1)'), (10, 'UPDATE t SET b = 1 WHERE a = 1', 'INSERT INTO t VALUES (201, 1), (202, 1), (203, 1)', 'INSERT INTO t VALUES (201, 1)', 'UPDATE t SET b = 2 WHERE a = 1'), (11, 'INSERT INTO t VALUES (201, 1), (202, 1), (203, 1)', 'UPDATE t SET b = 1 WHERE a = 1', 'UPDATE t SET b = 2 WHERE a = 1', 'INSERT INTO t VALUES (201, 1)'), (12, 'UPDATE t SET b = 1 WHERE a = 1', 'UPDATE t SET b = 1 WHERE a BETWEEN 30 AND 39', 'UPDATE t SET b = 2 WHERE a = 31', 'UPDATE t SET b = 2 WHERE a = 1'), (13, 'UPDATE t SET b = 1 WHERE a BETWEEN 30 AND 39', 'UPDATE t SET b = 1 WHERE a = 1', 'UPDATE t SET b = 2 WHERE a = 1', 'UPDATE t SET b = 2 WHERE a = 31')) SELECT first, second, first_wants, second_wants, no FROM work ORDER BY no
--! connection a
BEGIN;
$1;
--! connection b
BEGIN;
$2;
--! connection a
--! send
$3;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(a) AND command = 'Query' AND time_ms > 100
--! connection b
--! send
$4;
--! connection a
--! reap
--! connection b
--! reap
ROLLBACK;
--! connection a
ROLLBACK;
--! connection default
SELECT $5, COUNT(*), SUM(b) FROM t;
--! end
