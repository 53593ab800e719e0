-- TABLE_ROWS is exact, the lengths are bytes on disk, the row length is their quotient, and three
-- ways to count rows agree.
--! cheetah-only
CREATE TABLE sbtest (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k (k));
INSERT INTO sbtest SELECT seq, FLOOR(RAND() * 20000), CONCAT(MD5(RAND()), MD5(RAND()), MD5(RAND())), MD5(RAND()) FROM seq_1_to_20000;
--! wait SELECT variable_value = 0 FROM information_schema.global_status WHERE variable_name = 'Cheetah_transactions_to_purge'
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT table_rows, (SELECT COUNT(*) FROM sbtest) AS counted, ABS(data_length / avg_row_length / 20000 - 1) < 0.02 AS by_length FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 'sbtest';
DELETE FROM sbtest WHERE id % 10 = 0;
-- Background threads may write between the two queries, which changes the free space.
--! wait SELECT t.table_rows = 18000 AND t.avg_row_length = t.data_length DIV t.table_rows AND t.index_length > 0 AND t.index_length < t.data_length AND c.stored_data_bytes = t.data_length AND c.stored_index_bytes = t.index_length AND ABS(CAST(c.free_bytes AS SIGNED) - CAST(t.data_free AS SIGNED)) < 1048576 FROM information_schema.tables t JOIN information_schema.cheetah_tables c ON c.table_schema = t.table_schema AND c.table_name = t.table_name WHERE t.table_schema = '$DB' AND t.table_name = 'sbtest'
SELECT table_rows FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 'sbtest';
--! end
