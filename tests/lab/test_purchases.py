"""Tests of the rows of the insert benchmark."""

import re
from contextlib import closing

import pytest
from cheetah_lab.inputs import purchases

ROW = re.compile(r"\('([-0-9 :]+)', (\d+), (\d+), (\d+), ([\d.]+), '([0-9a-f]{20})'\)")


def test_rows_are_those_of_the_seed():
    assert (list(purchases.batches(3, rows=10, seed=5))
            == list(purchases.batches(3, rows=10, seed=5)))
    assert (list(purchases.batches(1, rows=10, seed=5))
            != list(purchases.batches(1, rows=10, seed=6)))


def test_columns_are_within_the_benchmark_s_bounds_and_texts_differ():
    statements = list(purchases.batches(4, rows=250))
    rows = [match.groups() for statement in statements for match in ROW.finditer(statement)]
    assert len(rows) == 1000 and len({row[5] for row in rows}) == 1000
    for _, register, customer, product, price, _ in rows:
        assert (int(register) < purchases.CASH_REGISTERS and int(customer) < purchases.CUSTOMERS
                and int(product) < purchases.PRODUCTS)
        assert (int(customer) / 100 - 0.01 <= float(price)
                <= (int(customer) + purchases.PRICE_MAX) / 100 + 0.01)
    assert [min(row[0] for row in rows), max(row[0] for row in rows)] == [
        "2013-10-28 16:12:04", "2013-10-28 16:12:07"]
    assert len({int(row[2]) // 10_000 for row in rows}) == 10, "customers are not spread"


def test_a_first_column_is_made_of_the_same_chance():
    statement, = purchases.batches(1, rows=2, first_column=lambda rng: f"{rng.getrandbits(8)}")
    assert re.fullmatch(r"INSERT INTO purchases VALUES \((\d+), '.*\), \((\d+), '.*\)", statement)


def test_tables_have_the_keys_that_are_asked_for():
    whole = purchases.create_table("ENGINE=CHEETAH")
    assert whole.endswith(") ENGINE=CHEETAH") and whole.count("KEY") == 4
    assert purchases.create_table("ENGINE=CHEETAH", [], "").count("KEY") == 0


def test_ahead_is_the_same_in_order_and_can_be_left():
    assert list(purchases.ahead(iter(range(1, 100)))) == list(range(1, 100))
    with closing(purchases.ahead(iter(range(1, 1 << 40)))) as statements:
        assert next(statements) == 1


def test_a_failure_of_the_maker_is_raised_where_statements_are_taken():
    def broken():
        yield "one"
        raise ValueError("no more")
    statements = purchases.ahead(broken())
    assert next(statements) == "one"
    with pytest.raises(ValueError, match="no more"):
        next(statements)
