"""Tests of the experiment with kinds of primary keys."""

import random
import re

import made
import pytest
from cheetah_lab.model import FAILS, HOLDS, OPEN

NAME = "primary_keys"


def engine(guid: float, none: float) -> dict:
    """Returns three repeats; `guid` and `none` are the times relative to those of a sequence."""
    noise = (0.99, 1.0, 1.01)
    found = {"cache": [12 << 20] * 3}
    for kind, factor in (("sequence", 1), ("guid", guid), ("none", none)):
        for measure in ("seconds", "half", "bytes", "lookups"):
            found[f"{measure} {kind}"] = ([10 * factor * one for one in noise]
                                          if measure in ("seconds", "half") else [1000.0] * 3)
        found[f"rate {kind}", 60_000] = [100 / factor] * 3
    return found


USUAL = {"innodb-dynamic": engine(8, 1.3), "cheetah": engine(3, 1.2)}


def test_verdicts_follow_the_values():
    assert made.decided(USUAL, NAME) == [HOLDS] * 5
    values = {**USUAL, "innodb-dynamic": engine(2.0, 0.5)}
    assert made.decided(values, NAME) == [HOLDS, HOLDS, FAILS, FAILS, HOLDS]
    values = {"innodb-dynamic": {**engine(2, 1), "half guid": [19, 20, 21]},
              "cheetah": engine(1.5, 1.2)}
    assert made.decided(values, NAME)[:3] == [OPEN, FAILS, HOLDS]
    assert set(made.decided({"myrocks": engine(1, 1)}, NAME)) == {OPEN}


def test_a_table_within_the_cache_decides_nothing_of_guids():
    small = {**engine(8, 1.3), "cache": [64 << 20] * 3}
    assert made.decided(dict.fromkeys(USUAL, small), NAME)[:2] == [OPEN, OPEN]


def test_every_kind_has_lines_and_a_group_of_bars():
    plots = {plot.key: plot for plot in made.experiment(NAME).plots(made.results(USUAL))}
    for kind in ("sequence", "guid", "none"):
        assert [series.label for series in plots[f"rate-{kind}"].series] == [
            "InnoDB DYNAMIC", "Cheetah"]
    assert "rate-binary" not in plots
    assert [word for word, _ in plots["bytes"].series[0].points] == [
        "sequence", "GUID", "no primary key"]
    assert all(table.head == ["engine", "sequence", "GUID", "no primary key"]
               for table in made.tables(USUAL, NAME))


def test_guids_are_random_ones_of_the_seed():
    guid = made.module(NAME).guid
    assert str(guid(random.Random(1))) == str(guid(random.Random(1))) != str(guid(random.Random(2)))
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                        str(guid(random.Random(3))))


@pytest.mark.parametrize("key", ["innodb-dynamic", "cheetah"])
def test_a_tiny_trial_has_every_kind(tmp_path, key):
    trial, values = made.tiny(NAME, tmp_path, key)
    for kind in ("sequence", "guid", "none"):
        assert [value.at for value in values if value.measure == f"rate {kind}"] == [
            1000 * tenth for tenth in range(1, 11)]
    assert all(value.value > 0 for value in values)
    assert sum("PRIMARY KEY" in command for command in trial.commands) == 2
