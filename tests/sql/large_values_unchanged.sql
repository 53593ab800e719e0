-- An UPDATE of a small column does not move large values; an UPDATE of a large column writes only
-- that column's value.
CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, c LONGTEXT, KEY (n));
INSERT INTO t SELECT seq, seq, REPEAT(CHAR(96 + seq), 200000), REPEAT('text ', 20000) FROM seq_1_to_10;
--! cheetah-only
SELECT variable_value INTO @values_before FROM information_schema.global_status WHERE variable_name = 'cheetah_large_values_written';
SELECT variable_value INTO @log_before FROM information_schema.global_status WHERE variable_name = 'cheetah_log_position';
--! end
UPDATE t SET n = n + 100;
UPDATE t SET id = id + 50 WHERE id < 6;
INSERT INTO t (id, n) VALUES (10, 1) ON DUPLICATE KEY UPDATE n = n + 1;
UPDATE t x JOIN t y ON x.id = y.id SET x.n = y.n + 1;
--! cheetah-only
SELECT variable_value - @values_before AS large_values_written FROM information_schema.global_status WHERE variable_name = 'cheetah_large_values_written';
SELECT variable_value - @log_before < 20000 AS little_was_logged FROM information_schema.global_status WHERE variable_name = 'cheetah_log_position';
--! end
UPDATE t SET c = REPEAT('other ', 20000) WHERE id = 10;
--! cheetah-only
SELECT variable_value - @values_before AS large_values_written FROM information_schema.global_status WHERE variable_name = 'cheetah_large_values_written';
--! end
SELECT id, n, MD5(b), MD5(c) FROM t ORDER BY id;
--! kill
SELECT id, n, MD5(b), MD5(c) FROM t ORDER BY id;
CHECK TABLE t EXTENDED;
-- Rows of many short columns can be too long for a page, too (InnoDB refuses such a table). Then
-- short values are stored out of line, and stay unchanged.
--! cheetah-only
CREATE TABLE narrow (id INT PRIMARY KEY, n INT, c1 VARCHAR(250), c2 VARCHAR(250), c3 VARCHAR(250), c4 VARCHAR(250), c5 VARCHAR(250), c6 VARCHAR(250), c7 VARCHAR(250), c8 VARCHAR(250), c9 VARCHAR(250), c10 VARCHAR(250), c11 VARCHAR(250), c12 VARCHAR(250), c13 VARCHAR(250), c14 VARCHAR(250), c15 VARCHAR(250), c16 VARCHAR(250), c17 VARCHAR(250), c18 VARCHAR(250), c19 VARCHAR(250), c20 VARCHAR(250), c21 VARCHAR(250), c22 VARCHAR(250), c23 VARCHAR(250), c24 VARCHAR(250), c25 VARCHAR(250), c26 VARCHAR(250), c27 VARCHAR(250), c28 VARCHAR(250), c29 VARCHAR(250), c30 VARCHAR(250), c31 VARCHAR(250), c32 VARCHAR(250), c33 VARCHAR(250), c34 VARCHAR(250), c35 VARCHAR(250), c36 VARCHAR(250), c37 VARCHAR(250), c38 VARCHAR(250), c39 VARCHAR(250), c40 VARCHAR(250), c41 VARCHAR(250), c42 VARCHAR(250), c43 VARCHAR(250), c44 VARCHAR(250), c45 VARCHAR(250)) DEFAULT CHARSET=latin1;
INSERT INTO narrow (id, n, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23, c24, c25, c26, c27, c28, c29, c30, c31, c32, c33, c34, c35, c36, c37, c38, c39, c40, c41, c42, c43, c44, c45) SELECT seq, seq, REPEAT(CHAR(65), 200 + seq * 1 % 50), REPEAT(CHAR(66), 200 + seq * 2 % 50), REPEAT(CHAR(67), 200 + seq * 3 % 50), REPEAT(CHAR(68), 200 + seq * 4 % 50), REPEAT(CHAR(69), 200 + seq * 5 % 50), REPEAT(CHAR(70), 200 + seq * 6 % 50), REPEAT(CHAR(71), 200 + seq * 7 % 50), REPEAT(CHAR(72), 200 + seq * 8 % 50), REPEAT(CHAR(73), 200 + seq * 9 % 50), REPEAT(CHAR(74), 200 + seq * 10 % 50), REPEAT(CHAR(75), 200 + seq * 11 % 50), REPEAT(CHAR(76), 200 + seq * 12 % 50), REPEAT(CHAR(77), 200 + seq * 13 % 50), REPEAT(CHAR(78), 200 + seq * 14 % 50), REPEAT(CHAR(79), 200 + seq * 15 % 50), REPEAT(CHAR(80), 200 + seq * 16 % 50), REPEAT(CHAR(81), 200 + seq * 17 % 50), REPEAT(CHAR(82), 200 + seq * 18 % 50), REPEAT(CHAR(83), 200 + seq * 19 % 50), REPEAT(CHAR(84), 200 + seq * 20 % 50), REPEAT(CHAR(85), 200 + seq * 21 % 50), REPEAT(CHAR(86), 200 + seq * 22 % 50), REPEAT(CHAR(87), 200 + seq * 23 % 50), REPEAT(CHAR(88), 200 + seq * 24 % 50), REPEAT(CHAR(89), 200 + seq * 25 % 50), REPEAT(CHAR(90), 200 + seq * 26 % 50), REPEAT(CHAR(91), 200 + seq * 27 % 50), REPEAT(CHAR(92), 200 + seq * 28 % 50), REPEAT(CHAR(93), 200 + seq * 29 % 50), REPEAT(CHAR(94), 200 + seq * 30 % 50), REPEAT(CHAR(95), 200 + seq * 31 % 50), REPEAT(CHAR(96), 200 + seq * 32 % 50), REPEAT(CHAR(97), 200 + seq * 33 % 50), REPEAT(CHAR(98), 200 + seq * 34 % 50), REPEAT(CHAR(99), 200 + seq * 35 % 50), REPEAT(CHAR(100), 200 + seq * 36 % 50), REPEAT(CHAR(101), 200 + seq * 37 % 50), REPEAT(CHAR(102), 200 + seq * 38 % 50), REPEAT(CHAR(103), 200 + seq * 39 % 50), REPEAT(CHAR(104), 200 + seq * 40 % 50), REPEAT(CHAR(105), 200 + seq * 41 % 50), REPEAT(CHAR(106), 200 + seq * 42 % 50), REPEAT(CHAR(107), 200 + seq * 43 % 50), REPEAT(CHAR(108), 200 + seq * 44 % 50), REPEAT(CHAR(109), 200 + seq * 45 % 50) FROM seq_1_to_6;
UPDATE narrow SET n = n + 10;
UPDATE narrow SET c1 = 'changed' WHERE id < 4;
INSERT INTO narrow (id) VALUES (5) ON DUPLICATE KEY UPDATE n = 0;
UPDATE narrow SET id = id + 100 WHERE id = 6;
SELECT id, n, LENGTH(c1), (c2 = REPEAT(CHAR(66), 200 + id % 100 * 2 % 50)) + (c3 = REPEAT(CHAR(67), 200 + id % 100 * 3 % 50)) + (c4 = REPEAT(CHAR(68), 200 + id % 100 * 4 % 50)) + (c5 = REPEAT(CHAR(69), 200 + id % 100 * 5 % 50)) + (c6 = REPEAT(CHAR(70), 200 + id % 100 * 6 % 50)) + (c7 = REPEAT(CHAR(71), 200 + id % 100 * 7 % 50)) + (c8 = REPEAT(CHAR(72), 200 + id % 100 * 8 % 50)) + (c9 = REPEAT(CHAR(73), 200 + id % 100 * 9 % 50)) + (c10 = REPEAT(CHAR(74), 200 + id % 100 * 10 % 50)) + (c11 = REPEAT(CHAR(75), 200 + id % 100 * 11 % 50)) + (c12 = REPEAT(CHAR(76), 200 + id % 100 * 12 % 50)) + (c13 = REPEAT(CHAR(77), 200 + id % 100 * 13 % 50)) + (c14 = REPEAT(CHAR(78), 200 + id % 100 * 14 % 50)) + (c15 = REPEAT(CHAR(79), 200 + id % 100 * 15 % 50)) + (c16 = REPEAT(CHAR(80), 200 + id % 100 * 16 % 50)) + (c17 = REPEAT(CHAR(81), 200 + id % 100 * 17 % 50)) + (c18 = REPEAT(CHAR(82), 200 + id % 100 * 18 % 50)) + (c19 = REPEAT(CHAR(83), 200 + id % 100 * 19 % 50)) + (c20 = REPEAT(CHAR(84), 200 + id % 100 * 20 % 50)) + (c21 = REPEAT(CHAR(85), 200 + id % 100 * 21 % 50)) + (c22 = REPEAT(CHAR(86), 200 + id % 100 * 22 % 50)) + (c23 = REPEAT(CHAR(87), 200 + id % 100 * 23 % 50)) + (c24 = REPEAT(CHAR(88), 200 + id % 100 * 24 % 50)) + (c25 = REPEAT(CHAR(89), 200 + id % 100 * 25 % 50)) + (c26 = REPEAT(CHAR(90), 200 + id % 100 * 26 % 50)) + (c27 = REPEAT(CHAR(91), 200 + id % 100 * 27 % 50)) + (c28 = REPEAT(CHAR(92), 200 + id % 100 * 28 % 50)) + (c29 = REPEAT(CHAR(93), 200 + id % 100 * 29 % 50)) + (c30 = REPEAT(CHAR(94), 200 + id % 100 * 30 % 50)) + (c31 = REPEAT(CHAR(95), 200 + id % 100 * 31 % 50)) + (c32 = REPEAT(CHAR(96), 200 + id % 100 * 32 % 50)) + (c33 = REPEAT(CHAR(97), 200 + id % 100 * 33 % 50)) + (c34 = REPEAT(CHAR(98), 200 + id % 100 * 34 % 50)) + (c35 = REPEAT(CHAR(99), 200 + id % 100 * 35 % 50)) + (c36 = REPEAT(CHAR(100), 200 + id % 100 * 36 % 50)) + (c37 = REPEAT(CHAR(101), 200 + id % 100 * 37 % 50)) + (c38 = REPEAT(CHAR(102), 200 + id % 100 * 38 % 50)) + (c39 = REPEAT(CHAR(103), 200 + id % 100 * 39 % 50)) + (c40 = REPEAT(CHAR(104), 200 + id % 100 * 40 % 50)) + (c41 = REPEAT(CHAR(105), 200 + id % 100 * 41 % 50)) + (c42 = REPEAT(CHAR(106), 200 + id % 100 * 42 % 50)) + (c43 = REPEAT(CHAR(107), 200 + id % 100 * 43 % 50)) + (c44 = REPEAT(CHAR(108), 200 + id % 100 * 44 % 50)) + (c45 = REPEAT(CHAR(109), 200 + id % 100 * 45 % 50)) AS unchanged_of_44 FROM narrow ORDER BY id;
ALTER TABLE narrow ADD INDEX (c1), ADD INDEX (c2), ADD INDEX (c45, n), ALGORITHM=NOCOPY;
SELECT id, LENGTH(c1), LENGTH(c2), LENGTH(c45) FROM narrow FORCE INDEX (c2) ORDER BY c2, id;
CHECK TABLE narrow EXTENDED;
DROP TABLE narrow;
--! end
