"""Defines what an experiment is, what it measures, and what it shows: plain data, nothing runs.

A *run* is a set of experiments. An experiment is repeated; in each repeat every engine has one
*trial*. A trial yields *values*, each of a *measure* that the experiment declares. From the values
of all repeats the experiment makes plots, tables, the documents' figures, and verdicts. Everything
that is shown is based on all repeats, so that its spread can be shown."""

from dataclasses import dataclass, field

LESS, MORE, NEITHER = "less", "more", ""   # which values of a measure are better
ABSENT = "–"                               # shown in place of a missing value


@dataclass(frozen=True)
class Measure:
    """A kind of figure. `unit`: s, ms, us, bytes, 1/s, rows, pages, ratio, or empty for a count."""

    key: str
    label: str
    unit: str
    better: str = NEITHER


@dataclass(frozen=True)
class Value:
    """A figure of a trial. `at`: its place on the horizontal axis, for measures that are curves."""

    measure: str
    value: float
    at: float = None


# A trial yields this where other engines get their turn, in experiments measured `together`.
TURN = object()


@dataclass(frozen=True)
class Scale:
    """The size of the experiments. `factor` 1.0 is the quick run. `full`: all engines and numbers
    of connections, and in some experiments also more rows, more variants or longer phases."""

    factor: float = 1.0
    full: bool = False
    repeats: int = 3

    def of(self, quick: float, least: int = 1) -> int:
        """Returns a number of rows, seconds or bytes at this scale."""
        return max(least, round(quick * self.factor))


@dataclass(frozen=True)
class Series:
    """A line or a group of bars. `points` are (x, values of all repeats); x is a number for lines,
    a word for bars. `engine`, empty for computed values, is a key and determines the colour."""

    label: str
    points: list
    engine: str = ""


@dataclass(frozen=True)
class Plot:
    """A plot, "lines" or "bars". The mark is the median; a bar or band around it, all repeats."""

    key: str
    title: str
    kind: str
    x_label: str
    y_label: str
    series: list
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: text, or the values of all repeats with their unit."""

    text: str = ""
    values: list = None
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head. The first cell of a row is the row's name."""

    title: str
    head: list
    rows: list
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A documents' figure next to the values measured here, of all repeats. `document` is its
    number (None for a curve or a claim), `key` the key in the list of figures: "W1 8K"."""

    key: str
    what: str
    document: float
    unit: str
    innodb: list
    cheetah: list
    others: dict = field(default_factory=dict)   # label -> values


HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim: HOLDS, FAILS or OPEN (noise, or not measured). `why`: the figures."""

    claim: str
    outcome: str
    why: str


class Experiment:
    """Base class of all experiments. An experiment is a folder in `experiments/` with an
    `experiment.toml` and a subclass in `experiment.py`.

    `experiment.toml` has: title, question, method, document (title, author and date of the source,
    as far as known; empty if there is none), quotes (a list), [claims] (the claims of the document
    or our own, by the key that `verdicts` uses), [room] (bytes of disk for one trial of one engine
    at factor 1; also input_bytes if the experiment makes files that later runs reuse), and [time]
    (seconds of such a trial; optionally extra_seconds for engines that run only for the documents'
    figures)."""

    measures: list = []       # of Measure
    # The engines of a repeat take turns at each TURN; servers of waiting engines are paused.
    together = False
    by_name = False           # included in a run only if it is named
    compared: tuple = ()      # the first words of the keys of measures that are compared; (): all
    options: dict = {}        # name -> default value (`make bench` can change it)

    def __init__(self, name: str, about: dict):
        self.name, self.about, self.option = name, about, dict(self.options)

    def choose(self, options: dict) -> None:
        """Sets the options that the experiment has, and ignores the others."""
        self.option.update((name, value) for name, value in options.items() if name in self.options)

    def engines(self, chosen: list, scale: Scale) -> list:
        """Returns the keys of the engines that have a trial: the chosen and the document's own."""
        return list(chosen)

    def skip(self) -> str:
        """Returns why this machine cannot run the experiment (such as missing data), or ""."""
        return ""

    def seconds(self, factor: float, chosen: bool) -> float:
        """Returns the approximate time of a trial for an engine that was requested (`chosen`) or
        runs only for the documents' figures. The default is the time in `experiment.toml`."""
        said = self.about["time"]
        return factor * (said["seconds"] if chosen else said.get("extra_seconds", said["seconds"]))

    def room_bytes(self, scale: Scale) -> int:
        """Returns the bytes of disk of a trial, by default those in `experiment.toml`."""
        return round(self.about["room"]["bytes"] * scale.factor)

    def input_bytes(self, scale: Scale) -> int:
        """Returns the bytes of files that the experiment makes for its trials and later runs."""
        return round(self.about["room"].get("input_bytes", 0) * scale.factor)

    def run(self, trial):
        """Yields the Values of one engine in one repeat. Blocks; starts and stops servers."""
        raise NotImplementedError

    # the contents of a run's page; `results` is this experiment's `results.Found`
    def plots(self, results) -> list:
        return []

    def tables(self, results) -> list:
        return []

    def figures(self, results) -> list:
        return []

    def verdicts(self, results) -> list:
        return []
