-- The tables of entries.tar.xz, which a build of commit b56d64c2 made: the folder #cheetah and
-- the .frm files after SHUTDOWN. Its secondary entries repeat FLOAT and DOUBLE in their payloads.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, d DOUBLE, f FLOAT NOT NULL, u DOUBLE UNSIGNED, c CHAR(4), KEY d (d), KEY f (f DESC), KEY df (d, f), KEY du (d DESC, u), KEY dc (d, c), KEY cd (c(2), d)) ENGINE=CHEETAH;
INSERT INTO t VALUES (1, 0, 0, 0, 'a'), (2, -0e0, -0e0, NULL, 'A'), (3, 1, 1, 1, 'b'), (4, -1, -1, 1, 'B'), (5, NULL, 1.5, 2.5, 'c'), (6, 1.7976931348623157e308, 3.402823e38, 1e300, 'd'), (7, -1.7976931348623157e308, -3.402823e38, 1e-300, 'e'), (8, 4.9406564584124654e-324, 1.4e-45, 4, NULL), (9, -4.9406564584124654e-324, -1.4e-45, 4, NULL);
INSERT INTO t SELECT 100 + seq, (CAST(seq AS SIGNED) - 50) / 7, (CAST(seq % 97 AS SIGNED) - 48) / 3, seq / 11, CONCAT('z', seq % 7) FROM seq_1_to_100;
CREATE TABLE p (d DOUBLE, e FLOAT, n INT, PRIMARY KEY (d, e), KEY n (n), KEY ne (n, e)) ENGINE=CHEETAH;
INSERT INTO p SELECT DISTINCT d, f, id % 5 FROM t WHERE d IS NOT NULL AND id > 4;
INSERT INTO p VALUES (-0e0, 9, 7), (0, 8, 7), (1e10, -0e0, 7), (2e10, 0, 7);
