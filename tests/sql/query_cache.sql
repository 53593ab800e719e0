-- The query cache never answers queries of the engine's tables: a change in another session is seen
-- at once.
CREATE TABLE t (a INT PRIMARY KEY, b INT);
INSERT INTO t VALUES (1, 1);
SET SESSION query_cache_type = 1;
SELECT SQL_CACHE * FROM t;
SELECT SQL_CACHE * FROM t;
--! cheetah-only
SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QCACHE_QUERIES_IN_CACHE';
--! end
--! connection other
UPDATE t SET b = 2;
BEGIN;
UPDATE t SET b = 3;
ROLLBACK;
--! connection default
SELECT SQL_CACHE * FROM t;
BEGIN;
UPDATE t SET b = 4;
SELECT SQL_CACHE * FROM t;
ROLLBACK;
SELECT SQL_CACHE * FROM t;
