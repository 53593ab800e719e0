"""Helpers for tests of experiments: the experiment, made-up results, and tiny real trials."""

import sys
from pathlib import Path

import pytest
from cheetah_lab import experiments
from cheetah_lab.engines import ALL
from cheetah_lab.model import TURN, Experiment, Scale
from cheetah_lab.results import Found
from cheetah_lab.trial import Refused, Trial

ENGINES = ["innodb-dynamic", "myrocks", "cheetah"]


def experiment(name: str) -> Experiment:
    return experiments.load([name])[0]


def module(name: str):
    return sys.modules[type(experiment(name)).__module__]


def results(values: dict) -> Found:
    """Returns results from engine -> measure, or (measure, at) -> the values of all repeats."""
    trials = []
    for engine, measures in values.items():
        for key, found in measures.items():
            measure, at = key if isinstance(key, tuple) else (key, None)
            trials += [{"engine": engine, "repeat": repeat, "values": [[measure, value, at]]}
                       for repeat, value in enumerate(found)]
    return Found(trials, ALL)


def tiny(name: str, folder: Path, engine: str, factor: float = 0.01, chosen: bool = True,
         full: bool = False) -> tuple:
    """Runs the smallest real trial; returns it and its values. Skips if the engine is missing."""
    return tiny_of(experiment(name), folder, engine, factor, chosen, full)


def tiny_of(found: Experiment, folder: Path, engine: str, factor: float = 0.01,
            chosen: bool = True, full: bool = False) -> tuple:
    """Like `tiny`, for an experiment that is already loaded."""
    trial = Trial(ALL[engine], Scale(factor, full), 0, chosen, folder / "trial")
    try:
        values = [value for value in found.run(trial) if value is not TURN]
    except Refused as refused:
        pytest.skip(str(refused))
    assert {value.measure for value in values} <= {measure.key for measure in found.measures}
    assert len({(value.measure, value.at) for value in values}) == len(values), (
        "a measure twice at the same place")
    assert not list((folder / "trial").glob("server*")), "a server's folder was left behind"
    return trial, values


def nothing() -> Trial:
    return Trial(ALL["cheetah"], Scale(), 0, True, Path("nowhere"))


def outcomes(values: dict, name: str) -> dict:
    """Returns claim -> outcome; every claim of experiment.toml must have a verdict."""
    verdicts = experiment(name).verdicts(results(values))
    assert {verdict.claim for verdict in verdicts} == set(experiment(name).about["claims"].values())
    assert all(verdict.why for verdict in verdicts)
    return {verdict.claim: verdict.outcome for verdict in verdicts}


def decided(values: dict, name: str) -> list:
    """Returns the outcomes of all claims, in order."""
    return list(outcomes(values, name).values())


def tables(values: dict, name: str) -> list:
    found = experiment(name).tables(results(values))
    assert all(len(row) == len(table.head) for table in found for row in table.rows)
    return found


def figures(name: str, values: dict) -> dict:
    """Returns the figures that an experiment computes from made-up values, by key."""
    return {figure.key: figure for figure in experiment(name).figures(results(values))}


def by_place(values: list) -> dict:
    return {(value.measure, value.at): value.value for value in values}
