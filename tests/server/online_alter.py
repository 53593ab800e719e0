"""Indexes that are added while others write: nobody waits for the build, and the index is right."""

import random
import threading
import time

from cheetah_tools.say import Failure
from cheetah_tools.servertests import expect

ROWS = 60000
WAIT_SECONDS = 60
# Transactions that have ended while indexes were added, and how many times as many builds may be needed for them where writers are starved.
MEANWHILE_MIN, MORE_BUILDS = 20, 10
ROWS_MAX = 3_200_000
ADD = "ALTER TABLE t ADD INDEX b (b), ADD INDEX cb (c, b(10)), ADD UNIQUE ca (c, a), ALGORITHM=NOCOPY, LOCK=NONE"
WRITES = ["UPDATE t SET b = MD5(RAND()), c = c + 1 WHERE a = {key}", "DELETE FROM t WHERE a = {key}",
          "INSERT IGNORE INTO t VALUES ({key}, MD5(RAND()), RAND() * 1000)", "UPDATE IGNORE t SET a = a + 100000 WHERE a = {key}"]


class Writer(threading.Thread):
    """Small transactions, of which every third is rolled back, until told to stop; keeps the longest time that one took."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.server, self.number, self.stop, self.done, self.failure, self.longest = server, number, False, 0, "", 0.0

    def run(self):
        import pymysql
        connection, rng = self.server.connect("d", autocommit=False), random.Random(self.number)
        while not self.stop and not self.failure:
            began = time.time()
            try:
                with connection.cursor() as cursor:
                    for statement in WRITES[self.number % 2:] + WRITES[:2]:
                        cursor.execute(statement.format(key=rng.randrange(ROWS)))
                (connection.rollback if self.done % 3 == 2 else connection.commit)()
            except pymysql.MySQLError as failure:
                connection.rollback()
                if failure.args[0] not in (1020, 1205, 1213, 1412):
                    self.failure = str(failure)
            self.done += 1
            self.longest = max(self.longest, time.time() - began)
        connection.close()


def until(server, question: str) -> None:
    """Wait until the answer to a question is not 0."""
    end = time.monotonic() + WAIT_SECONDS
    while server.value(question) == 0:
        expect(time.monotonic() < end, f"still 0 after {WAIT_SECONDS} s: {question}", server)
        time.sleep(0.005)


def test_writers_go_on_while_indexes_are_added(context):
    """Several builds, each under writers; what they leave is checked as a whole."""
    server = context.server({"loose_cheetah_buffer_pool_size": "16M"})
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c INT) ENGINE=CHEETAH", "d")
    server.sql(f"INSERT INTO t SELECT seq, MD5(seq), seq % 1000 FROM seq_1_to_{ROWS}", "d")
    writers = [Writer(server, number) for number in range(3)]
    for writer in writers:
        writer.start()
    meanwhile, builds, usual = 0, 0, max(3, context.rounds // 4)
    while builds < usual or (meanwhile <= MEANWHILE_MIN and builds < usual * MORE_BUILDS):
        builds += 1
        before = sum(writer.done for writer in writers)
        server.sql(ADD, "d")
        meanwhile += sum(writer.done for writer in writers) - before
        rows = server.sql("CHECK TABLE d.t EXTENDED")
        expect(rows[-1][3] == "OK", f"CHECK TABLE: {rows[-1]}", server)
        server.sql("ALTER TABLE t DROP INDEX b, DROP INDEX cb, DROP INDEX ca", "d")
    for writer in writers:
        writer.stop = True
    for writer in writers:
        writer.join(60)
        expect(not writer.failure, f"a writer failed: {writer.failure}", server)
    expect(meanwhile > MEANWHILE_MIN, f"only {meanwhile} transactions ended while indexes were added", server)
    server.sql(ADD, "d")
    counts = {server.value(f"SELECT COUNT(*) FROM d.t FORCE INDEX ({index}) WHERE {column} IS NOT NULL") for index, column in (("b", "b"), ("cb", "c"), ("ca", "c"))}
    expect(counts == {server.value("SELECT COUNT(*) FROM d.t")}, f"indexes have {counts} rows", server)
    server.stop()


def test_older_snapshots_and_open_transactions(context):
    """A snapshot of before is refused the new index and nothing else; an open writer is waited for."""
    import pymysql
    server = context.server()
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE other (a INT) ENGINE=CHEETAH", "d")
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c INT, KEY b (b)) ENGINE=CHEETAH", "d")
    server.sql("INSERT INTO t SELECT seq, MD5(seq), seq FROM seq_1_to_5000", "d")
    old, writer = server.connect("d", autocommit=False), server.connect("d", autocommit=False)
    with old.cursor() as cursor, writer.cursor() as writing:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        server.sql("DELETE FROM t WHERE a <= 100", "d")
        server.sql("ALTER TABLE t ADD INDEX c (c), ALGORITHM=NOCOPY, LOCK=NONE", "d")
        cursor.execute("SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > ''")
        expect(cursor.fetchone()[0] == 5000, "an index that was there shows another snapshot", server)
        try:
            cursor.execute("SELECT COUNT(*) FROM t FORCE INDEX (c) WHERE c > 0")
            expect(False, f"the new index shows {cursor.fetchone()} to an older snapshot", server)
        except pymysql.MySQLError as failure:
            expect(failure.args[0] == 1412, f"another error: {failure}", server)
        old.rollback()
        cursor.execute("SELECT COUNT(*) FROM t FORCE INDEX (c) WHERE c > 0")
        expect(cursor.fetchone()[0] == 4900, "the new index lacks rows", server)
        old.rollback()
        writing.execute("UPDATE t SET c = c + 100000 WHERE a > 4900")
        adding = threading.Thread(target=server.sql, args=("ALTER TABLE t ADD INDEX c2 (c, a), DROP INDEX c, ALGORITHM=NOCOPY, LOCK=NONE", "d"))
        adding.start()
        until(server, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'Waiting for table metadata lock'")
        writing.execute("UPDATE t SET c = c + 1 WHERE a = 4950")
        writer.commit()
        adding.join(WAIT_SECONDS)
        expect(not adding.is_alive(), "ALTER TABLE still waits", server)
    expect(server.value("SELECT SUM(c) FROM d.t FORCE INDEX (c2) WHERE c > 100000") == server.value("SELECT SUM(c) FROM d.t IGNORE INDEX (c2) WHERE c > 100000"),
           "the index lacks what was written meanwhile", server)
    for row in server.sql("CHECK TABLE d.t EXTENDED"):
        expect(row[3] == "OK", f"CHECK TABLE: {row}", server)
    server.stop()


def kill_build(server, statement: str) -> int:
    """Kill a statement when it has shown how far it is; the number of its error, 0 if it had ended before."""
    import pymysql
    worker, outcome = server.connect("d"), []

    def run():
        try:
            with worker.cursor() as cursor:
                cursor.execute(statement)
            outcome.append(0)
        except pymysql.MySQLError as failure:
            outcome.append(failure.args[0])

    building = threading.Thread(target=run, daemon=True)
    building.start()
    shown = f"SELECT COUNT(*) FROM information_schema.processlist WHERE id = {worker.thread_id()} AND progress > 0"
    while building.is_alive() and not server.value(shown):
        time.sleep(0.005)
    server.sql(f"KILL QUERY {worker.thread_id()}")
    building.join(WAIT_SECONDS)
    expect(not building.is_alive(), f"{statement}: goes on after KILL", server)
    worker.close()
    return outcome[0]


def test_a_killed_build_has_shown_how_far_it_was_and_leaves_nothing(context):
    """KILL in the middle of ADD INDEX and of ENABLE KEYS; the table is as it was, and so are the files' trees."""
    server = context.server()
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c INT, KEY off (c, b)) ENGINE=CHEETAH", "d")
    server.sql("ALTER TABLE t DISABLE KEYS", "d")
    server.sql("INSERT INTO t SELECT seq, MD5(seq), seq FROM seq_1_to_200000", "d")
    rows = 200000
    for statement, undo in (("ALTER TABLE t ADD INDEX b (b), ADD INDEX cb (c, b), ADD INDEX bc (b, c), ALGORITHM=NOCOPY, LOCK=NONE",
                             "ALTER TABLE t DROP INDEX b, DROP INDEX cb, DROP INDEX bc"), ("ALTER TABLE t ENABLE KEYS", "ALTER TABLE t DISABLE KEYS")):
        while (outcome := kill_build(server, statement)) == 0 and rows < ROWS_MAX:
            # On a busy machine it had ended before anybody saw how far it was, or before the kill came.
            server.sql(undo, "d")
            server.sql(f"INSERT INTO t SELECT seq, MD5(seq), seq FROM seq_{rows + 1}_to_{2 * rows}", "d")
            rows *= 2
        expect(outcome == 1317, f"{statement}: {outcome}", server)
        names = [row[2] for row in server.sql("SHOW INDEX FROM d.t")]
        expect(names == ["PRIMARY", "off", "off"], f"indexes after KILL: {names}", server)
    expect(server.sql("CHECK TABLE d.t EXTENDED")[-1][3] == "OK", "the table is damaged", server)
    until(server, "SELECT variable_value = 0 FROM information_schema.global_status WHERE variable_name = 'Cheetah_dropped_trees'")
    # Both keys come twice. Their trees are built at the same time, and the first index is named, as if they were not.
    server.sql("UPDATE t SET b = MD5(7), c = 7 WHERE a = 150000", "d")
    for _ in range(3):
        try:
            server.sql("ALTER TABLE t ADD UNIQUE ub (b), ADD UNIQUE uc (c), ADD INDEX cb (c, b), ALGORITHM=NOCOPY", "d")
            expect(False, "a key that comes twice was taken", server)
        except Failure as failure:
            expect("for key 'ub'" in str(failure), f"{failure}", server)
    server.sql("ALTER TABLE t ADD INDEX b (b), ADD INDEX cb (c, b), ADD UNIQUE ab (a, b), ALGORITHM=NOCOPY", "d")
    expect(server.sql("CHECK TABLE d.t EXTENDED")[-1][3] == "OK", "indexes that were built at the same time are not right", server)
    server.sql("ALTER TABLE t ENABLE KEYS, ALGORITHM=COPY", "d")
    expect(server.value("SELECT COUNT(*) FROM d.t FORCE INDEX (off) WHERE c > 0") == rows, "the index lacks rows", server)
    server.stop()


