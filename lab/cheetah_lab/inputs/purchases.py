"""Rows of the insert benchmark (iibench): purchases, whose three indexes get scattered keys.

A seed determines the rows, so every engine gets the same rows in the same order."""

import queue
import random
import re
import threading
from datetime import datetime, timedelta

from cheetah_tools.say import Failure

CASH_REGISTERS, PRODUCTS, CUSTOMERS, PRICE_MAX = 1000, 10_000, 100_000, 500
ROWS_OF_BATCH = 1000
# the time of the first batch; each later batch is one second later
OPENING = datetime(2013, 10, 28, 16, 12, 4)
SECONDARY_KEYS = ["KEY marketsegment (price, customerid)",
                  "KEY registersegment (cashregisterid, price, customerid)",
                  "KEY pdc (price, dateandtime, customerid)"]
PREPARED_BATCHES = 8
# A table has outgrown the cache when it is larger than the cache times this factor.
OUTGROWN_BY = 1.1
COLUMNS = ("dateandtime DATETIME NOT NULL, cashregisterid INT NOT NULL, customerid INT NOT NULL, "
           "productid INT NOT NULL, price FLOAT NOT NULL, data VARCHAR(40) NOT NULL")


def create_table(
        clause: str, keys: list = tuple(SECONDARY_KEYS),
        primary_key: str = "transactionid BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY") -> str:
    """Returns CREATE TABLE. `clause` follows it; `primary_key` is a column with its key, or ""."""
    parts = [part for part in (primary_key, COLUMNS, *keys) if part]
    return f"CREATE TABLE purchases ({', '.join(parts)}) {clause}"


def check(server, database: str, keys: list, rows: int, distinct: str = "") -> None:
    """Raises Failure unless all indexes have all rows, and `distinct` only different values."""
    more = f", COUNT(DISTINCT {distinct})" if distinct else ""
    found = {}
    for name in ["PRIMARY", *(re.search(r"KEY (\w+)", key)[1] for key in keys)]:
        sums = (f"SELECT COUNT(*), SUM(customerid){more} FROM purchases FORCE INDEX ({name}) "
                "WHERE price >= 0")
        found[name] = tuple(map(int, server.sql(sums, database)[0]))
    if (len(set(found.values())) != 1 or found["PRIMARY"][0] != rows
            or (distinct and found["PRIMARY"][2] != rows)):
        raise Failure(f"{rows} rows were acknowledged, and the indexes have (rows, sum"
                      f"{', values' if distinct else ''}): {found}")


def batches(count: int, rows: int = ROWS_OF_BATCH, seed: int = 1, first_column=None):
    """Yields `count` INSERT statements of `rows` rows each. `first_column` is for tables with one
    more column: it returns that column's value as SQL from a random.Random."""
    rng, first = random.Random(seed), random.Random(f"{seed} first")
    names = ("" if first_column
             else " (dateandtime, cashregisterid, customerid, productid, price, data)")
    for number in range(count):
        when = f"'{OPENING + timedelta(seconds=number):%Y-%m-%d %H:%M:%S}'"
        values = [f"({first_column(first)}, {row(rng, when)})" if first_column
                  else f"({row(rng, when)})"
                  for _ in range(rows)]
        yield f"INSERT INTO purchases{names} VALUES {', '.join(values)}"


def row(rng: random.Random, when: str) -> str:
    """Returns the columns of all tables. Two rows have the same `data` with probability 2^-80."""
    customer = int(rng.random() * CUSTOMERS)
    price = (rng.random() * PRICE_MAX + customer) / 100
    return (f"{when}, {int(rng.random() * CASH_REGISTERS)}, {customer}, "
            f"{int(rng.random() * PRODUCTS)}, {price:.2f}, '{rng.getrandbits(80):020x}'")


def ahead(statements):
    """Yields the statements; another thread prepares them while the server executes others."""
    ready, stop = queue.Queue(PREPARED_BATCHES), threading.Event()

    def make() -> None:
        try:
            for statement in statements:
                if not offer(statement):
                    return
            offer(None)
        except BaseException as failure:  # raised where the statements are taken
            offer(failure)

    def offer(item) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    maker = threading.Thread(target=make, daemon=True)
    maker.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        maker.join()
