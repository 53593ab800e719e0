-- A secondary index returns the primary key's columns exactly as they were written. An update that
-- changes only their case leaves every key equal, but the entries of the secondary indexes must
-- change.
CREATE TABLE t (a CHAR(2) NOT NULL PRIMARY KEY, b VARCHAR(20) NOT NULL, v INT AS (LENGTH(b)) VIRTUAL, KEY (b), KEY (v));
INSERT INTO t (a, b) VALUES ('AB', 'first'), ('GO', 'second');
UPDATE t SET a = LCASE(a);
SELECT a, b FROM t FORCE INDEX (b) ORDER BY b;
SELECT a, v FROM t FORCE INDEX (v) ORDER BY v;
SELECT a FROM t FORCE INDEX (PRIMARY) ORDER BY a;
