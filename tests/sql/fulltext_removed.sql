-- The background removes the words of deleted rows; views name the tables of words.
--! cheetah-only
CREATE TABLE r (id INT PRIMARY KEY, b TEXT, FULLTEXT KEY (b));
--! for SELECT 'TABLES' UNION ALL SELECT 'INDEXES'
SELECT COUNT(DISTINCT table_name) > 0 AS of_words FROM information_schema.cheetah_$1 WHERE table_schema = '' AND table_name LIKE '#fulltext/%';
SELECT COUNT(DISTINCT table_name) FROM information_schema.cheetah_$1 WHERE table_schema = '$DB' AND table_name = 'r';
--! end
INSERT INTO r SELECT d.seq, GROUP_CONCAT(CONCAT('word', (d.seq * w.seq) % 97) ORDER BY w.seq SEPARATOR ' ') FROM seq_1_to_300 d, seq_1_to_40 w GROUP BY d.seq;
--! connection old
START TRANSACTION WITH CONSISTENT SNAPSHOT;
SELECT COUNT(*) FROM r WHERE MATCH (b) AGAINST ('word7');
--! connection default
DELETE FROM r WHERE id > 100;
--! for VALUES (1), (2)
--! connection default
SELECT COUNT(*) FROM r WHERE MATCH (b) AGAINST ('word7');
SELECT COUNT(*) FROM r WHERE CONCAT(' ', b, ' ') LIKE '% word7 %';
-- A snapshot from before the deletion.
--! connection old
SELECT COUNT(*) FROM r WHERE MATCH (b) AGAINST ('word7');
--! wait SELECT COALESCE(MAX(table_rows), 0) = 0 FROM information_schema.cheetah_tables WHERE table_name = '#removed_words'
--! end
COMMIT;
SELECT COUNT(*) FROM r WHERE MATCH (b) AGAINST ('word7');
BEGIN;
DELETE FROM r WHERE id > 50;
INSERT INTO r SELECT d.seq, GROUP_CONCAT(CONCAT('word', (d.seq * w.seq) % 97) ORDER BY w.seq SEPARATOR ' ') FROM seq_1_to_300 d, seq_1_to_40 w GROUP BY d.seq HAVING d.seq > 80;
REPLACE INTO r SELECT d.seq, GROUP_CONCAT(CONCAT('word', (d.seq * w.seq) % 97) ORDER BY w.seq SEPARATOR ' ') FROM seq_1_to_300 d, seq_1_to_40 w GROUP BY d.seq HAVING d.seq > 250;
COMMIT;
SELECT COUNT(*) FROM r WHERE MATCH (b) AGAINST ('word7');
SELECT COUNT(*) FROM r WHERE CONCAT(' ', b, ' ') LIKE '% word7 %';
--! wait SELECT COALESCE(MAX(table_rows), 0) = 0 FROM information_schema.cheetah_tables WHERE table_name = '#removed_words'
CHECK TABLE r EXTENDED;
--! end
