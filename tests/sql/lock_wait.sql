-- The timeout of lock waits: InnoDB's variable applies while Cheetah's has its default value.
CREATE TABLE t (a INT PRIMARY KEY, b INT);
INSERT INTO t VALUES (1, 1);
--! connection a
BEGIN;
UPDATE t SET b = 2 WHERE a = 1;
--! connection b
--! cheetah-only
SET cheetah_lock_wait_timeout = DEFAULT;
--! end
SET innodb_lock_wait_timeout = 1;
SET STATEMENT max_statement_time = 20 FOR UPDATE t SET b = 3 WHERE a = 1;
SET innodb_lock_wait_timeout = 100;
SET STATEMENT max_statement_time = 2 FOR UPDATE t SET b = 3 WHERE a = 1;
--! cheetah-only
-- Cheetah's variable applies when it is set.
SET cheetah_lock_wait_timeout = 1;
SET STATEMENT max_statement_time = 20 FOR UPDATE t SET b = 3 WHERE a = 1;
SET innodb_lock_wait_timeout = 1, cheetah_lock_wait_timeout = 100;
SET STATEMENT max_statement_time = 2 FOR UPDATE t SET b = 3 WHERE a = 1;
--! end
--! connection a
ROLLBACK;
DROP TABLE t;
