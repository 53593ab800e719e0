"""Two runs, or the two halves of one: what moved beyond the noise.

For each experiment, engine and measure (and place on a curve): the ratio of the geometric means,
Welch's t-test on the logarithms, and Holm's correction over the lines of the experiment (but those
that never vary and are alike). A line *moved* when its corrected p is below P_MAX and the ratio
differs from one by more than FLOOR. Values that are not above zero have no logarithm: they are
compared as they are.

Values that never vary on either side (bytes) have no spread for a test. Noise may have two levels
(a page more, or none): each of five repeats here has the one and each there the other once in 512
times at most, of three repeats once in 32. That is the p of a difference, and it is corrected like
the others: five repeats are enough in an experiment where up to five lines vary or differ, six
where 20 do, seven where 81 do.
"""

import math
import statistics
import warnings
from dataclasses import dataclass

from scipy import special, stats

from cheetah_tools.say import Failure

from . import store
from .model import LESS, MORE

P_MAX, FLOOR = 0.01, 0.02
REPEATS_MIN = 2
MISSED_MAX = 0.1           # how often `visible` lets a change go unseen
BETTER, WORSE, OTHER = "better", "worse", "moved"
# of the machine: differs always, and says nothing
UNMARKED = ("disk_free_bytes", "reads_1", "reads_8", "read_cpu_us")


@dataclass(frozen=True)
class Side:
    """One of the two that are compared: a run, or every other repeat of one."""

    name: str
    about: dict
    trials: list

    def values(self) -> dict:
        """(experiment, engine, measure, at) -> values of all repeats."""
        found = {}
        for trial in self.trials:
            for measure, value, at in trial.get("values", ()):
                found.setdefault(
                    (trial["experiment"], trial["engine"], measure, at), []).append(value)
        return found


@dataclass(frozen=True)
class Line:
    """One measure of one engine (at one place of a curve) on both sides. `ratio`: second through
    first; None when there is none. `p` is corrected; None when there are too few repeats.
    `verdict`: better, worse, moved, or empty."""

    experiment: str
    engine: str
    measure: str
    label: str
    unit: str
    at: float
    first: list
    second: list
    ratio: float
    p: float
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """All lines; what only one side has (side -> keys), and settings that differ: (name, first,
    second)."""

    first: Side
    second: Side
    lines: list
    alone: dict
    settings: list

    def moved(self) -> list:
        """The lines that moved."""
        return [line for line in self.lines if line.verdict]


def sides(first: store.Run, second: store.Run, names: tuple = ()) -> tuple:
    """Both runs; of a run and itself the odd and the even repeats, so that what drifts drifts in
    both (Failure when these are too few). `names`: of experiments, all unless given."""
    ours, theirs = ([trial for trial in run.trials() if trial["experiment"] in names or not names]
                    for run in (first, second))
    if first.folder.resolve() != second.folder.resolve():
        return Side(first.name, first.about, ours), Side(second.name, second.about, theirs)
    if len({trial["repeat"] for trial in ours if "values" in trial}) < 2 * REPEATS_MIN:
        raise Failure("a run is compared with itself by its odd and its even repeats, and "
                      f"{first.name} has too few for both: run it with REPEATS={2 * REPEATS_MIN} "
                      "or more")
    halves = [[trial for trial in ours if trial["repeat"] % 2 == half] for half in (0, 1)]
    return (Side(f"{first.name}, odd repeats", first.about, halves[0]),
            Side(f"{first.name}, even repeats", first.about, halves[1]))


def compare(first: Side, second: Side) -> Comparison:
    """Every measure that both have. Failure when there is none, or when they were measured at
    different sizes or on different inputs."""
    inputs = [side.about["asked"].get("input") or {} for side in (first, second)]
    if inputs[0].get("mark") != inputs[1].get("mark"):
        said = "; ".join(
            f"{side.name}: {given.get('label') or 'the rows that the experiments make'}"
            for side, given in zip((first, second), inputs))
        raise Failure("the runs measured different rows, and figures of these do not compare "
                      f"({said}): give both runs one input")
    sizes = [(side.about["asked"]["factor"], side.about["asked"].get("full", False),
              side.about["asked"].get("options", {})) for side in (first, second)]
    if sizes[0] != sizes[1]:
        said = " and ".join(f"SCALE={factor:g}{' FULL=1' if full else ''}"
                            f"{f' with {options}' if options else ''}"
                            for factor, full, options in sizes)
        raise Failure(f"{first.name} and {second.name} ran at {said}: figures of different sizes "
                      "do not compare; run both at one size")
    ours, theirs = first.values(), second.values()
    common = [key for key in ours if key in theirs]
    if not common:
        raise Failure(f"{first.name} and {second.name} have no measure in common: they ran other "
                      "experiments or other engines")
    tested = {key: p_of(ours[key], theirs[key]) for key in common}
    corrected = {}
    for experiment in dict.fromkeys(key[0] for key in common):
        own = {key: p for key, p in tested.items() if key[0] == experiment and p is not None}
        varied = {key: p for key, p in own.items() if len({*ours[key], *theirs[key]}) > 1}
        corrected.update({**own, **holm(varied)})
    lines = [_line(key, ours[key], theirs[key], corrected.get(key), first.about) for key in common]
    alone = {first.name: [key for key in ours if key not in theirs],
             second.name: [key for key in theirs if key not in ours]}
    return Comparison(first, second, lines, alone, differing(first.about, second.about))


