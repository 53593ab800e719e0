-- ENCRYPTED, ENCRYPTION_KEY_ID, and the variables about them. The server has the keys 1, 2 and 3.
CREATE TABLE plain (a INT PRIMARY KEY, b VARCHAR(100));
CREATE TABLE yes (a INT PRIMARY KEY, b VARCHAR(100), c LONGTEXT, KEY (b), FULLTEXT (c)) ENCRYPTED=YES;
CREATE TABLE yes_3 (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTED=YES ENCRYPTION_KEY_ID=3;
CREATE TABLE other (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTED=DEFAULT ENCRYPTION_KEY_ID=9;
CREATE TABLE no (a INT PRIMARY KEY) ENCRYPTED=NO;
CREATE TABLE no_3 (a INT PRIMARY KEY) ENCRYPTED=NO ENCRYPTION_KEY_ID=3;
-- Without the key no table is created.
CREATE TABLE bad (a INT PRIMARY KEY) ENCRYPTED=YES ENCRYPTION_KEY_ID=9;
CREATE TABLE bad (a INT PRIMARY KEY) ENCRYPTED=YES ENCRYPTION_KEY_ID=0;
CREATE TABLE bad (a INT PRIMARY KEY) ENCRYPTED=YES ENCRYPTION_KEY_ID=4294967296;
CREATE TABLE bad (a INT PRIMARY KEY) ENCRYPTED=MAYBE;
CREATE TABLE bad (a INT) ENCRYPTED=YES ENCRYPTION_KEY_ID=9 PARTITION BY HASH (a) PARTITIONS 2;
SHOW TABLES LIKE 'bad%';
SHOW CREATE TABLE yes;
SHOW CREATE TABLE yes_3;
SHOW CREATE TABLE other;
SHOW CREATE TABLE no_3;
SELECT table_name, create_options FROM information_schema.tables WHERE table_schema = '$DB' ORDER BY 1;
-- The rows are unchanged.
INSERT INTO yes SELECT seq, CONCAT('row ', seq), IF(seq % 100 = 0, REPEAT(CONCAT('word', seq, ' '), 3000), CONCAT('text ', seq)) FROM seq_1_to_500;
UPDATE yes SET b = CONCAT('changed ', a) WHERE a % 7 = 0;
DELETE FROM yes WHERE a % 11 = 0;
SELECT COUNT(*), SUM(CRC32(b)), SUM(CRC32(c)) FROM yes;
SELECT a FROM yes WHERE b = 'changed 70';
SELECT a FROM yes WHERE MATCH (c) AGAINST ('word300') ORDER BY a;
CREATE TABLE copied ENCRYPTED=YES ENCRYPTION_KEY_ID=2 AS SELECT a, b FROM yes;
SELECT COUNT(*), SUM(CRC32(b)) FROM copied;
CREATE TABLE alike LIKE yes_3;
SHOW CREATE TABLE alike;
TRUNCATE TABLE copied;
INSERT INTO copied VALUES (1, 'one');
SELECT * FROM copied;
-- Partitions have the options of their table.
CREATE TABLE parts (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTED=YES ENCRYPTION_KEY_ID=2 PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN MAXVALUE);
INSERT INTO parts SELECT seq, CONCAT('row ', seq) FROM seq_1_to_300;
ALTER TABLE parts ADD COLUMN c INT DEFAULT 7;
SELECT COUNT(*), SUM(CRC32(b)), SUM(c) FROM parts;
SHOW CREATE TABLE parts;
CREATE TABLE swapped (a INT PRIMARY KEY, b VARCHAR(100), c INT DEFAULT 7) ENCRYPTED=YES ENCRYPTION_KEY_ID=2;
ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE swapped;
SELECT COUNT(*) FROM swapped;
-- A copy changes the options.
INSERT INTO plain SELECT seq, CONCAT('row ', seq) FROM seq_1_to_300;
ALTER TABLE plain ENCRYPTED=YES;
SHOW CREATE TABLE plain;
ALTER TABLE plain ENCRYPTION_KEY_ID=3;
ALTER TABLE plain ENCRYPTION_KEY_ID=9, ALGORITHM=COPY;
SHOW CREATE TABLE plain;
ALTER TABLE plain ENCRYPTED=NO;
ALTER TABLE plain ENCRYPTED=DEFAULT, ENCRYPTION_KEY_ID=1;
SHOW CREATE TABLE plain;
SELECT COUNT(*), SUM(CRC32(b)) FROM plain;
--! cheetah-only
ALTER TABLE plain ENCRYPTED=YES, ALGORITHM=INSTANT;
ALTER TABLE plain ENCRYPTED=YES, ALGORITHM=NOCOPY;
ALTER TABLE yes_3 ENCRYPTION_KEY_ID=2, ALGORITHM=INPLACE;
-- A table with different options cannot become a partition, because its rows would stay unchanged.
-- (InnoDB accepts it.)
CREATE TABLE closed (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTED=YES ENCRYPTION_KEY_ID=2 PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (200));
INSERT INTO closed VALUES (1, 'one'), (101, 'more');
CREATE TABLE open_text (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTED=NO;
INSERT INTO open_text VALUES (2, 'two');
CREATE TABLE by_default_2 (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTION_KEY_ID=2;
CREATE TABLE yes_key_3 (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTED=YES ENCRYPTION_KEY_ID=3;
CREATE TABLE yes_key_2 (a INT PRIMARY KEY, b VARCHAR(100)) ENCRYPTED=YES ENCRYPTION_KEY_ID=2;
ALTER TABLE closed EXCHANGE PARTITION p0 WITH TABLE open_text;
ALTER TABLE closed EXCHANGE PARTITION p0 WITH TABLE by_default_2;
ALTER TABLE closed EXCHANGE PARTITION p0 WITH TABLE yes_key_3;
ALTER TABLE closed CONVERT TABLE open_text TO PARTITION p2 VALUES LESS THAN MAXVALUE;
SELECT * FROM closed;
SET cheetah_default_encryption_key_id = 3;
ALTER TABLE closed EXCHANGE PARTITION p0 WITH TABLE yes_key_2;
SET cheetah_default_encryption_key_id = DEFAULT;
SELECT * FROM closed;
SELECT * FROM yes_key_2;
ALTER TABLE closed CONVERT PARTITION p1 TO TABLE came_out;
SHOW CREATE TABLE came_out;
-- With its query cache on, the server may crash here, with InnoDB, too (docs/users/limits.md).
SET GLOBAL query_cache_type = 0;
ALTER TABLE closed CONVERT TABLE came_out TO PARTITION p1 VALUES LESS THAN (200);
SET GLOBAL query_cache_type = 1;
SET SESSION query_cache_type = 1;
SELECT * FROM closed;
DROP TABLE closed, open_text, by_default_2, yes_key_3, yes_key_2;
-- Other changes stay instant.
ALTER TABLE yes_3 ADD COLUMN c INT, ALGORITHM=INSTANT;
ALTER TABLE yes_3 COMPRESSION='none', ALGORITHM=INSTANT;
CREATE TEMPORARY TABLE temporary_too (a INT) ENCRYPTED=YES;
INSERT INTO temporary_too VALUES (1);
SELECT * FROM temporary_too;
DROP TEMPORARY TABLE temporary_too;
-- The default key of the session.
SET cheetah_default_encryption_key_id = 2;
CREATE TABLE by_session (a INT PRIMARY KEY);
SHOW CREATE TABLE by_session;
SET cheetah_default_encryption_key_id = 9;
CREATE TABLE by_session_9 (a INT PRIMARY KEY) ENCRYPTED=YES;
SET cheetah_default_encryption_key_id = 0;
SELECT @@cheetah_default_encryption_key_id;
SET cheetah_default_encryption_key_id = DEFAULT;
-- The key of a table without the option ENCRYPTED is missing.
SET GLOBAL cheetah_encrypt_tables = ON;
SELECT @@cheetah_encrypt_tables;
DROP TABLE other;
SET GLOBAL cheetah_encrypt_tables = 1;
SELECT @@cheetah_encrypt_tables;
CREATE TABLE bad (a INT) ENCRYPTION_KEY_ID=9;
CREATE TABLE by_default (a INT PRIMARY KEY, b VARCHAR(20)) ENCRYPTION_KEY_ID=3;
INSERT INTO by_default VALUES (1, 'one');
CREATE TABLE no_still (a INT) ENCRYPTED=NO;
SET GLOBAL cheetah_encrypt_tables = 'FORCE';
CREATE TABLE bad (a INT) ENCRYPTED=NO;
ALTER TABLE by_default ENCRYPTED=NO;
ALTER TABLE no ADD COLUMN b INT, ALGORITHM=COPY;
ALTER TABLE no ADD COLUMN b INT;
SELECT * FROM by_default;
SET GLOBAL cheetah_encrypt_tables = 'sometimes';
SET GLOBAL cheetah_encrypt_tables = 3;
SET SESSION cheetah_encrypt_tables = OFF;
SET GLOBAL cheetah_encrypt_tables = DEFAULT;
SELECT @@cheetah_encrypt_tables;
SET GLOBAL cheetah_encrypt_log = ON;
INSERT INTO by_default VALUES (2, 'two');
SELECT @@cheetah_encrypt_log;
--! end
-- Encrypted data can be read after a kill and after a shutdown.
--! kill
SELECT COUNT(*), SUM(CRC32(b)), SUM(CRC32(c)) FROM yes;
SELECT a FROM yes WHERE MATCH (c) AGAINST ('word300') ORDER BY a;
--! cheetah-only
SELECT * FROM by_default;
SELECT @@cheetah_encrypt_log, @@cheetah_encrypt_tables;
--! end
--! restart
SELECT COUNT(*), SUM(CRC32(b)), SUM(CRC32(c)) FROM yes;
SELECT COUNT(*), SUM(CRC32(b)), SUM(c) FROM parts;
DROP TABLE yes, yes_3;
