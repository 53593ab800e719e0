"""Dumps during DDL of every kind: a dump is refused or has the rows of its snapshot.

`renewed.py` changes tables and keeps a journal, which gives for each snapshot the rows allowed
under every name. A dump is made by mariadb-dump, by sessions that join one snapshot like mydumper,
or by a session that reads in all possible ways. Meanwhile, statements with their own snapshot must
never be refused. `--rounds 300` runs the long test."""

import contextlib
import re
import subprocess
import time

import pymysql
from cheetah_tools.paths import SERVER
from cheetah_tools.say import note
from renewed import ABSENT, Changes, digest, JOURNAL, ROWS
from servers import Client, working

ROUNDS = 24
PAUSE_SECONDS_MAX = 0.4    # the maximum between changes; most pauses are much shorter
READING_SECONDS_MAX = 0.1  # the maximum wait of a session before it reads
SESSIONS = 3              # the number of sessions that share a snapshot
OPTIONS = {"log_bin": "binlog", "server_id": 1, "binlog_format": "ROW", "sync_binlog": 0,
           "loose_cheetah_flush_log_at_trx_commit": 2, "loose_cheetah_buffer_pool_size": "64M"}
# The definition changed, the table was dropped after it was listed, or there is a deadlock.
REFUSED = {1412, 1146, 1213}
GONE = {1146, 1213}
# Tables that never have partitions. HANDLER cannot read partitioned tables.
NEVER_PARTITIONED = ("words", "heap", "other")
ROW = re.compile(r"^INSERT INTO `(\w+)` \(`id`, `gen`, .*\) VALUES \((\d+),(\d+),")
ENTRY = re.compile(r"^INSERT INTO `journal` .* VALUES \('(\w+)','([^']*)'\)")
DUMPED = re.compile(r"^-- Dumping data for table `(\w+)`")


class Refused(Exception):
    """The dump was refused. Contains the error number."""


class Changing(Client):
    def __init__(self, changes: Changes):
        super().__init__(changes.server)
        self.changes = changes

    def work(self, _cursor) -> None:
        self.changes.one()
        time.sleep(self.changes.rng.random() ** 2 * PAUSE_SECONDS_MAX)


class Passing(Client):
    """Statements with their own snapshot. A table may be missing, but is never too new."""

    refusals = GONE
    READS = ("SELECT COUNT(*) FROM {0}", "SELECT * FROM {0} WHERE id = 5",
             "SELECT MAX(id), (SELECT COUNT(*) FROM {1}) FROM {0} JOIN {1} USING (id)",
             "SELECT COUNT(*) FROM {0} WHERE gen IN (SELECT gen FROM {1})",
             "SELECT d.how_many(), COUNT(*) FROM {0}", "EXECUTE p",
             "INSERT INTO d.mine SELECT id FROM {0} ON DUPLICATE KEY UPDATE id = mine.id",
             "CREATE OR REPLACE TEMPORARY TABLE d.tmp SELECT * FROM {1}", "SELECT * FROM d.tmp")

    def begin(self, cursor) -> None:
        self.count = 0
        cursor.execute("CREATE TABLE IF NOT EXISTS d.mine (id INT PRIMARY KEY) ENGINE=CHEETAH")
        cursor.execute("CREATE OR REPLACE TEMPORARY TABLE d.tmp (id INT) ENGINE=CHEETAH")
        cursor.execute("PREPARE p FROM 'SELECT COUNT(*) FROM d.swapped JOIN d.hashed USING (id)'")
        if self.number % 2:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def work(self, cursor) -> None:
        in_transaction = self.number % 2 and self.rng.random() < 0.5
        cursor.execute("BEGIN" if in_transaction else "DO 0")
        for _ in range(self.rng.randrange(1, 4)):
            names = self.rng.sample(("swapped", "changed", "words", "ranged", "hashed"), 2)
            statement = self.rng.choice(self.READS).format(*(f"d.{name}" for name in names))
            self.count += self.attempt(cursor, statement)
        if in_transaction:
            cursor.execute("COMMIT")
        time.sleep(READING_SECONDS_MAX / 10)