def test_a_prepared_transaction_is_waited_for_before_the_work(context):
    """XA PREPARE of a client that has gone keeps ADD INDEX waiting, and after a restart, too, until somebody decides."""
    import pymysql
    server = context.server({"loose_cheetah_lock_wait_timeout": 1, "lock_wait_timeout": 1})
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH", "d")
    server.sql("INSERT INTO t SELECT seq, seq FROM seq_1_to_1000", "d")
    connection = server.connect("d")
    with connection.cursor() as cursor:
        for statement in ("XA START 'x'", "DELETE FROM t WHERE a <= 10", "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)
    connection.close()
    add = "ALTER TABLE t ADD INDEX b (b), ALGORITHM=NOCOPY, LOCK=NONE"
    for restarts in (False, True):
        if restarts:
            server.stop()
            server.start()
        try:
            with server.connect("d") as waiting, waiting.cursor() as cursor:
                cursor.execute(add)
            expect(False, "the index was added beside a prepared transaction", server)
        except pymysql.MySQLError as failure:
            expect(failure.args[0] == 1205, f"another error: {failure}", server)
    server.sql("XA ROLLBACK 'x'")
    server.sql(add, "d")
    expect(server.value("SELECT COUNT(*) FROM d.t FORCE INDEX (b) WHERE b > 0") == 1000, "the index lacks rows", server)
    expect(server.sql("CHECK TABLE d.t EXTENDED")[-1][3] == "OK", "the table is damaged", server)
    server.stop()
