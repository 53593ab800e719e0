-- Words of prepared transactions become visible at their commit: XA PREPARE, a crash, then commit
-- or rollback. No index is built without the rows of prepared transactions.
--! cheetah-only
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(100), b TEXT, n INT NOT NULL DEFAULT 0, FULLTEXT ab (a, b));
INSERT INTO t VALUES (1, 'wordaa', 'wordbb', 0), (2, 'wordaa', 'wordcc', 0);
--! for VALUES ('x', 'UPDATE t SET a = ''worddd'' WHERE id = 1'), ('y', 'INSERT INTO t VALUES (3, ''wordee'', ''wordee'', 0)'), ('z', 'DELETE FROM t WHERE id = 2')
--! connection of_$1
XA START '$1';
$2;
XA END '$1';
XA PREPARE '$1';
--! end
--! kill
--! connection default
SELECT id FROM t WHERE MATCH (a, b) AGAINST ('wordaa worddd wordee') ORDER BY id;
SET cheetah_lock_wait_timeout = 1, lock_wait_timeout = 1;
ALTER TABLE t ADD FULLTEXT b (b);
XA COMMIT 'x';
XA COMMIT 'y';
XA ROLLBACK 'z';
ALTER TABLE t ADD FULLTEXT b (b);
-- Each index finds what LIKE finds in its columns.
--! for SELECT CONCAT('word', CHAR(96 + seq USING latin1), CHAR(96 + seq USING latin1)) FROM seq_1_to_10
SELECT (SELECT GROUP_CONCAT(id ORDER BY id) FROM t WHERE MATCH (a, b) AGAINST ('$1')) <=> (SELECT GROUP_CONCAT(id ORDER BY id) FROM t WHERE CONCAT_WS(' ', a, b) LIKE '%$1%') AS ab, (SELECT GROUP_CONCAT(id ORDER BY id) FROM t WHERE MATCH (b) AGAINST ('$1')) <=> (SELECT GROUP_CONCAT(id ORDER BY id) FROM t WHERE b LIKE '%$1%') AS b;
--! end
CHECK TABLE t EXTENDED;
SELECT id, a FROM t ORDER BY id;
--! end
