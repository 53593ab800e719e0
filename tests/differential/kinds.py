"""Statements on tables of all kinds, most of which do not suit the table that they meet.

A handful of names stand for whatever was made last under them: tables, temporary ones, sequences,
views, partitioned and system-versioned tables, copies of one another. Statements are drawn without
a look at what a name is. Both engines must give the same answer or the same error, and the server
must survive. SELECT alone tells the rows of a table, so nothing here asks for sizes. Left out
are FULLTEXT keys, which InnoDB does not have in temporary tables, and foreign keys, which Cheetah
does not have in system-versioned ones: each has a test of its own. A transaction is begun only
where none is open: to InnoDB a sequence that was read is one.
"""

import re

from statements import Statement
from twins import RECONNECT

# Waits for prepared XA transactions that nobody is connected to end soon.
OPTIONS = {"innodb_lock_wait_timeout": 1, "cheetah_lock_wait_timeout": 1, "lock_wait_timeout": 1}
COMPARE_EVERY = 100
NAMES = [f"t{number}" for number in range(1, 7)]
ROWS_MAX = 40

COLUMNS = "id INT PRIMARY KEY, a INT, b VARCHAR(30), KEY a (a)"
DEFINITIONS = [
    f"TABLE {{t}} ({COLUMNS})",
    f"TABLE {{t}} ({COLUMNS})",
    "TABLE {t} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(30), UNIQUE KEY a (a))",
    "TABLE {t} (id INT, a INT, b VARCHAR(30))",
    "TABLE {t} (id INT, a INT, b TEXT, KEY a (a), KEY b (b(5)))",
    "TABLE {t} (id INT PRIMARY KEY, a INT, b TEXT, v INT AS (a + 1), KEY v (v))",
    "TABLE {t} (id INT PRIMARY KEY, a INT DEFAULT 7 CHECK (a < 50), b VARCHAR(30))",
    "TABLE {t} (id INT PRIMARY KEY, a INT, b VARCHAR(30), UNIQUE (b) USING HASH)",
    "TABLE {t} LIKE {u}",
    "TABLE {t} LIKE {u}",
    "TABLE {t} AS SELECT * FROM {u}",
    "TABLE {t} (KEY (id)) AS SELECT id, a, b FROM {u}",
    "TABLE IF NOT EXISTS {t} LIKE {u}",
    "SEQUENCE {t} START WITH 5 CACHE 3",
    "SEQUENCE {t} INCREMENT BY -2 NOCACHE",
    "SEQUENCE IF NOT EXISTS {t}",
]
PERMANENT = [
    f"TABLE {{t}} ({COLUMNS}) PARTITION BY HASH (id) PARTITIONS 3",
    f"TABLE {{t}} ({COLUMNS}) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (20),"
    " PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "TABLE {t} (id INT, a INT, b VARCHAR(30)) WITH SYSTEM VERSIONING",
    "VIEW {t} AS SELECT id, a, b FROM {u}",
    "VIEW {t} AS SELECT x.id, y.a, x.b FROM {u} x JOIN {u} y ON x.id = y.a",
    "ALGORITHM=TEMPTABLE VIEW {t} AS SELECT id, a, b FROM {u}",
]
ROUTINES = [
    "CREATE OR REPLACE FUNCTION fn() RETURNS INT BEGIN INSERT INTO {t} VALUES ({n}, {n}, 'f');"
    " RETURN (SELECT COUNT(*) FROM {u}); END",
    "CREATE OR REPLACE FUNCTION fn() RETURNS INT BEGIN DECLARE x INT;"
    " CREATE TEMPORARY TABLE in_fn (id INT PRIMARY KEY); INSERT INTO in_fn VALUES (1), ({n});"
    " SELECT COUNT(*) INTO x FROM in_fn; DROP TEMPORARY TABLE in_fn; RETURN x; END",
    "CREATE OR REPLACE FUNCTION fn() RETURNS INT RETURN NEXTVAL({t})",
    "CREATE OR REPLACE PROCEDURE pr() BEGIN CREATE OR REPLACE TEMPORARY TABLE {t} LIKE {u};"
    " INSERT INTO {t} SELECT * FROM {u}; SELECT COUNT(*) FROM {t}; END",
    "CREATE OR REPLACE PROCEDURE pr() BEGIN CREATE OR REPLACE TEMPORARY SEQUENCE {t};"
    " SELECT NEXTVAL({t}); DROP TEMPORARY SEQUENCE {t}; END",
    "CREATE OR REPLACE PROCEDURE pr() BEGIN TRUNCATE TABLE {t}; INSERT INTO {t} VALUES ({n}, 1,"
    " 'p');"
    " SELECT COUNT(*) FROM {t}; END",
    "CREATE OR REPLACE TRIGGER tr AFTER INSERT ON {t} FOR EACH ROW INSERT INTO {u} VALUES"
    " (NEW.id, 1, 'tr')",
    "CREATE OR REPLACE TRIGGER tr BEFORE UPDATE ON {t} FOR EACH ROW DELETE FROM {u} WHERE id ="
    " OLD.id",
    "CREATE OR REPLACE TRIGGER tr BEFORE INSERT ON {t} FOR EACH ROW SET NEW.a = NEXTVAL({u})",
    "DROP TRIGGER IF EXISTS tr",
]
CHANGES = [
    "INSERT INTO {t} VALUES ({n}, {m}, 'v{n}')",
    "INSERT INTO {t} (id, a, b) VALUES ({n}, {m}, 'x'), ({m}, {n}, NULL)",
    "INSERT IGNORE INTO {t} (id, a, b) VALUES ({n}, {m}, 'x'), ({m}, {n}, 'y')",
    "INSERT INTO {t} (id, a, b) SELECT id + 1, a, b FROM {u} ORDER BY id",
    "INSERT INTO {t} (id, a, b) SELECT seq, seq % 7, 'seq' FROM seq_1_to_9",
    "INSERT INTO {t} (id, a, b) VALUES ({n}, {m}, 'd') ON DUPLICATE KEY UPDATE a = a + 1",
    "INSERT INTO {t} (a, b) VALUES ({m}, 'auto')",
    "INSERT INTO {t} VALUES (1, 1, 1000, 1, 1, 10, 0, 0)",
    "INSERT INTO {t} (id, a, b) VALUES ({n}, (SELECT MAX(a) FROM {u}), fn())",
    "REPLACE INTO {t} (id, a, b) VALUES ({n}, {m}, 'r')",
    "UPDATE {t} SET a = {m} WHERE id = {n}",
    "UPDATE {t} SET b = 'u' WHERE a < {m}",
    "UPDATE {t} x, {u} y SET x.b = 'two' WHERE x.id = y.a",
    "DELETE FROM {t} WHERE id > {n}",
    "DELETE FROM {t} WHERE a = {m} RETURNING id",
    "DELETE x FROM {t} x JOIN {u} y ON x.id = y.id WHERE y.a = {m}",
    "SELECT NEXTVAL({t})", "SELECT NEXTVAL({t}), NEXTVAL({t})", "SELECT LASTVAL({t})",
    "SELECT SETVAL({t}, {n})", "DO NEXTVAL({t})", "CALL pr()", "DO fn()", "SELECT fn()",
]
READS = [
    "SELECT id, a, b FROM {t}", "SELECT COUNT(*) FROM {t}", "SELECT * FROM {t}",
    "SELECT id FROM {t} WHERE a = {m}", "SELECT MAX(id), MIN(a) FROM {t}",
    "SELECT id FROM {t} FOR UPDATE", "SELECT id FROM {t} LOCK IN SHARE MODE",
    "SELECT id FROM {t} WHERE id = {n} FOR UPDATE SKIP LOCKED",
    "SELECT x.id, y.a FROM {t} x JOIN {u} y ON x.a = y.id",
    "SELECT id FROM {t} WHERE id IN (SELECT a FROM {u})",
    "SELECT COUNT(*) FROM {t} FOR SYSTEM_TIME ALL", "SELECT id FROM {t} PARTITION (p0)",
    "SELECT id FROM {t} WHERE MATCH (b) AGAINST ('seq')", "SELECT v FROM {t} WHERE v > {m}",
    "WITH c AS (SELECT id FROM {t}) SELECT COUNT(*) FROM c JOIN {u}",
]
SHOWN = ["SHOW CREATE TABLE {t}", "SHOW CREATE SEQUENCE {t}", "SHOW CREATE VIEW {t}",
         "SHOW FULL COLUMNS FROM {t}", "DESCRIBE {t}", "SHOW TRIGGERS LIKE '{t}'"]
