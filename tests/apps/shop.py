"""A small shop for testing tools. Its tables have constraints, full-text indexes, generated
columns, a trigger and a view, and a writer changes them while the tools run."""

import time
from pathlib import Path

import servers
import sides

TOTAL = 200 * 1000
# Lock wait timeout and deadlock. Applications retry after these errors.
AGAIN = (1205, 1213)
PAUSE_SECONDS = 0.005


def make(side) -> None:
    """Creates the shop in the side's database."""
    with side.server.cursor(sides.DATABASE) as cursor:
        for statement in Path(__file__).with_name("shop.sql").read_text().split(";\n"):
            if statement.strip():
                cursor.execute(statement)


class Writer(servers.Client):
    """Moves amounts between accounts without changing their sum. Also adds and deletes accounts
    with a zero balance."""

    database, autocommit, refusals = sides.DATABASE, False, AGAIN

    def work(self, cursor) -> None:
        """Runs one transaction, which may fail because of a tool that runs at the same time."""
        time.sleep(PAUSE_SECONDS)
        first, second = self.rng.sample(range(1, 201), 2)
        for account, amount in sorted([(first, 7), (second, -7)]):
            cursor.execute("UPDATE account SET balance = balance + %s, moves = moves + 1 WHERE "
                           "id = %s", (amount, account))
        if self.done % 5 == 0:
            cursor.execute("INSERT INTO account (balance) VALUES (0)")
        if self.done % 10 == 0:
            cursor.execute("DELETE FROM account WHERE id > 200 ORDER BY id LIMIT 1")
        self.connection.commit()


class Writing:
    """Runs two writers while the block lasts."""

    def __init__(self, side):
        self.side = side
        self.writers = [Writer(side.server, number) for number in range(2)]
        self.work = servers.working(self.writers)

    def __enter__(self):
        self.work.__enter__()
        servers.wait_until(lambda: all(writer.done for writer in self.writers), "writers")
        return self

    def __exit__(self, *failure):
        return self.work.__exit__(*failure)

    def check(self, database: str = sides.DATABASE) -> None:
        """Checks that the sum is unchanged and that no transaction was partly applied."""
        rows = self.side.rows("SELECT SUM(balance), SUM(moves) % 2 FROM account", database)
        assert rows == [(TOTAL, 0)], rows
