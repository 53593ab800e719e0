"""Statements that load an empty table: beside ALTER TABLE, and with the binary log after kills."""

import threading
import time

from cheetah_tools import binlog
from cheetah_tools.say import note
from cheetah_tools.servertests import expect, wait_until

LOADERS = 3
ROWS = 6000
# More than 1 MiB, of which rows know the statement that has brought them.
FILL = "INSERT INTO {table} SELECT seq, {step}, CONCAT(MD5(seq + {step}), REPEAT('-', 150)) FROM seq_1_to_{rows}"


def fill_beside_alter(server) -> bool:
    """Fills the empty partition in the middle while indexes are added; whether it was done before they were."""
    failures = []

    def add():
        try:
            server.sql("ALTER TABLE t ADD INDEX c (c), ADD INDEX bc (b, c), ALGORITHM=NOCOPY, LOCK=NONE", "d")
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)

    adding = threading.Thread(target=add)
    adding.start()
    until = time.time() + 20
    while adding.is_alive() and time.time() < until:
        if server.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER TABLE t ADD%' AND PROGRESS > 0"):
            break
    server.sql("INSERT INTO t SELECT seq + 1000000, seq, CONCAT(MD5(seq), REPEAT('-', 150)) FROM seq_1_to_10000", "d")
    beside = adding.is_alive()
    adding.join(120)
    expect(not failures, f"ALTER TABLE: {failures}", server)
    return beside


def test_a_partition_is_loaded_while_indexes_are_built(context):
    """ALTER TABLE builds for one partition after the other: the empty one is filled meanwhile."""
    server = context.server({"loose_cheetah_buffer_pool_size": "32M"})
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(200)) ENGINE=CHEETAH PARTITION BY RANGE (a) "
               "(PARTITION x VALUES LESS THAN (1000000), PARTITION y VALUES LESS THAN (2000000), PARTITION z VALUES LESS THAN MAXVALUE)", "d")
    server.sql("INSERT INTO t SELECT seq, seq, MD5(seq) FROM seq_1_to_200000", "d")
    server.sql("INSERT INTO t SELECT seq + 5000000, seq, MD5(seq) FROM seq_1_to_100000", "d")
    for _ in range(3):
        beside = fill_beside_alter(server)
        counts = {server.value(f"SELECT COUNT(*) FROM d.t FORCE INDEX ({index}) WHERE {column} IS NOT NULL") for index, column in (("PRIMARY", "a"), ("c", "c"), ("bc", "b"))}
        expect(counts == {310000}, f"indexes have {counts} rows", server)
        for row in server.sql("CHECK TABLE d.t EXTENDED"):
            expect(row[3] == "OK", f"CHECK TABLE: {row}", server)
        if beside:
            break
        server.sql("ALTER TABLE t DROP INDEX c, DROP INDEX bc", "d")
        server.sql("ALTER TABLE t TRUNCATE PARTITION y", "d")
    else:
        note("the indexes were there before the rows, three times")
    server.stop()


class Loader(threading.Thread):
    """Empties and fills its table again and again, until the server is gone."""

    def __init__(self, server, number: int, step: int):
        super().__init__(daemon=True)
        self.server, self.table, self.step = server, f"t{number}", step
        # The load that was acknowledged last, the one that is being taken out, what went wrong.
        self.filled, self.truncating, self.failure = None, None, ""

    def run(self) -> None:
        import pymysql
        try:
            connection = self.server.connect("d", autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT MAX(b) FROM {self.table}")
                self.filled = cursor.fetchone()[0]
                while True:
                    self.step += 1
                    self.truncating, self.filled = self.filled, None
                    cursor.execute(f"TRUNCATE {self.table}")
                    self.truncating = None
                    cursor.execute(FILL.format(table=self.table, step=self.step, rows=ROWS))
                    self.filled = self.step
        except pymysql.MySQLError as failure:
            if failure.args[0] not in (0, 2003, 2006, 2013, 1053):
                self.failure = str(failure)
        except OSError:
            pass


def truncate_as_the_server_did(server, replica, loader) -> None:
    """The server writes TRUNCATE into its log when the engine has done it, and a kill may come between (with InnoDB, too):
    the table is empty then and the log still has the rows of the load before. Any other difference stays."""
    before = loader.truncating
    if before is None or server.value(f"SELECT COUNT(*) FROM d.{loader.table}") != 0:
        return
    if replica.sql(f"SELECT COUNT(*), MIN(b), MAX(b) FROM d.{loader.table}")[0] == (ROWS, before, before):
        replica.sql(f"TRUNCATE d.{loader.table}")


def test_loads_and_the_binary_log_agree_after_kills(context):
    """A load is there as a whole or not at all, and as the binary log says."""
    server, replica = context.server(binlog.OPTIONS), context.server()
    server.start()
    replica.start()
    server.sql("CREATE DATABASE d")
    tables = [f"t{number}" for number in range(LOADERS)]
    for table in tables:
        server.sql(f"CREATE TABLE d.{table} (a INT PRIMARY KEY, b INT, c VARCHAR(200), KEY (b, c)) ENGINE=CHEETAH")
    replayed, step, loads = set(), 0, 0
    for _ in range(max(3, context.rounds // 4)):
        loaders = [Loader(server, number, step) for number in range(LOADERS)]
        for loader in loaders:
            loader.start()
        time.sleep(context.rng.uniform(0.5, 1.5))
        if not loads:
            wait_until(lambda: server.status("Cheetah_loads") > 0, "nothing is loaded", server)
        loads += server.value("SELECT VARIABLE_VALUE + 0 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Cheetah_loads'")
        server.kill()
        for loader in loaders:
            loader.join(60)
            expect(not loader.failure, f"{loader.table}: {loader.failure}", server)
        server.start()
        for loader in loaders:
            found = server.sql(f"SELECT COUNT(*), MIN(b), MAX(b) FROM d.{loader.table}")[0]
            if loader.filled is not None:
                expect(found[1] == loader.filled, f"{loader.table}: load {loader.filled} was acknowledged, and there is {found}", server)
            expect(found[0] in (0, ROWS) and found[1] == found[2], f"{loader.table} has a part of a load: {found}", server)
            expect(server.value(f"SELECT COUNT(*) FROM d.{loader.table} FORCE INDEX (b) WHERE b >= 0") == found[0], f"{loader.table}: an index differs", server)
            verdict = server.sql(f"CHECK TABLE d.{loader.table} EXTENDED")[-1][3]
            expect(verdict == "OK", f"CHECK TABLE: {verdict}", server)
        step = max(loader.step for loader in loaders)
        files = binlog.closed_files(server)
        binlog.replay(server, replica, [name for name in files if name not in replayed])
        replayed.update(files)
        for loader in loaders:
            truncate_as_the_server_did(server, replica, loader)
        sums = [{table: each.sql(f"CHECKSUM TABLE d.{table}")[0][1] for table in tables} for each in (server, replica)]
        expect(sums[0] == sums[1], f"the replayed binary log gives other tables: {sums}", server)
    expect(loads > 0, "nothing was loaded", server)
    server.stop()
    replica.stop()