class Dumps:
    """Ways to dump the database. Each returns the rows that the journal allows and those found."""

    def __init__(self, server, rng):
        self.server, self.rng = server, rng
        self.ways = [self.mariadb_dump, self.mariadb_dump_with_position, self.one_session,
                     self.joined_sessions]

    def mariadb_dump(self, *words) -> tuple:
        command = [str(SERVER / "usr/bin/mariadb-dump"), "--no-defaults", "--user=root",
                   f"--socket={self.server.socket}", "--single-transaction",
                   "--skip-extended-insert", "--complete-insert", *words, "d"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            number = re.search(r"Error:? (\d+)|\((\d+)\)", done.stderr)
            code = int(number.group(1) or number.group(2)) if number else 0
            assert code in REFUSED, done.stderr
            raise Refused(code)
        found, allowed = {}, {}
        for line in done.stdout.splitlines():
            if started := DUMPED.match(line):
                found[started.group(1)] = []
            elif entry := ENTRY.match(line):
                allowed[entry.group(1)] = entry.group(2).split()
            elif row := ROW.match(line):
                found[row.group(1)].append((int(row.group(2)), int(row.group(3))))
        return allowed, {name: digest(rows) for name, rows in found.items()}

    def mariadb_dump_with_position(self) -> tuple:
        return self.mariadb_dump("--master-data=2")

    def one_session(self) -> tuple:
        with self.server.connect("d", autocommit=True) as connection:
            connection.cursor().execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            return self.read_all([connection])

    def joined_sessions(self) -> tuple:
        """Dumps like mydumper: sessions start while writes are blocked, then read concurrently."""
        with contextlib.ExitStack() as opened:
            guard, *readers = [opened.enter_context(self.server.connect("d", autocommit=True))
                               for _ in range(SESSIONS + 1)]
            guard.cursor().execute("FLUSH TABLES WITH READ LOCK")
            for reader in readers:
                reader.cursor().execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            guard.cursor().execute("UNLOCK TABLES")
            return self.read_all(readers)

    def read_all(self, readers: list) -> tuple:
        time.sleep(self.rng.random() * READING_SECONDS_MAX)
        cursors = [reader.cursor() for reader in readers]
        allowed = {name: words.split() for name, words in
                   fetched(cursors[0], f"SELECT name, allowed FROM {JOURNAL}")}
        names = [row[0] for row in fetched(cursors[0], "SHOW FULL TABLES WHERE Table_type = "
                                           "'BASE TABLE'") if row[0] not in (JOURNAL, "mine")]
        found = {}
        for name in self.rng.sample(names, len(names)):
            cursor = self.rng.choice(cursors)
            cursor.execute("SAVEPOINT s")
            found[name] = self.read(cursor, name, allowed.get(name, [ABSENT]))
            # Releases the table for changes, as mariadb-dump does.
            cursor.execute("ROLLBACK TO SAVEPOINT s")
            time.sleep(self.rng.random() * READING_SECONDS_MAX / 10)
        return allowed, found

    def read(self, cursor, name: str, allowed: list) -> str:
        """Returns a table's digest. The result of a partial query is compared with `allowed`."""
        way = self.rng.randrange(7)
        if way == 0:
            count = fetched(cursor, f"SELECT COUNT(*) FROM {name}")[0][0]
            return next((word for word in allowed if word.startswith(f"{count}:")),
                        f"{count} rows counted")
        if way == 1:
            least, most = fetched(cursor, f"SELECT MIN(gen), MAX(gen) FROM {name}")[0]
            rows = fetched(cursor, f"SELECT id, gen FROM {name} IGNORE INDEX (g)")
            generations = [gen for _id, gen in rows] or [None]
            assert (least, most) == (min(generations), max(generations)), name
            return digest(rows)
        if way == 2 and name != "heap":
            rows = [fetched(cursor, f"SELECT id, gen FROM {name} WHERE id = {number}")
                    for number in range(1, ROWS + 1)]
            return digest([row for one in rows for row in one])
        if way == 3 and name in NEVER_PARTITIONED:
            return digest(by_handler(cursor, name))
        index = {4: "FORCE INDEX (g)", 5: "IGNORE INDEX (g)"}.get(way, "")
        where = " WHERE gen >= 0" if way == 4 else ""
        return digest(fetched(cursor, f"SELECT id, gen FROM {name} {index}{where}"))


def fetched(cursor, statement: str) -> list:
    """Returns the rows of a statement. Raises Refused if the snapshot is too old."""
    try:
        cursor.execute(statement)
        return list(cursor.fetchall())
    except pymysql.MySQLError as failure:
        assert failure.args[0] in REFUSED, f"{statement}: {failure}"
        raise Refused(failure.args[0]) from failure


def by_handler(cursor, name: str) -> list:
    fetched(cursor, f"HANDLER {name} OPEN")
    try:
        return [row[:2] for row in fetched(cursor, f"HANDLER {name} READ FIRST LIMIT {2 * ROWS}")]
    finally:
        cursor.execute(f"HANDLER {name} CLOSE")


def faults(allowed: dict, found: dict) -> list:
    """Returns the tables of a dump whose rows differ from those at its snapshot. Missing names are
    not errors of the engine, because the server lists the names at the time of the query."""
    wanted = {name: allowed.get(name, [ABSENT]) for name in found if name not in (JOURNAL, "mine")}
    return [f"{name}: {found[name]}, allowed: {words}" for name, words in wanted.items()
            if found[name] not in words]


def test_a_dump_is_what_was_there_or_is_refused(server, rounds, rng):
    changes = Changes(server, rng.random())
    changes.make()
    server.sql("CREATE FUNCTION d.how_many() RETURNS INT READS SQL DATA "
               "RETURN (SELECT COUNT(*) FROM d.changed)")
    dumps, passing = Dumps(server, rng), [Passing(server, number) for number in range(2)]
    whole, refused = {}, {}
    with working([Changing(changes), *passing]) as clients:
        for number in range(rounds):
            way = dumps.ways[number % len(dumps.ways)]
            try:
                wrong = faults(*way())
                assert not wrong, f"dump {number} by {way.__name__}: {wrong}"
                whole[way.__name__] = whole.get(way.__name__, 0) + 1
            except Refused as reason:
                refused[reason.args[0]] = refused.get(reason.args[0], 0) + 1
            ended = [client.failure for client in clients if not client.is_alive()]
            assert not ended, ended
    note(f"{rounds} dumps beside {sum(changes.made.values())} changes of {len(changes.made)} kinds "
         f"and {sum(client.count for client in passing)} statements: whole {whole}, "
         f"refused {refused}")
    assert 1412 in refused and whole, "nothing was tested"
    for name in changes.rows:
        if changes.rows[name] is not None:
            assert digest(fetched(changes.cursor, f"SELECT id, gen FROM d.{name}")) == \
                digest(changes.rows[name].items())
            assert [row[-1] for row in fetched(changes.cursor, f"CHECK TABLE d.{name} EXTENDED")] \
                == ["OK"]
