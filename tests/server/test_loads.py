"""Statements that load an empty table: during ALTER TABLE, and with the binary log after kills."""

import time

import binlog
import pytest
from cheetah_tools.say import note
from servers import Client, check_table, kill_beside, run, Sent, started, wait_until

LOADERS = 3
ROWS = 6000
# More than 1 MiB of rows. Each row has the number of the statement that inserted it.
FILL = ("INSERT INTO {table} SELECT seq, {step}, CONCAT(MD5(seq + {step}), REPEAT('-', 150)) "
        "FROM seq_1_to_{rows}")


def fill_beside_alter(server) -> bool:
    """Fills the empty partition. Returns whether this finished before the indexes."""
    adding = Sent(server.connect("d"), "ALTER TABLE t ADD INDEX c (c), ADD INDEX bc (b, c), "
                                       "ALGORITHM=NOCOPY, LOCK=NONE")
    until = time.time() + 20
    while adding.is_alive() and time.time() < until and not server.value(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE "
            "'ALTER TABLE t ADD%' AND PROGRESS > 0"):
        pass
    server.sql("INSERT INTO t SELECT seq + 1000000, seq, CONCAT(MD5(seq), REPEAT('-', 150)) "
               "FROM seq_1_to_10000", "d")
    beside = adding.is_alive()
    assert adding.ends() == 0, f"ALTER TABLE: {adding.failure}"
    return beside


@pytest.mark.options({"loose_cheetah_buffer_pool_size": "32M"})
def test_a_partition_is_loaded_while_indexes_are_built(server):
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(200)) ENGINE=CHEETAH PARTITION "
               "BY RANGE (a) (PARTITION x VALUES LESS THAN (1000000), PARTITION y VALUES LESS THAN "
               "(2000000), PARTITION z VALUES LESS THAN MAXVALUE)", "d")
    server.sql("INSERT INTO t SELECT seq, seq, MD5(seq) FROM seq_1_to_200000", "d")
    server.sql("INSERT INTO t SELECT seq + 5000000, seq, MD5(seq) FROM seq_1_to_100000", "d")
    for _ in range(3):
        beside = fill_beside_alter(server)
        counts = {server.value(f"SELECT COUNT(*) FROM d.t FORCE INDEX ({index}) WHERE {column} IS "
                               "NOT NULL")
                  for index, column in (("PRIMARY", "a"), ("c", "c"), ("bc", "b"))}
        assert counts == {310000}, f"indexes have {counts} rows"
        check_table(server, "d.t")
        if beside:
            break
        run(server, "ALTER TABLE t DROP INDEX c, DROP INDEX bc",
            "ALTER TABLE t TRUNCATE PARTITION y")
    else:
        note("the indexes were there before the rows, three times")


class Loader(Client):
    def __init__(self, server, number: int, step: int):
        super().__init__(server, number)
        self.table, self.step = f"t{number}", step
        # The acknowledged load, and the load being truncated.
        self.filled, self.truncating = None, None

    def begin(self, cursor) -> None:
        cursor.execute(f"SELECT MAX(b) FROM {self.table}")
        self.filled = cursor.fetchone()[0]

    def work(self, cursor) -> None:
        self.step += 1
        self.truncating, self.filled = self.filled, None
        cursor.execute(f"TRUNCATE {self.table}")
        self.truncating = None
        cursor.execute(FILL.format(table=self.table, step=self.step, rows=ROWS))
        self.filled = self.step


def truncate_as_the_server_did(server, replica, loader) -> None:
    """Repeats on the replica a TRUNCATE that the binary log lacks. The server logs TRUNCATE after
    the engine has executed it, and a kill may occur in between (with InnoDB, too). Then the table
    is empty, but the log still has the rows of the previous load. Any other difference is kept."""
    before = loader.truncating
    if before is None or server.value(f"SELECT COUNT(*) FROM d.{loader.table}") != 0:
        return
    found = replica.sql(f"SELECT COUNT(*), MIN(b), MAX(b) FROM d.{loader.table}")
    if found == [(ROWS, before, before)]:
        replica.sql(f"TRUNCATE d.{loader.table}")


@pytest.mark.options(binlog.OPTIONS)
def test_loads_and_the_binary_log_agree_after_kills(server, new_server, rng, rounds):
    replica = started(new_server())
    tables = [f"t{number}" for number in range(LOADERS)]
    run(server, *(f"CREATE TABLE {table} (a INT PRIMARY KEY, b INT, c VARCHAR(200), KEY (b, c)) "
                  "ENGINE=CHEETAH" for table in tables))
    replayed, step, loads = set(), 0, 0
    for _ in range(max(3, rounds // 4)):
        loaders = [Loader(server, number, step) for number in range(LOADERS)]
        for loader in loaders:
            loader.start()
        time.sleep(rng.uniform(0.5, 1.5))
        if not loads:
            wait_until(lambda: server.status("Cheetah_loads") > 0, "nothing is loaded")
        loads += server.value("SELECT VARIABLE_VALUE + 0 FROM information_schema.GLOBAL_STATUS "
                              "WHERE VARIABLE_NAME = 'Cheetah_loads'")
        kill_beside(server, loaders)
        server.start()
        for loader in loaders:
            found = server.sql(f"SELECT COUNT(*), MIN(b), MAX(b) FROM d.{loader.table}")[0]
            if loader.filled is not None:
                assert found[1] == loader.filled
            assert found[0] in (0, ROWS) and found[1] == found[2]
            assert server.value(f"SELECT COUNT(*) FROM d.{loader.table} FORCE INDEX (b) "
                                "WHERE b >= 0") == found[0], f"{loader.table}: an index differs"
            check_table(server, f"d.{loader.table}")
        step = max(loader.step for loader in loaders)
        binlog.replay_new(server, replica, replayed)
        for loader in loaders:
            truncate_as_the_server_did(server, replica, loader)
        sums = [{table: each.sql(f"CHECKSUM TABLE d.{table}")[0][1] for table in tables}
                for each in (server, replica)]
        assert sums[0] == sums[1], f"the replayed binary log gives other tables: {sums}"
    assert loads > 0, "nothing was loaded"
