-- A load into a child keeps its parents: the rows appear at the end of the load, and until then no
-- transaction can delete their parents. A few rows are not a load.
--! cheetah-only
--! for VALUES (20), (30000)
DROP TABLE IF EXISTS c, p;
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, pad CHAR(100) CHARACTER SET latin1, FOREIGN KEY (pid) REFERENCES p (id));
INSERT INTO p SELECT seq FROM seq_1_to_50000;
SELECT variable_value INTO @loads FROM information_schema.global_status WHERE variable_name = 'Cheetah_loads';
--! connection load
--! send
INSERT INTO c SELECT seq, seq + SLEEP(IF(seq = $1, 2, 0)), REPEAT('-', 100) FROM seq_1_to_$1;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(load) AND state = 'User sleep'
--! connection taken
--! send
DELETE FROM p WHERE id = 5;
--! connection moved
--! send
UPDATE p SET id = -7 WHERE id = 7;
--! connection free
DELETE FROM p WHERE id = 40000;
--! connection load
--! reap
--! connection taken
--! reap
--! connection moved
--! reap
--! connection default
SELECT COUNT(*) FROM c;
SELECT variable_value - @loads AS loads FROM information_schema.global_status WHERE variable_name = 'Cheetah_loads';
-- The load waits for a transaction that has already deleted a parent, and then fails.
TRUNCATE c;
--! connection first
BEGIN;
DELETE FROM p WHERE id = 9;
--! connection load
--! send
INSERT INTO c SELECT seq, seq, REPEAT('-', 100) FROM seq_1_to_$1;
--! connection first
--! wait SELECT COUNT(*) FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = $ID(load) AND trx_state = 'LOCK WAIT'
COMMIT;
--! connection load
--! reap
--! connection default
SELECT COUNT(*) FROM c;
INSERT INTO p VALUES (9);
INSERT INTO c SELECT seq, seq, REPEAT('-', 100) FROM seq_1_to_$1;
CHECK TABLE c;
--! end
--! end
