-- information_schema.CHEETAH_CACHE_CURVE falls with memory: more memory never causes more reads.
--! cheetah-only
CREATE TABLE t (a INT PRIMARY KEY, b VARBINARY(200));
INSERT INTO t SELECT seq, CONCAT(MD5(seq), MD5(seq + 1)) FROM seq_1_to_100000;
--! delimiter //
BEGIN NOT ATOMIC
  FOR i IN 0..285 DO
    SELECT b INTO @b FROM t WHERE a = (1 + 7 * i) * 31 % 100000 + 1;
  END FOR;
END//
--! delimiter ;
CREATE TEMPORARY TABLE curve SELECT * FROM information_schema.cheetah_cache_curve;
SELECT COUNT(*) AS wrong FROM curve WHERE memory_bytes <> @@cheetah_buffer_pool_size * memory_percent DIV 100 OR misses_per_1000 NOT BETWEEN 0 AND 1000;
SELECT COUNT(*) AS rises FROM (SELECT misses_per_1000 > LAG(misses_per_1000) OVER (ORDER BY memory_percent) OR reads_per_second > LAG(reads_per_second) OVER (ORDER BY memory_percent) AS rises FROM curve) AS steps WHERE rises;
--! ordered
SELECT memory_percent FROM information_schema.cheetah_cache_curve;
--! end
