-- Indexes on virtual columns whose entries do not state all of their columns, so that the row is read
-- for a pushed condition, a covering read or the positions of an index_merge: a prefix in the primary
-- key, and texts that are too long for an entry.
CREATE TABLE t (a VARCHAR(50) NOT NULL, b INT, v INT AS (b % 10) VIRTUAL, d INT, PRIMARY KEY (a(5)), KEY kv (v, b)) DEFAULT CHARSET=latin1;
INSERT INTO t (a, b, d) SELECT CONCAT(seq, 'xxxxxxxxx'), seq, seq FROM seq_10000_to_10999;
SELECT COUNT(d), SUM(d) FROM t FORCE INDEX (kv) WHERE v >= 3 AND v <= 5 AND b % 2 = 1;
SELECT COUNT(d), SUM(d) FROM t FORCE INDEX (kv) WHERE v >= 3 AND v <= 5 AND v % 2 = 1;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (kv) WHERE v >= 3 AND v <= 5;
CREATE TABLE l (id INT PRIMARY KEY, b INT, v INT AS (b % 10) VIRTUAL, c VARCHAR(2000), d INT, KEY kv (v, c)) DEFAULT CHARSET=latin1;
INSERT INTO l (id, b, c, d) SELECT seq, seq, REPEAT('y', IF(seq % 2, 1900, 10)), seq FROM seq_1_to_1000;
SELECT COUNT(d), SUM(d) FROM l FORCE INDEX (kv) WHERE v >= 3 AND v <= 5 AND c LIKE '%y%';
SELECT COUNT(d), SUM(d) FROM l FORCE INDEX (kv) WHERE v >= 3 AND v <= 5 AND v % 2 = 1;
SELECT COUNT(*), SUM(v) FROM l FORCE INDEX (kv) WHERE v >= 3 AND v <= 5 AND v % 2 = 1;
CREATE TABLE w (a VARCHAR(50) NOT NULL, t VARCHAR(100), e BLOB, v INT AS (LENGTH(t) + LENGTH(e)) VIRTUAL, r DOUBLE AS (LENGTH(e) / 3) VIRTUAL, d INT, PRIMARY KEY (a(5)), KEY kv (v), KEY kr (r), KEY kd (d)) DEFAULT CHARSET=latin1;
INSERT INTO w (a, t, e, d) SELECT CONCAT(seq, 'xxxxxxxxx'), REPEAT('t', seq % 13), REPEAT('e', IF(seq % 50, seq % 11, 30000)), seq FROM seq_10000_to_10999;
SELECT COUNT(*), SUM(v) FROM w FORCE INDEX (kv) WHERE v >= 3 AND v <= 9;
SELECT COUNT(*), SUM(v) FROM w FORCE INDEX (kv) WHERE v > 1000;
SELECT COUNT(*), SUM(r) FROM w FORCE INDEX (kr) WHERE r >= 1;
SELECT COUNT(d), SUM(d) FROM w FORCE INDEX (kv) WHERE v = 9;
SELECT v, COUNT(*) FROM w FORCE INDEX (kv) WHERE v IN (3, 4) GROUP BY v ORDER BY v;
SELECT MIN(v), MAX(v) FROM w FORCE INDEX (kv);
SELECT DISTINCT v FROM w FORCE INDEX (kv) WHERE v > 19 ORDER BY v;
SELECT d FROM w FORCE INDEX (kv, kd) WHERE v = 5 OR d IN (10001, 10002) ORDER BY d;
CREATE TABLE k AS SELECT seq + 2 AS k FROM seq_1_to_5;
SELECT COUNT(w.d), SUM(w.d) FROM k STRAIGHT_JOIN w FORCE INDEX (kv) ON w.v = k.k WHERE w.v % 2 = 1;
CREATE TABLE copied AS SELECT d FROM w FORCE INDEX (kv) WHERE v >= 3 AND v <= 9 AND v % 2 = 1;
SELECT COUNT(*), SUM(d) FROM copied;
UPDATE w FORCE INDEX (kv) SET d = d + 1 WHERE v >= 3 AND v <= 9 AND v % 2 = 1;
DELETE FROM w WHERE v >= 3 AND v <= 7 AND v % 2 = 1;
SELECT COUNT(*), SUM(d) FROM w IGNORE INDEX (kv);
CREATE TABLE u (id INT PRIMARY KEY, t VARCHAR(100), c VARCHAR(2000), v INT AS (LENGTH(t)) VIRTUAL, d INT, KEY kv (v, c)) DEFAULT CHARSET=latin1;
INSERT INTO u (id, t, c, d) SELECT seq, REPEAT('t', seq % 13), REPEAT('y', IF(seq % 2, 1900, 10)), seq FROM seq_1_to_1000;
SELECT COUNT(*), SUM(v), SUM(LENGTH(c)) FROM u FORCE INDEX (kv) WHERE v >= 3 AND v <= 9;
SELECT COUNT(*) FROM u FORCE INDEX (kv) WHERE v BETWEEN 3 AND 9 AND v <> 5;
CHECK TABLE t, l, w, u EXTENDED;
DROP TABLE t, l, w, k, copied, u;