def _line(key: tuple, first: list, second: list, p: float, about: dict) -> Line:
    experiment, engine, measure, at = key
    label, unit, better = (about["experiments"].get(experiment, {}).get("measures", {})
                           .get(measure, (measure, "", "")))
    ratio = ratio_of(first, second)
    verdict = ""
    if p is not None and p < P_MAX and differs(first, second):
        grew = mean(second) > mean(first)
        verdict = (OTHER if better not in (LESS, MORE)
                   else BETTER if grew == (better == MORE) else WORSE)
    return Line(experiment, engine, measure, label, unit, at, first, second, ratio, p, verdict)


def mean(values: list) -> float:
    """The geometric mean; the ordinary one when a value is not above zero."""
    return statistics.geometric_mean(values) if min(values) > 0 else statistics.fmean(values)


def ratio_of(first: list, second: list):
    """Second through first; None when they have none."""
    if first == second or mean(first) == mean(second):
        return 1.0
    return mean(second) / mean(first) if min(first) > 0 and min(second) > 0 else None


def differs(first: list, second: list) -> bool:
    """Whether the means are further apart than the floor."""
    ratio = ratio_of(first, second)
    if ratio is not None:
        return abs(math.log(ratio)) > math.log1p(FLOOR)
    return abs(mean(second) - mean(first)) > FLOOR * max(abs(mean(first)), abs(mean(second)))


def exact(first: list, second: list) -> bool:
    """Whether neither side varies."""
    return len(set(first)) == len(set(second)) == 1


def unsure(line: Line) -> bool:
    """Whether its values never vary and differ, but in too few repeats for more than noise."""
    return (not line.verdict and line.p is not None and exact(line.first, line.second)
            and differs(line.first, line.second))


def p_of(first: list, second: list):
    """How likely it is that noise alone sets the two so far apart; None of too few values."""
    if min(len(first), len(second)) < REPEATS_MIN:
        return None
    if exact(first, second):
        return 1.0 if first[0] == second[0] else 2.0 ** (1 - 2 * min(len(first), len(second)))
    if min(*first, *second) > 0:
        first, second = [math.log(value) for value in first], [math.log(value) for value in second]
    with warnings.catch_warnings():
        # values that differ in the last digits only
        warnings.simplefilter("ignore", RuntimeWarning)
        p = float(stats.ttest_ind(first, second, equal_var=False).pvalue)
    return 1.0 if math.isnan(p) else p


def visible(found: Comparison):
    """The change that half of the lines would have shown about nine times in ten (MISSED_MAX): a
    ratio above one; None when there is no noise to go by. Of three repeats it is rather three times
    in four, for then the spread is hardly known."""
    seen = []
    for experiment in dict.fromkeys(line.experiment for line in found.lines):
        noisy = [line for line in found.lines
                 if line.experiment == experiment and line.p is not None
                 and min(*line.first, *line.second) > 0 and not exact(line.first, line.second)]
        for line in noisy:
            parts = [statistics.variance([math.log(value) for value in values]) / len(values)
                     for values in (line.first, line.second)]
            error = math.sqrt(sum(parts))
            freedom = (sum(parts) ** 2
                       / sum(part ** 2 / (len(values) - 1)
                             for part, values in zip(parts, (line.first, line.second))))
            # A change of just the critical value is missed half the time, for noise takes from it
            # as often as it adds to it.
            critical = stats.t.isf(P_MAX / len(noisy) / 2, freedom)
            seen.append(math.exp(min(special.nctdtrinc(freedom, MISSED_MAX, critical) * error,
                                     700)))
    return max(statistics.median(seen), 1 + FLOOR) if seen else None


def holm(tests: dict) -> dict:
    """p by key, corrected for their number: the chance that any line of noise is taken for a
    difference stays below P_MAX."""
    corrected, least = {}, 0.0
    for rank, key in enumerate(sorted(tests, key=tests.get)):
        least = max(least, min(1.0, tests[key] * (len(tests) - rank)))
        corrected[key] = least
    return corrected


def differing(first: dict, second: dict) -> list:
    """Settings, machine and versions in which two runs differ: (name, first, second). The input is
    one, where it came from may differ."""
    ours, theirs = (
        {**flat({name: value for name, value in about["asked"].items() if name != "input"}),
         "plugin": about["plugin"], "code of the lab": about["code"], **flat(about["machine"]),
         **flat(about["versions"]), "memory group": about["memory_group"],
         **{f"table of {key}": engine["table"] for key, engine in about["engines"].items()}}
        for about in (first, second))
    return [(name, ours.get(name), theirs.get(name)) for name in {**ours, **theirs}
            if name not in UNMARKED and ours.get(name) != theirs.get(name)]


def flat(settings: dict) -> dict:
    """Lists as text, the rest as it is."""
    return {name: ", ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in settings.items()}
