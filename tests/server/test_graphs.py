"""Random graphs of tables connected by foreign keys, under kills and on replicas.

No orphan is ever found by a query for each constraint that the server lists. Replicas have the same
rows, and the binary log has no row events for actions of constraints.

`make servertests ARGS="graphs --rounds 50"` runs longer, with more kills and statements."""

import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import binlog
import pymysql
from cheetah_tools import setup
from cheetah_tools.paths import SERVER
from cheetah_tools.say import note
from servers import await_end, check_table, Client, kill_under, run, started, wait_until
from test_replication import PRIMARY, catch_up, replicated

sys.path.append(str(Path(__file__).resolve().parents[1] / "differential"))

from graphs import Graph  # noqa: E402

ROUNDS, WRITERS, STATEMENTS = 3, 4, 400
OPTIONS = {"loose_cheetah_lock_wait_timeout": 2, "lock_wait_timeout": 2}
# Errors of constraints, keys and locks, of tables that changed or are temporarily missing, of
# values that a mode refuses, and of definitions that do not match the current ones.
EXPECTED = {1005, 1020, 1025, 1050, 1051, 1054, 1060, 1061, 1062, 1072, 1091, 1146, 1205, 1213,
            1305, 1412, 1451, 1452, 1553, 1701, 1761, 1829, 1832, 1833, 1834}
CONSTRAINTS = """SELECT constraint_name, table_name, referenced_table_name,
                 GROUP_CONCAT(column_name ORDER BY ordinal_position),
                 GROUP_CONCAT(referenced_column_name ORDER BY ordinal_position)
                 FROM information_schema.key_column_usage
                 WHERE table_schema = 'd' AND referenced_table_name IS NOT NULL GROUP BY 1, 2, 3"""


class AnyGraph(Graph):
    BESIDE_INNODB = False


