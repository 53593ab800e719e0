-- Definitions and values that Cheetah refuses with a clear error, and options that it accepts with
-- a warning.
--! cheetah-only
CREATE TABLE g (a INT PRIMARY KEY, p POINT NOT NULL, SPATIAL KEY (p));
CREATE TABLE parent (a INT PRIMARY KEY);
FLUSH TABLES parent FOR EXPORT;
UNLOCK TABLES;
CREATE TABLE v (a INT PRIMARY KEY, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING;
CREATE TABLE o (a INT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8;
CREATE TABLE o2 (a INT) ROW_FORMAT=REDUNDANT;
CREATE TABLE o3 (a INT) DATA DIRECTORY='/elsewhere' INDEX DIRECTORY='/elsewhere';
CREATE TABLE o4 (a INT) PAGE_COMPRESSED=1;
CREATE TABLE o5 (a INT) TRANSACTIONAL=1 PAGE_CHECKSUM=1;
CREATE TABLE k (a VARCHAR(3000) CHARACTER SET utf8mb4, KEY (a));
CREATE TABLE c1 (a INT) COMPRESSION='lz4';
CREATE TABLE c2 (a INT) COMPRESSION='none';
CREATE TABLE c3 (a INT) COMPRESSION='zstd';
CREATE TABLE c4 (a INT) COMPRESSION='brotli';
CREATE TABLE c5 (a INT) COMPRESSION='lz4' COMPRESSION_LEVEL=9;
CREATE TABLE c6 (a INT) COMPRESSION='none' COMPRESSION_LEVEL=1;
CREATE TABLE c7 (a INT) COMPRESSION_LEVEL=9;
SET cheetah_default_compression = 'lz4', cheetah_default_compression_level = 7;
CREATE TABLE c8 (a INT) COMPRESSION_LEVEL=9;
CREATE TABLE c9 (a INT);
SET cheetah_default_compression = DEFAULT, cheetah_default_compression_level = DEFAULT;
SET GLOBAL cheetah_change_buffering = 'purges';
SET cheetah_change_buffering = 'none';
SET GLOBAL cheetah_change_buffering = 'none';
SELECT @@GLOBAL.cheetah_change_buffering;
SET GLOBAL cheetah_change_buffering = DEFAULT;
SELECT @@GLOBAL.cheetah_change_buffering;
ANALYZE TABLE c7;
SELECT table_name, compression, compression_level FROM information_schema.CHEETAH_TABLES WHERE table_schema = 'sqltest' AND table_name LIKE 'c_' ORDER BY 1;
SELECT table_name FROM information_schema.CHEETAH_TABLES WHERE table_schema = '' AND table_name <> '#statistics';
SELECT table_name, index_name FROM information_schema.CHEETAH_INDEXES WHERE table_schema = '' AND table_name <> '#statistics';
CREATE TABLE child3 (a INT, b INT, FOREIGN KEY (a, b) REFERENCES parent (a, b));
SHOW TABLES;
SELECT engine, support, transactions, savepoints FROM information_schema.engines WHERE engine = 'CHEETAH';
SHOW CREATE TABLE parent;
--! end
