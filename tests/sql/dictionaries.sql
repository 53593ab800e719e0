-- Dictionaries: a load of a table of texts makes one, and later pages use it. Only sizes show this.
CREATE TABLE words (n INT PRIMARY KEY, w VARCHAR(40)) ENGINE=$ENGINE;
INSERT INTO words SELECT seq, LEFT(MD5(seq), 4 + seq % 9) FROM seq_1_to_300;
CREATE TABLE t (id INT PRIMARY KEY, body TEXT, long_body MEDIUMTEXT, KEY (body(20))) ENGINE=MyISAM;
INSERT INTO t SELECT s.seq, (SELECT GROUP_CONCAT(w ORDER BY n * (s.seq + 7) % 311 SEPARATOR ' ') FROM words WHERE n * (s.seq + 3) % 307 < 60), NULL
  FROM seq_1_to_3000 s;
UPDATE t SET long_body = REPEAT(body, 60) WHERE id % 40 = 3;
ALTER TABLE t ENGINE=$ENGINE;
SELECT COUNT(*), SUM(CRC32(body)), SUM(CRC32(long_body)) FROM t;
CHECK TABLE t EXTENDED;
--! cheetah-only
SELECT VARIABLE_VALUE > 0 AS some FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Cheetah_pool_dictionaries';
CREATE TABLE other LIKE t;
ALTER TABLE other COMPRESSION='lz4';
INSERT INTO other SELECT * FROM t;
ANALYZE TABLE t;
SET GLOBAL cheetah_checkpoint_now = ON;
SELECT (SELECT SUM(STORED_BYTES) FROM information_schema.CHEETAH_TABLES WHERE TABLE_SCHEMA = '$DB' AND TABLE_NAME = 't')
  < 0.7 * (SELECT SUM(STORED_BYTES) FROM information_schema.CHEETAH_TABLES WHERE TABLE_SCHEMA = '$DB' AND TABLE_NAME = 'other') AS smaller;
DROP TABLE other;
--! end
UPDATE t SET body = CONCAT(body, ' and more') WHERE id % 3 = 0;
--! kill
DELETE FROM t WHERE id % 5 = 0;
INSERT INTO t SELECT id + 10000, body, long_body FROM t WHERE id % 7 = 0;
SELECT COUNT(*), SUM(CRC32(body)), SUM(CRC32(long_body)) FROM t;
CHECK TABLE t EXTENDED;
--! restart
SELECT COUNT(*), SUM(CRC32(body)), SUM(CRC32(long_body)) FROM t;
CHECK TABLE t EXTENDED;
TRUNCATE t;
INSERT INTO t VALUES (1, 'again', 'again');
SELECT * FROM t;
DROP TABLE t, words;
