"""Two-phase commit: after a kill the engine agrees with the binary log and with InnoDB, and XA's
prepared transactions remain. (`tests/sql/xa_after_kills.sql` tests XA within one server.)

`make servertests ARGS="two_phase --rounds 400"` kills a hundred times."""

import struct

import binlog
import pytest
from cheetah_tools.paths import FIRST_SERIES, SERIES
from cheetah_tools.say import note
from servers import Client, check_table, crash, kill_under, run, Session, started, wait_until

CLIENTS = 6
# The header fields of binary log events: time, type, server, length, position and flags.
BINLOG_MAGIC, EVENT_HEADER, XID_EVENT = b"\xfebin", struct.Struct("<IBIIIH"), 16
ENGINES = {"c": "CHEETAH", "i": "InnoDB"}
COLUMNS = "(a INT PRIMARY KEY, b INT, c LONGTEXT, KEY (b))"


def create_table(server, prefix: str, number: int) -> None:
    server.sql(f"CREATE TABLE d.{prefix}{number} {COLUMNS} ENGINE={ENGINES[prefix]} "
               "ROW_FORMAT=DYNAMIC")


def create_pair(server, number: int) -> None:
    for prefix in ENGINES:
        create_table(server, prefix, number)


class Changer(Client):
    autocommit = False

    def __init__(self, server, number: int, rng, acknowledged: int):
        super().__init__(server, number)
        self.rng, self.acknowledged = rng, acknowledged

    def work(self, cursor) -> None:
        step = self.acknowledged + 1
        for text in self.changes(step):
            for prefix in "ci":
                cursor.execute(text.replace("TABLE", f"{prefix}{self.number}"))
        self.connection.commit()
        self.acknowledged = step

    def changes(self, step: int) -> list:
        """Returns the statements of one transaction. Row 0 counts the transactions."""
        rng = self.rng
        size = rng.choice([10, 100, 3000, 40000])
        texts = [f"REPLACE INTO TABLE VALUES (0, {step}, '')",
                 "REPLACE INTO TABLE "
                 f"VALUES ({rng.randint(1, 300)}, {step}, REPEAT('{step},', {size // 5}))"]
        if rng.random() < 0.3:
            texts.append(f"DELETE FROM TABLE WHERE a BETWEEN {rng.randint(1, 300)} "
                         f"AND {rng.randint(1, 300)}")
        if rng.random() < 0.3:
            texts.append(f"UPDATE TABLE SET c = CONCAT(c, 'x') WHERE b % 7 = {rng.randint(0, 6)} "
                         "AND a > 0")
        return texts


def count_found_prepared(server, log_bytes: int) -> int:
    """Returns the number of prepared transactions that the engine reported at the last start."""
    text = server.log.read_bytes()[log_bytes:].decode(errors="replace")
    lines = [line for line in text.splitlines() if "prepared transaction(s) in CHEETAH" in line]
    return sum(int(line.split("Found ")[1].split()[0]) for line in lines)


def rebuild_if_corrupt(server, number: int) -> bool:
    """Returns whether InnoDB reports its table of a client as corrupt, and if so rebuilds the table
    from the other engine's. A kill of MariaDB 10.11.18 once left an InnoDB clustered index without
    a change that its secondary index had (docs/developers/proof.md, soak 1813)."""
    found = server.sql(f"CHECK TABLE d.i{number} EXTENDED")
    if all(row[2] != "error" for row in found):
        return False
    note(f"InnoDB lost changes of d.i{number}: {found}")
    server.sql(f"DROP TABLE d.i{number}")
    create_table(server, "i", number)
    server.sql(f"INSERT INTO d.i{number} SELECT * FROM d.c{number}")
    return True


