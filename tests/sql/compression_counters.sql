-- The views count images made and read, with their times, by length and by index, in InnoDB's
-- columns; the _RESET twins reset the counters.
--! cheetah-only
--! restart
SELECT COUNT(*) > 40 AS there, SUM(o.column_name IS NULL) AS differing FROM information_schema.columns i LEFT JOIN information_schema.columns o ON o.table_schema = i.table_schema AND o.table_name = REPLACE(i.table_name, 'INNODB_', 'CHEETAH_') AND o.ordinal_position = i.ordinal_position AND o.column_name = i.column_name WHERE i.table_schema = 'information_schema' AND i.table_name IN ('INNODB_CMP', 'INNODB_CMP_RESET', 'INNODB_CMP_PER_INDEX', 'INNODB_CMP_PER_INDEX_RESET', 'INNODB_BUFFER_POOL_STATS');
CREATE TABLE sbtest (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k (k));
INSERT INTO sbtest SELECT seq, FLOOR(RAND() * 20000), CONCAT_WS('-', LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0')), CONCAT_WS('-', LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0'), LPAD(FLOOR(RAND() * 1e11), 11, '0')) FROM seq_1_to_20000;
--! wait SELECT variable_value = 0 FROM information_schema.global_status WHERE variable_name = 'Cheetah_transactions_to_purge'
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT GROUP_CONCAT(page_size) FROM information_schema.cheetah_cmp;
SELECT SUM(compress_ops), SUM(IF(page_size = 8192, compress_ops, 0)), SUM(compress_time_us), SUM(compress_time <> compress_time_us DIV 1000000) INTO @pages, @middle, @us, @wrong FROM information_schema.cheetah_cmp;
-- Random digits compress to less than half, so most images have up to 8 KiB.
SELECT @pages >= 20000 * 150 DIV 16384 AS many, @middle > @pages / 2 AS most_have_8_kib, @us BETWEEN @pages * 2 AND @pages * 50000 AS take_time, @wrong AS wrong;
-- More images may have been made since the first query.
SELECT GROUP_CONCAT(index_name ORDER BY compress_ops DESC), MIN(compress_ops) > 0 AS each_has, SUM(compress_ops) <= (SELECT SUM(compress_ops) FROM information_schema.cheetah_cmp) AS within FROM information_schema.cheetah_cmp_per_index WHERE database_name = '$DB' AND table_name = 'sbtest';
--! restart
SELECT SUM(CRC32(pad)) > 0 AS read_all FROM sbtest;
SELECT uncompress_ops, uncompress_time_us INTO @count, @us FROM information_schema.cheetah_cmp_per_index WHERE database_name = '$DB' AND table_name = 'sbtest' AND index_name = 'PRIMARY';
SELECT @count BETWEEN 20000 * 150 DIV 16384 AND @us AS are_read;
SELECT uncompress_ops = @count AND uncompress_time_us = @us AS same FROM information_schema.cheetah_cmp_per_index_reset WHERE database_name = '$DB' AND table_name = 'sbtest' AND index_name = 'PRIMARY';
SELECT uncompress_ops, uncompress_time_us FROM information_schema.cheetah_cmp_per_index WHERE database_name = '$DB' AND table_name = 'sbtest' AND index_name = 'PRIMARY';
-- Each view has its own counters.
SELECT SUM(uncompress_ops) INTO @before FROM information_schema.cheetah_cmp;
SELECT @before >= @count AS by_itself;
SELECT SUM(uncompress_ops) >= @before AS same FROM information_schema.cheetah_cmp_reset;
SELECT SUM(uncompress_ops) < @count AS again FROM information_schema.cheetah_cmp;
--! end
