-- AUTO_INCREMENT concurrently with statements that bring explicit numbers: an INSERT that needs a
-- number waits for the statement, and receives none of the statement's numbers. Each row of the
-- statement takes a while, so that the other session inserts in the middle: into an empty table,
-- and into a table with rows.
--! for SELECT verb, n, n + 1, n + 20 FROM (SELECT 'INSERT' AS verb UNION ALL SELECT 'REPLACE' UNION ALL SELECT 'INSERT IGNORE') v, (SELECT 0 AS n UNION ALL SELECT 10) b ORDER BY 1, 2
CREATE OR REPLACE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT);
INSERT INTO t (k) SELECT seq FROM seq_1_to_10 WHERE seq <= $2;
ALTER TABLE t AUTO_INCREMENT = $3;
--! connection filling
--! send
$1 INTO t (id, k) SELECT seq, SLEEP(0.05) FROM seq_$3_to_$4;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(filling) AND state = 'User sleep'
DO SLEEP(0.2);
INSERT INTO t (k) VALUES (7);
SELECT LAST_INSERT_ID() AS number;
--! connection filling
--! reap
--! connection default
SELECT COUNT(*) FROM t;
--! cheetah-only
SELECT LAST_INSERT_ID() - $4 AS behind, COUNT(*) - $4 AS more FROM t;
--! end
--! end
--! for SELECT n, n + 1, n + 20 FROM (SELECT 0 AS n UNION ALL SELECT 10) b ORDER BY 1
CREATE OR REPLACE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT);
INSERT INTO t (k) SELECT seq FROM seq_1_to_10 WHERE seq <= $1;
ALTER TABLE t AUTO_INCREMENT = $2;
SELECT seq FROM seq_$2_to_$3 INTO OUTFILE '$FOLDER/numbers-$2';
--! connection filling
--! send
LOAD DATA INFILE '$FOLDER/numbers-$2' INTO TABLE t (id) SET k = SLEEP(0.05);
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(filling) AND state = 'User sleep'
DO SLEEP(0.2);
INSERT INTO t (k) VALUES (7);
SELECT LAST_INSERT_ID() AS number;
--! connection filling
--! reap
--! connection default
SELECT COUNT(*) FROM t;
--! cheetah-only
SELECT LAST_INSERT_ID() - $3 AS behind, COUNT(*) - $3 AS more FROM t;
--! end
--! end
