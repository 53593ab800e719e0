"""COUNT(*), which reads no rows, matches the rows in every snapshot and after crashes."""

import time

import pytest
from cheetah_tools.say import note
from servers import Client, wait_until, working

SECONDS, LARGE_SECONDS = 1.5, 60
WRITERS, READERS, KEYS = 3, 2, 400
LOOKS_MIN = 40   # the minimum in each round
# One statement has one snapshot, also at READ COMMITTED.
COUNTS = ("SELECT (SELECT COUNT(*) FROM {0}), (SELECT COALESCE(SUM(1), 0) FROM {0} FORCE "
          "INDEX (PRIMARY)), (SELECT COALESCE(SUM(1), 0) FROM {0} FORCE INDEX (k))")
TABLES = {"t": "", "p": " PARTITION BY HASH (id) PARTITIONS 3"}


class Looker(Client):
    """Changes tables at random and compares counts. The last clients only compare."""

    # Deadlocks, lock wait timeouts, and tables truncated after the snapshot.
    refusals = (1205, 1213, 1412, 1020)

    def __init__(self, server, number: int, round_no: int):
        super().__init__(server, number, f"counts/{round_no}/{number}")
        self.differences, self.looks = [], 0

    def work(self, cursor) -> None:
        rng, writes = self.rng, self.number < WRITERS
        if writes and rng.random() < 0.01:
            cursor.execute(f"TRUNCATE TABLE {rng.choice(list(TABLES))}")
        cursor.execute("SET SESSION TRANSACTION ISOLATION "
                       f"LEVEL {rng.choice(['READ COMMITTED', 'REPEATABLE READ'])}")
        cursor.execute("BEGIN")
        for _ in range(rng.randrange(1, 8)):
            table = rng.choice(list(TABLES))
            first = rng.randrange(KEYS)
            last = first + rng.randrange(12)
            if writes:
                cursor.execute(rng.choice([
                    f"INSERT IGNORE INTO {table} SELECT seq, seq % 7 "
                    f"FROM mysql.seq_{first}_to_{last}",
                    f"DELETE FROM {table} WHERE id BETWEEN {first} AND {last}",
                    f"UPDATE {table} SET k = k + 1 WHERE id BETWEEN {first} AND {last}",
                    f"REPLACE INTO {table} VALUES ({first}, 3)",
                    f"UPDATE IGNORE {table} SET id = id + 1000 WHERE id = {first}",
                    "SAVEPOINT s", "SAVEPOINT s"]))
                if rng.random() < 0.2:
                    cursor.execute("SAVEPOINT s")
                    cursor.execute(f"DELETE FROM {table} WHERE id > {first}")
                    cursor.execute("ROLLBACK TO SAVEPOINT s")
            self.look(cursor, table)
        cursor.execute(rng.choice(["COMMIT", "ROLLBACK"]))

    def look(self, cursor, table: str) -> None:
        cursor.execute(COUNTS.format(table))
        counts = cursor.fetchone()
        self.looks += 1
        if len({int(count) for count in counts}) != 1:
            self.differences.append(f"{table}: COUNT(*) and the rows of the indexes: {counts}")


@pytest.mark.options({"innodb_lock_wait_timeout": 1, "loose_cheetah_lock_wait_timeout": 1})
def test_V9_counts_are_exact_in_every_snapshot(server, large):
    for table, partitions in TABLES.items():
        server.sql(f"CREATE TABLE d.{table} (id INT PRIMARY KEY, k INT, KEY k (k)) "
                   f"ENGINE=CHEETAH{partitions}")
    seconds, looks = LARGE_SECONDS if large else SECONDS, 0
    for round_no in range(3):
        lookers = [Looker(server, number, round_no) for number in range(WRITERS + READERS)]
        with working(lookers):
            time.sleep(seconds)
            wait_until(lambda lookers=lookers: sum(looker.looks for looker in lookers) > LOOKS_MIN
                       or any(looker.failure for looker in lookers),
                       f"fewer than {LOOKS_MIN} looks")
            if round_no < 2:
                server.kill()
        differences = [told for looker in lookers for told in looker.differences]
        assert not differences, "; ".join(differences[:3])
        looks += sum(looker.looks for looker in lookers)
        if round_no < 2:
            server.start()
        for table in TABLES:
            counts = server.sql(COUNTS.format(table), "d")[0]
            assert len({int(count) for count in counts}) == 1
    note(f"{looks} looks")