# Their answers are each engine's own; errors must be the same.
KEPT_QUIET = [
    "CHECK TABLE {t}", "CHECK TABLE {t}, {u} EXTENDED", "CHECK TABLE {t} FOR UPGRADE",
    "CHECK VIEW {t}", "ANALYZE TABLE {t}", "ANALYZE TABLE {t} PERSISTENT FOR ALL",
    "OPTIMIZE TABLE {t}", "REPAIR TABLE {t}", "CHECKSUM TABLE {t}", "CHECKSUM TABLE {t}, {u}",
    "EXPLAIN SELECT * FROM {t} WHERE a = {m}", "EXPLAIN UPDATE {t} SET a = 1",
    "ANALYZE SELECT * FROM {t}", "SHOW INDEX FROM {t}", "SHOW TABLE STATUS LIKE '{t}'",
    "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()",
    "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE()",
    "SHOW TABLES",
]
DEFINED_ANEW = [
    "ALTER TABLE {t} ADD COLUMN c INT", "ALTER TABLE {t} ADD COLUMN c INT DEFAULT 3 FIRST",
    "ALTER TABLE {t} DROP COLUMN c", "ALTER TABLE {t} DROP COLUMN b",
    "ALTER TABLE {t} ADD INDEX i (a, b)", "ALTER TABLE {t} DROP INDEX i",
    "ALTER TABLE {t} DROP INDEX a", "ALTER TABLE {t} ADD UNIQUE INDEX u (id)",
    "ALTER TABLE {t} ADD PRIMARY KEY (id)", "ALTER TABLE {t} DROP PRIMARY KEY",
    "ALTER TABLE {t} FORCE", "ALTER TABLE {t} ADD INDEX i (b), ALGORITHM=COPY",
    "ALTER TABLE {t} COMMENT 'c'",
    "ALTER TABLE {t} MODIFY b VARCHAR(60)", "ALTER TABLE {t} MODIFY a BIGINT NOT NULL",
    "ALTER TABLE {t} AUTO_INCREMENT = 30", "ALTER TABLE {t} RENAME {u}",
    "ALTER TABLE {t} RENAME COLUMN b TO bb", "ALTER TABLE {t} RENAME COLUMN bb TO b",
    "ALTER TABLE {t} ADD SYSTEM VERSIONING", "ALTER TABLE {t} DROP SYSTEM VERSIONING",
    "ALTER TABLE {t} PARTITION BY HASH (id) PARTITIONS 2", "ALTER TABLE {t} REMOVE PARTITIONING",
    "ALTER TABLE {t} TRUNCATE PARTITION p0", "ALTER TABLE {t} COALESCE PARTITION 1",
    "ALTER TABLE {t} ADD PARTITION PARTITIONS 1", "ALTER TABLE {t} REBUILD PARTITION ALL",
    "ALTER TABLE {t} EXCHANGE PARTITION p0 WITH TABLE {u}",
    "ALTER TABLE {t} ADD CHECK (id < 1000)",
    "ALTER SEQUENCE {t} RESTART", "ALTER SEQUENCE {t} INCREMENT BY 3 MAXVALUE 1000 CYCLE",
    "ALTER SEQUENCE IF EXISTS {t} RESTART 77", "RENAME TABLE {t} TO {u}",
    "RENAME TABLE {t} TO other, {u} TO {t}, other TO {u}", "TRUNCATE TABLE {t}", "TRUNCATE {t}",
    "CREATE INDEX i ON {t} (b(3))", "DROP INDEX i ON {t}", "DROP TABLE {t}", "DROP TABLE {t}",
    "DROP TEMPORARY TABLE {t}", "DROP TEMPORARY TABLE IF EXISTS {t}", "DROP SEQUENCE {t}",
    "DROP TEMPORARY SEQUENCE {t}", "DROP VIEW {t}", "DROP TABLE IF EXISTS {t}, {u}",
    "FLUSH TABLES {t}", "FLUSH TABLES", "FLUSH TABLE {t} WITH READ LOCK",
]
AROUND = [
    "BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s",
    "RELEASE SAVEPOINT s", "START TRANSACTION READ ONLY",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "SET autocommit = 0", "SET autocommit = 1", "SET autocommit = 1",
    "SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE",
    "SET SESSION TRANSACTION READ WRITE",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "LOCK TABLES {t} WRITE", "LOCK TABLES {t} READ, {u} WRITE", "LOCK TABLES {t} READ LOCAL",
    "UNLOCK TABLES", "UNLOCK TABLES", "UNLOCK TABLES", "FLUSH TABLES WITH READ LOCK",
    "HANDLER {t} OPEN AS h", "HANDLER {t} OPEN", "HANDLER h READ FIRST", "HANDLER h READ NEXT",
    "HANDLER h READ a = ({m})", "HANDLER {t} READ FIRST LIMIT 3", "HANDLER h CLOSE",
    "HANDLER {t} CLOSE",
    "PREPARE p FROM 'SELECT id, a FROM {t} WHERE a < ?'", "EXECUTE p USING {m}",
    "PREPARE q FROM 'INSERT INTO {t} (id, a, b) VALUES (?, 1, NULL)'", "EXECUTE q USING {n}",
    "PREPARE r FROM 'CREATE TEMPORARY TABLE {t} LIKE {u}'",
    "PREPARE r FROM 'CREATE OR REPLACE TEMPORARY SEQUENCE {t}'",
    "PREPARE r FROM 'TRUNCATE TABLE {t}'",
    "PREPARE r FROM 'SELECT NEXTVAL({t})'", "EXECUTE r",
    "XA START '{{twin}}'", "XA END '{{twin}}'", "XA PREPARE '{{twin}}'", "XA COMMIT '{{twin}}'",
    "XA COMMIT '{{twin}}' ONE PHASE", "XA ROLLBACK '{{twin}}'", "XA ROLLBACK '{{twin}}'",
    "SET SESSION sql_safe_updates = {bit}", "SET SESSION foreign_key_checks = {bit}",
    "SET STATEMENT max_statement_time = 10 FOR SELECT COUNT(*) FROM {t}",
    "SET GLOBAL read_only = {bit}", "SET GLOBAL read_only = 0", "SET GLOBAL read_only = 0",
]


