-- Cardinalities are collected after each statement that adds many rows, and when a tenth of the
-- rows has changed, also for a connection that keeps the table open. A table option disables this.
--! cheetah-only
CREATE TABLE t (id INT PRIMARY KEY, k INT, j INT, KEY k (k));
CREATE TABLE left_alone (id INT PRIMARY KEY, k INT, j INT, KEY k (k)) STATS_AUTO_RECALC=0;
--! connection reader
--! columns Cardinality
SHOW INDEX FROM t WHERE key_name = 'k';
--! connection default
INSERT INTO t SELECT seq, seq % 10, seq % 7 FROM seq_1_to_5000;
--! wait SELECT cardinality = 10 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 't' AND index_name = 'k'
--! connection reader
--! columns Cardinality
SHOW INDEX FROM t WHERE key_name = 'k';
--! connection default
INSERT INTO left_alone SELECT * FROM t;
UPDATE t SET k = id % 50 WHERE id <= 2500;
--! wait SELECT cardinality = 50 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 't' AND index_name = 'k'
--! connection reader
--! columns Cardinality
SHOW INDEX FROM t WHERE key_name = 'k';
--! connection default
ALTER TABLE t ADD KEY j (j), ALGORITHM=NOCOPY;
--! wait SELECT cardinality = 7 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 't' AND index_name = 'j'
ALTER TABLE t FORCE, ALGORITHM=COPY;
--! wait SELECT cardinality = 50 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 't' AND index_name = 'k'
CREATE TABLE selected (KEY k (k)) SELECT * FROM t;
--! wait SELECT cardinality = 50 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'selected' AND index_name = 'k'
SET STATEMENT cheetah_disable_keys = ON FOR ALTER TABLE selected DISABLE KEYS;
INSERT INTO selected SELECT id + 5000, k + 10, j FROM t;
ALTER TABLE selected ENABLE KEYS;
--! wait SELECT cardinality = 60 FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'selected' AND index_name = 'k'
CREATE TABLE parts (id INT PRIMARY KEY, k INT, KEY k (k)) PARTITION BY HASH (id) PARTITIONS 3;
INSERT INTO parts SELECT id, k FROM t;
--! wait SELECT cardinality IS NOT NULL FROM information_schema.statistics WHERE table_schema = '$DB' AND table_name = 'parts' AND index_name = 'k'
--! columns Cardinality
SHOW INDEX FROM left_alone WHERE key_name = 'k';
--! restart
SELECT table_name, cardinality FROM information_schema.statistics WHERE table_schema = '$DB' AND index_name = 'k' AND table_name IN ('t', 'left_alone') ORDER BY 1;
-- Each column of a constraint, its actions, and its supporting indexes.
CREATE TABLE p (a INT, b INT, PRIMARY KEY (a, b));
CREATE TABLE `c-1` (x INT, y INT, CONSTRAINT of_p FOREIGN KEY (x, y) REFERENCES p (a, b) ON DELETE CASCADE);
SELECT * FROM information_schema.cheetah_foreign_keys ORDER BY pos;
DROP TABLE `c-1`;
SELECT * FROM information_schema.cheetah_foreign_keys;
--! end
