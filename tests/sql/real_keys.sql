-- FLOAT and DOUBLE in keys: an index states their values, except for -0, which has the key of 0.
CREATE TABLE t (id INT PRIMARY KEY, d DOUBLE, f FLOAT NOT NULL, u DOUBLE UNSIGNED, c CHAR(4), KEY d (d), KEY f (f DESC), KEY df (d, f), KEY du (d DESC, u), KEY dc (d, c), KEY cd (c(2), d));
INSERT INTO t VALUES (1, 0, 0, 0, 'a'), (2, -0e0, -0e0, NULL, 'A'), (3, 1, 1, 1, 'b'), (4, -1, -1, 1, 'B'), (5, NULL, 1.5, 2.5, 'c'), (6, 1.7976931348623157e308, 3.402823e38, 1e300, 'd'), (7, -1.7976931348623157e308, -3.402823e38, 1e-300, 'e'), (8, 2.2250738585072014e-308, 1.17549435e-38, 3, 'f'), (9, -2.2250738585072014e-308, -1.17549435e-38, 3, 'f'), (10, 4.9406564584124654e-324, 1.4e-45, 4, NULL), (11, -4.9406564584124654e-324, -1.4e-45, 4, NULL), (12, 0.1, 0.1, 0.1, 'g'), (13, -0.1, -0.1, 0.2, 'g'), (14, 123456789.125, 1234.5, 5, 'h'), (15, -123456789.125, -1234.5, 5, 'h');
INSERT INTO t SELECT 100 + seq, (CAST(seq AS SIGNED) - 500) / 7, (CAST(seq % 97 AS SIGNED) - 48) / 3, seq / 11, CONCAT('z', seq % 7) FROM seq_1_to_1000;
ANALYZE TABLE t;
--! columns table,key,key_len,Extra
EXPLAIN SELECT d FROM t FORCE INDEX (d) WHERE d < 0;
--! columns table,key,key_len,Extra
EXPLAIN SELECT d, u FROM t FORCE INDEX (du) WHERE d < 0;
SELECT id, d FROM t FORCE INDEX (d) WHERE id < 100 ORDER BY d, id;
SELECT id, d FROM t FORCE INDEX (d) WHERE d = 0 ORDER BY id;
SELECT id, d FROM t FORCE INDEX (d) WHERE d = -0e0 ORDER BY id;
SELECT id, f FROM t FORCE INDEX (f) WHERE id < 100 ORDER BY f DESC, id;
SELECT id, f FROM t FORCE INDEX (f) WHERE f BETWEEN -0.0 AND 0.0 ORDER BY id;
SELECT id, d, f FROM t FORCE INDEX (df) WHERE id < 100 ORDER BY d DESC, f DESC, id DESC;
SELECT id, d, u FROM t FORCE INDEX (du) WHERE id < 100 ORDER BY d DESC, u, id;
SELECT id, d, c FROM t FORCE INDEX (dc) WHERE id < 100 ORDER BY d, c, id;
SELECT d, c FROM t FORCE INDEX (cd) WHERE c LIKE 'a%' ORDER BY id;
SELECT MIN(d), MAX(d), COUNT(d), SUM(f) FROM t FORCE INDEX (df);
SELECT d, COUNT(*) FROM t FORCE INDEX (d) WHERE d BETWEEN -1 AND 1 GROUP BY d ORDER BY d;
SELECT SUM(d), SUM(d * d) FROM t FORCE INDEX (d) WHERE id > 100;
SELECT SUM(f), SUM(f * f) FROM t FORCE INDEX (f) WHERE id > 100;
-- A value changes between 0 and -0: the key stays, the payload does not.
UPDATE t SET d = -0e0, f = -0e0 WHERE id = 1;
UPDATE t SET d = 0, f = 0 WHERE id = 2;
SELECT id, d, f FROM t FORCE INDEX (df) WHERE d = 0 ORDER BY id;
SELECT id, d FROM t FORCE INDEX (d) WHERE d = 0 ORDER BY id;
CHECK TABLE t EXTENDED;
BEGIN;
UPDATE t SET d = -d WHERE id IN (1, 2, 3, 4);
SELECT id, d FROM t FORCE INDEX (d) WHERE id < 5 ORDER BY id;
ROLLBACK;
SELECT id, d FROM t FORCE INDEX (d) WHERE id < 5 ORDER BY id;
-- Ranges with a pushed condition, a second index, and a join whose key is a DOUBLE.
SELECT id, d, c FROM t FORCE INDEX (dc) WHERE d > 70 AND c LIKE '%5' ORDER BY id;
SELECT id FROM t WHERE d > 70.9 OR f < -15.9 ORDER BY id;
SELECT COUNT(*), SUM(a.id), SUM(b.d) FROM t a JOIN t b FORCE INDEX (d) ON b.d = a.u;
-- The clustered key is a DOUBLE, and secondary entries end with it.
CREATE TABLE p (d DOUBLE, e FLOAT, n INT, PRIMARY KEY (d, e), KEY n (n), KEY ne (n, e)) SELECT DISTINCT d, f AS e, id % 5 AS n FROM t WHERE d IS NOT NULL AND id > 4;
INSERT INTO p VALUES (-0e0, 9, 7), (0, 8, 7), (1e10, -0e0, 7), (2e10, 0, 7);
SELECT n, d, e FROM p FORCE INDEX (n) WHERE n = 7 ORDER BY d, e;
SELECT n, e, d FROM p FORCE INDEX (ne) WHERE n = 7 ORDER BY e, d;
SELECT SUM(n), SUM(d), SUM(e) FROM p FORCE INDEX (n) WHERE d BETWEEN -100 AND 100;
UPDATE p SET e = e + 2 WHERE n = 7;
SELECT n, d, e FROM p FORCE INDEX (n) WHERE n = 7 ORDER BY d, e;
CHECK TABLE p, t EXTENDED;
ALTER TABLE p DROP PRIMARY KEY, ADD PRIMARY KEY (e, d), ADD KEY nd (n, d);
SELECT n, d FROM p FORCE INDEX (nd) WHERE n = 7 ORDER BY d;
CHECK TABLE p EXTENDED;
ALTER TABLE t ADD KEY fu (f, u), DROP KEY df;
SELECT id, f, u FROM t FORCE INDEX (fu) WHERE id < 100 ORDER BY f, u, id;
CHECK TABLE t EXTENDED;
DROP TABLE t, p;