class Kinds:
    """An endless, seeded stream of statements on names that stand for anything."""

    def __init__(self, rng, folder):
        self.rng, self.folder = rng, folder
        self.tables = []    # that `Round` would compare
        self.steps = 0

    def settles(self, _innodb, _statement, _other) -> bool:
        """No answer here depends on the plan."""
        return False

    def next(self) -> list:
        """One statement, or now and then all that is there."""
        self.steps += 1
        if self.steps % COMPARE_EVERY == 0:
            return [Statement(f"SELECT * FROM {name}") for name in NAMES]
        roll = self.rng.random()
        if roll < 0.005:
            return [Statement(RECONNECT)]
        if roll < 0.2:
            return [Statement(self.create(), compare=nothing)]
        if roll < 0.23:
            return [Statement(self.filled(self.rng.choice(ROUTINES)), compare=nothing)]
        templates, compare, _weight = self.rng.choices(GROUPS, [group[-1] for group in GROUPS])[0]
        text = self.filled(self.rng.choice(templates))
        before = [Statement("COMMIT")] if text.startswith(("XA START", "SET TRANSACTION")) else []
        return [*before, Statement(text, compare=compare)]

    def create(self) -> str:
        """CREATE of anything, plain, temporary, or in the place of another."""
        temporary = self.rng.random() < 0.45
        words = "TEMPORARY " if temporary else ""
        body = self.rng.choice(DEFINITIONS if temporary else DEFINITIONS + PERMANENT)
        replace = "OR REPLACE " if self.rng.random() < 0.4 and "NOT EXISTS" not in body else ""
        return f"CREATE {replace}{words}" + self.filled(body)

    def filled(self, template: str) -> str:
        """A template with names and numbers."""
        rng = self.rng
        return template.format(t=rng.choice(NAMES), u=rng.choice(NAMES), n=rng.randint(1, ROWS_MAX),
                               m=rng.randint(1, 9), bit=rng.randint(0, 1))


def nothing(_left: list, _right: list) -> str:
    """Only errors are compared."""
    return ""


def shown_alike(left: list, right: list) -> str:
    """Definitions but for the name of the engine."""
    return "" if plain(left) == plain(right) else "definitions differ"


def plain(rows: list) -> str:
    """As text."""
    text = repr(rows).replace("right_twin", "left_twin")
    return re.sub(r"ENGINE ?= ?\w+", "ENGINE", text)


# Templates of statements on names, how their answers are compared, and how often they are drawn.
GROUPS = [(CHANGES, None, 30), (READS, None, 18), (SHOWN, shown_alike, 4), (KEPT_QUIET, nothing, 8),
          (DEFINED_ANEW, nothing, 14), (AROUND, None, 16)]
