"""The experiment with row formats: figures and verdicts from made-up values, tiny real trials."""

import made
from cheetah_lab.model import FAILS, HOLDS, OPEN

NAME = "row_formats"
SLOWER = (1, 1.01, 1.02)
COUNTS = (1, 16, 128)


def form(load_s, size, status, compressions=0, succeeded=0, cached=(), overflow=()):
    values = {"load_rows": [60_000] * 3, "rows": [240_000] * 3,
              "load_s": [load_s * by for by in SLOWER], "bytes": [size] * 3,
              "data_length": [status] * 3, "index_length": [0] * 3, "status_bytes": [status] * 3}
    if compressions:
        for at in (None, 8192):
            values["compress_ops", at], values["compress_ops_ok", at] = (
                [compressions] * 3, [succeeded] * 3)
        values["failures"] = [1 - succeeded / compressions] * 3
    for cache, rates in (("cached", cached), ("overflow", overflow)):
        for count, rate in zip(COUNTS, rates):
            values[f"tps_{cache}", count] = [rate * by for by in SLOWER]
            values[f"p99_{cache}", count] = [10 * by for by in SLOWER]
    return values


# InnoDB with the document's values and charted throughput; a Cheetah that fulfils its claims.
VALUES = {
    "innodb-compact": form(1698, 2300, 2384),
    "innodb-dynamic": form(1675, 2300, 2384, cached=(400, 1000, 800), overflow=(100, 300, 200)),
    "innodb-8k": form(1786, 1200, 2384, 446198, 445598, cached=(380, 950, 760),
                      overflow=(200, 300, 400)),
    "innodb-4k": form(2203, 592, 2409, 1091421, 1012917),
    "cheetah": form(1500, 400, 380, 1000, 1000, cached=(440, 1000, 880), overflow=(400, 1200, 800)),
    "cheetah-8k": form(1600, 350, 330, 900, 900),
    "cheetah-4k": form(1900, 300, 290, 900, 900),
    "myrocks": form(1400, 450, 440, cached=(300, 900, 700), overflow=(150, 200, 300))}


def near(values, wanted):
    return len(values) == 3 and all(abs(value - wanted) < 1e-6 for value in values)


def test_the_documents_own_values_give_its_ratios():
    figures = made.figures(NAME, VALUES)
    assert list(figures) == ["W1 8K", "W1 4K", "W1 DYNAMIC", "W2 8K", "W2 4K", "W2 DYNAMIC",
                             "W3 cached", "W3 overflow"]
    documents = {key: figure.document for key, figure in figures.items()}
    assert documents == {"W1 8K": 1.05, "W1 4K": 1.30, "W1 DYNAMIC": 0.99,
                         "W2 8K": 0.52, "W2 4K": 0.25, "W2 DYNAMIC": 1.0,
                         "W3 cached": None, "W3 overflow": None}
    for key, figure in figures.items():
        if figure.document:
            assert (all(abs(value - figure.document) < 0.01 for value in figure.innodb)
                    and len(figure.innodb) == 3), figure
    assert (near(figures["W2 DYNAMIC"].cheetah, 400 / 2300)
            and near(figures["W1 8K"].cheetah, 1600 / 1698))
    assert near(figures["W2 8K"].others["MyRocks"], 450 / 2300)


def test_throughput_is_the_geometric_mean_over_connections():
    figures = made.figures(NAME, VALUES)
    assert near(figures["W3 cached"].innodb, 0.95)
    assert (near(figures["W3 overflow"].innodb, (2 * 1 * 2) ** (1 / 3))
            and near(figures["W3 overflow"].cheetah, 4))


def test_the_documents_own_values_keep_its_claims():
    assert set(made.decided(VALUES, NAME)) == {HOLDS}


def test_sizes_of_small_tables_decide_nothing():
    """Small files are mostly free space, which decides nothing; times and counts are shown."""
    values = {engine: {**measures, "rows": [24_000] * 3} for engine, measures in VALUES.items()}
    outcomes = made.outcomes(values, NAME)
    assert ([claim for claim, outcome in outcomes.items()
             if outcome == OPEN and "throughput" not in claim]
            and set(outcomes.values()) == {HOLDS, OPEN})
    figures = made.figures(NAME, values)
    assert (figures["W2 8K"].innodb == figures["W2 8K"].cheetah == []
            and figures["W2 8K"].others == {} and len(figures["W1 8K"].innodb) == 3)


