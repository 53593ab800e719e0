"""Adds indexes while other connections write: no writer waits, and the indexes are correct."""

import time

import pytest
from cheetah_tools.say import Failure
from servers import Client, check_table, run, Session, wait_until, working

ROWS = 60000
WAIT_SECONDS = 60
# Transactions that must end while indexes are added, else up to `MORE_BUILDS` times as many builds.
MEANWHILE_MIN, MORE_BUILDS = 20, 10
ROWS_MAX = 3_200_000
ADD = ("ALTER TABLE t ADD INDEX b (b), ADD INDEX cb (c, b(10)), ADD UNIQUE ca (c, a), "
       "ALGORITHM=NOCOPY, LOCK=NONE")
WRITES = ["UPDATE t SET b = MD5(RAND()), c = c + 1 WHERE a = {key}",
          "DELETE FROM t WHERE a = {key}",
          "INSERT IGNORE INTO t VALUES ({key}, MD5(RAND()), RAND() * 1000)",
          "UPDATE IGNORE t SET a = a + 100000 WHERE a = {key}"]


class Writer(Client):
    autocommit, refusals = False, (1020, 1205, 1213, 1412)

    def work(self, cursor) -> None:
        for statement in WRITES[self.number % 2:] + WRITES[:2]:
            cursor.execute(statement.format(key=self.rng.randrange(ROWS)))
        (self.connection.rollback if self.done % 3 == 2 else self.connection.commit)()


@pytest.mark.options({"loose_cheetah_buffer_pool_size": "16M"})
def test_writers_go_on_while_indexes_are_added(server, rounds):
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c INT) ENGINE=CHEETAH", "d")
    server.sql(f"INSERT INTO t SELECT seq, MD5(seq), seq % 1000 FROM seq_1_to_{ROWS}", "d")
    writers = [Writer(server, number) for number in range(3)]
    meanwhile, builds, usual = 0, 0, max(3, rounds // 4)
    with working(writers):
        while builds < usual or (meanwhile <= MEANWHILE_MIN and builds < usual * MORE_BUILDS):
            builds += 1
            before = sum(writer.done for writer in writers)
            server.sql(ADD, "d")
            meanwhile += sum(writer.done for writer in writers) - before
            check_table(server, "t")
            server.sql("ALTER TABLE t DROP INDEX b, DROP INDEX cb, DROP INDEX ca", "d")
    assert meanwhile > MEANWHILE_MIN
    server.sql(ADD, "d")
    counts = {server.value(f"SELECT COUNT(*) FROM d.t FORCE INDEX ({index}) WHERE {column} IS NOT "
                           "NULL") for index, column in (("b", "b"), ("cb", "c"), ("ca", "c"))}
    assert counts == {server.value("SELECT COUNT(*) FROM d.t")}, f"indexes have {counts} rows"


def kill_build(server, statement: str) -> int:
    """Kills a statement once it shows progress. Returns its error, or 0 if it had ended."""
    with Session(server) as session:
        building = session.send(statement)
        shown = (f"SELECT COUNT(*) FROM information_schema.processlist WHERE id = {session.id} "
                 "AND progress > 0")
        while building.is_alive() and not server.value(shown):
            time.sleep(0.005)
        server.sql(f"KILL QUERY {session.id}")
        return building.ends(WAIT_SECONDS)


def test_a_killed_build_has_shown_how_far_it_was_and_leaves_nothing(server):
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c INT, KEY off (c, b)) "
        "ENGINE=CHEETAH", "ALTER TABLE t DISABLE KEYS",
        "INSERT INTO t SELECT seq, MD5(seq), seq FROM seq_1_to_200000")
    rows = 200000
    for statement, undo in (
            ("ALTER TABLE t ADD INDEX b (b), ADD INDEX cb (c, b), ADD INDEX bc (b, c), "
             "ALGORITHM=NOCOPY, LOCK=NONE", "ALTER TABLE t DROP INDEX b, DROP INDEX cb, "
             "DROP INDEX bc"), ("ALTER TABLE t ENABLE KEYS", "SET STATEMENT cheetah_disable_keys "
             "= ON FOR ALTER TABLE t DISABLE KEYS")):
        while (outcome := kill_build(server, statement)) == 0 and rows < ROWS_MAX:
            # On a busy machine the build ended before its progress was visible or before the kill.
            run(server, undo, "INSERT INTO t SELECT seq, MD5(seq), seq FROM "
                f"seq_{rows + 1}_to_{2 * rows}")
            rows *= 2
        assert outcome == 1317
        names = [row[2] for row in server.sql("SHOW INDEX FROM d.t")]
        assert names == ["PRIMARY", "off", "off"], f"indexes after KILL: {names}"
    check_table(server, "t")
    wait_until(lambda: server.status("Cheetah_dropped_trees") == 0, "trees are left")
    # Both keys have duplicates. Their trees grow concurrently, but the error names the first.
    server.sql("UPDATE t SET b = MD5(7), c = 7 WHERE a = 150000", "d")
    for _ in range(3):
        with pytest.raises(Failure, match="for key 'ub'"):
            server.sql("ALTER TABLE t ADD UNIQUE ub (b), ADD UNIQUE uc (c), ADD INDEX cb (c, b), "
                       "ALGORITHM=NOCOPY", "d")
    server.sql("ALTER TABLE t ADD INDEX b (b), ADD INDEX cb (c, b), ADD UNIQUE ab (a, b), "
               "ALGORITHM=NOCOPY", "d")
    check_table(server, "t")
    server.sql("ALTER TABLE t ENABLE KEYS, ALGORITHM=COPY", "d")
    assert server.value("SELECT COUNT(*) FROM d.t FORCE INDEX (off) WHERE c > 0") == rows
