-- Row locks that the server requests: keys that it checks itself, pushed conditions, SKIP LOCKED in
-- routines, searches that continue.
--! connection a
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET innodb_lock_wait_timeout = 1;
--! cheetah-only
SET cheetah_lock_wait_timeout = 1;
--! end
--! connection b
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
-- UNIQUE .. USING HASH: after the server's check the row waits for its place, and another
-- transaction inserts the same value before the row is written.
CREATE TABLE lu (id INT PRIMARY KEY, b LONGTEXT, UNIQUE (b));
BEGIN;
INSERT INTO lu VALUES (1, 'goes again');
--! connection a
BEGIN;
--! send
INSERT INTO lu VALUES (1, 'twice');
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(a) AND info LIKE 'INSERT%' AND time_ms > 50
INSERT INTO lu VALUES (2, 'twice');
--! connection b
ROLLBACK;
--! connection a
--! reap
COMMIT;
SELECT id, b FROM lu ORDER BY id;
INSERT INTO lu VALUES (3, 'twice');
INSERT IGNORE INTO lu VALUES (3, 'twice'), (4, 'new');
REPLACE INTO lu VALUES (5, 'twice');
INSERT INTO lu VALUES (6, 'new') ON DUPLICATE KEY UPDATE b = 'newer';
UPDATE lu SET b = 'twice' WHERE id = 4;
UPDATE lu SET b = 'other' WHERE id = 4;
SELECT id, b FROM lu ORDER BY id;
CREATE TABLE rooms (room INT, since DATE, until DATE, PERIOD FOR p (since, until), UNIQUE (room, p WITHOUT OVERLAPS));
INSERT INTO rooms VALUES (1, '2026-01-01', '2026-02-01'), (1, '2026-02-01', '2026-03-01'), (2, '2026-01-15', '2026-02-15');
INSERT INTO rooms VALUES (1, '2026-02-20', '2026-03-20');
INSERT INTO rooms VALUES (1, '2025-12-20', '2026-01-02');
UPDATE rooms SET room = 1 WHERE room = 2;
UPDATE rooms SET until = '2026-03-10' WHERE since = '2026-02-01';
SELECT * FROM rooms ORDER BY room, since;
-- Entries that the pushed condition refuses do not keep their rows locked at READ COMMITTED.
CREATE TABLE c (id INT PRIMARY KEY, a INT, b INT, p VARCHAR(10), KEY ab (a, b));
INSERT INTO c SELECT seq, seq DIV 10, seq % 10, 'p' FROM seq_1_to_39;
--! connection b
BEGIN;
SELECT id, p FROM c FORCE INDEX (ab) WHERE a = 1 AND b % 5 = 3 FOR UPDATE;
--! connection a
SELECT COUNT(p) FROM c FORCE INDEX (PRIMARY) WHERE id IN (10, 11, 12, 14, 15, 16, 17, 19) FOR UPDATE;
SELECT id FROM c WHERE id = 18 FOR UPDATE NOWAIT;
--! connection b
ROLLBACK;
BEGIN;
SELECT id, p FROM c FORCE INDEX (ab) WHERE a >= 2 AND b % 5 = 3 FOR UPDATE;
--! connection a
SELECT COUNT(p) FROM c FORCE INDEX (PRIMARY) WHERE id IN (39, 37, 36, 25, 22, 21, 20) FOR UPDATE;
SELECT id FROM c WHERE id = 33 FOR UPDATE NOWAIT;
--! connection b
ROLLBACK;
-- SKIP LOCKED in a routine applies only to its own statement.
CREATE TABLE q (id INT PRIMARY KEY);
INSERT INTO q VALUES (1), (2), (3);
--! delimiter $$
CREATE FUNCTION free() RETURNS TEXT
BEGIN
  DECLARE some TEXT;
  SELECT GROUP_CONCAT(id ORDER BY id) INTO some FROM q FOR UPDATE SKIP LOCKED;
  RETURN some;
END$$
CREATE FUNCTION free_and_all() RETURNS TEXT
BEGIN
  DECLARE some, every TEXT;
  SELECT GROUP_CONCAT(id ORDER BY id) INTO some FROM q FOR UPDATE SKIP LOCKED;
  SELECT GROUP_CONCAT(id ORDER BY id) INTO every FROM q LOCK IN SHARE MODE;
  RETURN CONCAT(some, ' of ', every);
END$$
--! delimiter ;
SELECT free(), free_and_all();
BEGIN;
SELECT id FROM q WHERE id = 2 FOR UPDATE;
--! connection a
SELECT free();
SELECT free_and_all();
SELECT id FROM q FOR UPDATE SKIP LOCKED;
--! connection b
COMMIT;
-- Loose index scans and HANDLER continue after the key of an exact search, also with locks.
CREATE TABLE g (a INT, b INT, KEY ab (a, b));
INSERT INTO g SELECT seq DIV 3, seq % 3 FROM seq_3_to_1502;
ANALYZE TABLE g;
SELECT COUNT(DISTINCT a) FROM g WHERE b = 1;
SELECT COUNT(DISTINCT a) FROM g WHERE b = 1 LOCK IN SHARE MODE;
SELECT COUNT(*) FROM (SELECT DISTINCT a FROM g WHERE b = 2 FOR UPDATE) d;
SELECT COUNT(*), SUM(l) FROM (SELECT a, MIN(b) l FROM g WHERE b > 1 GROUP BY a LOCK IN SHARE MODE) d;
CREATE TABLE h (id INT PRIMARY KEY, k INT, KEY k (k));
INSERT INTO h VALUES (1, 3), (2, 5), (3, 5), (4, 7), (5, 9);
HANDLER h OPEN;
HANDLER h READ k = (5) LIMIT 10;
HANDLER h READ k NEXT LIMIT 2;
HANDLER h READ k = (5) LIMIT 10;
HANDLER h READ k PREV;
HANDLER h READ k = (9) LIMIT 10;
HANDLER h READ k NEXT;
HANDLER h READ k PREV;
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE;
BEGIN;
HANDLER h READ k = (5) LIMIT 10;
HANDLER h READ k NEXT LIMIT 2;
HANDLER h READ k = (5) LIMIT 10;
HANDLER h READ k PREV;
HANDLER h READ k PREV LIMIT 3;
HANDLER h READ k = (5) LIMIT 1;
HANDLER h READ k NEXT LIMIT 3;
HANDLER h READ k = (9) LIMIT 10;
HANDLER h READ k NEXT;
HANDLER h READ k PREV;
COMMIT;
HANDLER h CLOSE;
