-- mariadb-dump and the load of its output: foreign keys, disabled keys, views, triggers, generated
-- columns, partitions, blobs, sequences.
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(50) COLLATE utf8mb4_czech_ci, b LONGBLOB, g INT AS (LENGTH(a) * 2) VIRTUAL, p VARCHAR(60) AS (CONCAT(a, e)) PERSISTENT, inv INT INVISIBLE DEFAULT 4, d DATETIME(6), bits BIT(20), e ENUM('x','y'), KEY (a), KEY (g), KEY (p)) AUTO_INCREMENT = 50;
INSERT INTO t (a, b, d, bits, e) VALUES ('ch', REPEAT(0x00FF0D0A27, 30000), '2024-01-01 10:11:12.131415', b'1010', 'y'), ('c', '', NULL, NULL, NULL), ('ünï😀', 0x00, '0001-01-01', 0, 'x');
CREATE TABLE r (a INT PRIMARY KEY, b VARCHAR(10)) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
INSERT INTO r VALUES (1, 'x'), (100, 'y');
CREATE TABLE many (a INT PRIMARY KEY, b VARCHAR(100), KEY (b));
INSERT INTO many SELECT seq, CONCAT('row number ', seq) FROM seq_1_to_20000;
CREATE VIEW v AS SELECT id, a FROM t;
CREATE TRIGGER tr BEFORE INSERT ON r FOR EACH ROW SET NEW.b = UPPER(NEW.b);
CREATE SEQUENCE s START WITH 5;
SELECT NEXTVAL(s);
--! shell dump
--! shell restore
SELECT id, a, LENGTH(b), MD5(b), g, p, inv, d, HEX(bits), e FROM t FORCE INDEX (a) ORDER BY a, id;
SELECT * FROM r ORDER BY a;
SELECT COUNT(*), SUM(a), SUM(CRC32(b)) FROM many FORCE INDEX (b);
SELECT * FROM v ORDER BY id;
SELECT PREVIOUS VALUE FOR s, NEXTVAL(s) > 5;
INSERT INTO r VALUES (5, 'lower');
INSERT INTO t (a) VALUES ('next');
SELECT * FROM r ORDER BY a;
SELECT MAX(id) FROM t;
SHOW CREATE TABLE t;
CHECK TABLE t, r, many EXTENDED;
--! shell restore-cut
SHOW TABLES;
CHECK TABLE t EXTENDED;
