"""Writers that record acknowledged commits, and the check that a crashed server kept exactly these.

Each writer changes its own keys in a few shared tables. It knows the committed state (all
acknowledged commits) and the one transaction whose commit has no answer yet. After a crash the
tables must hold the committed state, with or without the whole open transaction, and nothing else.
"""

import random
import threading
import zlib

from .say import Failure

TABLES = ["ledger_a", "ledger_b"]
# After a lock wait timeout or a deadlock, the transaction is abandoned and others follow.
LOCK_TIMEOUT, DEADLOCK = 1205, 1213


def create_tables(server, database: str, clause: str) -> None:
    """Creates tables with a composite key, a unique and a plain index, and a large value."""
    server.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    for name in TABLES:
        server.sql(f"CREATE TABLE IF NOT EXISTS {name} (writer INT NOT NULL, k INT NOT NULL, "
                   "version INT NOT NULL, word VARCHAR(40) NOT NULL, body MEDIUMBLOB NOT NULL, "
                   "PRIMARY KEY (writer, k), UNIQUE KEY by_word (word), "
                   f"KEY by_version (version, writer)) {clause}", database)


class Writer(threading.Thread):
    """One connection that inserts, updates and deletes until it is stopped."""

    def __init__(self, server, database: str, number: int, seed: int, committed: dict = None):
        super().__init__(daemon=True)
        self.server, self.database, self.number = server, database, number
        self.rng = random.Random(f"{seed}/{number}")
        self.committed = dict(committed or {})   # (table, k) -> (version, crc of body)
        self.open = {}                           # the unanswered commit's changes; None = deleted
        self.transactions = 0
        self.failure = ""
        self.stopping = threading.Event()

    def run(self) -> None:
        import pymysql
        try:
            connection = self.server.connect(self.database, autocommit=False)
            while not self.stopping.is_set():
                self._transaction(connection)
        except pymysql.MySQLError as failure:
            # Errors of the expected kill; any other error is a finding.
            if failure.args[0] not in (2003, 2006, 2013, 1053, 0):
                self.failure = f"writer {self.number}: {failure}"
        except OSError:
            pass

    def _transaction(self, connection) -> None:
        import pymysql
        changes = {}
        try:
            with connection.cursor() as cursor:
                for _ in range(self.rng.choice([1, 1, 2, 5, 20])):
                    self._change(cursor, changes)
                if self.rng.random() < 0.1:
                    connection.rollback()
                    return
                self.open = changes
                connection.commit()
        except pymysql.MySQLError as failure:
            if failure.args[0] in (LOCK_TIMEOUT, DEADLOCK):
                connection.rollback()
                self.open = {}
                return
            raise
        # From here on the commit is acknowledged.
        apply(self.committed, changes)
        self.open = {}
        self.transactions += 1

    def _change(self, cursor, changes: dict) -> None:
        rng = self.rng
        key = (rng.choice(TABLES), rng.randint(1, 400))
        known = changes[key] if key in changes else self.committed.get(key)
        if known and rng.random() < 0.2:
            cursor.execute(f"DELETE FROM {key[0]} WHERE writer = %s AND k = %s",
                           (self.number, key[1]))
            changes[key] = None
            return
        size = rng.choice([0, 20, 200, 2000] if rng.random() < 0.97 else [20000, 200000])
        body = (b"%d " % rng.getrandbits(64)) * (size // 18)
        version = rng.randint(1, 10**9)
        word = f"{self.number}-{key[1]}-{version}"
        if known:
            done = cursor.execute(f"UPDATE {key[0]} SET version = %s, word = %s, body = %s "
                                  "WHERE writer = %s AND k = %s",
                                  (version, word, body, self.number, key[1]))
        else:
            done = cursor.execute(f"INSERT INTO {key[0]} VALUES (%s, %s, %s, %s, %s)",
                                  (self.number, key[1], version, word, body))
        if done != 1:
            self.failure = f"writer {self.number}: {done} rows changed at {key}, known as {known}"
            self.stopping.set()
        changes[key] = (version, zlib.crc32(body))

def apply(state: dict, changes: dict) -> None:
    for key, value in changes.items():
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value


def read_back(server, database: str) -> dict:
    """Returns writer -> {(table, k): (version, crc)} of the tables; all indexes must agree."""
    found = {}
    for name in TABLES:
        rows = server.sql("SELECT writer, k, version, word, body "
                          f"FROM {name} FORCE INDEX (PRIMARY)", database)
        for writer, k, version, word, body in rows:
            if word != f"{writer}-{k}-{version}":
                raise Failure(f"{name}: row ({writer}, {k}) mixes two versions: "
                              f"{version} and {word}")
            found.setdefault(writer, {})[(name, k)] = (version, zlib.crc32(body))
        for index in ("by_word", "by_version"):
            seen = server.sql(f"SELECT writer, k FROM {name} FORCE INDEX ({index})", database)
            if sorted(seen) != sorted((row[0], row[1]) for row in rows):
                raise Failure(f"{name}: index {index} has other rows than the table")
        verdict = server.sql(f"CHECK TABLE {name} EXTENDED", database)[-1][-1]
        if verdict != "OK":
            raise Failure(f"CHECK TABLE {name}: {verdict}")
    return found


def verify(writers: list, found: dict) -> tuple:
    """Checks the writers' rows; returns the number of acknowledged rows, and of open transactions
    that were kept. Each writer's state becomes what the server kept."""
    rows = extra = 0
    for writer in writers:
        kept = found.get(writer.number, {})
        whole = dict(writer.committed)
        apply(whole, writer.open)
        if kept != writer.committed and kept != whole:
            raise Failure(describe(writer, kept, whole))
        extra += kept != writer.committed
        rows += len(writer.committed)
        writer.committed, writer.open = dict(kept), {}
    return rows, extra


def describe(writer, kept: dict, whole: dict) -> str:
    lost = [k for k, v in writer.committed.items() if kept.get(k) != v and whole.get(k) == v]
    alien = [k for k, v in kept.items() if writer.committed.get(k) != v and whole.get(k) != v]
    return (f"writer {writer.number}: {len(lost)} acknowledged rows lost or changed "
            f"(such as {lost[:3]}), {len(alien)} rows that nobody committed "
            f"(such as {alien[:3]}), open transaction of {len(writer.open)} changes")
