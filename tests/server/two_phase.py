"""Two-phase commit: after kill -9 the engine agrees with the binary log and with InnoDB, and what XA has prepared waits.

`make servertests ARGS="two_phase --rounds 400"` kills a hundred times.
"""

import struct
import threading
import time

from cheetah_tools import binlog
from cheetah_tools.say import note
from cheetah_tools.servertests import expect, wait_until

CLIENTS = 6
# Of the binary log's files: time, kind, server, length, position, flags.
BINLOG_MAGIC, EVENT_HEADER, XID_EVENT = b"\xfebin", struct.Struct("<IBIIIH"), 16
COLUMNS = "(a INT PRIMARY KEY, b INT, c LONGTEXT, KEY (b))"


def create_pair(server, number: int) -> None:
    """A table of each engine for one client."""
    for prefix, engine in (("c", "CHEETAH"), ("i", "InnoDB")):
        server.sql(f"CREATE TABLE d.{prefix}{number} {COLUMNS} ENGINE={engine} ROW_FORMAT=DYNAMIC")


class Client(threading.Thread):
    """Commits transactions that change its two tables alike, until the server is gone."""

    def __init__(self, server, number: int, rng):
        super().__init__(daemon=True)
        self.server, self.number, self.rng = server, number, rng
        self.acknowledged, self.failure = 0, ""

    def run(self) -> None:
        import pymysql
        try:
            connection = self.server.connect("d", autocommit=False)
            with connection.cursor() as cursor:
                while True:
                    step = self.acknowledged + 1
                    for text in self.changes(step):
                        for prefix in "ci":
                            cursor.execute(text.replace("TABLE", f"{prefix}{self.number}"))
                    connection.commit()
                    self.acknowledged = step
        except pymysql.MySQLError as failure:
            if failure.args[0] not in (0, 2003, 2006, 2013, 1053):
                self.failure = str(failure)
        except OSError:
            pass

    def changes(self, step: int) -> list:
        """The statements of one transaction; row 0 counts the transactions."""
        rng = self.rng
        size = rng.choice([10, 100, 3000, 40000])
        texts = [f"REPLACE INTO TABLE VALUES (0, {step}, '')",
                 f"REPLACE INTO TABLE VALUES ({rng.randint(1, 300)}, {step}, REPEAT('{step},', {size // 5}))"]
        if rng.random() < 0.3:
            texts.append(f"DELETE FROM TABLE WHERE a BETWEEN {rng.randint(1, 300)} AND {rng.randint(1, 300)}")
        if rng.random() < 0.3:
            texts.append(f"UPDATE TABLE SET c = CONCAT(c, 'x') WHERE b % 7 = {rng.randint(0, 6)} AND a > 0")
        return texts


def kill_under_load(server, clients: list, seconds: float) -> None:
    """Let the clients work for a while, then SIGKILL."""
    for client in clients:
        client.start()
    time.sleep(seconds)
    expect(not server.died(), "the server ended by itself", server)
    server.kill()
    for client in clients:
        client.join(60)
        expect(not client.failure, f"client {client.number}: {client.failure}", server)


def checksums(server, tables: list) -> dict:
    """CHECKSUM TABLE of each."""
    return {name: server.sql(f"CHECKSUM TABLE d.{name}")[0][1] for name in tables}


def count_found_prepared(server, log_bytes: int) -> int:
    """How many transactions the engine told of at the last start."""
    text = server.log.read_bytes()[log_bytes:].decode(errors="replace")
    lines = [line for line in text.splitlines() if "prepared transaction(s) in CHEETAH" in line]
    return sum(int(line.split("Found ")[1].split()[0]) for line in lines)