def test_a_failed_compression_and_a_status_with_compressed_sizes_break_their_claims():
    values = {**VALUES, "cheetah": {**VALUES["cheetah"], "failures": [0.001] * 3},
              "innodb-8k": {**VALUES["innodb-8k"], "status_bytes": [1100] * 3}}
    outcomes = made.outcomes(values, NAME)
    assert outcomes["Cheetah: no compression fails"] == FAILS
    assert outcomes["Cheetah: SHOW TABLE STATUS has the compressed sizes: "
                    "those of the files"] == HOLDS
    assert outcomes["InnoDB: SHOW TABLE STATUS of a compressed table "
                    "has the original sizes"] == FAILS


def test_without_throughput_nothing_is_said_of_it():
    values = {engine: {key: found for key, found in measures.items() if not isinstance(key, tuple)}
              for engine, measures in VALUES.items()}
    outcomes = made.outcomes(values, NAME)
    assert outcomes["InnoDB: when the cache overflows, compression helps"] == OPEN
    assert made.figures(NAME, values)["W3 cached"].innodb == []
    assert len(made.experiment(NAME).tables(made.results(values))) == 3


def test_a_cache_that_holds_half_of_the_table_does_not_overflow():
    caches = made.module(NAME).caches
    assert {cache: size >> 20 for cache, size in caches(240_000).items()} == {
        "cached": 123, "overflow": 12}
    assert (caches(960_000)["overflow"] >> 20 == 51 and list(caches(60_000)) == ["cached"]
            and caches(2_400)["cached"] == 8 << 20)


def test_every_row_of_a_table_is_as_long_as_its_head():
    tables = made.tables(VALUES, NAME)
    assert len(tables) == 5 and tables[0].caption.startswith(
        "Load: 60,000 rows, the document 10 million. Size: 240,000 rows;")
    statistics = {row[0].text: row for row in tables[2].rows}
    assert (statistics["document: 4K"][-1].text == "7.19%"
            and statistics["MyRocks"][1].text == "has no such view")
    assert (near(statistics["InnoDB KEY_BLOCK_SIZE=8"][-1].values, 100 * 600 / 446198)
            and statistics["InnoDB KEY_BLOCK_SIZE=8"][-1].unit == "%")


def test_a_size_of_pages_that_one_repeat_had_has_no_line():
    values = {**VALUES, "cheetah": {**VALUES["cheetah"], ("compress_ops", 4096): [7],
                                    ("compress_ops_ok", 4096): [7]}}
    rows = made.experiment(NAME).tables(made.results(values))[2].rows
    assert [row[1].text for row in rows if row[0].text == "Cheetah"] == ["8,192"]


def test_a_tiny_trial_measures_all_of_it(tmp_path):
    trial, found = made.tiny(NAME, tmp_path, "cheetah")
    values = made.by_place(found)
    assert values["compress_ops", None] > 0 and values["failures", None] == 0
    assert sum(value for (measure, at), value in values.items()
               if measure == "compress_ops" and at) == values["compress_ops", None]
    assert values["status_bytes", None] == (values["data_length", None]
                                            + values["index_length", None])
    assert [at for measure, at in values
            if measure == "tps_cached" and values[measure, at] > 0] == [1, 16]
    assert not [at for measure, at in values
                if measure == "tps_overflow"], "there is no smaller cache than 8 MB"
    assert any(command.startswith("sysbench oltp_read_write") for command in trial.commands)
    assert any("CHEETAH_CMP" in command for command in trial.commands)


def test_an_engine_that_was_not_chosen_has_no_throughput(tmp_path):
    _, found = made.tiny(NAME, tmp_path, "innodb-4k", chosen=False)
    values = made.by_place(found)
    assert values["compress_ops", 4096] > 0 and values["load_s", None] > 0
    assert not [measure for measure, _ in values if measure.startswith(("tps", "random"))]
