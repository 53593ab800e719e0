"""Tests of the experiment with indexes that outgrow memory."""

import made
import pytest
from cheetah_lab.model import FAILS, HOLDS, OPEN

NAME = "growing_indexes"
FALLING = {"cache": [100_000] * 3, "last by first": [0.1, 0.11, 0.1], "rows": [1000, 1010, 990],
           "rows buffered": [1500, 1520, 1510], "rows plain": [900, 910, 920],
           "rows unique": [450, 460, 440], ("rate", 400): [9000.0] * 3,
           ("rate", 800): [900.0, 990.0, 900.0], ("rate buffered", 400): [9000.0] * 3,
           ("rate buffered", 800): [1800.0] * 3, ("rate buffered", 1200): [1000.0] * 3}
FLAT = {"cache": [100_000] * 3, "last by first": [0.9, 0.91, 0.9], "rows": [3000, 3010, 3020],
        "rows plain": [900, 910, 920], "rows unique": [890, 905, 910],
        ("rate", 400): [9000.0] * 3, ("rate", 800): [8100.0, 8190.0, 8190.0],
        ("rate", 1200): [4500.0] * 3, ("rate", 1600): [100.0]}
BOTH = {"innodb-dynamic": FALLING, "cheetah": FLAT}


def test_verdicts_and_the_figure_follow_the_values():
    assert made.decided(BOTH, NAME) == [HOLDS] * 6
    plain, buffered = made.experiment(NAME).figures(made.results(BOTH))
    assert (plain.key, buffered.key) == ("W11", "W11 buffered") and "(800)" in plain.what
    assert (plain.innodb == pytest.approx([0.1, 0.11, 0.1])
            and plain.cheetah == pytest.approx([0.9, 0.91, 0.91])), "of the rows that both have"
    assert buffered.innodb == pytest.approx([0.2] * 3) and buffered.cheetah == plain.cheetah
    worse = {**FLAT, "last by first": [0.2, 0.2, 0.21], "rows": [800, 810, 820],
             "rows unique": [450, 460, 440]}
    values = {"innodb-dynamic": {**FALLING, "rows buffered": [1000, 1011, 990]}, "cheetah": worse}
    assert made.decided(values, NAME) == [HOLDS, FAILS, FAILS, FAILS, HOLDS, FAILS]


def test_indexes_within_the_cache_decide_nothing_of_how_the_rate_falls():
    values = dict.fromkeys(BOTH, {**FALLING, "cache": [1_000_000] * 3})
    assert made.decided(values, NAME) == [OPEN] * 6
    for figure in made.experiment(NAME).figures(made.results(values)):
        assert (figure.innodb, figure.cheetah, figure.others) == ([], [], {})


def test_an_engine_that_inserted_fewer_rows_is_not_compared():
    slow = {**FALLING, ("rate", 800): []}
    figure = made.experiment(NAME).figures(made.results(
        {"innodb-dynamic": FALLING, "cheetah": FLAT, "myrocks": slow, "innodb-8k": FLAT}))[0]
    assert list(figure.others) == ["InnoDB KEY_BLOCK_SIZE=8"]


def test_the_fall_is_that_of_fifths_of_the_rows():
    fall = made.module(NAME).fall
    assert fall([100, 300] + [50] * 6 + [60, 20]) == pytest.approx(30 / 150), (
        "the time of two steps, by that of two")
    assert fall([100, 50]) == 0.5 and fall([100]) is None


def test_a_quick_run_decides_nothing_of_unique_indexes():
    quick = {key: values for key, values in FLAT.items()
             if key not in ("rows plain", "rows unique")}
    assert made.decided(dict.fromkeys(BOTH, quick), NAME)[4:] == [OPEN, OPEN]


def test_change_buffering_is_a_line_of_its_own():
    plot, = made.experiment(NAME).plots(made.results(BOTH))
    assert [series.label for series in plot.series] == [
        "InnoDB DYNAMIC", "Cheetah", "InnoDB DYNAMIC, change buffering"]
    made.tables(BOTH, NAME)


@pytest.mark.parametrize("key", made.ENGINES)
def test_a_tiny_trial_has_a_curve(tmp_path, key):
    trial, values = made.tiny(NAME, tmp_path, key, factor=0.03)
    places = [value.at for value in values if value.measure == "rate"]
    assert (places and places == sorted(places)
            and all(value.value > 0 for value in values if value.measure == "rate"))
    rows, = (value.value for value in values if value.measure == "rows")
    assert rows >= places[-1]
    assert ("rate buffered" in {value.measure for value in values}) == (key == "innodb-dynamic")
    assert any("KEY marketsegment (price, customerid)" in command for command in trial.commands)
