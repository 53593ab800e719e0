-- information_schema.CHEETAH_STALLS: waits for row locks and table locks, and rollbacks, with their
-- connections; the status variables agree.
--! cheetah-only
CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b BLOB);
INSERT INTO t VALUES (1, '');
--! connection owner
BEGIN;
UPDATE t SET b = 'x';
--! connection waiter
--! send
UPDATE t SET b = 'y';
--! connection default
--! wait SELECT current_count = 1 FROM information_schema.cheetah_stalls WHERE reason = 'row lock'
--! connection owner
ROLLBACK;
--! connection waiter
--! reap
SELECT reason, last_connection_id = $ID(waiter) AS waiters, last_connection_id = $ID(owner) AS owners FROM information_schema.cheetah_stalls WHERE reason IN ('row lock', 'rollback') ORDER BY reason;
--! connection owner
XA START 'x';
UPDATE t SET b = 'z';
XA END 'x';
XA PREPARE 'x';
--! disconnect owner
--! connection waiter
--! send
ALTER TABLE t FORCE, ALGORITHM=COPY;
--! connection default
--! wait SELECT current_count = 1 FROM information_schema.cheetah_stalls WHERE reason = 'table lock'
XA COMMIT 'x';
--! connection waiter
--! reap
SELECT last_connection_id = $ID(waiter) AS waiters FROM information_schema.cheetah_stalls WHERE reason = 'table lock';
--! for VALUES ('row lock', 'row_lock'), ('table lock', 'table_lock'), ('rollback', 'rollback')
SELECT count >= 1, sum_us >= max_us, max_us > 0, current_count, last_ended BETWEEN SYSDATE() - INTERVAL 1 HOUR AND SYSDATE() AS is_recent FROM information_schema.cheetah_stalls WHERE reason = '$1';
SELECT (SELECT CONCAT_WS(',', current_count, current_max_us, count, sum_us, max_us) FROM information_schema.cheetah_stalls WHERE reason = '$1') = (SELECT GROUP_CONCAT(variable_value ORDER BY FIELD(LOWER(SUBSTRING(variable_name, LENGTH('cheetah_stall_$2_') + 1)), 'current', 'current_us_max', 'count', 'us', 'us_max')) FROM information_schema.global_status WHERE variable_name LIKE 'cheetah\_stall\_$2\_%') AS same;
--! end
SELECT variable_name, variable_value = (SELECT SUM(count) FROM information_schema.cheetah_stalls WHERE reason IN ('row lock', 'table lock')) AS same FROM information_schema.global_status WHERE variable_name IN ('Cheetah_latency_lock_wait_count', 'Cheetah_lock_waits') ORDER BY 1;
--! end
