-- Statements that insert many rows into an empty table, and concurrent events.
CREATE TABLE src (n INT PRIMARY KEY, b VARCHAR(60), c INT, d TEXT) ENGINE=$ENGINE;
INSERT INTO src SELECT seq, CONCAT('some longer text ', seq % 3000), seq * 7919 % 40009, IF(seq % 4000 = 9, REPEAT('large', 9000), CONCAT('d', seq, REPEAT('-', 40))) FROM seq_1_to_16000;
SELECT COUNT(*), SUM(n), SUM(CRC32(d)) FROM src;
CHECK TABLE src EXTENDED;
CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b VARCHAR(60), c INT, d TEXT, KEY b (b), UNIQUE c (c)) ENGINE=$ENGINE;
-- An older snapshot sees the empty table in every query, and a writer continues after the loaded
-- rows.
--! connection old
START TRANSACTION WITH CONSISTENT SNAPSHOT;
SELECT COUNT(*) FROM t;
--! connection default
INSERT INTO t (b, c, d) SELECT b, c, d FROM src ORDER BY c;
SELECT LAST_INSERT_ID();
SELECT COUNT(*), SUM(id), SUM(c), SUM(CRC32(d)) FROM t;
SELECT COUNT(*), SUM(c) FROM t FORCE INDEX (b) WHERE b LIKE 'some longer text 77%';
--! connection old
SELECT COUNT(*) FROM t;
SELECT * FROM t FORCE INDEX (b) WHERE b LIKE 'some longer text 77%';
SELECT * FROM t WHERE id = 77;
SELECT COUNT(*) FROM t FORCE INDEX (c) WHERE c > 5;
INSERT INTO t (b, c) VALUES ('new', 50001);
-- The transaction cannot distinguish its own rows from loaded rows that its snapshot does not see.
--! innodb-only
SELECT id, b FROM t;
--! end
COMMIT;
SELECT COUNT(*) FROM t;
--! connection default
SELECT MAX(id) FROM t WHERE c = 50001;
CHECK TABLE t EXTENDED;
-- A duplicate at the end rolls back the whole load, and the table can be filled again.
TRUNCATE t;
--! numbers
INSERT INTO t (b, c, d) SELECT b, IF(n = 15000, 7919, c), d FROM src ORDER BY n;
SELECT COUNT(*) FROM t;
--! numbers
INSERT INTO t (id, b, c, d) SELECT IF(n = 15000, 5, n), b, c, d FROM src ORDER BY n;
SELECT COUNT(*) FROM t;
CHECK TABLE t EXTENDED;
TRUNCATE t;
INSERT INTO t SELECT n, b, c, d FROM src;
SELECT COUNT(*), MAX(id), SUM(CRC32(d)) FROM t;
INSERT INTO t (c) VALUES (60000);
SELECT LAST_INSERT_ID();
-- Duplicates after which the statement continues.
TRUNCATE t;
INSERT IGNORE INTO t SELECT n % 9000, b, c, d FROM src;
SELECT COUNT(*), SUM(id), SUM(c) FROM t;
TRUNCATE t;
REPLACE INTO t SELECT n % 9000 + 1, b, c, d FROM src;
SELECT COUNT(*), SUM(id), SUM(c) FROM t;
TRUNCATE t;
INSERT INTO t SELECT n % 9000 + 1, b, c, d FROM src ON DUPLICATE KEY UPDATE b = CONCAT('twice ', t.id);
SELECT COUNT(*), SUM(id), SUM(c), SUM(CRC32(b)) FROM t;
-- In a transaction, with savepoints.
TRUNCATE t;
START TRANSACTION;
SAVEPOINT s;
INSERT INTO t SELECT n, b, c, d FROM src;
SELECT COUNT(*) FROM t;
ROLLBACK TO s;
SELECT COUNT(*) FROM t;
INSERT INTO t SELECT n, b, c, d FROM src WHERE n > 4000;
UPDATE t SET b = 'changed' WHERE id > 15990;
ROLLBACK;
SELECT COUNT(*) FROM t;
SET autocommit = 0;
INSERT INTO t SELECT n, b, c, d FROM src;
SELECT COUNT(*) FROM t;
ROLLBACK;
SELECT COUNT(*) FROM t;
SET autocommit = 1;
-- Triggers and functions that read the table.
TRUNCATE t;
CREATE TABLE log (rows_seen INT) ENGINE=$ENGINE;
CREATE TRIGGER watch AFTER INSERT ON t FOR EACH ROW INSERT INTO log SELECT COUNT(*) FROM t WHERE NEW.id IN (5, 16000) HAVING COUNT(*) > 0;
INSERT INTO t SELECT n, b, c, d FROM src;
SELECT * FROM log ORDER BY rows_seen;
DROP TRIGGER watch;
TRUNCATE t;
CREATE TRIGGER plain BEFORE INSERT ON t FOR EACH ROW SET NEW.b = UPPER(NEW.b);
INSERT INTO t SELECT n, b, c, d FROM src;
SELECT COUNT(*), SUM(CRC32(b)) FROM t;
DROP TRIGGER plain;
CREATE FUNCTION rows_of_t() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM t);
CREATE TABLE f (a INT PRIMARY KEY, b VARCHAR(200)) ENGINE=$ENGINE;
INSERT INTO f SELECT n, CONCAT(rows_of_t(), REPEAT('x', 100)) FROM src WHERE n <= 20;
SELECT COUNT(*), MIN(b) = MAX(b) FROM f;
TRUNCATE f;
INSERT INTO f SELECT n, (SELECT COUNT(*) FROM f AS inner_f) FROM src;
SELECT COUNT(*), MIN(b), MAX(b) FROM f;
TRUNCATE f;
INSERT INTO f SELECT a, b FROM f UNION SELECT n, REPEAT('y', 100) FROM src;
SELECT COUNT(*) FROM f;
CREATE PROCEDURE fill() INSERT INTO f SELECT n, REPEAT('z', 100) FROM src;
TRUNCATE f;
CALL fill();
SELECT COUNT(*), MAX(b) FROM f;
TRUNCATE f;
PREPARE p FROM 'INSERT INTO f SELECT n, REPEAT(?, 100) FROM src RETURNING a DIV 16000 AS x';
-- Strict mode: an error in the middle.
--! numbers
INSERT INTO f SELECT n, REPEAT('x', IF(n = 15999, 300, 100)) FROM src;
SELECT COUNT(*) FROM f;
-- A limit ends the scan: the rows found so far are inserted, with few and with many rows.
--! any
INSERT INTO f SELECT n, REPEAT('x', 100) FROM src LIMIT ROWS EXAMINED 100;
SELECT COUNT(*) BETWEEN 40 AND 200 FROM f;
TRUNCATE f;
--! any
INSERT INTO f SELECT n, REPEAT('x', 150) FROM src LIMIT ROWS EXAMINED 14000;
SELECT COUNT(*) BETWEEN 13000 AND 15000 FROM f;
TRUNCATE f;
-- LOAD DATA, with and without duplicates.
SELECT n, b, c, d INTO OUTFILE '$FOLDER/rows.txt' FROM src;
TRUNCATE t;
LOAD DATA INFILE '$FOLDER/rows.txt' INTO TABLE t;
SELECT COUNT(*), SUM(id), SUM(CRC32(d)) FROM t;
CHECK TABLE t EXTENDED;
TRUNCATE t;
--! numbers
LOAD DATA INFILE '$FOLDER/rows.txt' INTO TABLE t (id, b, @c, d) SET c = IF(id = 15000, 7919, @c);
SELECT COUNT(*) FROM t;
LOAD DATA INFILE '$FOLDER/rows.txt' REPLACE INTO TABLE t (@id, b, c, d) SET id = @id % 9000 + 1;
SELECT COUNT(*), SUM(id) FROM t;
-- Under LOCK TABLES, with a hidden key, generated columns, partitions.
CREATE TABLE h (a INT, b VARCHAR(60), v INT AS (a % 100) VIRTUAL, s INT AS (a * 2) PERSISTENT, KEY v (v)) ENGINE=$ENGINE;
LOCK TABLES h WRITE, src READ;
INSERT INTO h (a, b) SELECT n, REPEAT(b, 2) FROM src WHERE n < 0 OR n < 15000 AND LENGTH(b) < 30;
SELECT COUNT(*), SUM(v), SUM(s) FROM h;
INSERT INTO h (a) VALUES (100000);
SELECT COUNT(*) FROM h FORCE INDEX (v) WHERE v = 0;
UNLOCK TABLES;
CHECK TABLE h EXTENDED;
CREATE TABLE parts (a INT PRIMARY KEY, b VARCHAR(200), KEY (b)) ENGINE=$ENGINE PARTITION BY RANGE (a) (PARTITION x VALUES LESS THAN (100), PARTITION y VALUES LESS THAN (9000), PARTITION z VALUES LESS THAN MAXVALUE);
--! numbers
INSERT INTO parts SELECT IF(n = 15000, 6, n), REPEAT(b, 5) FROM src;
SELECT COUNT(*) FROM parts;
INSERT INTO parts SELECT n, REPEAT(b, 5) FROM src;
SELECT COUNT(*), SUM(a), SUM(LENGTH(b)) FROM parts;
CHECK TABLE parts EXTENDED;
-- Statements that read the table while they fill it, by other names.
CREATE TABLE r (a INT PRIMARY KEY, b INT) ENGINE=$ENGINE;
CREATE VIEW rv AS SELECT * FROM r;
INSERT INTO r VALUES ((SELECT COUNT(*) + 1 FROM r AS x), 1), ((SELECT COUNT(*) + 1 FROM r AS x), 2), ((SELECT COUNT(*) + 1 FROM rv), 3);
SELECT * FROM r;
TRUNCATE r;
INSERT INTO r VALUES (1, 1), (2, 2) RETURNING a, (SELECT COUNT(*) FROM r AS x);
TRUNCATE r;
INSERT INTO r SELECT n, c FROM src WHERE n <= 3 RETURNING a, (SELECT COUNT(*) FROM r AS x);
TRUNCATE r;
INSERT INTO r SELECT n, c FROM src WHERE n <= 3 RETURNING a, (SELECT COUNT(*) FROM rv);
SELECT * FROM r;
DROP VIEW rv;
DROP TABLE r;
-- The statements of a mariadb-dump file. A snapshot cannot read an index that is younger, and does
-- not see the rows of a younger load.
CREATE TABLE dumped (a INT PRIMARY KEY, b VARCHAR(200), c INT, KEY b (b), UNIQUE c (c)) ENGINE=$ENGINE;
--! connection old
START TRANSACTION WITH CONSISTENT SNAPSHOT;
--! connection default
LOCK TABLES dumped WRITE, src READ;
--! any
ALTER TABLE dumped DISABLE KEYS;
INSERT INTO dumped SELECT n, REPEAT(b, 4), c FROM src WHERE n <= 14000;
SELECT COUNT(*) FROM dumped;
INSERT INTO dumped SELECT n, REPEAT(b, 4), c FROM src WHERE n > 14000;
--! any
ALTER TABLE dumped ENABLE KEYS;
UNLOCK TABLES;
SELECT COUNT(*), SUM(a) FROM dumped FORCE INDEX (b) WHERE b > 'some longer text 1';
CHECK TABLE dumped EXTENDED;
ALTER TABLE dumped ADD INDEX cb (c, b);
--! connection old
SELECT COUNT(*), SUM(c) FROM dumped;
SELECT * FROM dumped WHERE c = 77;
--! any
SELECT COUNT(*) FROM dumped FORCE INDEX (cb) WHERE c > 0;
COMMIT;
SELECT COUNT(*) FROM dumped FORCE INDEX (cb) WHERE c > 0;
--! connection default
-- XA transactions and their rollbacks.
TRUNCATE dumped;
XA START 'x';
INSERT INTO dumped SELECT n, REPEAT(b, 4), c FROM src;
SELECT COUNT(*) FROM dumped;
XA END 'x';
XA PREPARE 'x';
XA ROLLBACK 'x';
SELECT COUNT(*) FROM dumped;
INSERT INTO dumped SELECT n, REPEAT(b, 4), c FROM src;
SELECT COUNT(*) FROM dumped FORCE INDEX (cb) WHERE c >= 0;
CHECK TABLE dumped EXTENDED;
DROP TABLE dumped;
-- A crash after all these statements.
TRUNCATE t;
INSERT INTO t (b, c, d) SELECT b, c, d FROM src ORDER BY c;
--! kill
SELECT COUNT(*), SUM(id), SUM(CRC32(d)) FROM t;
SELECT COUNT(*), SUM(v), SUM(s) FROM h;
SELECT COUNT(*), SUM(a), SUM(LENGTH(b)) FROM parts;
CHECK TABLE t, h, parts, f, src EXTENDED;
INSERT INTO h (a) VALUES (7);
INSERT INTO t (c) VALUES (60000);
SELECT MAX(id) > 16000 FROM t;
--! cheetah-only
-- The number of loads since the start shows which statements are loads.
CREATE TABLE now (n INT) ENGINE=MEMORY;
CREATE PROCEDURE note() INSERT INTO now SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Cheetah_loads';
CALL note();
TRUNCATE t;
INSERT INTO t (b, c, d) SELECT b, c, d FROM src;
CALL note();
TRUNCATE t;
INSERT IGNORE INTO t (b, c, d) SELECT b, c, d FROM src;
CALL note();
TRUNCATE parts;
INSERT INTO parts SELECT n, REPEAT(b, 5) FROM src;
CALL note();
DELETE FROM parts;
INSERT INTO parts SELECT n, REPEAT(b, 5) FROM src;
CALL note();
TRUNCATE t;
BEGIN;
INSERT INTO t (b, c, d) SELECT b, c, d FROM src;
COMMIT;
CALL note();
TRUNCATE t;
INSERT INTO t (b) SELECT b FROM src LIMIT 10;
CALL note();
SELECT n FROM now;
-- Another transaction uses the table: the statement does not wait, and inserts row by row.
TRUNCATE t;
--! connection old
BEGIN;
SELECT COUNT(*) FROM t LOCK IN SHARE MODE;
--! connection default
INSERT INTO f VALUES (100001, 'f');
TRUNCATE f;
--! connection old
COMMIT;
BEGIN;
INSERT INTO f VALUES (100001, 'f');
--! connection default
INSERT INTO f SELECT n, REPEAT('z', 100) FROM src;
--! connection old
ROLLBACK;
--! connection default
SELECT COUNT(*) FROM f;
SELECT DISTINCT n - (SELECT MAX(n) FROM now) AS loads_since FROM (SELECT VARIABLE_VALUE AS n FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Cheetah_loads') AS status;
SELECT COUNT(*) FROM information_schema.CHEETAH_TABLES WHERE TABLE_SCHEMA LIKE '%load%' OR TABLE_NAME LIKE '%load%';
--! end
