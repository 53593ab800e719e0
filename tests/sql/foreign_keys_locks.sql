-- Waits between transactions because of a constraint, at each isolation level.
CREATE TABLE p (id INT PRIMARY KEY, v INT);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, st INT, KEY (pid, st), FOREIGN KEY (pid) REFERENCES p (id));
--! for SELECT 'READ COMMITTED' UNION SELECT 'REPEATABLE READ' UNION SELECT 'SERIALIZABLE'
DELETE FROM c;
REPLACE INTO p VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);
--! connection a
SET SESSION TRANSACTION ISOLATION LEVEL $1;
--! connection b
SET SESSION TRANSACTION ISOLATION LEVEL $1;
-- A parent row is deleted while a child is inserted: the child waits, and is refused.
--! connection a
BEGIN;
DELETE FROM p WHERE id = 1;
--! connection b
--! send
INSERT INTO c VALUES (1, 1, 0);
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(b) AND info LIKE 'INSERT%' AND time_ms > 50
--! connection a
COMMIT;
--! connection b
--! reap
-- The same, but the delete is rolled back.
--! connection a
BEGIN;
DELETE FROM p WHERE id = 2;
--! connection b
--! send
INSERT INTO c VALUES (2, 2, 0);
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(b) AND info LIKE 'INSERT%' AND time_ms > 50
--! connection a
ROLLBACK;
--! connection b
--! reap
-- A child is inserted while its parent is deleted.
--! connection b
BEGIN;
INSERT INTO c VALUES (3, 3, 0);
--! connection a
--! send
DELETE FROM p WHERE id = 3;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(a) AND info LIKE 'DELETE%' AND time_ms > 50
--! connection b
COMMIT;
--! connection a
--! reap
-- The same, but the insert is rolled back.
--! connection b
BEGIN;
INSERT INTO c VALUES (4, 4, 0);
--! connection a
--! send
DELETE FROM p WHERE id = 4;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(a) AND info LIKE 'DELETE%' AND time_ms > 50
--! connection b
ROLLBACK;
--! connection a
--! reap
-- Checks ignore snapshots: a snapshot that still has the parent, and a snapshot without the child.
--! connection a
BEGIN;
SELECT COUNT(*) FROM p WHERE id = 5;
--! connection b
DELETE FROM p WHERE id = 5;
--! connection a
--! ignore
INSERT INTO c VALUES (5, 5, 0);
ROLLBACK;
--! connection default
REPLACE INTO p VALUES (6, 0);
--! connection a
BEGIN;
SELECT COUNT(*) FROM p WHERE id = 5;
--! connection b
INSERT INTO c VALUES (6, 6, 0);
--! connection a
DELETE FROM p WHERE id = 6;
ROLLBACK;
--! connection default
SELECT * FROM p ORDER BY id;
SELECT id, pid FROM c ORDER BY id;
--! end
-- A search finds a child whose entry moves back in its index, at READ COMMITTED, too. (In InnoDB a
-- reader of the row alone does not lock the entry, so the search does not wait.)
--! cheetah-only
DELETE FROM c;
INSERT INTO c VALUES (7, 2, 9);
--! connection a
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
--! connection b
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN;
SELECT * FROM c WHERE id = 7 FOR UPDATE;
--! connection a
--! send
DELETE FROM p WHERE id = 2;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(a) AND info LIKE 'DELETE%' AND time_ms > 50
--! connection b
--! ignore
UPDATE c SET st = 1 WHERE id = 7;
COMMIT;
--! connection a
--! ignore
--! reap
--! connection default
SELECT COUNT(*) FROM c LEFT JOIN p ON c.pid = p.id WHERE p.id IS NULL;
--! end
DROP TABLE c, p;
-- Actions wait for rows of children.
--! connection a
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
--! connection b
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
--! connection default
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, pid INT, v INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE);
INSERT INTO p VALUES (1), (2);
INSERT INTO c VALUES (1, 1, 0), (2, 1, 0), (3, 2, 0);
--! connection b
BEGIN;
UPDATE c SET v = 1 WHERE id = 2;
--! connection a
--! send
DELETE FROM p WHERE id = 1;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(a) AND info LIKE 'DELETE%' AND time_ms > 50
--! connection b
COMMIT;
--! connection a
--! reap
--! connection default
SELECT * FROM p;
SELECT * FROM c ORDER BY id;
DROP TABLE c, p;
