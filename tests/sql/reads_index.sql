-- Covering reads, index condition pushdown, ranges, both directions, index_merge, subqueries, LIMIT
-- and OFFSET, MIN and MAX, COUNT.
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(30), d DECIMAL(8,2), n INT, KEY ab (a, b), KEY c (c), KEY n (n), KEY bd (b DESC, d), KEY cp (c(3)), KEY an (a, n));
INSERT INTO t SELECT seq, seq % 17, seq % 23, CONCAT('c', LPAD(seq % 101, 3, '0')), (seq % 13) / 4, IF(seq % 5, seq % 50, NULL) FROM seq_1_to_3000;
ANALYZE TABLE t;
--! columns table,key,key_len,Extra
EXPLAIN SELECT a, b FROM t FORCE INDEX (ab) WHERE a = 3;
--! columns table,key,key_len,Extra
EXPLAIN SELECT a, b, id FROM t FORCE INDEX (ab) WHERE a = 3 AND b > 5;
--! columns table,key,key_len,Extra
EXPLAIN SELECT id FROM t FORCE INDEX (c) WHERE c = 'c005';
--! columns table,key,key_len,Extra
EXPLAIN SELECT * FROM t FORCE INDEX (ab) WHERE a = 3 AND b % 2 = 0 AND d > 1;
--! columns table,key,key_len,Extra
EXPLAIN SELECT COUNT(*) FROM t FORCE INDEX (c) WHERE c LIKE 'c00%';
--! columns table,key,key_len,Extra
EXPLAIN SELECT c FROM t FORCE INDEX (cp) WHERE c = 'c005';
--! columns table,key,key_len,Extra
EXPLAIN SELECT * FROM t WHERE id = 5;
--! columns table,type,key,key_len,Extra
EXPLAIN SELECT MAX(b) FROM t WHERE a = 3;
SELECT a, b FROM t FORCE INDEX (ab) WHERE a = 3 ORDER BY a, b, id LIMIT 20;
SELECT a, b, id FROM t FORCE INDEX (ab) WHERE a = 3 AND b > 15 ORDER BY b DESC, id DESC LIMIT 20;
SELECT * FROM t FORCE INDEX (ab) WHERE a = 3 AND b % 2 = 0 AND d > 1 ORDER BY id;
SELECT * FROM t FORCE INDEX (ab) WHERE a BETWEEN 2 AND 4 AND b IN (1, 5, 9) ORDER BY a, b, id;
SELECT id FROM t FORCE INDEX (ab) WHERE (a, b) > (15, 20) ORDER BY a, b, id;
SELECT id, d FROM t FORCE INDEX (bd) WHERE b IN (22, 0) AND d BETWEEN 1 AND 2 ORDER BY b DESC, d, id;
SELECT id, d FROM t FORCE INDEX (bd) WHERE b > 20 ORDER BY b, d DESC, id DESC LIMIT 15;
SELECT COUNT(*) FROM t;
SELECT COUNT(*) FROM t FORCE INDEX (n) WHERE n IS NULL;
SELECT COUNT(*), COUNT(n), COUNT(DISTINCT n), COUNT(DISTINCT a, b) FROM t;
SELECT COUNT(*) FROM t FORCE INDEX (n) WHERE n < 10 OR n IS NULL;
SELECT MIN(n), MAX(n), MIN(c), MAX(c), MIN(d), MAX(d), MIN(id), MAX(id) FROM t;
SELECT MIN(n) FROM t WHERE a = 5;
SELECT MAX(n) FROM t WHERE a = 5 AND n < 30;
SELECT MIN(b), MAX(b) FROM t WHERE a = 99;
SELECT MAX(c) FROM t WHERE c < 'c05';
SELECT a, MIN(n), MAX(n) FROM t GROUP BY a ORDER BY a;
SELECT a, MAX(b) FROM t FORCE INDEX (ab) WHERE b < 10 GROUP BY a ORDER BY a;
SELECT DISTINCT a FROM t FORCE INDEX (ab) ORDER BY a DESC;
SELECT DISTINCT c FROM t FORCE INDEX (c) WHERE c > 'c090' ORDER BY c;
SELECT id FROM t ORDER BY id LIMIT 5;
SELECT id FROM t ORDER BY id DESC LIMIT 5 OFFSET 2990;
SELECT id FROM t ORDER BY id LIMIT 2990, 20;
SELECT id, c FROM t FORCE INDEX (c) ORDER BY c, id LIMIT 1500, 3;
SELECT id, c FROM t FORCE INDEX (c) ORDER BY c DESC, id DESC LIMIT 1500, 3;
SELECT id, n FROM t FORCE INDEX (n) ORDER BY n, id LIMIT 605, 5;
SELECT id FROM t WHERE id BETWEEN 100 AND 110 ORDER BY id DESC;
SELECT id FROM t WHERE id > 2990 OR id < 5 ORDER BY id DESC;
SELECT id FROM t WHERE id IN (1, 3000, 17, -1, 99999) ORDER BY id;
SELECT id FROM t WHERE id < 1 OR id > 3000;
SELECT COUNT(*) FROM t WHERE a = 1 OR c = 'c001';
--! ignore
EXPLAIN SELECT COUNT(*) FROM t WHERE a = 1 OR c = 'c001';
SELECT COUNT(*), SUM(id) FROM t IGNORE INDEX (an, bd) WHERE a = 1 AND c = 'c001' AND n = 7;
SELECT COUNT(*), SUM(id) FROM t WHERE (a = 1 AND b = 1) OR (n = 3) OR (c = 'c010') OR id < 10;
SELECT COUNT(*), SUM(id) FROM t WHERE a IN (SELECT b FROM t WHERE c = 'c003') AND n > 5;
SELECT COUNT(*) FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.a = x.b AND y.b = x.a AND y.id > x.id);
SELECT COUNT(*) FROM t x WHERE n NOT IN (SELECT n FROM t WHERE n IS NOT NULL AND a = 3);
SELECT id, (SELECT MAX(y.id) FROM t y WHERE y.c = x.c AND y.id < x.id) m FROM t x WHERE id > 2995 ORDER BY id;
SELECT x.id, y.id FROM t x JOIN t y ON y.id = x.n WHERE x.id < 20 ORDER BY 1, 2;
SELECT x.a, COUNT(*) FROM t x LEFT JOIN t y ON y.c = x.c AND y.a = 1 AND y.b = 1 WHERE y.id IS NULL GROUP BY x.a ORDER BY 1;
SELECT x.id FROM t x STRAIGHT_JOIN t y FORCE INDEX (ab) ON y.a = x.a AND y.b = x.b STRAIGHT_JOIN t z ON z.id = y.n WHERE x.id < 10 ORDER BY x.id, y.id LIMIT 30;
SET join_cache_level = 8, optimizer_switch = 'mrr=on,mrr_cost_based=off,join_cache_bka=on,index_condition_pushdown=on,rowid_filter=on';
SELECT COUNT(*), SUM(y.id) FROM t x JOIN t y FORCE INDEX (c) ON y.c = x.c WHERE x.id < 50 AND y.b > 3;
SELECT COUNT(*), SUM(id) FROM t FORCE INDEX (c) WHERE c BETWEEN 'c010' AND 'c020' AND d > 1;
SET optimizer_switch = 'mrr=off,index_condition_pushdown=off,rowid_filter=off';
SELECT COUNT(*), SUM(id) FROM t FORCE INDEX (c) WHERE c BETWEEN 'c010' AND 'c020' AND d > 1;
SELECT COUNT(*), SUM(id) FROM t FORCE INDEX (ab) WHERE a > 5 AND b % 3 = 0;
SET optimizer_switch = 'default', join_cache_level = default;
WITH RECURSIVE r (n, id) AS (SELECT 1, 1 UNION ALL SELECT r.n + 1, t.id FROM r JOIN t ON t.id = r.id + 17 WHERE r.n < 20) SELECT MAX(n), SUM(id) FROM r;
SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b DESC, id) k, id FROM t WHERE a < 2 AND b > 20 ORDER BY a, k;
(SELECT id FROM t WHERE a = 1 ORDER BY id DESC LIMIT 3) UNION (SELECT id FROM t WHERE b = 1 ORDER BY id LIMIT 3) ORDER BY id;
PREPARE p FROM 'SELECT COUNT(*), MIN(id) FROM t WHERE a = ? AND b BETWEEN ? AND ?';
EXECUTE p USING 3, 5, 9;
EXECUTE p USING 16, 0, 100;
EXECUTE p USING NULL, 0, 100;
SELECT SQL_BIG_RESULT a, COUNT(*) FROM t GROUP BY a ORDER BY NULL;
SELECT SQL_CALC_FOUND_ROWS id FROM t WHERE a = 2 ORDER BY id LIMIT 2;
SELECT FOUND_ROWS();
SELECT * FROM t PROCEDURE ANALYSE(1);
SELECT COUNT(*) FROM t WHERE c COLLATE utf8mb4_bin = 'C001';
SELECT COUNT(*) FROM t WHERE c = 1;
SELECT COUNT(*) FROM t WHERE id = '17' OR id = '18abc';
SELECT COUNT(*) FROM t WHERE a > 1e300 OR b < -5000000000 OR id > 18446744073709551615;
CREATE TABLE e (a INT PRIMARY KEY, b INT, KEY (b));
SELECT COUNT(*), MIN(a), MAX(b) FROM e;
SELECT * FROM e WHERE b > 1 ORDER BY b DESC;
SELECT * FROM e WHERE a = 1;
CREATE TABLE one (a INT PRIMARY KEY, b INT);
INSERT INTO one VALUES (1, 1);
SELECT * FROM one, e;
SELECT * FROM one LEFT JOIN e ON one.a = e.a;
-- The server merges rows of two indexes, and reads only the entries of an index on prefixes of
-- values.
CREATE TABLE beginnings (c1 TINYBLOB NOT NULL, c2 INT, c3 VARCHAR(20), UNIQUE k3 (c1(1)), KEY k4 (c2), KEY k5 (c3(2)));
INSERT INTO beginnings VALUES ('', 0, 'abc'), ('a', 1, 'abd'), ('b', 14, 'bcd'), (x'00', 4, 'b');
SELECT HEX(c1), c2 FROM beginnings FORCE INDEX (k3, k4) WHERE c1 IN ('', 'a') OR c2 = 14;
SELECT HEX(c1), c2 FROM beginnings FORCE INDEX (k3, k4) WHERE c1 IN ('', x'00') OR c2 = 14;
SELECT HEX(c1), c2 FROM beginnings FORCE INDEX (k4, k5) WHERE c3 IN ('abc', 'b', 'bcd') OR c2 = 1;
DROP TABLE beginnings;
-- The same for an index on a virtual column and a prefix of a value, while the server sorts the
-- merged rows.
CREATE TABLE made (id INT PRIMARY KEY, c1 BIGINT, c3 TEXT NOT NULL, c7 INT, g BIGINT AS (c1 % 7) VIRTUAL, KEY k10 (c3(24)), KEY k13 (c7), KEY k15 (g, c3(7)));
INSERT INTO made (id, c1, c3, c7) VALUES (1, 22, '', NULL), (2, 0, '', NULL), (3, 0, 'a', 5), (4, 12, 'b   ', 17), (5, -6, '0c', NULL), (6, 2, 'y', NULL);
SELECT id FROM made FORCE INDEX (k10, k15) WHERE g BETWEEN -3 AND 1 OR c3 <=> ' a0 ' ORDER BY id;
SELECT id, g FROM made FORCE INDEX (k10, k13, k15) WHERE g BETWEEN -3 AND 1 OR c3 = 'y' OR c7 = 17 ORDER BY c1 DESC, id LIMIT 3;
SELECT g, COUNT(*) FROM made FORCE INDEX (k10, k15) WHERE g BETWEEN -3 AND 1 OR c3 = 'y' GROUP BY g ORDER BY g;
UPDATE made FORCE INDEX (k10, k15) SET c7 = 1 WHERE g BETWEEN -3 AND 1 OR c3 = 'y' ORDER BY c1, id LIMIT 2;
SELECT id, g, c7 FROM made ORDER BY id;
DELETE FROM made WHERE g BETWEEN -3 AND 1 OR c3 = 'y' ORDER BY id LIMIT 2;
SELECT id, g, c7 FROM made ORDER BY id;
DROP TABLE made;