class Player(Client):
    """Changes rows, in transactions or not. The first player also changes definitions."""

    def __init__(self, server, number: int, graph: Graph, seed: int, until: int = 0):
        super().__init__(server, number, seed)
        self.graph, self.until, self.answers = graph, until, Counter()
        self.kinds = [graph.insert, graph.insert, graph.insert, graph.replace, graph.on_duplicate,
                      graph.update, graph.update, graph.delete]
        self.definitions = [graph.rename, graph.rebuild, graph.redefine, graph.tie, graph.untie]

    def begin(self, cursor) -> None:
        level = self.rng.choice(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
        cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        cursor.execute(f"SET binlog_format = {self.rng.choice(['ROW', 'MIXED'])}")
        # A deadlock of row locks and metadata locks, which DDL takes, is not detected.
        cursor.execute("SET cheetah_lock_wait_timeout = 4")

    def work(self, cursor) -> None:
        if self.number == 0 and self.rng.random() < 0.06:
            return self.play(cursor, self.rng.choice(self.definitions)())
        count = self.rng.choice([1, 1, 3])
        if count > 1:
            self.play(cursor, "BEGIN")
        for _ in range(count):
            self.play(cursor, self.rng.choice(self.kinds)())
        if count > 1:
            self.play(cursor, self.rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
        if self.until and sum(self.answers.values()) > self.until:
            self.stopping.set()

    def play(self, cursor, made) -> None:
        for statement in made if isinstance(made, list) else [made]:
            text = getattr(statement, "text", statement)
            try:
                cursor.execute(text.replace("{twin}", "d"))
                self.answers[0] += 1
                if getattr(statement, "apply", None):
                    statement.apply()
            except pymysql.MySQLError as failure:
                if failure.args[0] not in EXPECTED:
                    raise
                self.answers[failure.args[0]] += 1


def graph_on(server, rng) -> Graph:
    graph = AnyGraph(rng, None)
    player = Player(server, 1, graph, 0)
    with server.cursor("d", autocommit=True) as cursor:
        cursor.execute("SET default_storage_engine = CHEETAH")
        while len(graph.tables) < 5 or graph.constraints < graph.to_tie:
            player.play(cursor, graph.next())
        for _ in range(100):
            player.play(cursor, graph.insert())
    return graph


def shared(graph: Graph, rng) -> Graph:
    """Returns the same tables for another connection, with its own random numbers."""
    other = AnyGraph(rng, None)
    other.tables, other.ties, other.constraints = graph.tables, graph.ties, graph.constraints
    other.has_circles, other.collation = graph.has_circles, graph.collation
    return other


def players(server, graph: Graph, rng, until: int = 0) -> list:
    graphs = [shared(graph, random.Random(rng.getrandbits(32))) for _ in range(WRITERS)]
    return [Player(server, number, own, rng.getrandbits(32), until)
            for number, own in enumerate(graphs)]


def check_families(server) -> int:
    """Checks that no child lacks its parent and CHECK agrees. Returns the constraints' number."""
    constraints = server.sql(CONSTRAINTS)
    for name, child, parent, own, others in constraints:
        pairs = list(zip(own.split(","), others.split(",")))
        named = " AND ".join(f"c.{mine} IS NOT NULL" for mine, _ in pairs)
        same = " AND ".join(f"p.{other} = c.{mine}" for mine, other in pairs)
        orphans = server.sql(f"SELECT * FROM {child} c WHERE {named} AND NOT EXISTS "
                             f"(SELECT 1 FROM {parent} p WHERE {same})", "d")
        assert not orphans, (f"{name}: {child} ({own}) has no parent in {parent} ({others}): "
                             f"{orphans}")
    check_table(server, *tables_of(server))
    return len(constraints)


def tables_of(server) -> list:
    return sorted(row[0] for row in server.sql("SHOW TABLES LIKE 'n%'", "d"))


def engines_of(server) -> set:
    return {row[0] for row in server.sql("SELECT engine FROM information_schema.tables "
                                         "WHERE table_schema = 'd'")}


def names_of(server, graph: Graph) -> None:
    """Updates names after a kill, because a rename may have completed without an answer."""
    found = {name[1]: name for name in tables_of(server)}
    assert len(found) == len(graph.tables), found
    for node in graph.tables:
        node.name = found[node.name[1]]


def test_kills_leave_no_orphans(server, rng, rounds):
    counted = Counter()
    graph = graph_on(server, rng)
    for kill in range(rounds):
        if kill and kill % 5 == 0:
            run(server, "DROP DATABASE d", "CREATE DATABASE d", database="")
            graph = graph_on(server, rng)
        playing = players(server, graph, rng)
        kill_under(server, playing, rng.uniform(0.3, 1.5))
        counted += sum((player.answers for player in playing), Counter())
        server.start()
        names_of(server, graph)
        check_families(server)
    note(f"{rounds} kills, {counted.total()} statements: {dict(counted.most_common(6))}")
    assert counted[0] > 10 * rounds and counted[1451] + counted[1452] > 0, counted


def test_a_replica_has_the_same_families(new_server, rng, rounds):
    """The replica's engine repeats the actions, and row events do not, also after a kill."""
    primary, replica = replicated(new_server, "optimistic")
    for part in range(-(-rounds // ROUNDS)):
        if part:
            run(primary, "DROP DATABASE d", "CREATE DATABASE d", database="")
        playing = players(primary, graph_on(primary, rng), rng, STATEMENTS)
        for player in playing:
            player.start()
        wait_until(lambda: sum(player.answers.total() for player in playing) > STATEMENTS
                   or not all(player.is_alive() for player in playing), "the players")
        replica.kill()
        await_end(playing)
        take_definition(started(replica))
        replica.sql("START SLAVE")
        catch_up(primary, replica)
        assert not replica.sql("SHOW SLAVE STATUS")[0][19]
        assert tables_of(primary) == tables_of(replica)
        assert engines_of(primary) == engines_of(replica) == {"CHEETAH"}
        for name in tables_of(primary):
            query = f"SELECT * FROM {name} ORDER BY id"
            assert primary.sql(query, "d") == replica.sql(query, "d"), name
        assert check_families(primary) == check_families(replica)
    counted = sum((player.answers for player in playing), Counter())
    events = check_events(primary)
    note(f"{counted.total()} statements: {dict(counted.most_common(6))}; {events} rows of events")
    # Few row events if all players log statements.
    assert counted[0] > STATEMENTS and events > STATEMENTS // 20, counted


def take_definition(replica) -> None:
    """Makes a killed replica continue after a change of a definition that is in its binary log but
    not in its replication position. The server stores the position after it logs the change. Its
    startup logs a change that it completes (ddl_recovery.log) with its own GTID. In both cases the
    replica would refuse the same change from the primary (error 1950)."""
    logged, noted = (replica.value(f"SELECT @@{name}")
                     for name in ("gtid_binlog_pos", "gtid_slave_pos"))
    number, done = (int(position.rsplit("-", 1)[1]) for position in (logged, noted))
    if number <= done:
        return
    events = [row for name, *_ in replica.sql("SHOW BINARY LOGS")
              for row in binlog.events(replica, name) if row[2] == "Gtid"]
    group = next(row[5] for row in events
                 if row[5].split()[2 if "BEGIN" in row[5] else 1] == logged)
    assert not group.startswith("BEGIN") and number == done + 1, (
        f"{group}, and the replica is at {noted}")
    replica.sql("RESET MASTER")
    replica.sql(f"SET GLOBAL gtid_slave_pos = '0-{PRIMARY}-{number}'")
    note(f"{logged} was in the log alone: {group}")


def check_events(server) -> int:
    """Checks that row events name their statement's table and delete once; returns the rows."""
    rows, statement, seen, kind = 0, "", set(), ""
    for name in binlog.closed_files(server):
        done = subprocess.run([SERVER / "usr/bin/mariadb-binlog", "--no-defaults", "-v",
                               "--base64-output=DECODE-ROWS", server.data / name],
                              env=setup.library_environment(), capture_output=True, check=True)
        for line in done.stdout.decode(errors="replace").splitlines():
            if found := re.match(r"#Q> (.*)", line):
                statement, seen = found[1], set()
            elif found := re.match(r"### (INSERT INTO|UPDATE|DELETE FROM) `d`\.`(n\w+)`", line):
                kind, table, rows = found[1], found[2], rows + 1
                assert re.search(rf"\b{table}\b", statement), (
                    f"a row event of {table} for: {statement}")
            elif kind == "DELETE FROM" and (found := re.match(r"###   @1=(\S+)", line)):
                is_new = statement.startswith("REPLACE") or found[1] not in seen
                assert is_new, f"row {found[1]} goes twice: {statement}"
                seen.add(found[1])
    return rows