@pytest.mark.options(binlog.OPTIONS)
def test_engine_binlog_and_innodb_agree_after_kills_under_load(server, new_server, rng, rounds):
    replica = started(new_server())
    for number in range(CLIENTS):
        create_pair(server, number)
    replayed, prepared, commits = set(), 0, 0
    acknowledged = dict.fromkeys(range(CLIENTS), 0)
    for _ in range(max(3, rounds // 4)):
        clients = [Changer(server, number, rng, acknowledged[number]) for number in range(CLIENTS)]
        kill_under(server, clients, rng.uniform(0.3, 1.5))
        log_bytes = server.log.stat().st_size
        server.start()
        prepared += count_found_prepared(server, log_bytes)
        assert not waiting(server), "a transaction of the server's own is left prepared"
        for client in clients:
            kept = server.value(f"SELECT COALESCE(MAX(b), 0) FROM d.c{client.number} WHERE a = 0")
            assert client.acknowledged <= kept <= client.acknowledged + 1
            commits += kept - acknowledged[client.number]
            acknowledged[client.number] = kept
            check_table(server, f"c{client.number}")
        binlog.replay_new(server, replica, replayed)
        compare(server, replica)
    note(f"{commits} transactions, {prepared} found prepared at a start")


def compare(server, replica) -> None:
    for number in range(CLIENTS):
        ours, theirs = (place.sql(f"CHECKSUM TABLE d.c{number}, d.i{number}")
                        for place in (server, replica))
        assert ours[0][1] == theirs[0][1] == theirs[1][1], \
            f"the replayed binary log gives other tables: {ours}, {theirs}"
        assert ours == theirs or rebuild_if_corrupt(server, number), \
            f"CHEETAH and InnoDB differ: {ours}"


def newest_binlog(server) -> bytes:
    """Returns the newest binary log from the disk (without 11.8's GTID index `binlog.*.idx`)."""
    return max(server.data.glob("binlog.*[0-9]")).read_bytes()


def commits_in(content: bytes) -> int:
    """Returns the number of transactions complete in a binary log, by their last events."""
    at, count = len(BINLOG_MAGIC), 0
    while at + EVENT_HEADER.size <= len(content):
        _, kind, _, length, _, _ = EVENT_HEADER.unpack_from(content, at)
        if length < EVENT_HEADER.size or at + length > len(content):
            break
        count += kind == XID_EVENT
        at += length
    return count


@pytest.mark.options(binlog.OPTIONS)
def test_recovery_asks_the_binlog(server):
    """After it has synced the binary log, a semi-synchronous master waits for a replica, which does
    not exist here. So three transactions stop between two steps of their commit. The first two are
    in the binary log, and recovery commits them. The third is only prepared and is rolled back."""
    for number in range(3):
        create_pair(server, number)
    run(server, *(f"SET GLOBAL rpl_semi_sync_master_{text}" for text in
                  ("wait_point = 'AFTER_SYNC'", "timeout = 600000", "enabled = 1")))
    threads, before = [], commits_in(newest_binlog(server))
    for number in range(3):
        row = "VALUES (1, 1, REPEAT('x', 30000))"
        threads.append(Session(server, autocommit=False).send(
            f"INSERT INTO c{number} {row}", f"INSERT INTO i{number} {row}", "COMMIT"))
        wait_until(lambda: server.status("Cheetah_prepares") > number,
                   "the transaction was not prepared")
        assert server.status("Cheetah_prepares") == number + 1, "another one was prepared"
        if number < 2:
            # Wait until the transaction has stopped. A stopped transaction blocks all later access
            # to the binary log, so the server cannot be queried for the log's state. The third
            # transaction waits for the second.
            wait_until(lambda: commits_in(newest_binlog(server)) == before + number + 1,
                       "the transaction did not come into the binary log")
    assert server.status("Cheetah_transactions_prepared") == 3, "a transaction has not stood still"
    log_bytes = server.log.stat().st_size
    server.kill()
    for sent in threads:
        sent.ends()
    server.start()
    assert count_found_prepared(server, log_bytes) == 3
    there = [[server.value(f"SELECT COUNT(*) FROM d.{prefix}{number}") for number in range(3)]
             for prefix in "ci"]
    assert there == [[1, 1, 0], [1, 1, 0]], f"CHEETAH and InnoDB have {there}"
    server.sql("INSERT INTO d.c2 VALUES (1, 1, '')")


def waiting(server) -> list:
    names = [row[3] for row in server.sql("XA RECOVER")]
    return sorted(name.decode() if isinstance(name, bytes) else name for name in names)


@pytest.mark.options(binlog.OPTIONS)
def test_an_idle_server_lets_go_of_old_binlogs(server):
    """The engine makes transactions durable at once on request, without further commits."""
    create_pair(server, 0)
    server.sql("INSERT INTO d.c0 VALUES (1, 1, '')")
    run(server, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    newest = server.sql("SHOW BINARY LOGS")[-1][0]

    def is_told() -> bool:
        return any(row[2] == "Binlog_checkpoint" and row[5] == newest
                   for row in server.sql(f"SHOW BINLOG EVENTS IN '{newest}'"))
    wait_until(is_told, f"{newest} is not the oldest binary log that a recovery needs")


# Two-phase commit needs a coordinator, which a running server cannot start. 10.11 has a coordinator
# with two engines, or with one engine and the binary log. 11.8 counts two of its own components as
# engines and requires more than these two, so one engine is enough.
NO_COORDINATOR = ({} if SERIES == FIRST_SERIES else
                  {"skip_innodb": None, "default_storage_engine": "Aria"})
COORDINATOR = {"binlog": binlog.OPTIONS, **({} if SERIES == FIRST_SERIES else {"none": {}})}


def test_installed_in_a_running_server_it_says_what_it_cannot(server):
    create_pair(server, 0)
    Session(server).run("XA START 'x'", "INSERT INTO c0 VALUES (1, 1, '')", "XA END 'x'",
                        "XA PREPARE 'x'")
    server.kill()
    plugin, options = server.plugin, server.options
    server.plugin, server.options = False, {**options, **NO_COORDINATOR}
    server.start()
    server.sql("INSTALL SONAME 'ha_cheetah'")
    assert "1 prepared transaction" in server.log_tail(30)
    with Session(server) as session:
        session.run("CREATE TABLE t (a INT) ENGINE=CHEETAH", "XA START 'y'")
        assert session.error("INSERT INTO t VALUES (1)") == 1235
    server.sql("UNINSTALL SONAME 'ha_cheetah'")
    server.stop()
    server.plugin, server.options = plugin, options
    server.start()
    assert waiting(server) == ["x"], "the prepared transaction is not told of"
    server.sql("XA COMMIT 'x'")
    assert server.value("SELECT COUNT(*) FROM d.c0") == 1, "the row is missing"


@pytest.mark.parametrize("options", COORDINATOR.values(), ids=COORDINATOR)
def test_installed_in_a_running_server_that_coordinates_it_takes_part(new_server, options):
    """Transactions prepared with XA, in one engine and in two, are still prepared after a kill.
    (InnoDB does not take part in the transaction that is rolled back: it does not sync XA ROLLBACK,
    so after the next kill that transaction would be prepared again.)"""
    server = started(new_server(options, plugin=False), "INSTALL SONAME 'ha_cheetah'",
                     "CREATE DATABASE d")
    names = ["both", "one", "roll back"]
    for number, name in enumerate(names):
        create_pair(server, number)
        with server.cursor("d") as cursor:
            for text in (f"XA START '{name}'", f"INSERT INTO c{number} VALUES (1, 1, '')",
                         *([f"INSERT INTO i{number} VALUES (1, 1, '')"] * (name == "both")),
                         f"XA END '{name}'", f"XA PREPARE '{name}'"):
                cursor.execute(text)
                assert not cursor.warning_count, f"{text} warns"
    crash(server)
    assert waiting(server) == names, f"XA RECOVER tells of {waiting(server)}"
    run(server, "XA COMMIT 'both'", "XA COMMIT 'one'", "XA ROLLBACK 'roll back'")
    crash(server)
    assert not waiting(server), "what was decided is asked again"
    there = [[server.value(f"SELECT COUNT(*) FROM d.{prefix}{number}") for number in range(3)]
             for prefix in "ci"]
    assert there == [[1, 1, 0], [1, 0, 0]], f"CHEETAH and InnoDB have {there}"
