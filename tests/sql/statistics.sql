-- ANALYZE TABLE: how many different values an index has, and what the optimizer makes of it.
CREATE TABLE small (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a), KEY ab (a, b), UNIQUE KEY ub (b, id));
INSERT INTO small SELECT seq, seq % 10, CONCAT('b', seq % 50) FROM seq_1_to_1000;
CREATE TABLE large (id INT PRIMARY KEY, few INT, some INT, many INT, pad VARCHAR(100), KEY (few), KEY (some), KEY (many), KEY fm (few, many));
INSERT INTO large SELECT seq, seq % 3, seq % 500, seq DIV 2, REPEAT('x', 80) FROM seq_1_to_60000;
CREATE TABLE nokey (a INT, KEY (a));
INSERT INTO nokey SELECT seq % 4 FROM seq_1_to_100;
CREATE TABLE empty (a INT, KEY (a));
--! cheetah-only
--! columns Key_name,Seq_in_index,Column_name,Cardinality
SHOW INDEX FROM small;
--! end
ANALYZE TABLE small, large, nokey, empty;
--! cheetah-only
--! columns Key_name,Seq_in_index,Column_name,Cardinality
SHOW INDEX FROM small;
--! columns Key_name,Seq_in_index,Column_name,Cardinality
SHOW INDEX FROM nokey;
--! columns Key_name,Seq_in_index,Column_name,Cardinality
SHOW INDEX FROM empty;
-- Of a large table few values are counted, many are estimated: within a third.
SELECT index_name, seq_in_index, CASE index_name WHEN 'few' THEN cardinality = 3 WHEN 'some' THEN cardinality BETWEEN 330 AND 750 WHEN 'many' THEN cardinality BETWEEN 20000 AND 60000 ELSE 'see above' END AS right_size FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'large' AND index_name <> 'fm' ORDER BY 1, 2;
SELECT seq_in_index, IF(seq_in_index = 1, cardinality = 3, cardinality BETWEEN 20000 AND 60000) AS right_size FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'large' AND index_name = 'fm' ORDER BY 1;
--! end
-- The optimizer picks what it picks with InnoDB.
--! columns table,type,key
EXPLAIN SELECT pad FROM large WHERE few = 1 AND some = 7;
--! columns table,type,key
EXPLAIN SELECT pad FROM large WHERE some = 7 AND many = 100;
--! columns table,type,key
EXPLAIN SELECT STRAIGHT_JOIN l.pad FROM small s JOIN large l IGNORE INDEX (fm) ON l.few = s.a AND l.many = s.id WHERE s.a = 1;
--! columns table,type,key
EXPLAIN SELECT STRAIGHT_JOIN l.pad FROM small s JOIN large l ON l.some = s.a AND l.few = s.id;
--! columns table,type,key
EXPLAIN SELECT STRAIGHT_JOIN n.a FROM small s JOIN nokey n ON n.a = s.a;
-- Statistics are kept over a restart, a crash and a new name; a new table has none.
--! restart
--! cheetah-only
--! columns Key_name,Seq_in_index,Column_name,Cardinality
SHOW INDEX FROM small;
--! end
RENAME TABLE small TO small2;
INSERT INTO small2 VALUES (5000, 77, 'new');
ANALYZE TABLE small2;
--! kill
--! cheetah-only
--! columns Key_name,Seq_in_index,Column_name,Cardinality
SHOW INDEX FROM small2;
--! end
TRUNCATE TABLE small2;
INSERT INTO small2 VALUES (1, 1, 'one');
--! cheetah-only
--! columns Key_name,Seq_in_index,Column_name,Cardinality
SHOW INDEX FROM small2;
--! end
DROP TABLE small2;
--! restart
CHECK TABLE large EXTENDED;
