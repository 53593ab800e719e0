"""Information for tools about a statement: the page accesses that ANALYZE FORMAT=JSON and the slow
log show, and the State in SHOW PROCESSLIST while the engine waits, rolls back or builds indexes."""

import json
import time

import pytest
from servers import Client, run, Session, wait_until, working

ROWS = 40_000
SMALL = {"cheetah_buffer_pool_size": "16M", "cheetah_log_size_max": "64M"}


def analyzed(session, statement: str) -> dict:
    return json.loads(session.run(f"ANALYZE FORMAT=JSON {statement}")[0][0])


def engine_stats(session, statement: str) -> dict:
    """Returns `r_engine_stats` of the first table in a statement."""
    found = find(analyzed(session, statement), "r_engine_stats")
    assert found is not None, f"{statement} has no r_engine_stats"
    return found


def find(tree, name: str):
    if isinstance(tree, dict):
        if name in tree:
            return tree[name]
        tree = list(tree.values())
    if not isinstance(tree, list):
        return None
    return next((found for found in (find(part, name) for part in tree) if found is not None), None)


def filled(server, name: str = "t") -> None:
    """Creates a table that is larger than the cache of `SMALL`."""
    server.sql(f"CREATE TABLE d.{name} (a INT PRIMARY KEY, b INT, c VARCHAR(1000), KEY (b)) "
               "ENGINE=CHEETAH")
    server.sql(f"INSERT INTO d.{name} SELECT seq, seq % 100, CONCAT(MD5(seq), MD5(seq + 1), "
               f"REPEAT(MD5(seq + 2), 18)) FROM seq_1_to_{ROWS}", "d")


@pytest.mark.options(SMALL)
def test_analyze_shows_the_work_with_pages(server):
    filled(server)
    server.restart()
    with Session(server) as new, Session(server, autocommit=False) as old:
        scan = engine_stats(new, "SELECT SUM(LENGTH(c)) FROM t")
        assert scan["pages_accessed"] > 500, f"{scan}"
        assert scan["pages_prefetch_read_count"] > 500, f"{scan}"
        rows = engine_stats(new, "SELECT SUM(LENGTH(c)) FROM t FORCE INDEX (b) WHERE b = 5")
        assert rows["pages_accessed"] >= ROWS / 100, f"{rows}"
        assert 0 < rows["pages_read_count"] <= rows["pages_accessed"], f"{rows}"
        assert 0 < rows["pages_read_time_ms"] < 60_000, f"{rows}"
        old.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        changes = engine_stats(new, "UPDATE t SET b = b + 1 WHERE a < 100")
        assert changes["pages_updated"] >= 99 and "old_rows_read" not in changes, f"{changes}"
        versions = engine_stats(old, "SELECT SUM(b) FROM t WHERE a < 100")
        assert versions["old_rows_read"] == 99 and "pages_updated" not in versions, f"{versions}"
        point = engine_stats(new, "SELECT b FROM t WHERE a = 50")
        assert 0 < point.get("pages_accessed", 0) < 10, f"{point}"


def test_partitions_and_joins_count_for_their_own_tables(server):
    run(server, "CREATE TABLE p (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH "
        "PARTITION BY HASH (a) PARTITIONS 4", "CREATE TABLE one (a INT PRIMARY KEY) ENGINE=CHEETAH",
        "INSERT INTO p SELECT seq, seq FROM seq_1_to_2000", "INSERT INTO one VALUES (1), (2), (3)")
    with Session(server) as session:
        assert engine_stats(session, "SELECT SUM(b) FROM p")["pages_accessed"] >= 4
        shown = analyzed(session, "SELECT STRAIGHT_JOIN SUM(b) FROM one, p WHERE p.a = one.a")
        tables = {found["table"]["table_name"]: found["table"]["r_engine_stats"]
                  for found in shown["query_block"]["nested_loop"]}
        assert tables["p"]["pages_accessed"] >= 3 and tables["one"]["pages_accessed"] >= 1, tables


@pytest.mark.options({"slow_query_log": 1, "long_query_time": 0, "log_slow_verbosity": "engine",
                      "slow_query_log_file": "slow.log"})
def test_the_slow_log_shows_the_work_with_pages(server):
    run(server, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=CHEETAH",
        "INSERT INTO d.t VALUES (1), (2)")
    # The server writes the entry after the client has its answer.
    insert = wait_until(lambda: next((
        one for one in (server.data / "slow.log").read_text().split("# User@Host")
        if "INSERT INTO d.t" in one), None), "the statement in the slow log")
    line = next(line for line in insert.splitlines() if line.startswith("# Pages_accessed"))
    counts = dict(part.rsplit(": ", 1) for part in line.lstrip("# ").split("  "))
    assert int(counts["Pages_accessed"]) > 0 and int(counts["Pages_updated"]) > 0, f"{insert}"


def test_the_state_tells_of_rollbacks_and_of_indexes_that_are_built(server):
    filled(server)
    with Session(server, autocommit=False) as session:
        watcher = Watcher(server, session.id)
        with working([watcher]):
            session.run("ALTER TABLE t ADD KEY c (c(200))", "UPDATE t SET b = b + 1", "ROLLBACK")
        assert {"Building indexes", "Rolling back"} <= watcher.seen, f"{watcher.seen}"
        assert server.value("SELECT state FROM information_schema.processlist "
                            f"WHERE id = {session.id}") == ""


class Watcher(Client):
    """Collects the states of the connection whose ID is the watcher's number."""

    def begin(self, cursor) -> None:
        self.seen = set()

    def work(self, cursor) -> None:
        cursor.execute(f"SELECT state FROM information_schema.processlist WHERE id = {self.number}")
        self.seen.update(row[0] for row in cursor.fetchall())
        time.sleep(0.001)
