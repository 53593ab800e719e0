-- The number of different values in an index, from ANALYZE TABLE and from the background, and its
-- use by the optimizer. For the first tables the background collects no statistics.
CREATE TABLE small (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a), KEY ab (a, b), UNIQUE KEY ub (b, id)) STATS_AUTO_RECALC=0;
INSERT INTO small SELECT seq, seq % 10, CONCAT('b', seq % 50) FROM seq_1_to_1000;
CREATE TABLE large (id INT PRIMARY KEY, few INT, some INT, many INT, pad VARCHAR(100), KEY (few), KEY (some), KEY (many), KEY fm (few, many)) STATS_AUTO_RECALC=0;
INSERT INTO large SELECT seq, seq % 3, seq % 500, seq DIV 2, REPEAT('x', 80) FROM seq_1_to_60000;
CREATE TABLE nokey (a INT, KEY (a)) STATS_AUTO_RECALC=0;
INSERT INTO nokey SELECT seq % 4 FROM seq_1_to_100;
CREATE TABLE empty (a INT, KEY (a)) STATS_AUTO_RECALC=0;
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
-- In a large table a few values are counted, and many values are estimated within a third.
SELECT index_name, seq_in_index, CASE index_name WHEN 'few' THEN cardinality = 3 WHEN 'some' THEN cardinality BETWEEN 330 AND 750 WHEN 'many' THEN cardinality BETWEEN 20000 AND 60000 ELSE 'see above' END AS right_size FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'large' AND index_name <> 'fm' ORDER BY 1, 2;
SELECT seq_in_index, IF(seq_in_index = 1, cardinality = 3, cardinality BETWEEN 20000 AND 60000) AS right_size FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'large' AND index_name = 'fm' ORDER BY 1;
--! end
-- The optimizer chooses the same indexes as with InnoDB.
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
-- Statistics survive a restart, a crash and a rename; a new table has none.
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
-- The background collects statistics: the optimizer uses the index on the customer, as with InnoDB.
CREATE TABLE customer (c_w_id INT, c_d_id INT, c_id INT, c_last VARCHAR(16), PRIMARY KEY (c_w_id, c_d_id, c_id), KEY name (c_w_id, c_d_id, c_last));
CREATE TABLE orders (o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry VARCHAR(30), PRIMARY KEY (o_w_id, o_d_id, o_id), KEY customer (o_w_id, o_d_id, o_c_id, o_id));
INSERT INTO customer SELECT 1 + seq DIV 3000, 1 + seq DIV 300 % 10, 1 + seq % 300, CONCAT('last', seq % 40) FROM seq_0_to_5999;
INSERT INTO orders SELECT 1 + seq DIV 3000, 1 + seq DIV 300 % 10, 1 + seq % 300, 1 + seq * 7 % 300, CONCAT('entry', seq) FROM seq_0_to_5999;
--! wait SELECT COUNT(*) = 2 FROM information_schema.statistics WHERE table_schema = '$DB' AND cardinality BETWEEN 3000 AND 9000 AND (table_name = 'orders' AND index_name = 'customer' AND seq_in_index = 3 OR table_name = 'customer' AND index_name = 'PRIMARY' AND seq_in_index = 3)
--! columns table,type,key
EXPLAIN SELECT c_id, o_id, o_entry FROM customer STRAIGHT_JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id WHERE c_w_id = 1 AND c_d_id = 1 AND c_last = 'last7';
--! columns table,type,key
EXPLAIN SELECT c_id, o_id, o_entry FROM customer JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id WHERE c_w_id = 1 AND c_d_id = 1 AND c_last = 'last7';
--! columns table,type,key
EXPLAIN SELECT c_id, o_id, o_entry FROM customer JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id;
SELECT COUNT(*), SUM(o_id) FROM customer JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id WHERE c_w_id = 1 AND c_d_id = 1 AND c_last = 'last7';
-- Statistics are collected again when rows have changed, after a copy, and for an added index.
UPDATE orders SET o_c_id = 1 + o_id % 10;
--! cheetah-only
--! wait SELECT cardinality BETWEEN 100 AND 500 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'orders' AND index_name = 'customer' AND seq_in_index = 3
--! end
ALTER TABLE orders ADD KEY o_entry (o_entry);
--! cheetah-only
--! wait SELECT cardinality BETWEEN 3000 AND 9000 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'orders' AND index_name = 'o_entry'
--! end
ALTER TABLE customer FORCE, ALGORITHM=COPY;
--! cheetah-only
--! wait SELECT cardinality BETWEEN 500 AND 2500 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'customer' AND index_name = 'name' AND seq_in_index = 3
--! end
CREATE TABLE loaded (PRIMARY KEY (o_w_id, o_d_id, o_id), KEY customer (o_c_id)) SELECT * FROM orders;
--! cheetah-only
--! wait SELECT cardinality BETWEEN 10 AND 20 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'loaded' AND index_name = 'customer'
--! end
-- Statistics for each type of key.
CREATE TABLE keys_of_types (id INT PRIMARY KEY, a TINYINT NULL, b BIGINT UNSIGNED, c CHAR(9) CHARACTER SET latin1, d VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NULL, e VARCHAR(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_nopad_bin, f DECIMAL(9,2), g DATETIME(3), h DOUBLE, i VARBINARY(10), j TEXT, k ENUM('x','y','z'), l TIME, m VARCHAR(10) CHARACTER SET cp1250 COLLATE cp1250_czech_cs, n VARCHAR(9) CHARACTER SET utf16 COLLATE utf16_unicode_520_nopad_ci, KEY (a), KEY (b DESC), KEY (c), KEY (d), KEY (e), KEY (f), KEY (g), KEY (h), KEY (i), KEY (j(5)), KEY (k), KEY (l), KEY (m), KEY (n), KEY mixed (d DESC, a, j(3), id)) CHARACTER SET utf8mb4;
INSERT INTO keys_of_types SELECT seq, NULLIF(seq % 10, 9), seq % 11, CONCAT('c ', seq % 12), NULLIF(CONCAT('d e', CHAR(97 + seq % 13), ' x'), 'd em x'), CONCAT(CHAR(0), 'e', CHAR(0), seq % 14, ' '), CAST(seq % 15 AS SIGNED) - 7.5, '2026-01-01' + INTERVAL seq % 16 SECOND, CAST(seq % 17 AS SIGNED) - 8.25, CONCAT(CHAR(0), seq % 18), CONCAT('j', seq % 19), 1 + seq % 3, SEC_TO_TIME(CAST(seq % 21 AS SIGNED) * 60 - 300), CONCAT('m ', seq % 22), CONCAT(CHAR(97 + seq % 23), ' n') FROM seq_1_to_2000;
--! cheetah-only
--! wait SELECT COUNT(*) = 14 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'keys_of_types' AND index_name = column_name AND cardinality IS NOT NULL
--! end
--! cheetah-only
--! ordered
SELECT index_name, seq_in_index, cardinality FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'keys_of_types' AND index_name <> 'PRIMARY' ORDER BY 1, 2;
--! end
