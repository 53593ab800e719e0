-- Foreign keys: checks, actions, definitions, and the server's display of them.
CREATE TABLE p (id INT PRIMARY KEY, v INT);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id));
SHOW CREATE TABLE c;
INSERT INTO p VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO c VALUES (1, 1), (2, NULL), (3, 3);
INSERT INTO c VALUES (4, 4);
INSERT INTO c VALUES (4, 2), (5, 5);
SELECT * FROM c ORDER BY id;
INSERT IGNORE INTO c VALUES (4, 2), (5, 5), (6, 3);
SHOW WARNINGS;
SELECT * FROM c ORDER BY id;
UPDATE c SET pid = 9 WHERE id = 1;
UPDATE c SET pid = 2 WHERE id = 1;
UPDATE IGNORE c SET pid = id * 2;
SELECT * FROM c ORDER BY id;
UPDATE c SET pid = NULL WHERE id > 3;
DELETE FROM p WHERE id = 2;
DELETE FROM p WHERE id = 3;
DELETE IGNORE FROM p;
SELECT * FROM p ORDER BY id;
UPDATE p SET id = 7 WHERE id = 2;
UPDATE p SET v = 21 WHERE id = 2;
UPDATE p SET id = id WHERE id = 2;
REPLACE INTO p VALUES (2, 22);
REPLACE INTO c VALUES (1, 2), (2, 8);
INSERT INTO c VALUES (1, 77) ON DUPLICATE KEY UPDATE pid = 2;
INSERT INTO c VALUES (1, 2) ON DUPLICATE KEY UPDATE pid = 77;
TRUNCATE p;
DROP TABLE p;
SET foreign_key_checks = 0;
INSERT INTO c VALUES (10, 100);
DELETE FROM p WHERE id = 2;
SET foreign_key_checks = 1;
UPDATE c SET id = 11 WHERE id = 10;
UPDATE c SET pid = 101 WHERE id = 11;
SELECT * FROM c ORDER BY id;
DROP TABLE c, p;
-- Actions.
CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE, t VARCHAR(20), KEY (t)) CHARACTER SET utf8mb4;
CREATE TABLE dc (id INT PRIMARY KEY, pid INT, w TEXT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE dn (id INT PRIMARY KEY, pid INT, w TEXT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE dt (id INT AUTO_INCREMENT PRIMARY KEY, t CHAR(30), KEY (t DESC), CONSTRAINT by_text FOREIGN KEY (t) REFERENCES p (t) ON DELETE CASCADE ON UPDATE CASCADE) CHARACTER SET utf8mb4;
CREATE TABLE g (id INT PRIMARY KEY, cid INT, FOREIGN KEY (cid) REFERENCES dc (id) ON DELETE CASCADE ON UPDATE NO ACTION);
SHOW CREATE TABLE dt;
SHOW CREATE TABLE g;
INSERT INTO p VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'Three'), (4, 4, 'one');
INSERT INTO dc VALUES (1, 1, REPEAT('x', 20000)), (2, 1, 'b'), (3, 2, 'c');
INSERT INTO dn VALUES (1, 1, REPEAT('y', 20000)), (2, 2, 'b'), (3, NULL, 'c');
INSERT INTO dt (t) VALUES ('one'), ('ONE '), ('three'), (NULL);
INSERT INTO dt (t) VALUES ('four');
INSERT INTO g VALUES (1, 1), (2, 2), (3, 3);
DELETE FROM p WHERE id = 1;
SELECT id, pid, LENGTH(w) FROM dc ORDER BY id;
SELECT id, pid, LENGTH(w) FROM dn ORDER BY id;
SELECT * FROM dt ORDER BY id;
SELECT * FROM g ORDER BY id;
UPDATE p SET id = 22 WHERE id = 2;
UPDATE p SET t = 'Drei' WHERE id = 3;
SELECT * FROM p ORDER BY id;
SELECT id, pid, LENGTH(w) FROM dc ORDER BY id;
SELECT id, pid, LENGTH(w) FROM dn ORDER BY id;
SELECT * FROM dt ORDER BY id;
UPDATE dc SET id = 33 WHERE id = 3;
BEGIN;
DELETE FROM p;
SELECT COUNT(*) FROM dc;
SELECT COUNT(*) FROM g;
ROLLBACK;
SELECT id, pid FROM dc ORDER BY id;
SELECT * FROM g ORDER BY id;
BEGIN;
SAVEPOINT a;
DELETE FROM p WHERE id = 22;
ROLLBACK TO a;
SELECT * FROM g ORDER BY id;
COMMIT;
CHECK TABLE p, dc, dn, dt, g;
SELECT constraint_name, table_name, constraint_type FROM information_schema.table_constraints WHERE constraint_schema = '$DB' ORDER BY 1, 2;
SELECT constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint, referenced_table_name, referenced_column_name FROM information_schema.key_column_usage WHERE constraint_schema = '$DB' ORDER BY 2, 1, 4;
SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule, table_name, referenced_table_name FROM information_schema.referential_constraints WHERE constraint_schema = '$DB' ORDER BY 1;
DROP TABLE g, dt, dn, dc, p;
-- Composite, nullable and non-unique parents, several constraints of one child.
CREATE TABLE p (a INT, b VARCHAR(10) NOT NULL, c INT UNSIGNED NOT NULL, d DATE, KEY ab (a, b), KEY dk (d DESC, a));
CREATE TABLE c (x INT, y VARCHAR(30), z DATE, KEY (y), FOREIGN KEY (x, y) REFERENCES p (a, b) ON UPDATE CASCADE ON DELETE SET NULL, FOREIGN KEY (z) REFERENCES p (d) ON DELETE CASCADE);
INSERT INTO p VALUES (1, 'one', 1, '2026-01-01'), (NULL, 'none', 2, NULL), (1, 'one', 3, '2026-01-02'), (2, 'two', 4, '2026-01-03');
INSERT INTO c VALUES (1, 'one', NULL), (1, NULL, '2026-01-02'), (NULL, 'zero', NULL), (2, 'two', '2026-01-03');
INSERT INTO c VALUES (NULL, 'none', '2027-01-01');
INSERT INTO c VALUES (1, 'two', NULL);
UPDATE p SET b = 'eins' WHERE c = 1;
SELECT * FROM c ORDER BY x, y, z;
UPDATE p SET b = 'a name too long' WHERE c = 4;
DELETE FROM p WHERE c = 4;
SELECT * FROM c ORDER BY x, y, z;
DELETE FROM p WHERE d = '2026-01-02';
SELECT * FROM c ORDER BY x, y, z;
DROP TABLE c, p;
-- A child column that is shorter than its parent column, with multi-byte characters; and temporary
-- tables.
CREATE TABLE p (t VARCHAR(20) PRIMARY KEY) CHARACTER SET utf8mb4;
CREATE TABLE c (t VARCHAR(3), d CHAR(3), FOREIGN KEY (t) REFERENCES p (t) ON UPDATE CASCADE, FOREIGN KEY (d) REFERENCES p (t) ON UPDATE CASCADE) CHARACTER SET utf8mb4;
INSERT INTO p VALUES ('abc'), ('def');
INSERT INTO c VALUES ('abc', NULL), (NULL, 'def');
UPDATE p SET t = 'abcd' WHERE t = 'abc';
UPDATE p SET t = 'äöü' WHERE t = 'abc';
UPDATE p SET t = 'defg' WHERE t = 'def';
UPDATE p SET t = 'äöß' WHERE t = 'def';
SELECT * FROM c;
CREATE TEMPORARY TABLE p (a INT PRIMARY KEY, b INT, KEY (b));
ALTER TABLE p DROP KEY b;
DROP TEMPORARY TABLE p;
DROP TABLE c, p;
-- ADD FOREIGN KEY to a table whose rows have long and computed values.
CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(200), KEY (v));
CREATE TABLE c (id INT PRIMARY KEY, pid INT, w VARCHAR(8000), v VARCHAR(200), g INT AS (pid) VIRTUAL, KEY (g));
INSERT INTO p VALUES (1, REPEAT('x', 150)), (2, 'y');
INSERT INTO c (id, pid, w, v) VALUES (1, 1, REPEAT('w', 8000), REPEAT('x', 150)), (2, NULL, REPEAT('z', 8000), 'y');
ALTER TABLE c ADD FOREIGN KEY (pid) REFERENCES p (id), ADD FOREIGN KEY (v) REFERENCES p (v);
UPDATE c SET v = 'z';
SET foreign_key_checks = 0;
INSERT INTO c (id, pid) VALUES (3, 9);
SET foreign_key_checks = 1;
--! numbers
ALTER TABLE c ADD CONSTRAINT g FOREIGN KEY (g) REFERENCES p (id);
DROP TABLE c, p;
-- Trees, cycles, and rows that refer to themselves.
CREATE TABLE t (id INT PRIMARY KEY, up INT, name VARCHAR(10), KEY (up), FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE);
INSERT INTO t VALUES (1, 1, 'self'), (2, 1, 'a'), (3, 2, 'b'), (4, 3, 'c'), (5, NULL, 'd'), (6, 5, 'e');
INSERT INTO t VALUES (8, 7, 'x'), (7, NULL, 'y');
INSERT INTO t SELECT id + 10, up, name FROM t WHERE id > 4;
DELETE FROM t WHERE id = 2;
SELECT * FROM t ORDER BY id;
DELETE FROM t WHERE id = 1;
UPDATE t SET id = 50 WHERE id = 5;
UPDATE t SET id = 66 WHERE id = 6;
SELECT * FROM t ORDER BY id;
DROP TABLE t;
CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id) ON UPDATE CASCADE ON DELETE SET NULL);
INSERT INTO t VALUES (1, NULL), (2, 1), (3, 1), (4, 3);
UPDATE t SET id = 10 WHERE id = 1;
DELETE FROM t WHERE id = 1;
SELECT * FROM t ORDER BY id;
DROP TABLE t;
CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE);
INSERT INTO t VALUES (0, NULL), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 8), (10, 9), (11, 10), (12, 11), (13, 12), (14, 13), (15, 14);
DELETE FROM t WHERE id = 0;
SELECT COUNT(*) FROM t;
DELETE FROM t WHERE id = 15;
DELETE FROM t WHERE id = 0;
SELECT COUNT(*) FROM t;
DROP TABLE t;
SET foreign_key_checks = 0;
CREATE TABLE a (id INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO a VALUES (1, 1), (2, 2);
INSERT INTO b VALUES (1, 2), (2, 1);
SET foreign_key_checks = 1;
UPDATE a SET id = 3 WHERE id = 1;
SELECT * FROM a ORDER BY id;
SELECT * FROM b ORDER BY id;
DELETE FROM a WHERE id = 2;
SELECT COUNT(*) FROM a;
SELECT COUNT(*) FROM b;
DROP TABLE a;
SET foreign_key_checks = 0;
DROP TABLE a;
SET foreign_key_checks = 1;
INSERT INTO b VALUES (1, NULL);
INSERT INTO b VALUES (2, 1);
--! ignore
CREATE TABLE a (id BIGINT PRIMARY KEY);
CREATE TABLE a (id INT PRIMARY KEY);
INSERT INTO b VALUES (2, 1);
INSERT INTO a VALUES (1);
INSERT INTO b VALUES (2, 1);
DROP TABLE b, a;
-- A unique key that an action would duplicate.
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, UNIQUE once (pid), FOREIGN KEY (pid) REFERENCES p (id) ON UPDATE CASCADE);
INSERT INTO p VALUES (1), (2), (3);
INSERT INTO c VALUES (1, 1), (2, 2);
SET foreign_key_checks = 0;
INSERT INTO c VALUES (3, 4);
SET foreign_key_checks = 1;
--! numbers
UPDATE p SET id = 4 WHERE id = 1;
SELECT * FROM p ORDER BY id;
UPDATE p SET id = 5 WHERE id = 1;
SELECT * FROM c ORDER BY id;
DROP TABLE c, p;
-- Triggers do not fire; computed columns follow.
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, twice INT AS (pid * 2) VIRTUAL, KEY (twice), FOREIGN KEY (pid) REFERENCES p (id) ON UPDATE CASCADE ON DELETE SET NULL);
CREATE TABLE seen (what VARCHAR(20));
CREATE TRIGGER cu AFTER UPDATE ON c FOR EACH ROW INSERT INTO seen VALUES ('update');
CREATE TRIGGER cd AFTER DELETE ON c FOR EACH ROW INSERT INTO seen VALUES ('delete');
INSERT INTO p VALUES (1), (2);
INSERT INTO c (id, pid) VALUES (1, 1), (2, 2);
UPDATE p SET id = 11 WHERE id = 1;
DELETE FROM p WHERE id = 2;
SELECT * FROM c ORDER BY id;
SELECT id FROM c FORCE INDEX (twice) WHERE twice = 22;
SELECT COUNT(*) FROM c FORCE INDEX (twice) WHERE twice IS NULL;
SELECT * FROM seen;
CHECK TABLE c EXTENDED;
DROP TABLE c, p, seen;
-- Multi-table statements.
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO p VALUES (1), (2), (3);
INSERT INTO c VALUES (1, 1), (2, 2), (3, 3), (4, 1);
DELETE p, c FROM p JOIN c ON p.id = c.pid WHERE p.id = 1;
SELECT * FROM c ORDER BY id;
UPDATE p, c SET p.id = p.id + 10 WHERE p.id = c.pid AND p.id = 2;
SELECT * FROM p ORDER BY id;
SELECT * FROM c ORDER BY id;
DROP TABLE c, p;
-- Refused definitions.
CREATE TABLE p (id INT PRIMARY KEY, a INT, t TEXT, v VARCHAR(100) CHARACTER SET latin1, KEY (t(10)), KEY (v)) CHARACTER SET utf8mb4;
--! numbers
CREATE TABLE c (x INT, FOREIGN KEY (x) REFERENCES nowhere (id));
--! numbers
CREATE TABLE c (x INT, FOREIGN KEY (x) REFERENCES p (a));
--! numbers
CREATE TABLE c (x BIGINT, FOREIGN KEY (x) REFERENCES p (id));
--! numbers
CREATE TABLE c (x INT UNSIGNED, FOREIGN KEY (x) REFERENCES p (id));
--! numbers
CREATE TABLE c (x VARCHAR(10) CHARACTER SET utf8mb4, FOREIGN KEY (x) REFERENCES p (v));
--! numbers
CREATE TABLE c (x TEXT, FOREIGN KEY (x) REFERENCES p (t));
--! numbers
CREATE TABLE c (x INT NOT NULL, FOREIGN KEY (x) REFERENCES p (id) ON DELETE SET NULL);
--! numbers
CREATE TABLE c (x INT, FOREIGN KEY (x) REFERENCES p (nothing));
--! numbers
CREATE TEMPORARY TABLE c (x INT, FOREIGN KEY (x) REFERENCES p (id));
CREATE TABLE c (x INT, CONSTRAINT one FOREIGN KEY (x) REFERENCES p (id));
--! numbers
CREATE TABLE d (x INT, CONSTRAINT ONE FOREIGN KEY (x) REFERENCES p (id));
ALTER TABLE p ENGINE = MyISAM;
ALTER TABLE c ENGINE = MyISAM;
ALTER TABLE c DROP INDEX one;
-- InnoDB fails later, with a less specific message.
--! any
ALTER TABLE p DROP PRIMARY KEY;
ALTER TABLE c DROP COLUMN x;
ALTER TABLE p DROP COLUMN id;
ALTER TABLE c MODIFY x BIGINT;
ALTER TABLE p MODIFY id BIGINT;
ALTER TABLE p PARTITION BY HASH (id) PARTITIONS 2;
SHOW CREATE TABLE c;
DROP TABLE c, p;
