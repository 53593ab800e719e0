-- An UPDATE of a small column leaves large values where they are; one of a large column writes that one only.
CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, c LONGTEXT, KEY (n));
INSERT INTO t SELECT seq, seq, REPEAT(CHAR(96 + seq), 200000), REPEAT('text ', 20000) FROM seq_1_to_10;
--! cheetah-only
SELECT variable_value INTO @values_before FROM information_schema.global_status WHERE variable_name = 'cheetah_large_values_written';
SELECT variable_value INTO @log_before FROM information_schema.global_status WHERE variable_name = 'cheetah_log_position';
--! end
UPDATE t SET n = n + 100;
UPDATE t SET id = id + 50 WHERE id < 6;
INSERT INTO t (id, n) VALUES (10, 1) ON DUPLICATE KEY UPDATE n = n + 1;
UPDATE t x JOIN t y ON x.id = y.id SET x.n = y.n + 1;
--! cheetah-only
SELECT variable_value - @values_before AS large_values_written FROM information_schema.global_status WHERE variable_name = 'cheetah_large_values_written';
SELECT variable_value - @log_before < 20000 AS little_was_logged FROM information_schema.global_status WHERE variable_name = 'cheetah_log_position';
--! end
UPDATE t SET c = REPEAT('other ', 20000) WHERE id = 10;
--! cheetah-only
SELECT variable_value - @values_before AS large_values_written FROM information_schema.global_status WHERE variable_name = 'cheetah_large_values_written';
--! end
SELECT id, n, MD5(b), MD5(c) FROM t ORDER BY id;
--! kill
SELECT id, n, MD5(b), MD5(c) FROM t ORDER BY id;
CHECK TABLE t EXTENDED;
