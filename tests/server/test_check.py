"""CHECK TABLE while writers run: it finds no errors, and no writer waits for it."""

import time

from servers import Client, check_table, working

SECONDS, ROUNDS_MIN = 4, 10
WRITES = ("INSERT INTO t VALUES ({new}, {a}, 'n{new}', 'new words {new}')",
          "UPDATE t SET a = {a}, w = 'other words {a}' WHERE id BETWEEN {id} AND {id} + 5",
          "UPDATE t SET id = {new} WHERE id = {id}",
          "UPDATE t SET b = CONCAT('u', {new}) WHERE id = {id}",
          "DELETE FROM t WHERE id BETWEEN {id} AND {id} + 3",
          "REPLACE INTO t VALUES ({id}, {a}, 'r{id}', 'words that come again')")
HOWS = ("", "QUICK", "FAST", "CHANGED", "FOR UPGRADE", "EXTENDED")


class Writer(Client):
    autocommit = False
    # Duplicate keys, deadlocks, lock wait timeouts, and changed definitions.
    refusals = (1062, 1213, 1205, 1412)

    def work(self, cursor) -> None:
        for _ in range(self.rng.randrange(1, 6)):
            cursor.execute(self.rng.choice(WRITES).format(
                new=self.rng.randrange(1, 10_000_000), id=self.rng.randrange(4000),
                a=self.rng.randrange(100)))
        cursor.execute(self.rng.choice(("COMMIT", "COMMIT", "ROLLBACK")))


def test_check_in_a_loop_beside_writers_and_indexes_that_come_finds_nothing(server):
    server.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(40), w TEXT, KEY (a), "
               "UNIQUE (b), FULLTEXT (w)) ENGINE=CHEETAH", "d")
    server.sql("INSERT INTO t SELECT seq, seq MOD 100, CONCAT('b', seq), "
               "CONCAT('some words ', seq) FROM seq_1_to_2000", "d")
    until, rounds = time.monotonic() + SECONDS, 0
    with working([Writer(server, number) for number in range(3)]):
        while time.monotonic() < until or rounds <= ROUNDS_MIN:
            how = HOWS[rounds % len(HOWS)]
            checked = server.sql(f"CHECK TABLE t {how}", "d")
            assert [row[2:] for row in checked] == [("status", "OK")], (how, checked)
            if rounds % 10 == 4:
                server.sql("ALTER TABLE t ADD INDEX more (a, b)", "d")
            if rounds % 10 == 9:
                server.sql("ALTER TABLE t DROP INDEX more", "d")
            rounds += 1
    check_table(server, "t")
