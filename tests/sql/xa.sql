-- Changes in an XA transaction are refused: they could not be kept once it is prepared. Reading works.
CREATE TABLE t (a INT PRIMARY KEY) ENGINE=$ENGINE;
INSERT INTO t VALUES (1);
--! cheetah-only
XA START 'x1';
SELECT COUNT(*) FROM t;
INSERT INTO t VALUES (2);
XA END 'x1';
XA ROLLBACK 'x1';
SELECT COUNT(*) FROM t;
INSERT INTO t VALUES (3);
--! end
