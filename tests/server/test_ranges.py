"""The estimates that the optimizer gets for ranges, on real data."""

import json

import pytest
from cheetah_tools import dump
from cheetah_tools.engines import CHEETAH
from cheetah_tools.paths import shared_data
from cheetah_tools.say import note

OPTIONS = {"loose_cheetah_buffer_pool_size": "256M"}
SETS, LARGE_SETS = ["sakila"], ["sakila", "feed_beer", "flights_nyc13", "enwiki_text_plain"]
WIDTHS = 12      # the number of widths for each index: all rows, half of them, and so on
WRONG_MAX = 0.1  # as a fraction of the rows; an error of one row is ignored


def indexes(server, database: str) -> list:
    """Returns (table, index, first column, rows) of indexes that begin with a number or time."""
    return server.sql(f"""SELECT s.table_name, s.index_name, s.column_name, t.table_rows
        FROM information_schema.statistics s
        JOIN information_schema.columns c USING (table_schema, table_name, column_name)
        JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE s.table_schema = '{database}' AND s.seq_in_index = 1 AND s.sub_part IS NULL
        AND t.table_type = 'BASE TABLE'
        AND (c.data_type LIKE '%int' OR c.data_type IN ('date', 'datetime', 'timestamp'))
        ORDER BY 1, 2""")


def wrong(server, database: str, table: str, index: str, column: str, low, high):
    """Returns the relative error of EXPLAIN's row count, or None if the plan reads no range."""
    where = f"FROM `{table}` FORCE INDEX (`{index}`) WHERE `{column}` BETWEEN '{low}' AND '{high}'"
    block = json.loads(server.value(f"EXPLAIN FORMAT=JSON SELECT `{column}` {where}",
                                    database))["query_block"]
    plan = block.get("nested_loop", [block])[0].get("table", {})
    truth = server.value(f"SELECT COUNT(*) {where}", database)
    if plan.get("access_type") != "range":
        return None
    return max(abs(plan["rows"] - truth) - 1, 0) / truth


def test_ranges_are_estimated_within_a_tenth(server, rng, large):
    names = [name for name in (LARGE_SETS if large else SETS)
             if (shared_data() / f"{name}.sql.zst").exists()]
    if not names:
        pytest.skip(f"no data sets in {shared_data()}")
    for name in names:
        dump.load(server, name, dump.open_dump(shared_data() / f"{name}.sql.zst").stdout,
                  CHEETAH.clause())
        found = []
        for table, index, column, _ in indexes(server, name):
            values = [value for value, in server.sql(
                f"SELECT `{column}` FROM `{table}` FORCE INDEX (`{index}`) "
                f"WHERE `{column}` IS NOT NULL ORDER BY 1", name)]
            # Few of enwiki's indexes start with a number.
            for number in range((2 * WIDTHS if large else WIDTHS) if len(values) > 100 else 0):
                first = rng.randrange(len(values))
                last = min(first + int(len(values) * 0.5 ** (number % WIDTHS)), len(values) - 1)
                error = wrong(server, name, table, index, column, values[first], values[last])
                if error is not None:
                    found.append((error, table, index, values[first], values[last]))
        assert len(found) > 50, f"{name}: only {len(found)} ranges were read by their indexes"
        worst = max(found)
        note(f"{name}: {len(found)} ranges, the worst is wrong by {worst[0]:.3f}")
        assert worst[0] <= WRONG_MAX