def test_engine_binlog_and_innodb_agree_after_kills_under_load(context):
    """Each transaction changes a CHEETAH and an InnoDB table alike; the binary log is replayed into a second server."""
    server, replica = context.server(binlog.OPTIONS), context.server()
    server.start()
    replica.start()
    server.sql("CREATE DATABASE d")
    tables = [f"{prefix}{number}" for number in range(CLIENTS) for prefix in "ci"]
    for number in range(CLIENTS):
        create_pair(server, number)
    replayed, prepared, commits = set(), 0, 0
    acknowledged = dict.fromkeys(range(CLIENTS), 0)
    for _ in range(max(3, context.rounds // 4)):
        clients = [Client(server, number, context.rng) for number in range(CLIENTS)]
        for client in clients:
            client.acknowledged = acknowledged[client.number]
        kill_under_load(server, clients, context.rng.uniform(0.3, 1.5))
        log_bytes = server.log.stat().st_size
        server.start()
        prepared += count_found_prepared(server, log_bytes)
        expect(not waiting(server), "a transaction of the server's own is left prepared", server)
        for client in clients:
            kept = {prefix: server.value(f"SELECT COALESCE(MAX(b), 0) FROM d.{prefix}{client.number} WHERE a = 0") for prefix in "ci"}
            expect(kept["c"] == kept["i"], f"client {client.number}: CHEETAH has transaction {kept['c']}, InnoDB {kept['i']}", server)
            expect(client.acknowledged <= kept["c"] <= client.acknowledged + 1,
                   f"client {client.number}: {client.acknowledged} were acknowledged, {kept['c']} are there", server)
            commits += kept["c"] - acknowledged[client.number]
            acknowledged[client.number] = kept["c"]
            verdict = server.sql(f"CHECK TABLE d.c{client.number} EXTENDED")[-1][3]
            expect(verdict == "OK", f"CHECK TABLE: {verdict}", server)
        mine = checksums(server, tables)
        expect(all(mine[f"c{n}"] == mine[f"i{n}"] for n in range(CLIENTS)), f"CHEETAH and InnoDB differ: {mine}", server)
        files = binlog.closed_files(server)
        binlog.replay(server, replica, [name for name in files if name not in replayed])
        replayed.update(files)
        expect(checksums(replica, tables) == mine, "the replayed binary log gives other tables", server)
    note(f"{commits} transactions, {prepared} found prepared at a start")
    server.stop()
    replica.stop()


def send(server, text: str) -> threading.Thread:
    """Run statements on a connection of their own, as far as the server lives."""
    def run():
        import pymysql
        try:
            connection = server.connect("d", autocommit=False)
            with connection.cursor() as cursor:
                for statement in text.split(";"):
                    cursor.execute(statement)
        except (pymysql.MySQLError, OSError):
            pass
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def newest_binlog(server) -> bytes:
    """The content of the newest file of the binary log, read behind the server's back."""
    return max(server.data.glob("binlog.[0-9]*")).read_bytes()


def commits_in(content: bytes) -> int:
    """Transactions that are wholly in a file of the binary log: their last events."""
    at, count = len(BINLOG_MAGIC), 0
    while at + EVENT_HEADER.size <= len(content):
        _, kind, _, length, _, _ = EVENT_HEADER.unpack_from(content, at)
        if length < EVENT_HEADER.size or at + length > len(content):
            break
        count += kind == XID_EVENT
        at += length
    return count


def test_recovery_asks_the_binlog(context):
    """Transactions stand still between two steps of their commit: a master that waits for a replica that does not exist holds
    them after the sync of the binary log. The first two are in it, and committed by the recovery; the third is only
    prepared, and rolled back."""
    server = context.server(binlog.OPTIONS)
    server.start()
    server.sql("CREATE DATABASE d")
    for number in range(3):
        create_pair(server, number)
    for text in ("wait_point = 'AFTER_SYNC'", "timeout = 600000", "enabled = 1"):
        server.sql(f"SET GLOBAL rpl_semi_sync_master_{text}")
    threads, before = [], commits_in(newest_binlog(server))
    for number in range(3):
        row = "VALUES (1, 1, REPEAT('x', 30000))"
        threads.append(send(server, f"INSERT INTO c{number} {row};INSERT INTO i{number} {row};COMMIT"))
        wait_until(lambda: server.status("Cheetah_prepares") > number, "the transaction was not prepared", server)
        expect(server.status("Cheetah_prepares") == number + 1, "another one was prepared", server)
        if number < 2:
            # On to where it stands still. It keeps the binary log from all behind it then, so nobody may ask the server for that; the third one waits
            # for the second.
            wait_until(lambda: commits_in(newest_binlog(server)) == before + number + 1, "the transaction did not come into the binary log", server)
    expect(server.status("Cheetah_transactions_prepared") == 3, "a transaction has not stood still", server)
    log_bytes = server.log.stat().st_size
    server.kill()
    for thread in threads:
        thread.join(30)
    server.start()
    expect(count_found_prepared(server, log_bytes) == 3, "the recovery was not told of all prepared transactions", server)
    there = [[server.value(f"SELECT COUNT(*) FROM d.{prefix}{number}") for number in range(3)] for prefix in "ci"]
    expect(there == [[1, 1, 0], [1, 1, 0]], f"CHEETAH and InnoDB have {there}", server)
    server.sql("INSERT INTO d.c2 VALUES (1, 1, '')")
    server.stop()


def waiting(server) -> list:
    """The global parts of the XIDs that XA RECOVER tells, sorted."""
    names = [row[3] for row in server.sql("XA RECOVER")]
    return sorted(name.decode() if isinstance(name, bytes) else name for name in names)


def expect_error(cursor, text: str, number: int) -> None:
    """The statement fails with that number."""
    import pymysql
    found = 0
    try:
        cursor.execute(text)
    except pymysql.MySQLError as failure:
        found = failure.args[0]
    expect(found == number, f"{text}: error {found} instead of {number}")


def test_what_xa_has_prepared_waits_after_kills(context):
    """With and without the client, in one engine and in two; its locks are there, and it ends as it is told."""
    server = context.server({"loose_cheetah_lock_wait_timeout": 1, "innodb_lock_wait_timeout": 1})
    server.start()
    server.sql("CREATE DATABASE d")
    names = ["commit", "roll back", "both", "gone"]
    for number in range(4):
        create_pair(server, number)
        server.sql(f"INSERT INTO d.c{number} SELECT seq, seq, REPEAT('r', seq * 10) FROM seq_1_to_500", "d")
    before = checksums(server, [f"c{number}" for number in range(4)])
    connections = []
    for number, name in enumerate(names):
        connections.append(server.connect("d"))
        with connections[-1].cursor() as cursor:
            for text in (f"XA START '{name}'", f"UPDATE c{number} SET b = -b, c = REPEAT('u', 20000) WHERE a <= 50",
                         f"DELETE FROM c{number} WHERE a > 400", *([f"INSERT INTO i{number} VALUES (1, 1, '')"] * (name == "both")),
                         f"XA END '{name}'", f"XA PREPARE '{name}'"):
                cursor.execute(text)
    connections[-1].close()
    for _ in range(2):
        server.kill()
        server.start()
        expect(waiting(server) == sorted(names), f"XA RECOVER tells of {waiting(server)}", server)
        expect(server.status("Cheetah_transactions_prepared") == 4, "the status tells of another number", server)
        connection = server.connect("d")
        with connection.cursor() as cursor:
            for text in ("INSERT INTO c0 VALUES (401, 1, '')", "UPDATE c1 SET b = 0 WHERE a = 1", "DROP TABLE c2", "TRUNCATE TABLE c3"):
                expect_error(cursor, text, 1205)
        connection.close()
    server.sql("XA COMMIT 'commit'")
    server.sql("XA ROLLBACK 'roll back'")
    server.sql("XA COMMIT 'both'")
    server.kill()
    server.start()
    expect(waiting(server) == ["gone"], "what was decided is asked again", server)
    server.sql("XA ROLLBACK 'gone'")
    after = checksums(server, list(before))
    expect(after["c1"] == before["c1"] and after["c3"] == before["c3"], "what was rolled back has left something", server)
    for name in ("c0", "c2"):
        sums = server.sql(f"SELECT COUNT(*), SUM(b < 0), SUM(LENGTH(c) = 20000) FROM d.{name}")[0]
        expect(tuple(map(int, sums)) == (400, 50, 50), f"{name} has {sums}", server)
        expect(server.sql(f"CHECK TABLE d.{name} EXTENDED")[-1][3] == "OK", f"CHECK TABLE {name}", server)
    expect(server.value("SELECT COUNT(*) FROM d.i2") == 1, "the row of the other engine is missing", server)
    server.stop()


def test_an_idle_server_lets_go_of_old_binlogs(context):
    """The engine makes durable what it is asked to at once, with nobody committing."""
    server = context.server(binlog.OPTIONS)
    server.start()
    server.sql("CREATE DATABASE d")
    create_pair(server, 0)
    server.sql("INSERT INTO d.c0 VALUES (1, 1, '')")
    for _ in range(2):
        server.sql("FLUSH BINARY LOGS")
    newest = server.sql("SHOW BINARY LOGS")[-1][0]

    def is_told() -> bool:
        return any(row[2] == "Binlog_checkpoint" and row[5] == newest for row in server.sql(f"SHOW BINLOG EVENTS IN '{newest}'"))
    wait_until(is_told, f"{newest} is not the oldest binary log that a recovery needs", server)
    server.stop()


def test_installed_in_a_running_server_it_says_what_it_cannot(context):
    """Without two-phase commit changes in XA transactions are refused; what waits from before is told of."""
    server = context.server()
    server.start()
    server.sql("CREATE DATABASE d")
    create_pair(server, 0)
    connection = server.connect("d")
    with connection.cursor() as cursor:
        for text in ("XA START 'x'", "INSERT INTO c0 VALUES (1, 1, '')", "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(text)
    server.kill()
    plugin, server.plugin = server.plugin, False
    server.options["plugin_maturity"] = "unknown"
    server.start()
    server.sql("INSTALL SONAME 'ha_cheetah'")
    expect("1 prepared transaction" in server.log_tail(30), "the log does not tell of the prepared transaction", server)
    connection = server.connect("d")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a INT) ENGINE=CHEETAH")
        cursor.execute("XA START 'y'")
        expect_error(cursor, "INSERT INTO t VALUES (1)", 1235)
    connection.close()
    server.sql("UNINSTALL SONAME 'ha_cheetah'")
    server.stop()
    server.plugin = plugin
    server.start()
    expect(waiting(server) == ["x"], "the prepared transaction is not told of", server)
    server.sql("XA COMMIT 'x'")
    expect(server.value("SELECT COUNT(*) FROM d.c0") == 1, "the row is missing", server)
    server.stop()
