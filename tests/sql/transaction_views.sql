-- information_schema.CHEETAH_TRX, _LOCKS and _LOCK_WAITS: waiting and blocking transactions,
-- settings of connections, and the display of keys.
--! cheetah-only
CREATE TABLE `t``x` (a INT PRIMARY KEY, b INT);
INSERT INTO `t``x` VALUES (1, 1), (2, 2), (3, 3);
SELECT variable_value INTO @waits FROM information_schema.global_status WHERE variable_name = 'Cheetah_lock_waits';
-- The waiting transaction with its statement, the lock, and the blocking transaction: the query of
-- sys.innodb_lock_waits on Cheetah's tables.
--! connection first
BEGIN;
UPDATE `t``x` SET b = 10 WHERE a = 1;
--! connection second
BEGIN;
--! send
UPDATE `t``x` SET b = 20 WHERE a = 1;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.cheetah_lock_waits
SELECT r.trx_mysql_thread_id = $ID(second) AS waits, r.trx_query, r.trx_state, rl.lock_table, rl.lock_type IN ('TABLE', 'RECORD') AS has_type, rl.lock_mode, b.trx_mysql_thread_id = $ID(first) AS is_waited_for, bl.lock_mode AS held, TIMESTAMPDIFF(SECOND, r.trx_wait_started, SYSDATE()) BETWEEN 0 AND 60 AS is_recent, r.trx_requested_lock_id = rl.lock_id AS is_requested FROM information_schema.cheetah_lock_waits w JOIN information_schema.cheetah_trx b ON b.trx_id = w.blocking_trx_id JOIN information_schema.cheetah_trx r ON r.trx_id = w.requesting_trx_id JOIN information_schema.cheetah_locks bl ON bl.lock_id = w.blocking_lock_id JOIN information_schema.cheetah_locks rl ON rl.lock_id = w.requested_lock_id;
SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Cheetah_lock_waits_current';
SELECT trx_rows_modified, trx_weight > 1, trx_isolation_level, trx_started <= SYSDATE() FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID(first);
--! connection first
COMMIT;
--! connection second
--! reap
COMMIT;
--! connection default
SELECT (SELECT COUNT(*) FROM information_schema.cheetah_trx) AS trx, (SELECT COUNT(*) FROM information_schema.cheetah_locks) AS locks, (SELECT COUNT(*) FROM information_schema.cheetah_lock_waits) AS waits;
SELECT variable_value - @waits FROM information_schema.global_status WHERE variable_name = 'Cheetah_lock_waits';
SELECT variable_value > 0 FROM information_schema.global_status WHERE variable_name = 'Cheetah_lock_wait_ms_max';
-- Settings, read-only transactions, and the tables of the current statement.
--! connection first
SET unique_checks = 0, foreign_key_checks = 0;
BEGIN;
UPDATE `t``x` SET b = 5 WHERE a = 1;
--! connection second
START TRANSACTION READ ONLY;
SELECT COUNT(*) FROM `t``x`;
--! connection default
--! for SELECT 'first' UNION ALL SELECT 'second'
SELECT trx_is_read_only, trx_autocommit_non_locking, trx_unique_checks, trx_foreign_key_checks, trx_tables_in_use, trx_concurrency_tickets FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID($1);
--! end
-- A single-statement read.
--! connection third
--! send
--! any
SELECT SLEEP(60), x.a FROM `t``x` x JOIN `t``x` y WHERE x.a = y.b LIMIT 1;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID(third) AND trx_autocommit_non_locking = 1
SELECT trx_is_read_only, trx_autocommit_non_locking, trx_unique_checks, trx_foreign_key_checks, trx_tables_in_use, trx_concurrency_tickets FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID(third);
KILL QUERY $ID(third);
--! connection third
--! reap
-- A change in autocommit mode.
--! send
UPDATE `t``x` SET b = 6 WHERE a = 1;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID(third) AND trx_state = 'LOCK WAIT'
SELECT trx_is_read_only, trx_autocommit_non_locking, trx_unique_checks, trx_foreign_key_checks, trx_tables_in_use, trx_concurrency_tickets FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID(third);
--! connection first
ROLLBACK;
--! connection third
--! reap
--! connection second
COMMIT;
--! connection default
SELECT COUNT(*) FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID(third);
-- Keys are shown as values, as in reports of deadlocks. Texts are shown by their weights, or as
-- bytes if the weights have no letters.
--! for VALUES ('INT', '-5'), ('BIGINT UNSIGNED', '18446744073709551615'), ('VARCHAR(20) COLLATE utf8mb4_general_ci', '''anna b'''), ('VARCHAR(20) CHARACTER SET latin1', '''Anna'''), ('CHAR(20) COLLATE utf8mb4_bin', '''Änna'''), ('VARCHAR(20) COLLATE utf8mb4_nopad_bin', '''anna '''), ('VARCHAR(20) COLLATE utf8mb4_unicode_ci', '''anna'''), ('VARBINARY(20)', '''anna'''), ('DATE', '''2026-11-28'''), ('DATETIME(3)', '''2026-11-28 20:00:01.5'''), ('DATETIME(6)', '''2026-11-28 20:00:01.000005'''), ('TIME', '''-10:00:01'''), ('TIME(2)', '''-0:00:01.25'''), ('TIMESTAMP', 'FROM_UNIXTIME(1795000001)'), ('TIMESTAMP(3)', 'FROM_UNIXTIME(1795000001.5)'), ('TIMESTAMP(6)', 'FROM_UNIXTIME(1795000001.000005)'), ('TIMESTAMP', '''0000-00-00 00:00:00'''), ('YEAR', '2026'), ('DECIMAL(10,3)', '-1.25'), ('DOUBLE', '-1.5'), ('DOUBLE', '0'), ('DOUBLE', '1e100'), ('FLOAT', '2.5')
CREATE OR REPLACE TABLE k (a $1, b INT, PRIMARY KEY (a));
INSERT INTO k VALUES ($2, 1);
BEGIN;
SELECT b FROM k WHERE a = $2 FOR UPDATE;
SELECT lock_data FROM information_schema.cheetah_locks WHERE lock_table LIKE '%k`' AND lock_data IS NOT NULL;
ROLLBACK;
--! end
-- A secondary key, followed by the primary key.
CREATE OR REPLACE TABLE k (a INT, b INT, c INT, PRIMARY KEY (a), KEY (b DESC, c));
INSERT INTO k VALUES (1, 20, NULL), (2, 30, 4);
BEGIN;
SELECT b, c FROM k FORCE INDEX (b) WHERE b = 20 AND c IS NULL FOR UPDATE;
SELECT lock_data FROM information_schema.cheetah_locks WHERE lock_index = 'b';
ROLLBACK;
-- A forgotten prepared transaction with its locks. After a crash it has no connection, and it
-- disappears when it ends.
--! connection first
XA START 'forgotten';
UPDATE `t``x` SET b = 5 WHERE a = 1;
XA END 'forgotten';
XA PREPARE 'forgotten';
--! connection default
SELECT trx_state, trx_xid, trx_mysql_thread_id = $ID(first) AS is_first, lock_table FROM information_schema.cheetah_trx JOIN information_schema.cheetah_locks ON lock_trx_id = trx_id WHERE lock_type = 'TABLE';
--! kill
SELECT trx_query, trx_tables_in_use, trx_unique_checks, trx_is_read_only FROM information_schema.cheetah_trx;
SELECT trx_state, trx_xid, trx_mysql_thread_id, lock_table FROM information_schema.cheetah_trx JOIN information_schema.cheetah_locks ON lock_trx_id = trx_id WHERE lock_type = 'TABLE';
XA COMMIT 'forgotten';
SELECT COUNT(*) FROM information_schema.cheetah_trx JOIN information_schema.cheetah_locks ON lock_trx_id = trx_id;
--! end
