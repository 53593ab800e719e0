-- The format options of InnoDB's tables: ROW_FORMAT, KEY_BLOCK_SIZE, PAGE_COMPRESSED.
-- docs/users/innodb.md lists F1 to F18.
--
-- F1: ROW_FORMAT=COMPACT is kept and shown.
CREATE TABLE f1 (a INT PRIMARY KEY, b VARCHAR(100)) ROW_FORMAT=COMPACT;
INSERT INTO f1 SELECT seq, CONCAT('row ', seq) FROM seq_1_to_2000;
SHOW CREATE TABLE f1;
SELECT row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 'f1';
--! columns Name,Row_format,Create_options
SHOW TABLE STATUS LIKE 'f1';
CREATE TABLE f1_redundant (a INT PRIMARY KEY) ROW_FORMAT=REDUNDANT;
CREATE TABLE f1_default (a INT PRIMARY KEY) ROW_FORMAT=DEFAULT;
CREATE TABLE f1_unsaid (a INT PRIMARY KEY);
SHOW CREATE TABLE f1_redundant;
SHOW CREATE TABLE f1_default;
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'f1%' ORDER BY 1;
-- F2: ROW_FORMAT=DYNAMIC stores large values outside the rows; short rows take the same space as in
-- COMPACT.
CREATE TABLE f2 (a INT PRIMARY KEY, b LONGBLOB, c TEXT) ROW_FORMAT=DYNAMIC;
INSERT INTO f2 VALUES (1, REPEAT('blob', 100000), REPEAT('text', 10000)), (2, 'short', 'short');
SELECT a, LENGTH(b), MD5(b), LENGTH(c) FROM f2 ORDER BY a;
SHOW CREATE TABLE f2;
CREATE TABLE f2_short (a INT PRIMARY KEY, b VARCHAR(100)) ROW_FORMAT=DYNAMIC;
INSERT INTO f2_short SELECT * FROM f1;
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'f2%' ORDER BY 1;
--! cheetah-only
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT MAX(stored_bytes) <= 1.02 * MIN(stored_bytes) FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name IN ('f1', 'f2_short');
--! end
-- F3: ROW_FORMAT=COMPRESSED with KEY_BLOCK_SIZE; both options are kept.
CREATE TABLE f3_8 (a INT PRIMARY KEY, b VARCHAR(100), KEY (b)) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8;
CREATE TABLE f3_4 (a INT PRIMARY KEY, b VARCHAR(100), KEY (b)) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4;
CREATE TABLE f3 (a INT PRIMARY KEY, b VARCHAR(100), KEY (b)) ROW_FORMAT=COMPRESSED;
INSERT INTO f3_4 SELECT * FROM f1;
SHOW CREATE TABLE f3_8;
SHOW CREATE TABLE f3_4;
SHOW CREATE TABLE f3;
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'f3%' ORDER BY 1;
-- F4: KEY_BLOCK_SIZE alone means compressed.
CREATE TABLE f4 (a INT PRIMARY KEY, b VARCHAR(100)) KEY_BLOCK_SIZE=8;
SHOW CREATE TABLE f4;
SELECT row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 'f4';
-- F6: all of InnoDB's sizes; other sizes are refused in strict mode and give a warning otherwise.
--! for SELECT seq FROM mysql.seq_1_to_16 WHERE seq IN (1, 2, 4, 8, 16)
CREATE TABLE f6_$1 (a INT PRIMARY KEY, b INT, KEY (b)) KEY_BLOCK_SIZE=$1;
CREATE TABLE f6_c$1 (a INT PRIMARY KEY, b INT, KEY (b)) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=$1;
--! end
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'f6%' ORDER BY 1;
CREATE TABLE f6_0 (a INT PRIMARY KEY) KEY_BLOCK_SIZE=0;
SHOW CREATE TABLE f6_0;
CREATE TABLE bad (a INT PRIMARY KEY) KEY_BLOCK_SIZE=3;
CREATE TABLE bad (a INT PRIMARY KEY) KEY_BLOCK_SIZE=32;
CREATE TABLE bad (a INT PRIMARY KEY) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=1024;
CREATE TABLE bad (a INT PRIMARY KEY) ROW_FORMAT=FIXED;
CREATE TABLE bad (a INT PRIMARY KEY) ROW_FORMAT=PAGE;
CREATE TABLE bad (a INT PRIMARY KEY) ROW_FORMAT=FIXED KEY_BLOCK_SIZE=3;
SHOW TABLES LIKE 'bad';
SET innodb_strict_mode = 0, cheetah_strict_mode = 0;
CREATE TABLE lax_3 (a INT PRIMARY KEY, b INT, KEY (b)) KEY_BLOCK_SIZE=3;
CREATE TABLE lax_32 (a INT PRIMARY KEY) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=32;
CREATE TABLE lax_fixed (a INT PRIMARY KEY) ROW_FORMAT=FIXED;
CREATE TABLE lax_page (a INT PRIMARY KEY) ROW_FORMAT=PAGE KEY_BLOCK_SIZE=5;
SHOW CREATE TABLE lax_3;
SHOW CREATE TABLE lax_fixed;
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'lax%' ORDER BY 1;
SET innodb_strict_mode = 1, cheetah_strict_mode = 1;
--! cheetah-only
-- DYNAMIC and the like with a size, which InnoDB refuses, are accepted, and the size takes effect.
CREATE TABLE both_d (a INT PRIMARY KEY) ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=4;
CREATE TABLE both_c (a INT PRIMARY KEY) ROW_FORMAT=COMPACT KEY_BLOCK_SIZE=8;
CREATE TABLE both_r (a INT PRIMARY KEY) ROW_FORMAT=REDUNDANT KEY_BLOCK_SIZE=1;
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'both%' ORDER BY 1;
SELECT @@cheetah_strict_mode, @@GLOBAL.cheetah_strict_mode;
ALTER TABLE f4 KEY_BLOCK_SIZE=3;
SHOW CREATE TABLE f4;
--! end
-- F7: the table of sysbench, as its scenarios declare it.
CREATE TABLE `sbtest` (`id` int(10) unsigned NOT NULL, `k` int(10) unsigned NOT NULL DEFAULT '0', `c` char(120) NOT NULL DEFAULT '', `pad` char(60) NOT NULL DEFAULT '', PRIMARY KEY (`id`), KEY `k` (`k`)) ENGINE=$ENGINE ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8;
INSERT INTO sbtest SELECT seq, seq * 7 % 1000, CONCAT_WS('-', CRC32(seq), CRC32(seq + 1), CRC32(seq + 2), CRC32(seq + 3)), CRC32(seq + 4) FROM seq_1_to_5000;
UPDATE sbtest SET k = k + 1, c = REVERSE(c) WHERE id BETWEEN 1000 AND 1100;
DELETE FROM sbtest WHERE id % 500 = 0;
SELECT COUNT(*), SUM(k), SUM(CRC32(c)), SUM(CRC32(pad)) FROM sbtest;
SELECT id, k FROM sbtest FORCE INDEX (k) WHERE k BETWEEN 3 AND 4 ORDER BY k, id LIMIT 5;
SHOW CREATE TABLE sbtest;
-- F5, F8: four tables of texts, as the comparison of page sizes declares them.
DROP TABLE IF EXISTS text_16K_compressed, text_8K_compressed, text_4K_compressed, text_16K_uncompressed;
CREATE TABLE `text_16K_uncompressed` (`old_id` int(8) unsigned NOT NULL AUTO_INCREMENT, `old_text` mediumblob NOT NULL, `old_flags` tinyblob NOT NULL, PRIMARY KEY (`old_id`)) ENGINE=$ENGINE;
--! for SELECT seq FROM mysql.seq_4_to_16 WHERE seq IN (4, 8, 16)
CREATE TABLE `text_$1K_compressed` (`old_id` int(8) unsigned NOT NULL AUTO_INCREMENT, `old_text` mediumblob NOT NULL, `old_flags` tinyblob NOT NULL, PRIMARY KEY (`old_id`)) ENGINE=$ENGINE ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=$1;
--! end
INSERT INTO text_16K_uncompressed (old_text, old_flags) SELECT (SELECT GROUP_CONCAT(ELT(1 + CRC32(CONCAT(t.seq, '/', w.seq)) % 24, 'the', 'page', 'of', 'compression', 'and', 'a', 'table', 'in', 'storage', 'to', 'engine', 'index', 'is', 'size', 'that', 'rows', 'with', 'database', 'for', 'buffer', 'written', 'by', 'on', 'disk') ORDER BY w.seq SEPARATOR ' ') FROM seq_1_to_400 w), 'utf-8' FROM seq_1_to_400 t;
--! for SELECT seq FROM mysql.seq_4_to_16 WHERE seq IN (4, 8, 16)
INSERT INTO text_$1K_compressed SELECT * FROM text_16K_uncompressed;
SELECT COUNT(*), SUM(LENGTH(old_text)), SUM(CRC32(old_text)) FROM text_$1K_compressed;
SHOW CREATE TABLE text_$1K_compressed;
--! end
--! cheetah-only
-- All of these tables are compressed, and a higher requested density makes them smaller.
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT stored_bytes < 0.5 * (SELECT SUM(LENGTH(old_text)) FROM text_16K_compressed) FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'text_16K_compressed';
SELECT a.table_name, b.table_name, a.stored_bytes < 0.95 * b.stored_bytes FROM information_schema.CHEETAH_TABLES a JOIN information_schema.CHEETAH_TABLES b ON b.table_schema = a.table_schema WHERE a.table_schema = '$DB' AND a.table_name = 'text_4K_compressed' AND b.table_name IN ('text_8K_compressed', 'text_16K_uncompressed') ORDER BY 2;
--! end
-- F9: page compression.
CREATE TABLE f9 (a INT PRIMARY KEY, b VARCHAR(100)) PAGE_COMPRESSED=1;
CREATE TABLE f9_9 (a INT PRIMARY KEY, b VARCHAR(100)) PAGE_COMPRESSED='ON' PAGE_COMPRESSION_LEVEL=9;
CREATE TABLE f9_0 (a INT PRIMARY KEY) PAGE_COMPRESSED=0;
CREATE TABLE f9_d (a INT PRIMARY KEY) ROW_FORMAT=DYNAMIC `PAGE_COMPRESSED`='yes' `PAGE_COMPRESSION_LEVEL`=1 `ENCRYPTED`=NO;
CREATE TABLE f9_e (a INT PRIMARY KEY) ENCRYPTED=DEFAULT ENCRYPTION_KEY_ID=1;
CREATE TABLE bad (a INT PRIMARY KEY) PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=10;
CREATE TABLE bad (a INT PRIMARY KEY) PAGE_COMPRESSED=7;
INSERT INTO f9_9 SELECT * FROM f1;
SELECT COUNT(*), SUM(CRC32(b)) FROM f9_9;
SHOW CREATE TABLE f9;
SHOW CREATE TABLE f9_9;
SHOW CREATE TABLE f9_0;
SHOW CREATE TABLE f9_d;
SHOW CREATE TABLE f9_e;
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'f9%' ORDER BY 1;
--! cheetah-only
-- Options that InnoDB refuses, and options without effect.
CREATE TABLE f9_c (a INT PRIMARY KEY) PAGE_COMPRESSED=1 ROW_FORMAT=COMPRESSED;
CREATE TABLE f9_k (a INT PRIMARY KEY) PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=5 KEY_BLOCK_SIZE=4;
CREATE TABLE f9_l (a INT PRIMARY KEY) PAGE_COMPRESSION_LEVEL=9;
CREATE TABLE f9_z (a INT PRIMARY KEY) COMPRESSION='zstd' KEY_BLOCK_SIZE=4;
CREATE TABLE f9_4 (a INT PRIMARY KEY) COMPRESSION='lz4' KEY_BLOCK_SIZE=4 PAGE_COMPRESSED=1;
CREATE TABLE f9_n (a INT PRIMARY KEY) COMPRESSION='none' ROW_FORMAT=COMPRESSED PAGE_COMPRESSED=1;
CREATE TABLE f9_x (a INT PRIMARY KEY) COMPRESSION_LEVEL=4 KEY_BLOCK_SIZE=4;
SET cheetah_default_compression = 'lz4', cheetah_default_compression_level = 2;
CREATE TABLE own_k (a INT PRIMARY KEY) KEY_BLOCK_SIZE=4;
CREATE TABLE own_p (a INT PRIMARY KEY) PAGE_COMPRESSED=1;
CREATE TABLE own_d (a INT PRIMARY KEY) ROW_FORMAT=DYNAMIC;
SET cheetah_default_compression = DEFAULT, cheetah_default_compression_level = DEFAULT;
--! end
-- KEY_BLOCK_SIZE of indexes.
CREATE TABLE i1 (a INT PRIMARY KEY, b INT, c INT, KEY (b) KEY_BLOCK_SIZE=4, KEY (c) KEY_BLOCK_SIZE=2);
CREATE TABLE i2 (a INT, b INT, PRIMARY KEY (a) KEY_BLOCK_SIZE=2, KEY (b)) KEY_BLOCK_SIZE=8;
CREATE TABLE i3 (a INT PRIMARY KEY, b INT, KEY (b) KEY_BLOCK_SIZE=1) ROW_FORMAT=COMPACT;
SHOW CREATE TABLE i1;
SHOW CREATE TABLE i2;
CREATE INDEX c ON i3 (b, a) KEY_BLOCK_SIZE=4;
SHOW CREATE TABLE i3;
CREATE TABLE i4 (a INT PRIMARY KEY, b INT, KEY (b) KEY_BLOCK_SIZE=3);
ALTER TABLE i4 ADD c INT;
SHOW CREATE TABLE i4;
-- LIKE, SELECT, partitions, temporary tables.
CREATE TABLE l1 LIKE f3_4;
SHOW CREATE TABLE l1;
CREATE TABLE l2 LIKE f9_9;
SHOW CREATE TABLE l2;
CREATE TABLE l3 (PRIMARY KEY (a)) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4 SELECT * FROM f1;
SHOW CREATE TABLE l3;
-- F16
CREATE TABLE f16 (a INT, b VARCHAR(100), PRIMARY KEY (a), KEY (b)) KEY_BLOCK_SIZE=4 PARTITION BY HASH (a) PARTITIONS 3;
INSERT INTO f16 SELECT * FROM f1;
ALTER TABLE f16 ADD PARTITION PARTITIONS 1;
ALTER TABLE f16 TRUNCATE PARTITION p1;
CREATE TABLE f16_x LIKE f16;
ALTER TABLE f16_x REMOVE PARTITIONING;
ALTER TABLE f16 EXCHANGE PARTITION p2 WITH TABLE f16_x;
CREATE TABLE f16_page (a INT, b VARCHAR(100), PRIMARY KEY (a), KEY (b)) ROW_FORMAT=DYNAMIC PAGE_COMPRESSED=1;
CREATE TABLE f16_pages (a INT, b VARCHAR(100), PRIMARY KEY (a), KEY (b)) ROW_FORMAT=DYNAMIC PARTITION BY HASH (a) PARTITIONS 3;
ALTER TABLE f16_pages EXCHANGE PARTITION p2 WITH TABLE f16_page;
--! cheetah-only
-- The exchange is refused, because a definition must describe the compression of its rows.
CREATE TABLE f16_lz4 (a INT, b VARCHAR(100), PRIMARY KEY (a), KEY (b)) KEY_BLOCK_SIZE=4 COMPRESSION='lz4';
ALTER TABLE f16 EXCHANGE PARTITION p2 WITH TABLE f16_lz4;
--! end
SELECT COUNT(*), SUM(CRC32(b)) FROM f16;
SHOW CREATE TABLE f16;
SELECT row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 'f16';
CREATE TEMPORARY TABLE t1 (a INT PRIMARY KEY, b TEXT) ROW_FORMAT=DYNAMIC;
INSERT INTO t1 SELECT * FROM f1;
SELECT COUNT(*), SUM(CRC32(b)) FROM t1;
--! cheetah-only
CREATE TEMPORARY TABLE t2 (a INT PRIMARY KEY, b TEXT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=2;
INSERT INTO t2 SELECT * FROM f1;
SELECT COUNT(*), SUM(CRC32(b)) FROM t2;
SHOW CREATE TABLE t2;
DROP TEMPORARY TABLE t2;
--! end
--! cheetah-only
-- When the size changes, the server treats all keys as different ones.
CREATE TABLE sizes (a INT PRIMARY KEY, b VARCHAR(100), c INT, UNIQUE (c), KEY (b DESC, c), KEY own (c) KEY_BLOCK_SIZE=2);
INSERT INTO sizes SELECT a, b, a + 1000 FROM f1;
ALTER TABLE sizes KEY_BLOCK_SIZE=4, ALGORITHM=INSTANT;
SHOW CREATE TABLE sizes;
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'sizes';
ALTER TABLE sizes KEY_BLOCK_SIZE=8, ALGORITHM=NOCOPY;
CHECK TABLE sizes EXTENDED;
SELECT COUNT(*), SUM(c), SUM(CRC32(b)) FROM sizes FORCE INDEX (b);
ALTER TABLE sizes KEY_BLOCK_SIZE=4, DROP PRIMARY KEY, ADD PRIMARY KEY (c), ALGORITHM=INSTANT;
ALTER TABLE sizes KEY_BLOCK_SIZE=4, DROP KEY b, ADD KEY b (b, c), ALGORITHM=INSTANT;
ALTER TABLE sizes KEY_BLOCK_SIZE=4, DROP KEY b, ADD KEY b (b, c), ALGORITHM=NOCOPY;
CHECK TABLE sizes EXTENDED;
SELECT COUNT(*), SUM(c), SUM(CRC32(b)) FROM sizes FORCE INDEX (b);
DROP TABLE sizes;
-- Sizes of keys apply if the table has none. Existing rows are compressed with the new size only by
-- a copy.
CREATE TABLE sizes (a INT PRIMARY KEY, b VARCHAR(100), KEY (b));
INSERT INTO sizes SELECT a, b FROM f1;
ALTER TABLE sizes DROP PRIMARY KEY, ADD PRIMARY KEY (a) KEY_BLOCK_SIZE=4;
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'sizes';
ALTER TABLE sizes DROP PRIMARY KEY, ADD PRIMARY KEY (a) KEY_BLOCK_SIZE=2, ALGORITHM=INSTANT;
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'sizes';
CHECK TABLE sizes EXTENDED;
DROP TABLE sizes;
CREATE TABLE sizes (a INT PRIMARY KEY, b BLOB, c BLOB, UNIQUE u (b) USING HASH);
ALTER TABLE sizes KEY_BLOCK_SIZE=4, DROP KEY u, ADD UNIQUE u (c) USING HASH, ALGORITHM=INSTANT;
DROP TABLE sizes;
--! end
-- ALTER TABLE. The server leaves the old size at the indexes; the table's size applies.
CREATE TABLE alt (a INT PRIMARY KEY, b VARCHAR(100), KEY (b));
INSERT INTO alt SELECT * FROM f1;
ALTER TABLE alt ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4;
SHOW CREATE TABLE alt;
--! cheetah-only
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'alt';
ALTER TABLE alt KEY_BLOCK_SIZE=2, ALGORITHM=INSTANT;
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'alt';
ALTER TABLE alt KEY_BLOCK_SIZE=1, ALGORITHM=INPLACE;
--! end
ALTER TABLE alt KEY_BLOCK_SIZE=8;
SHOW CREATE TABLE alt;
--! cheetah-only
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'alt';
--! end
ALTER TABLE alt ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=0;
SHOW CREATE TABLE alt;
SELECT row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name = 'alt';
--! cheetah-only
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'alt';
--! end
ALTER TABLE alt PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=9;
SHOW CREATE TABLE alt;
--! cheetah-only
SELECT compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' AND table_name = 'alt';
--! end
ALTER TABLE alt PAGE_COMPRESSED=DEFAULT PAGE_COMPRESSION_LEVEL=DEFAULT ROW_FORMAT=DEFAULT;
SHOW CREATE TABLE alt;
SELECT COUNT(*), SUM(CRC32(b)) FROM alt;
-- The codec and level of all these tables.
--! cheetah-only
SELECT table_name, compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = '$DB' ORDER BY 1;
--! end
-- F15: unique and other indexes, keys that are GUIDs.
CREATE TABLE f15 (g CHAR(36) PRIMARY KEY, n INT, u INT, UNIQUE KEY (u), KEY (n)) KEY_BLOCK_SIZE=8;
INSERT INTO f15 SELECT INSERT(INSERT(INSERT(INSERT(MD5(seq), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-'), seq % 10, seq FROM seq_1_to_2000;
INSERT INTO f15 VALUES ('another', 1, 77);
INSERT INTO f15 SELECT g, 1, 5000 FROM f15 WHERE u = 9;
SELECT g, n FROM f15 WHERE u IN (3, 2000) ORDER BY g;
SELECT n, COUNT(*) FROM f15 GROUP BY n ORDER BY n LIMIT 3;
-- F17: INSERT .. SELECT above; one row per statement; a dump and its load.
--! for SELECT seq FROM mysql.seq_1_to_20
INSERT INTO f3_8 VALUES ($1, 'one row each');
--! end
SELECT COUNT(*), SUM(a) FROM f3_8;
-- F18: already compressed values neither fail nor grow.
CREATE TABLE f18 (a INT PRIMARY KEY, z BLOB, k VARCHAR(100), KEY (k)) KEY_BLOCK_SIZE=4;
INSERT INTO f18 SELECT seq, COMPRESS(CONCAT(MD5(seq), REPEAT(MD5(seq + 1), 3), SHA2(seq, 512))), CONCAT('key number ', seq) FROM seq_1_to_2000;
SELECT COUNT(*), SUM(UNCOMPRESSED_LENGTH(z)), SUM(CRC32(UNCOMPRESS(z))) FROM f18;
--! cheetah-only
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT index_name, stored_bytes < logical_bytes, stored_bytes < 0.4 * logical_bytes FROM information_schema.CHEETAH_INDEXES WHERE table_schema = '$DB' AND table_name = 'f18' ORDER BY 1;
--! end
DROP TABLE lax_3, lax_32, lax_fixed, lax_page;
--! shell dump
--! shell restore
SHOW CREATE TABLE f3_4;
SHOW CREATE TABLE f9_9;
SHOW CREATE TABLE i2;
SHOW CREATE TABLE f16;
SELECT COUNT(*), SUM(CRC32(c)), SUM(CRC32(pad)) FROM sbtest;
SELECT COUNT(*), SUM(CRC32(UNCOMPRESS(z))) FROM f18;
--! restart
SHOW CREATE TABLE f3_4;
SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = '$DB' AND table_name LIKE 'f_' ORDER BY 1;
