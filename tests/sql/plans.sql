-- Plans compared with InnoDB's: rowid filters, ranges that are read in the order of rows or keys
-- (MRR), joins that collect keys (BKA, BKAH), index conditions; and the rows that the plans find.
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT, c CHAR(160), KEY a (a), KEY b (b)) ENGINE=$ENGINE;
INSERT INTO t (a, b, c) SELECT MOD(seq * 7919, 20000), MOD(seq * 104729, 20000), MD5(seq) FROM seq_1_to_60000;
CREATE TABLE n (a INT, b INT, c VARCHAR(30), KEY a (a), KEY b (b), KEY c (c(4))) ENGINE=$ENGINE;
INSERT INTO n SELECT a, b, CONCAT('c', b) FROM t;
CREATE TABLE p (a INT, b INT, c CHAR(30), d INT, PRIMARY KEY (c, d), KEY a (a), KEY b (b)) ENGINE=$ENGINE;
INSERT INTO p SELECT a, b, LEFT(c, 30), id FROM t;
ANALYZE TABLE t, n, p PERSISTENT FOR ALL;
--! columns type,possible_keys,key,key_len,Extra
EXPLAIN SELECT SUM(LENGTH(c)) FROM t WHERE a BETWEEN 1 AND 400 AND b BETWEEN 1 AND 400;
--! columns type,possible_keys,key,key_len,Extra
EXPLAIN SELECT SUM(LENGTH(c)) FROM n WHERE a BETWEEN 1 AND 400 AND b BETWEEN 1 AND 400;
--! for SELECT 't' UNION SELECT 'n' UNION SELECT 'p'
SET optimizer_switch = 'mrr=off,mrr_cost_based=on,mrr_sort_keys=off';
SELECT COUNT(*), SUM(LENGTH(c)), SUM(a), SUM(b) FROM $1 WHERE a BETWEEN 1 AND 400 AND b BETWEEN 1 AND 400;
SELECT COUNT(*), SUM(LENGTH(c)) FROM $1 WHERE a BETWEEN 1 AND 2000 AND b BETWEEN 1 AND 2000;
SELECT a, b FROM $1 WHERE a BETWEEN 1 AND 300 AND b BETWEEN 1 AND 300 ORDER BY a DESC, b LIMIT 5;
--! columns type,possible_keys,key,key_len,ref,Extra
EXPLAIN SELECT COUNT(*), SUM(LENGTH(y.c)) FROM t x JOIN $1 y ON x.b = y.a WHERE x.id < 300 AND y.b BETWEEN 1 AND 200;
SELECT COUNT(*), SUM(LENGTH(y.c)) FROM t x JOIN $1 y ON x.b = y.a WHERE x.id < 300 AND y.b BETWEEN 1 AND 200;
BEGIN;
SELECT COUNT(*), SUM(LENGTH(c)) FROM (SELECT * FROM $1 WHERE a BETWEEN 1 AND 400 AND b BETWEEN 1 AND 400 FOR UPDATE) x;
UPDATE $1 SET b = 30000 WHERE a BETWEEN 1 AND 100 AND b BETWEEN 1 AND 4000;
SELECT COUNT(*), SUM(LENGTH(c)) FROM $1 WHERE a BETWEEN 1 AND 400 AND b BETWEEN 1 AND 400;
DELETE FROM $1 WHERE a BETWEEN 101 AND 200 AND b BETWEEN 1 AND 4000;
SELECT COUNT(*), SUM(LENGTH(c)) FROM $1 WHERE a BETWEEN 1 AND 400 AND b BETWEEN 1 AND 400;
ROLLBACK;
SET optimizer_switch = 'mrr=on,mrr_cost_based=off,mrr_sort_keys=on';
--! columns type,possible_keys,key,key_len,Extra
EXPLAIN SELECT * FROM $1 WHERE a BETWEEN 5 AND 6;
--! unordered
SELECT a, b, LEFT(c, 5) FROM $1 WHERE a BETWEEN 5 AND 6;
--! columns type,possible_keys,key,key_len,Extra
EXPLAIN SELECT * FROM $1 WHERE a IN (1, 5, 900, 17000) AND b % 3 = 1;
--! unordered
SELECT a, b, LEFT(c, 5) FROM $1 WHERE a IN (1, 5, 900, 17000) AND b % 3 = 1;
--! columns type,possible_keys,key,key_len,Extra
EXPLAIN SELECT a FROM $1 WHERE a BETWEEN 5 AND 50;
BEGIN;
--! unordered
SELECT a, b FROM $1 WHERE a BETWEEN 5 AND 6 LOCK IN SHARE MODE;
ROLLBACK;
--! end
--! for SELECT seq, name FROM seq_0_to_8, (SELECT 't' name UNION SELECT 'n' UNION SELECT 'p') names
SET join_cache_level = $1;
--! columns type,possible_keys,key,key_len,ref,Extra
EXPLAIN SELECT * FROM t x JOIN $2 y ON x.b = y.a WHERE x.id < 10;
SELECT COUNT(*), SUM(y.b), SUM(LENGTH(y.c)) FROM t x JOIN $2 y ON x.b = y.a WHERE x.id < 500;
--! columns type,possible_keys,key,key_len,ref,Extra
EXPLAIN SELECT * FROM $2 x LEFT JOIN t y ON x.b = y.id AND y.a > 9000 WHERE x.a < 10;
SELECT COUNT(*), SUM(y.b), SUM(LENGTH(y.c)) FROM $2 x LEFT JOIN t y ON x.b = y.id AND y.a > 9000 WHERE x.a < 100;
SELECT COUNT(*), SUM(y.b) FROM t x JOIN $2 y ON x.b = y.a JOIN t z ON y.b = z.id WHERE x.id < 200 AND z.b < 9000;
SELECT COUNT(*), SUM(y.b) FROM t x JOIN $2 y ON x.b = y.a WHERE x.id < 1000 AND y.b BETWEEN 1 AND 2000;
--! end
SET mrr_buffer_size = 8192, join_buffer_size = 4096, join_cache_level = 8;
SELECT COUNT(*), SUM(y.b), SUM(LENGTH(y.c)) FROM t x JOIN p y ON x.b = y.a WHERE x.id < 2000;
SELECT COUNT(*), SUM(b) FROM p WHERE a BETWEEN 1 AND 5000;
CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, a INT, b INT, KEY a (a)) ENGINE=$ENGINE;
INSERT INTO tmp SELECT id, a, b FROM t WHERE id < 5000;
SELECT COUNT(*), SUM(b) FROM tmp WHERE a BETWEEN 1 AND 5000;
CREATE TABLE parts (id INT PRIMARY KEY, a INT, b INT, KEY a (a), KEY b (b)) ENGINE=$ENGINE PARTITION BY HASH (id) PARTITIONS 4;
INSERT INTO parts SELECT id, a, b FROM t;
SELECT COUNT(*), SUM(b) FROM parts WHERE a BETWEEN 1 AND 900 AND b BETWEEN 1 AND 5000;
SELECT COUNT(*), SUM(y.b) FROM t x JOIN parts y ON x.b = y.a WHERE x.id < 500;
HANDLER t OPEN;
HANDLER t READ a = (5) LIMIT 3;
HANDLER t CLOSE;
DROP TABLE t, n, p, parts;
