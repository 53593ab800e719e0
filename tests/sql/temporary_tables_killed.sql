-- A kill leaves nothing of temporary tables: in the middle of transactions, together with other
-- tables, with and without a checkpoint.
--! cheetah-only
CREATE TABLE t (a INT PRIMARY KEY);
--! for VALUES (0), (1), (2)
BEGIN;
CREATE TEMPORARY TABLE x (a INT PRIMARY KEY, b LONGTEXT, KEY (b(9)));
INSERT INTO x SELECT seq, REPEAT(seq, 5000) FROM seq_1_to_100;
INSERT INTO t VALUES ($1);
COMMIT;
BEGIN;
UPDATE x SET b = 'b';
--! connection other
SET GLOBAL cheetah_checkpoint_now = ($1 > 0);
--! connection default
INSERT INTO t VALUES (100);
--! kill
SELECT COUNT(*), MAX(a) FROM t;
--! wait SELECT variable_value = 0 FROM information_schema.global_status WHERE variable_name = 'Cheetah_dropped_trees'
--! end
CHECK TABLE t EXTENDED;
--! end
