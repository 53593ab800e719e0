-- Prepared XA transactions survive kills, with and without their client, in one engine and in two;
-- their locks stay until they end.
--! cheetah-only
--! for VALUES (0), (1), (2), (3)
CREATE TABLE c$1 (a INT PRIMARY KEY, b INT, c LONGTEXT, KEY (b));
INSERT INTO c$1 SELECT seq, seq, REPEAT('r', seq * 10) FROM seq_1_to_500;
CREATE TABLE before$1 SELECT * FROM c$1;
--! end
CREATE TABLE i2 (a INT PRIMARY KEY, b INT, c LONGTEXT, KEY (b)) ENGINE=InnoDB;
--! for VALUES (0, 'commit', 'DO 0'), (1, 'roll back', 'DO 0'), (2, 'both', 'INSERT INTO i2 VALUES (1, 1, '''')'), (3, 'gone', 'DO 0')
--! connection of$1
XA START '$2';
UPDATE c$1 SET b = -b, c = REPEAT('u', 20000) WHERE a <= 50;
DELETE FROM c$1 WHERE a > 400;
$3;
XA END '$2';
XA PREPARE '$2';
--! end
--! disconnect of3
--! for VALUES (1), (2)
--! kill
--! connection default
--! unordered
XA RECOVER;
SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Cheetah_transactions_prepared';
SET cheetah_lock_wait_timeout = 1, innodb_lock_wait_timeout = 1;
INSERT INTO c0 VALUES (401, 1, '');
UPDATE c1 SET b = 0 WHERE a = 1;
DROP TABLE c2;
TRUNCATE TABLE c3;
--! end
XA COMMIT 'commit';
XA ROLLBACK 'roll back';
XA COMMIT 'both';
--! kill
-- A decided transaction is no longer listed, and cannot be decided again.
XA RECOVER;
XA ROLLBACK 'gone';
--! for VALUES (1), (3)
SELECT COUNT(*) AS different FROM (SELECT * FROM c$1 EXCEPT SELECT * FROM before$1) AS d;
SELECT COUNT(*) FROM c$1;
--! end
--! for VALUES (0), (2)
SELECT COUNT(*), SUM(b < 0), SUM(LENGTH(c) = 20000) FROM c$1;
CHECK TABLE c$1 EXTENDED;
--! end
SELECT COUNT(*) FROM i2;
--! end
