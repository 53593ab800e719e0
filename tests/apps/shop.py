"""A small shop for testing tools. Its tables have constraints, full-text indexes, generated
columns, a trigger and a view, and a writer changes them while the tools run."""

import contextlib
import time
from pathlib import Path

import servers
import sides

TOTAL = 200 * 1000
# Lock wait timeout and deadlock. Applications retry after these errors.
AGAIN = (1205, 1213)
PAUSE_SECONDS = 0.005


def make(side) -> None:
    with side.server.cursor(sides.DATABASE) as cursor:
        for statement in Path(__file__).with_name("shop.sql").read_text().split(";\n"):
            if statement.strip():
                cursor.execute(statement)


class Writer(servers.Client):
    """Moves amounts between accounts, whose sum stays. Adds and deletes accounts of zero."""

    database, autocommit, refusals = sides.DATABASE, False, AGAIN

    def work(self, cursor) -> None:
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


@contextlib.contextmanager
def writing(side):
    with servers.working([Writer(side.server, number) for number in range(2)]) as writers:
        servers.wait_until(lambda: all(writer.done for writer in writers), "writers")
        yield


def check(side) -> None:
    """Checks that the sum is unchanged and that no transaction was partly applied."""
    rows = side.rows("SELECT SUM(balance), SUM(moves) % 2 FROM account")
    assert rows == [(TOTAL, 0)], rows
