"""Tests of the experiment with less memory than the data need, and of its arithmetic."""

import made
import pytest
from cheetah_lab.model import FAILS, HOLDS, OPEN

NAME = "less_memory"
SHARES = (1.0, 0.9, 0.75, 0.5, 0.25)


def engine(rate: float, factor: float) -> dict:
    """Returns three repeats of curves whose reads are `factor` times those of the arithmetic."""
    reads = {("reads", share): [1000 * (1 - share) * factor * noise for noise in (0.98, 1.0, 1.02)]
             for share in SHARES}
    caches = {("cache", share): [100e6 * share] * 3 for share in SHARES}
    return {**reads, **caches, **{("rate", share): [rate * noise for noise in (0.99, 1.0, 1.01)]
                                  for share in SHARES}}


def test_arithmetic_of_the_document():
    arithmetic = made.module(NAME)
    assert arithmetic.served(10_000, 10 * 0.01, 100) == pytest.approx(1000)
    assert arithmetic.served(10_000, 0, 100) == 10_000 and arithmetic.served(500, 0.1, 100) == 500
    assert arithmetic.predicted_reads(0.75) == 0.25 and arithmetic.predicted_reads(1.2) == 0


def test_verdicts_and_the_figure_follow_the_values():
    values = {"innodb-dynamic": engine(10_000, 1.1), "cheetah": engine(20_000, 0.5)}
    assert made.decided(values, NAME) == [HOLDS] * 4
    figures = made.experiment(NAME).figures(made.results(values))
    assert [(figure.key, figure.document) for figure in figures] == [("W14 0.9", None),
                                                                     ("W14 0.5", None)]
    for figure in figures:
        assert (figure.innodb == pytest.approx([1.078, 1.1, 1.122])
                and figure.cheetah == pytest.approx([0.49, 0.5, 0.51]))
    values = {"innodb-dynamic": engine(10_000, 3), "cheetah": engine(5_000, 4)}
    assert made.decided(values, NAME) == [HOLDS, FAILS, FAILS, FAILS]


def test_rates_are_compared_where_the_page_cache_does_not_hold_the_rest():
    small = {**engine(10_000, 1.1), **{("cache", share): [20e6 * share] * 3 for share in SHARES}}
    free = {key: values for key, values in engine(10_000, 1.1).items()
            if key[0] != "rate" or key[1] == 1}
    for innodb in (small, free):
        values = {"innodb-dynamic": innodb, "cheetah": engine(20_000, 0.5)}
        assert made.decided(values, NAME) == [HOLDS] * 3 + [OPEN]


def test_nothing_is_decided_where_everything_does_not_fit():
    """In a run that is too small, InnoDB reads pages whatever its cache size."""
    values = engine(10_000, 1.1)
    values["reads", 1.0] = [700.0] * 3
    found = made.results({"innodb-dynamic": values, "cheetah": engine(20_000, 0.5)})
    verdicts = made.experiment(NAME).verdicts(found)
    assert ({verdict.outcome for verdict in verdicts} == {OPEN}
            and "InnoDB read 700 pages" in verdicts[0].why)
    assert all(figure.innodb == figure.cheetah == []
               for figure in made.experiment(NAME).figures(found))


def test_nothing_is_decided_without_values():
    assert set(made.decided({"myrocks": engine(1000, 1)}, NAME)) == {OPEN}


def test_the_arithmetic_is_a_line_among_the_engines():
    values = {"innodb-dynamic": engine(10_000, 1.1), "cheetah": engine(20_000, 0.5)}
    plots = {plot.key: plot for plot in made.experiment(NAME).plots(made.results(values))}
    arithmetic = plots["reads"].series[-1]
    assert [series.label for series in plots["reads"].series] == [
        "InnoDB DYNAMIC", "Cheetah", "arithmetic: 1 - share"]
    assert dict(arithmetic.points)[0.5] == [500]
    slow = dict(plots["slow"].series[0].points)
    assert (slow[1.0] == pytest.approx([9900, 10_000, 10_100])
            and slow[0.5] == pytest.approx([100 / 0.539, 100 / 0.55, 100 / 0.561]))
    made.tables(values, NAME)


@pytest.mark.parametrize("key", ["innodb-dynamic", "cheetah"])
def test_a_tiny_trial_has_both_curves(tmp_path, key):
    trial, values = made.tiny(NAME, tmp_path, key)
    places = {measure: [value.at for value in values if value.measure == measure]
              for measure in ("rate", "reads", "cache")}
    assert places == dict.fromkeys(places, [1.0, 0.9, 0.75]), "there is no smaller cache than 8 MB"
    assert all(value.value > 0 for value in values if value.measure == "rate")
    assert any("WHERE id = ?" in command for command in trial.commands)
