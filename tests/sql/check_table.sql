-- CHECK TABLE while other sessions, or its own session, have open changes and locks: each form of
-- the statement answers without a wait.
--! cheetah-only
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(40), w TEXT, KEY (a), UNIQUE (b), FULLTEXT (w));
INSERT INTO t SELECT seq, seq MOD 100, CONCAT('b', seq), CONCAT('some words ', seq) FROM seq_1_to_2000;
SET cheetah_lock_wait_timeout = 1;
--! connection writer
BEGIN;
UPDATE t SET a = 9, b = CONCAT('c', id) WHERE id < 500;
DELETE FROM t WHERE id > 1500;
--! connection default
--! for VALUES (''), ('QUICK'), ('FAST'), ('CHANGED'), ('FOR UPGRADE'), ('EXTENDED')
CHECK TABLE t $1;
--! end
--! connection writer
CHECK TABLE t;
ROLLBACK;
BEGIN;
SELECT COUNT(*) FROM t WHERE id > 0 FOR UPDATE;
--! connection default
--! for VALUES (''), ('QUICK'), ('FAST'), ('CHANGED'), ('FOR UPGRADE'), ('EXTENDED')
CHECK TABLE t $1;
--! end
--! end
