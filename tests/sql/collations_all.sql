-- Every collation of the server: order, equality, ranges, grouping and uniqueness through an index.
CREATE TABLE words (id INT PRIMARY KEY, v VARCHAR(60) CHARACTER SET utf8mb4);
INSERT INTO words (id, v) VALUES (1, ''), (2, ' '), (3, 'a'), (4, 'a '), (5, 'a  '), (6, 'A'), (7, 'b'), (8, 'B'), (9, 'aa'), (10, 'Aa'), (11, 'az'), (12, 'a\t'), (13, 'a\tz'), (14, 'a\0'),
 (15, 'a z'), (16, 'a-z'), (17, 'a_z'), (18, 'ä'), (19, 'Ä'), (20, 'ae'), (21, 'å'), (22, 'æ'), (23, 'ß'), (24, 'ss'), (25, 'SS'), (26, 's'), (27, 'ch'), (28, 'CH'), (29, 'Ch'), (30, 'ci'), (31, 'cz'), (32, 'd'),
 (33, 'll'), (34, 'lm'), (35, 'LZ'), (36, 'ñ'), (37, 'n'), (38, 'nz'), (39, 'ø'), (40, 'o'), (41, 'ö'), (42, 'oe'), (43, 'þ'), (44, 'ů'), (45, 'u'), (46, 'dz'), (47, 'dž'), (48, 'Dž'), (49, 'lj'), (50, 'cs'), (51, 'gy'), (52, 'ggy'),
 (53, 'ı'), (54, 'i'), (55, 'I'), (56, 'İ'), (57, 'е'), (58, 'ё'), (59, 'Ж'), (60, 'ж'), (61, 'α'), (62, 'Ά'), (63, 'σ'), (64, 'ς'), (65, 'か'), (66, 'が'), (67, 'カ'), (68, 'ｶ'), (69, '漢'), (70, '字'), (71, 'กา'), (72, 'เก'), (73, 'א'), (74, 'ب'),
 (75, '가'), (76, '각'), (77, '😀'), (78, '😁'), (79, 'e'), (80, 'é'), (81, CONCAT('e', CONVERT(0xCC81 USING utf8mb4))), (82, 'ê'), (83, 'cote'), (84, 'coté'), (85, 'côte'), (86, 'côté'), (87, 'Abc'), (88, 'abC'), (89, 'abcdefghij'), (90, 'abcdefghij '),
 (91, '0'), (92, '10'), (93, '9'), (94, '①'), (95, '!'), (96, '~'), (97, 'ｱ'), (98, 'ﬀ'), (99, 'ff'), (100, '​'), (101, NULL), (102, 'ž'), (103, 'z'), (104, 'ż'), (105, 'zzzz'), (106, '…'), (107, '€'), (108, 'ij'), (109, 'ĳ'), (110, 'ÿ'), (111, 'y'), (112, 'v'), (113, 'w'), (114, 'ǆ');
--! sample 8
--! for SELECT full_collation_name, character_set_name FROM information_schema.collation_character_set_applicability WHERE full_collation_name NOT LIKE '%uca1400%' OR full_collation_name RLIKE '^utf8mb4_uca1400_' OR full_collation_name RLIKE '_uca1400_(nopad_)?(as_cs|ai_ci)$' ORDER BY CRC32(full_collation_name)
CREATE TABLE c (id INT PRIMARY KEY, v VARCHAR(60), f CHAR(20), KEY v (v), KEY f (f), KEY p (v(2)), KEY d (v DESC, f)) CHARACTER SET $2 COLLATE '$1' /* $1 */;
--! ignore
INSERT IGNORE INTO c SELECT id, CONVERT(v USING $2), CONVERT(v USING $2) FROM words ORDER BY id /* $1 */;
SELECT id, HEX(v) FROM c FORCE INDEX (v) ORDER BY v /* $1 */;
SELECT id, HEX(f) FROM c FORCE INDEX (f) ORDER BY f DESC /* $1 */;
SELECT id FROM c FORCE INDEX (d) ORDER BY v DESC, f /* $1 */;
SELECT v, COUNT(*) FROM c FORCE INDEX (v) GROUP BY v ORDER BY v /* $1 */;
SELECT COUNT(DISTINCT f) FROM c FORCE INDEX (f) /* $1 */;
SELECT w.id, GROUP_CONCAT(c.id ORDER BY c.id) FROM words w STRAIGHT_JOIN c FORCE INDEX (v) ON c.v = CONVERT(w.v USING $2) COLLATE '$1' GROUP BY w.id /* $1 */;
SELECT w.id, GROUP_CONCAT(c.id ORDER BY c.id) FROM words w STRAIGHT_JOIN c FORCE INDEX (p) ON c.v = CONVERT(w.v USING $2) COLLATE '$1' GROUP BY w.id /* $1 */;
SELECT id FROM c FORCE INDEX (v) WHERE v BETWEEN CONVERT('aa' USING $2) COLLATE '$1' AND CONVERT('e' USING $2) COLLATE '$1' /* $1 */;
SELECT id FROM c FORCE INDEX (p) WHERE v > CONVERT('az' USING $2) COLLATE '$1' AND v < CONVERT('ll' USING $2) COLLATE '$1' /* $1 */;
SELECT id FROM c FORCE INDEX (f) WHERE f <= CONVERT('a' USING $2) COLLATE '$1' OR f >= CONVERT('z' USING $2) COLLATE '$1' /* $1 */;
SELECT id FROM c FORCE INDEX (v) WHERE v LIKE 'a%' COLLATE '$1' /* $1 */;
SELECT id FROM c FORCE INDEX (v) WHERE v LIKE 'c%' COLLATE '$1' /* $1 */;
SELECT id FROM c FORCE INDEX (p) WHERE v LIKE 'l%' COLLATE '$1' /* $1 */;
SELECT MIN(v), MAX(v), HEX(MIN(f)), HEX(MAX(f)) FROM c /* $1 */;
CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(60), UNIQUE (v)) CHARACTER SET $2 COLLATE '$1' /* $1 */;
--! numbers
INSERT IGNORE INTO u SELECT id, v FROM c ORDER BY id /* $1 */;
SELECT id FROM u FORCE INDEX (v) ORDER BY v DESC /* $1 */;
CREATE TABLE pk (v CHAR(20) PRIMARY KEY, id INT, KEY (id)) CHARACTER SET $2 COLLATE '$1' /* $1 */;
--! numbers
INSERT IGNORE INTO pk SELECT f, id FROM c WHERE f IS NOT NULL ORDER BY id /* $1 */;
SELECT id, HEX(v) FROM pk ORDER BY v /* $1 */;
SELECT id, HEX(v) FROM pk FORCE INDEX (id) WHERE id BETWEEN 20 AND 50 ORDER BY id /* $1 */;
REPLACE INTO pk SELECT f, id + 1000 FROM c WHERE f IS NOT NULL ORDER BY id DESC /* $1 */;
SELECT id, HEX(v) FROM pk ORDER BY v DESC /* $1 */;
CHECK TABLE c, u, pk EXTENDED /* $1 */;
DROP TABLE c, u, pk;
--! end
