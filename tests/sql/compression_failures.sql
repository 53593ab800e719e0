-- Incompressible bytes with every codec: no image fails.
--! cheetah-only
--! for VALUES ('zstd'), ('lz4'), ('none')
CREATE TABLE noise_$1 (a INT PRIMARY KEY, b VARBINARY(2000)) COMPRESSION='$1';
INSERT INTO noise_$1 SELECT seq, CONCAT(RANDOM_BYTES(960), RANDOM_BYTES(960)) FROM seq_1_to_500;
--! end
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT SUM(compress_ops) > 3 * 500 * 1900 DIV 16384 AS many, SUM(compress_ops - compress_ops_ok) AS failed FROM information_schema.cheetah_cmp;
SELECT COUNT(*), SUM(compress_ops > 0), SUM(compress_ops - compress_ops_ok) AS failed FROM information_schema.cheetah_cmp_per_index WHERE database_name = '$DB' AND table_name LIKE 'noise%';
--! end
