"""Tests of the experiment with three ways to count the rows of a table."""

import made
import pytest
from cheetah_lab.model import FAILS, HOLDS, OPEN

NAME = "row_counts"
GOOD = {"told length": [1.1, 1.12, 1.11], "told rows": [1.01, 1.02, 1.01],
        "told count": [1.0] * 3, "told open": [1.0] * 3, "ms length": [0.1] * 3,
        "ms rows": [0.1] * 3, "ms count": [20.0, 21.0, 22.0],
        "us per 1000": [222.0, 233.0, 244.0], "rows": [90_000] * 3, "pages count": [0] * 3,
        "ms open": [200.0] * 3, "ms cold": [30.0] * 3, "pages cold": [159, 160, 158]}
FAST = {**GOOD, "ms count": [0.1, 0.11, 0.1], "us per 1000": [1.1, 1.2, 1.1],
        "pages cold": [0, 0, 0]}
BOTH = {"innodb-dynamic": GOOD, "cheetah": FAST}


def test_figures_stand_beside_those_of_the_document():
    figures = made.figures(NAME, {**BOTH, "myrocks": GOOD})
    assert set(figures) == {"W12 length", "W12 rows", "W12 us", "W13 ms", "W13 pages", "W13 cold"}
    assert (figures["W12 length"].document == 1.112
            and figures["W12 length"].innodb == [1.1, 1.12, 1.11])
    assert (figures["W12 us"].document * 9441.296 == pytest.approx(2.03e6)
            and figures["W12 us"].innodb == [222.0, 233.0, 244.0])
    assert (figures["W13 ms"].cheetah == [0.1, 0.11, 0.1]
            and figures["W13 ms"].others == {"MyRocks": [20.0, 21.0, 22.0]})
    assert figures["W13 pages"].cheetah == [0] * 3 and figures["W13 cold"].innodb == [159, 160, 158]


def test_verdicts_follow_the_values():
    assert set(made.decided(BOTH, NAME)) == {HOLDS}
    wrong = {**FAST, "told open": [1.0, 0.98, 0.98], "ms count": [5.0, 5.1, 5.2],
             "pages cold": [9, 11, 10]}
    values = {"innodb-dynamic": {**GOOD, "told length": [0.99, 0.98, 0.99]}, "cheetah": wrong}
    assert made.decided(values, NAME) == [FAILS, FAILS, HOLDS, FAILS, OPEN]


def test_nothing_is_decided_without_values_or_by_one_repeat():
    assert set(made.decided({"myrocks": {"ms count": [30.0]}}, NAME)) == {OPEN}
    once = {key: values[:1] for key, values in FAST.items()}
    claim = "Cheetah tells the exact number in less than a millisecond"
    assert made.outcomes({"cheetah": once}, NAME)[claim] == OPEN


def test_plots_and_tables_have_every_engine():
    for plot in made.experiment(NAME).plots(made.results(BOTH)):
        assert [series.label for series in plot.series] == ["InnoDB DYNAMIC", "Cheetah"]
        assert all(len(values) == 3 for series in plot.series for _, values in series.points)
    table, = made.tables(BOTH, NAME)
    assert [row[0].text for row in table.rows] == ["InnoDB DYNAMIC", "Cheetah"]


@pytest.mark.parametrize("engine", made.ENGINES)
def test_a_tiny_trial_counts_right(tmp_path, engine):
    trial, values = made.tiny(NAME, tmp_path, engine)
    found = {value.measure: value.value for value in values}
    assert found["told count"] == found["told open"] == 1
    assert found["told rows"] > 0 and found["ms cold"] > 0
    assert found["us per 1000"] * found["rows"] == pytest.approx(found["ms count"] * 1e6)
    assert found["pages count"] < 1, "the table is in memory; the server itself may read a page"
    assert "SELECT COUNT(1) FROM sbtest1" in trial.commands
