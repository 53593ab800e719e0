-- FULLTEXT keys and concurrent transactions: a locking search locks the rows that match now.
CREATE TABLE t (id INT PRIMARY KEY, b TEXT, FULLTEXT (b)) DEFAULT CHARSET=utf8mb4;
INSERT INTO t VALUES (1, 'foo one'), (2, 'foo two'), (3, 'bar three');
CREATE TABLE o (n INT);
--! connection a
START TRANSACTION WITH CONSISTENT SNAPSHOT;
SELECT * FROM o;
--! connection b
UPDATE t SET b = 'bar one' WHERE id = 1;
UPDATE t SET b = 'foo three' WHERE id = 3;
INSERT INTO t VALUES (4, 'foo four');
--! connection a
--! cheetah-only
-- The snapshot has the previous rows.
SELECT * FROM t WHERE MATCH (b) AGAINST ('foo') ORDER BY id;
--! end
SELECT * FROM t WHERE MATCH (b) AGAINST ('foo') ORDER BY id FOR UPDATE;
SELECT * FROM t WHERE MATCH (b) AGAINST ('foo') ORDER BY id LOCK IN SHARE MODE;
SELECT * FROM t WHERE id < 4 AND MATCH (b) AGAINST ('foo') > 0 ORDER BY id FOR UPDATE;
UPDATE t SET b = CONCAT(b, ' changed') WHERE MATCH (b) AGAINST ('foo');
COMMIT;
SELECT * FROM t ORDER BY id;
CHECK TABLE t;
-- A row for which the statement waits no longer matches afterwards, with every access path.
--! for SELECT 'MATCH (b) AGAINST (''foo'')' UNION SELECT 'id < 3 AND MATCH (b) AGAINST (''foo'') > 0' UNION SELECT 'MATCH (b) AGAINST (''foo'') OR id = 9'
--! connection default
DELETE FROM t;
INSERT INTO t VALUES (1, 'foo one'), (2, 'foo two'), (3, 'bar three');
--! connection b
BEGIN;
UPDATE t SET b = 'bar one' WHERE id = 1;
--! connection a
--! send
DELETE FROM t WHERE $1;
--! connection default
--! wait SELECT COUNT(*) FROM information_schema.processlist WHERE id = $ID(a) AND info LIKE 'DELETE%' AND time_ms > 50
--! connection b
COMMIT;
--! connection a
--! reap
SELECT * FROM t ORDER BY id;
--! end
-- Rows that other transactions have locked are skipped, or refused without a wait.
--! connection default
DELETE FROM t;
INSERT INTO t VALUES (1, 'foo one'), (2, 'foo two'), (3, 'bar three');
--! connection b
BEGIN;
SELECT * FROM t WHERE id = 1 FOR UPDATE;
--! connection a
SELECT * FROM t WHERE MATCH (b) AGAINST ('foo') FOR UPDATE SKIP LOCKED;
SELECT * FROM t WHERE MATCH (b) AGAINST ('foo') FOR UPDATE NOWAIT;
--! connection b
COMMIT;
-- A snapshot cannot read words that were indexed after it.
--! connection a
START TRANSACTION WITH CONSISTENT SNAPSHOT;
SELECT * FROM o;
--! connection b
ALTER TABLE t DROP INDEX b;
ALTER TABLE t ADD FULLTEXT n (b);
--! connection a
--! cheetah-only
SELECT id FROM t WHERE MATCH (b) AGAINST ('foo');
--! end
COMMIT;
SELECT id FROM t WHERE MATCH (b) AGAINST ('foo') ORDER BY id;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
SELECT * FROM o;
--! connection b
TRUNCATE TABLE t;
--! connection a
--! cheetah-only
SELECT id FROM t WHERE MATCH (b) AGAINST ('foo');
--! end
COMMIT;
--! connection default
DROP TABLE t, o;
--! cheetah-only
-- Several searches of one table with partitions.
CREATE TABLE p (id INT PRIMARY KEY, b TEXT, FULLTEXT (b)) PARTITION BY HASH (id) PARTITIONS 3;
INSERT INTO p VALUES (1, 'foo one'), (2, 'foo two'), (3, 'foo three'), (4, 'bar');
SELECT id FROM p WHERE MATCH (b) AGAINST ('foo') AND MATCH (b) AGAINST ('two');
SELECT id FROM p WHERE MATCH (b) AGAINST ('two') AND MATCH (b) AGAINST ('foo');
SELECT id FROM p WHERE MATCH (b) AGAINST ('two') OR MATCH (b) AGAINST ('bar') ORDER BY id;
DROP TABLE p;
--! end
-- Letters of two bytes keep their case.
CREATE TABLE t (id INT PRIMARY KEY, b VARCHAR(200) CHARACTER SET cp932, FULLTEXT (b));
INSERT INTO t VALUES (1, 'слово'), (2, 'СЛОВО'), (3, 'テキスト Apple'), (4, 'APPLE');
--! for SELECT 'слово' UNION SELECT 'СЛОВО' UNION SELECT 'apple' UNION SELECT 'テキ*' UNION SELECT 'СЛ*'
SELECT id FROM t WHERE MATCH (b) AGAINST ('$1' IN BOOLEAN MODE) ORDER BY id;
--! end
DROP TABLE t;
