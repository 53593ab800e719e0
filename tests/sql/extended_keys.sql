-- A secondary index continues with the primary key: ordering, ranges and lookups by both, without a
-- sort.
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), c INT NOT NULL, pad VARCHAR(200), KEY (a), KEY b (b), UNIQUE KEY c (c));
INSERT INTO t SELECT seq, IF(seq % 50 = 0, NULL, seq % 20), CONCAT(IF(seq % 2, 'Name', 'nAME'), seq % 7), seq * 3, REPEAT('x', 150) FROM seq_1_to_5000;
ANALYZE TABLE t;
--! columns table,key,Extra
EXPLAIN SELECT id FROM t ORDER BY a, id LIMIT 5;
SELECT id, a FROM t ORDER BY a, id LIMIT 5;
--! columns table,key,Extra
EXPLAIN SELECT id FROM t ORDER BY a DESC, id DESC LIMIT 5;
SELECT id, a FROM t ORDER BY a DESC, id DESC LIMIT 5;
--! columns table,key,Extra
EXPLAIN SELECT id, pad FROM t FORCE INDEX (a) WHERE a = 7 ORDER BY id LIMIT 3;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 ORDER BY id LIMIT 3;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 ORDER BY id DESC LIMIT 3;
--! columns table,type,key,key_len
EXPLAIN SELECT id FROM t FORCE INDEX (a) WHERE a = 7 AND id > 4900;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 AND id > 4900 ORDER BY 1;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 AND id BETWEEN 100 AND 140 ORDER BY 1;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 AND id < 60 ORDER BY 1;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 AND id = 27;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 AND id = 28;
SELECT id FROM t FORCE INDEX (a) WHERE a IS NULL AND id > 4800 ORDER BY 1;
SELECT id FROM t FORCE INDEX (a) WHERE (a = 7 AND id > 4950) OR (a = 8 AND id <= 48) ORDER BY 1;
SELECT id, b FROM t FORCE INDEX (b) WHERE b = 'NAME3' AND id > 4970 ORDER BY id;
SELECT id, b FROM t FORCE INDEX (b) WHERE b = 'name3' AND id < 30 ORDER BY b, id;
SELECT a, MIN(id), MAX(id) FROM t GROUP BY a;
SELECT b, MAX(id) FROM t GROUP BY b;
SELECT MAX(id) FROM t WHERE a = 7;
SELECT MIN(id) FROM t WHERE a = 7 AND id > 1000;
UPDATE t SET pad = 'changed' WHERE a = 7 AND id > 4900;
DELETE FROM t WHERE a = 8 AND id < 100;
SELECT COUNT(*), SUM(pad = 'changed') FROM t;
SELECT x.id, y.id FROM t x JOIN t y FORCE INDEX (a) ON y.a = x.a AND y.id = x.id + 20 WHERE x.id < 10 ORDER BY 1;
CHECK TABLE t EXTENDED;
-- A primary key of several columns. The index has some of these columns, too, in another order,
-- descending, or as text.
CREATE TABLE m (p INT, q VARCHAR(10), r INT, s INT, t INT, PRIMARY KEY (p, q DESC, r), KEY s (s), KEY sq (s, q), KEY rs (r, s), KEY tp (t DESC, p), KEY pr (p, r));
INSERT INTO m SELECT seq % 10, CHAR(97 + seq % 5), seq, seq % 4, seq % 3 FROM seq_1_to_600;
ANALYZE TABLE m;
--! columns table,key,Extra
EXPLAIN SELECT * FROM m FORCE INDEX (s) WHERE s = 1 ORDER BY p, q DESC, r LIMIT 4;
SELECT * FROM m FORCE INDEX (s) WHERE s = 1 ORDER BY p, q DESC, r LIMIT 4;
SELECT * FROM m FORCE INDEX (s) WHERE s = 1 AND p = 5 ORDER BY q, r LIMIT 4;
SELECT r FROM m FORCE INDEX (s) WHERE s = 1 AND p = 5 AND q = 'A' ORDER BY r;
SELECT r FROM m FORCE INDEX (s) WHERE s = 1 AND p = 5 AND q > 'A' AND r < 100 ORDER BY r;
SELECT r FROM m FORCE INDEX (s) WHERE s = 1 AND p > 5 ORDER BY r LIMIT 5;
SELECT p, r FROM m FORCE INDEX (sq) WHERE s = 1 AND q = 'B' AND p = 1 ORDER BY r;
SELECT p, r FROM m FORCE INDEX (sq) WHERE s = 1 AND q = 'B' AND p = 1 AND r = 21;
SELECT p, r FROM m FORCE INDEX (sq) WHERE s = 1 AND q = 'B' AND p = 1 AND r > 300 ORDER BY r;
SELECT p, q FROM m FORCE INDEX (rs) WHERE r = 21 AND s = 1 AND p = 1 AND q = 'b';
SELECT p, r FROM m FORCE INDEX (tp) WHERE t = 2 AND p = 3 AND q = 'D' ORDER BY r LIMIT 4;
SELECT p, q, r FROM m FORCE INDEX (tp) WHERE t = 2 ORDER BY p DESC, q, r DESC LIMIT 4;
SELECT p, q, r FROM m FORCE INDEX (pr) WHERE p = 1 AND r = 21 AND q = 'b';
SELECT p, q, r FROM m FORCE INDEX (pr) WHERE p = 1 AND r > 500 AND q < 'c' ORDER BY r LIMIT 4;
CHECK TABLE m EXTENDED;
-- A primary key on a column prefix, and an index of a prefix, end the extension.
CREATE TABLE x (p VARCHAR(20), n INT, v VARCHAR(20), PRIMARY KEY (p(3), n), KEY n (n), KEY v (v(2)), KEY vn (v, n));
INSERT INTO x SELECT CONCAT('p', seq), seq, CONCAT('v', seq % 10) FROM seq_1_to_200;
SELECT p, n FROM x FORCE INDEX (n) WHERE n = 20 AND p = 'p20';
SELECT p, n FROM x FORCE INDEX (v) WHERE v = 'v3' AND p = 'p23' ORDER BY n;
SELECT p, n FROM x FORCE INDEX (vn) WHERE v = 'v3' AND n > 150 ORDER BY p, n;
SELECT p, n FROM x ORDER BY v, p, n LIMIT 5;
-- Without a primary key the index has no continuation; each partition has its own index.
CREATE TABLE h (a INT, b INT, KEY (a));
INSERT INTO h SELECT seq % 5, seq FROM seq_1_to_50;
SELECT a, b FROM h FORCE INDEX (a) WHERE a = 3 AND b > 40 ORDER BY a, b;
CREATE TABLE part (id INT PRIMARY KEY, a INT, KEY (a)) PARTITION BY HASH (id) PARTITIONS 4;
INSERT INTO part SELECT seq, seq % 6 FROM seq_1_to_300;
SELECT id, a FROM part FORCE INDEX (a) WHERE a = 4 AND id > 250 ORDER BY a, id;
SELECT id, a FROM part ORDER BY a DESC, id DESC LIMIT 4;
-- With the switch off, keys end at the end of their definition.
SET optimizer_switch = 'extended_keys=off';
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 AND id > 4900 ORDER BY 1;
SELECT id FROM t FORCE INDEX (a) WHERE a = 7 ORDER BY id DESC LIMIT 3;
SELECT COUNT(*) FROM t x JOIN t y FORCE INDEX (a) ON y.a = x.a WHERE x.id < 10;
SET optimizer_switch = DEFAULT;
