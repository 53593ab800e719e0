"""A small shop as tools meet it: tables with constraints, full text, generated columns, a trigger,
a view; and a writer beside the tools."""

import random
import time
from pathlib import Path

import pymysql
import servers
import sides

TOTAL = 200 * 1000
# Lock wait timeout, deadlock: applications then try again.
AGAIN = (1205, 1213)
PAUSE_SECONDS = 0.005


def make(side) -> None:
    """Make it in the side's database."""
    connection = side.server.connect(sides.DATABASE)
    with connection.cursor() as cursor:
        for statement in Path(__file__).with_name("shop.sql").read_text().split(";\n"):
            if statement.strip():
                cursor.execute(statement)
    connection.close()


class Writer(servers.Client):
    """Moves amounts between accounts; the sum of all stays what it is. It also adds and removes
    accounts without an amount."""

    database, autocommit = sides.DATABASE, False

    def __init__(self, server, number: int = 0):
        super().__init__(server, number)
        self.rng, self.moves = random.Random(number), 0

    def work(self, cursor) -> None:
        """One transaction, if the tool beside lets it."""
        try:
            self.move(cursor)
        except pymysql.OperationalError as failure:
            if failure.args[0] not in AGAIN:
                raise
            self.connection.rollback()
        time.sleep(PAUSE_SECONDS)

    def move(self, cursor) -> None:
        """One transaction."""
        first, second = self.rng.sample(range(1, 201), 2)
        for account, amount in sorted([(first, 7), (second, -7)]):
            cursor.execute("UPDATE account SET balance = balance + %s, moves = moves + 1 WHERE "
                           "id = %s", (amount, account))
        if self.moves % 5 == 0:
            cursor.execute("INSERT INTO account (balance) VALUES (0)")
        if self.moves % 10 == 0:
            cursor.execute("DELETE FROM account WHERE id > 200 ORDER BY id LIMIT 1")
        self.connection.commit()
        self.moves += 1


class Writing:
    """With this, two writers are at work."""

    def __init__(self, side):
        self.side = side
        self.writers = [Writer(side.server, number) for number in range(2)]

    def __enter__(self):
        for writer in self.writers:
            writer.start()
        servers.wait_until(lambda: all(writer.moves for writer in self.writers), "writers")
        return self

    def __exit__(self, *_):
        for writer in self.writers:
            writer.stopping.set()
        for writer in self.writers:
            writer.join(120)
            assert not writer.is_alive() and not writer.failure, writer.failure

    def check(self, database: str = sides.DATABASE) -> None:
        """The sum is what it was, and so is what a transaction left behind."""
        rows = self.side.rows("SELECT SUM(balance), SUM(moves) % 2 FROM account", database)
        assert rows == [(TOTAL, 0)], rows
