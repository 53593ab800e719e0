"""Tests of the experiment with response times at a fixed rate."""

import made
import pytest
from cheetah_lab.model import FAILS, HOLDS, OPEN
from cheetah_tools import sysbench

NAME = "transactions"


def engine(middle: float, worst: float) -> dict:
    """Returns three repeats of two seconds each."""
    return {("p99", 1): [middle] * 3, ("p99", 2): [worst] * 3, "middle": [middle] * 3,
            "worst": [worst, worst * 1.01, worst * 0.99], "slow seconds": [int(worst > 100)] * 3,
            **{(f"{field} oltp_read_write", count): [value, value * 1.01, value]
               for field, value in (("tps", 1000 / middle), ("p99", middle), ("cpu", middle))
               for count in (1, 16)},
            "p99 all": [middle] * 3, "slowest": [worst * 2] * 3, "served": [1.0] * 3}


def test_a_second_in_which_nothing_ended_is_a_slow_one():
    seconds = [sysbench.Second(3, 200, 5.0), sysbench.Second(4, 0, 0.0, queue=190),
               sysbench.Second(5, 390, 150.0), sysbench.Second(6, 0, 0.0)]
    found = made.module(NAME).values(sysbench.Result(190, 140, 1200, seconds))
    got = {(value.measure, value.at): value.value for value in found}
    assert [got["p99", second] for second in (1, 2, 3, 4)] == [5.0, 1000, 150.0, 0.0]
    assert (got["slow seconds", None], got["worst", None], got["middle", None],
            got["slowest", None]) == (2, 1000, 77.5, 1200)
    assert got["served", None] == 190 / made.module(NAME).RATE


def test_verdicts_follow_the_values():
    good = {"innodb-dynamic": engine(10, 40), "cheetah": engine(5, 20)}
    assert made.decided(good, NAME) == [HOLDS] * 8
    assert made.decided({**good, "cheetah": engine(5, 200)}, NAME) == [
        *[HOLDS] * 3, HOLDS, FAILS, HOLDS, FAILS, FAILS]
    slow = {"innodb-dynamic": engine(5, 40), "cheetah": engine(10, 40)}
    assert made.decided(slow, NAME)[:3] == [FAILS] * 3
    assert set(made.decided({"myrocks": engine(5, 20)}, NAME)) == {OPEN}


def test_plots_have_seconds_and_the_whole():
    values = {"innodb-dynamic": engine(10, 40), "cheetah": engine(5, 20)}
    cells, seconds, whole = made.experiment(NAME).plots(made.results(values))
    assert [[at for at, _ in series.points] for series in cells.series] == [[1, 16]] * 2
    assert [[at for at, _ in series.points] for series in seconds.series] == [[1, 2]] * 2
    assert [len(series.points) for series in whole.series] == [4, 4]
    assert all(len(table.rows) >= 2 for table in made.tables(values, NAME))


@pytest.mark.parametrize("key", ["innodb-dynamic", "cheetah"])
def test_a_tiny_trial_has_seconds(tmp_path, key):
    trial, values = made.tiny(NAME, tmp_path, key)
    seconds = [value.at for value in values if value.measure == "p99"]
    assert seconds and seconds == list(range(1, len(seconds) + 1))
    assert all(value.value > 0 for value in values
               if value.measure in ("worst", "slowest", "served"))
    assert any("--rate=100" in command for command in trial.commands)
