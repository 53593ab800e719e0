-- The State of SHOW PROCESSLIST shows waits for row locks and table locks; afterwards the previous
-- State returns.
--! cheetah-only
CREATE TABLE t (a INT PRIMARY KEY, b INT);
INSERT INTO t VALUES (1, 0);
--! connection owner
BEGIN;
UPDATE t SET b = 1 WHERE a = 1;
--! connection waiter
--! send
UPDATE t SET b = SLEEP(0.5) + 2 WHERE a = 1;
--! connection owner
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(waiter) AND state = 'Waiting for row lock'
COMMIT;
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(waiter) AND state = 'User sleep'
--! connection waiter
--! reap
--! connection owner
SELECT state FROM information_schema.processlist WHERE id = $ID(waiter);
-- A prepared transaction of a disconnected client has no metadata lock.
XA START 'x';
UPDATE t SET b = 3 WHERE a = 1;
XA END 'x';
XA PREPARE 'x';
--! disconnect owner
--! connection waiter
--! send
ALTER TABLE t FORCE, ALGORITHM=COPY;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(waiter) AND state = 'Waiting for table lock of the engine'
XA COMMIT 'x';
--! connection waiter
--! reap
--! end
