-- Cardinalities are sampled and kept. A variable and a table option set the number of sampled
-- positions, which determines the cost.
--! cheetah-only
SELECT @@cheetah_stats_persistent_sample_pages;
-- Without dictionaries: for a tree that may have one, ANALYZE reads pages for a trial,
-- independently of the number of positions.
CREATE TABLE sbtest (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k (k)) COMPRESSION='lz4' STATS_AUTO_RECALC=0;
INSERT INTO sbtest SELECT seq, FLOOR(RAND() * 20000), CONCAT(MD5(RAND()), MD5(RAND()), MD5(RAND())), MD5(RAND()) FROM seq_1_to_20000;
CREATE TABLE images (step INT, found INT);
--! for VALUES (1, 4, 'DO 0'), (2, 40, 'DO 0'), (3, 4, 'INSERT INTO sbtest SELECT id + 20000, k, c, pad FROM sbtest')
$3;
--! wait SELECT variable_value = 0 FROM information_schema.global_status WHERE variable_name = 'Cheetah_transactions_to_purge'
SET GLOBAL cheetah_checkpoint_now = ON;
--! restart
SET GLOBAL cheetah_stats_persistent_sample_pages = $2;
ANALYZE TABLE sbtest;
INSERT INTO images SELECT $1, SUM(uncompress_ops) FROM information_schema.cheetah_cmp_per_index WHERE database_name = '$DB' AND table_name = 'sbtest';
--! end
SELECT one.found * 2 < two.found AS fewer_places_cost_less, three.found < one.found * 1.5 + 10 AS more_rows_cost_the_same FROM images one JOIN images two JOIN images three WHERE one.step = 1 AND two.step = 2 AND three.step = 3;
SET GLOBAL cheetah_stats_auto_recalc = OFF;
CREATE TABLE tens (id INT PRIMARY KEY, k INT, KEY k (k)) STATS_SAMPLE_PAGES=50;
INSERT INTO tens SELECT seq, seq % 10 FROM seq_1_to_1000;
-- The table was never analyzed.
--! columns Cardinality
SHOW INDEX FROM tens WHERE key_name = 'k';
ANALYZE TABLE tens;
--! restart
SET GLOBAL cheetah_stats_auto_recalc = OFF;
--! columns Cardinality
SHOW INDEX FROM tens WHERE key_name = 'k';
-- The number of rows per value is kept, so without a new sample the estimate for three times as
-- many rows is 30 values.
INSERT INTO tens SELECT seq, seq % 10 FROM seq_1001_to_3000;
CREATE TABLE other LIKE tens;
ALTER TABLE other STATS_AUTO_RECALC=1;
INSERT INTO other SELECT * FROM tens;
--! wait SELECT cardinality = 10 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'other' AND index_name = 'k'
--! columns Cardinality
SHOW INDEX FROM tens WHERE key_name = 'k';
SET GLOBAL cheetah_stats_auto_recalc = ON;
--! wait SELECT cardinality = 10 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'tens' AND index_name = 'k'
--! end
