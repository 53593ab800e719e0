SET NAMES utf8mb4;
CREATE TABLE c (id INT PRIMARY KEY, g VARCHAR(20) COLLATE utf8mb4_general_ci, u VARCHAR(20) COLLATE utf8mb4_unicode_ci, b VARCHAR(20) COLLATE utf8mb4_bin,
  n VARCHAR(20) COLLATE utf8mb4_nopad_bin, l CHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci, x CHAR(10) CHARACTER SET ucs2,
  KEY (g), KEY (u), KEY (b), KEY (n), KEY (l), KEY (x), KEY p (u(2)));
INSERT INTO c VALUES (1, 'a', 'a', 'a', 'a', 'a', 'a'), (2, 'A ', 'A ', 'A ', 'A ', 'A ', 'A '), (3, 'ä', 'ä', 'ä', 'ä', 'ä', 'ä'), (4, 'ß', 'ß', 'ß', 'ß', 'ß', 'ß'),
  (5, 'ss', 'ss', 'ss', 'ss', 'ss', 'ss'), (6, 'a\t', 'a\t', 'a\t', 'a\t', 'a\t', 'a\t'), (7, '', '', '', '', '', ''), (8, NULL, NULL, NULL, NULL, NULL, NULL), (9, 'Zebra', 'Zebra', 'Zebra', 'Zebra', 'Zebra', 'Zebra');
SELECT id FROM c FORCE INDEX (g) WHERE g = 'A' ORDER BY id;
SELECT id FROM c FORCE INDEX (u) WHERE u = 'ss' ORDER BY id;
SELECT id FROM c FORCE INDEX (b) WHERE b = 'a' ORDER BY id;
SELECT id FROM c FORCE INDEX (n) WHERE n = 'A' ORDER BY id;
SELECT id FROM c FORCE INDEX (l) WHERE l = 'ss' ORDER BY id;
SELECT id FROM c FORCE INDEX (x) WHERE x > 'a' ORDER BY x, id;
SELECT id FROM c FORCE INDEX (p) WHERE u LIKE 'z%';
SELECT id, g FROM c FORCE INDEX (g) ORDER BY g, id;
SELECT id, b FROM c FORCE INDEX (b) ORDER BY b DESC, id;
SELECT id, HEX(n) FROM c FORCE INDEX (n) WHERE n IS NOT NULL ORDER BY n, id;
SELECT g FROM c FORCE INDEX (g) WHERE g IS NULL OR g >= 'z';
CREATE TABLE uq (a VARCHAR(10) COLLATE utf8mb4_unicode_ci, UNIQUE (a));
INSERT INTO uq VALUES ('Straße');
INSERT INTO uq VALUES ('STRASSE');
INSERT INTO uq VALUES ('straße  ');
INSERT INTO uq VALUES (NULL), (NULL);
SELECT * FROM uq ORDER BY a;
CREATE TABLE pk (a VARCHAR(768) CHARACTER SET utf8mb4 PRIMARY KEY, b INT, KEY (b));
INSERT INTO pk VALUES (REPEAT('ä', 768), 1), (CONCAT(REPEAT('ä', 767), 'b'), 2), (REPEAT('z', 700), 3), ('short', 4);
SELECT b, LENGTH(a) FROM pk ORDER BY a;
SELECT LENGTH(a) FROM pk FORCE INDEX (b) WHERE b BETWEEN 1 AND 3 ORDER BY b;
CHECK TABLE c, uq, pk;
