-- information_schema.CHEETAH_COMPRESSION_ESTIMATE omits tables that it cannot read, with a warning,
-- and does not affect transactions and locks.
--! cheetah-only
-- Keys that Cheetah does not support, keys without an order, disabled keys; an empty table.
CREATE TABLE words (t TEXT, FULLTEXT KEY (t)) ENGINE=InnoDB;
CREATE TABLE memory (a INT, KEY (a) USING HASH) ENGINE=MEMORY;
CREATE TABLE nothing (a INT PRIMARY KEY) ENGINE=MyISAM;
CREATE VIEW v AS SELECT 1 AS a;
CREATE SEQUENCE s ENGINE=InnoDB;
CREATE TABLE off (a INT PRIMARY KEY, b INT, KEY (b));
ALTER TABLE off DISABLE KEYS;
--! for VALUES ('words'), ('memory'), ('off'), ('nothing'), ('v'), ('s'), ('missing')
SELECT engine, compression, compression_level, key_block_size, table_rows FROM information_schema.cheetah_compression_estimate WHERE table_schema = '$DB' AND table_name = '$1';
--! end
-- In a transaction that has changed the table, with either engine, and under LOCK TABLES.
--! for SELECT 'InnoDB' UNION ALL SELECT 'CHEETAH'
CREATE OR REPLACE TABLE t (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=$1;
INSERT INTO t SELECT seq, seq FROM seq_1_to_100;
BEGIN;
INSERT INTO t VALUES (101, 101);
SELECT compression, sampled_rows FROM information_schema.cheetah_compression_estimate WHERE table_schema = '$DB' AND table_name = 't';
ROLLBACK;
SELECT COUNT(*) FROM t;
LOCK TABLES t WRITE;
SELECT compression, sampled_rows FROM information_schema.cheetah_compression_estimate WHERE table_schema = '$DB' AND table_name = 't';
INSERT INTO t VALUES (101, 101);
UNLOCK TABLES;
SELECT COUNT(*) FROM t;
--! end
--! end
