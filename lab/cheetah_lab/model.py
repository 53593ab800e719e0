"""What an experiment is, what it measures, and what it shows. Plain data: nothing here runs
anything.

A *run* is a set of experiments. An experiment is repeated; in each repeat every engine has one
*trial*. A trial yields
*values*, each of a *measure* that the experiment declares. From the values of all repeats the
    experiment makes plots,
tables, the documents' figures, and verdicts. Whatever is shown has all repeats in it, so that its
spread can be shown.
"""

from dataclasses import dataclass, field

LESS, MORE, NEITHER = "less", "more", ""   # which values of a measure are better
ABSENT = "–"                               # where there is no value


@dataclass(frozen=True)
class Measure:
    """A kind of figure. `unit`: one of s, ms, us, bytes, 1/s, rows, pages, ratio, or the empty
    string for a count."""

    key: str
    label: str
    unit: str
    better: str = NEITHER


@dataclass(frozen=True)
class Value:
    """One figure of one trial. `at`: where on the horizontal axis, for measures that are curves
    (connections, rows, a second)."""

    measure: str
    value: float
    at: float = None


# What a trial yields where it lets the other engines have their turn, of experiments that are
# measured `together`.
TURN = object()


@dataclass(frozen=True)
class Scale:
    """How large the experiments are. `factor` 1.0 is the quick run; `full` asks for all engines and
    numbers of connections; some experiments then have more rows, more variants or longer phases,
    too."""

    factor: float = 1.0
    full: bool = False
    repeats: int = 3

    def of(self, quick: float, least: int = 1) -> int:
        """A number of rows, seconds or bytes at this scale."""
        return max(least, round(quick * self.factor))


@dataclass(frozen=True)
class Series:
    """A line or a group of bars. `points`: (x, values of all repeats); x is a number in lines, a
    word in bars. `engine`: the key of the engine that was measured, which gives the colour; empty:
    computed, not measured."""

    label: str
    points: list
    engine: str = ""


@dataclass(frozen=True)
class Plot:
    """`kind`: "lines" or "bars". Median as the mark, all repeats as a bar or a band around it."""

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
    """Rows of cells under a head; the first cell of a row names it."""

    title: str
    head: list
    rows: list
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of the documents beside what was measured here. `document`: the number as the
    document has it, or None for a curve or a claim; `key` is that of the list of figures: "W1 8K".
    Values are those of all repeats."""

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
    """What the code says of a claim: `outcome` is HOLDS, FAILS or OPEN (too much noise, or not
    measured); `why` has the figures."""

    claim: str
    outcome: str
    why: str


class Experiment:
    """Base of all experiments: a folder in `experiments/` with `experiment.toml` and a subclass in
    `experiment.py`.

    `experiment.toml` has: title, question, method, document (title, author and date of the source,
    as far as it says; empty for none), quotes (a list), [claims] (what the document, or we, say, by
    the key that `verdicts` has for it), [room] (bytes of disk that one trial of one engine takes at
    factor 1; if it makes files that stay for the next run, also input_bytes), and [time] (seconds
    of such a trial; extra_seconds, if given, of one whose engine is there for the documents'
    figures only).
    """

    measures: list = []       # of Measure
    # the engines of a repeat take turns at each TURN, not one after the other's end; the servers of
    # the others stand still meanwhile
    together = False
    by_name = False           # part of a run only when it is named
    compared: tuple = ()      # the first words of keys of measures that are compared; (): all
    options: dict = {}        # name -> what it is unless the user says otherwise (`make bench`)

    def __init__(self, name: str, about: dict):
        self.name, self.about, self.option = name, about, dict(self.options)

    def choose(self, options: dict) -> None:
        """Set those of the options that the experiment has."""
        self.option.update((name, value) for name, value in options.items()
                           if name in self.options)

    def is_compared(self, kind: str) -> bool:
        """Whether `make bench` tells ratios of the measures whose keys begin with this word."""
        return not self.compared or kind in self.compared

    def engines(self, chosen: list, scale: Scale) -> list:
        """Keys of the engines (see `engines`) that have a trial: the chosen ones, and what the
        document itself compares."""
        return list(chosen)

    def skip(self) -> str:
        """Why this machine cannot run the experiment (a data set is absent); else empty."""
        return ""

    def seconds(self, factor: float, chosen: bool) -> float:
        """About how long a trial takes, of an engine that was asked for or is there for the
        documents' figures only; what `experiment.toml` says unless told otherwise."""
        said = self.about["time"]
        return factor * (said["seconds"] if chosen else said.get("extra_seconds", said["seconds"]))

    def room_bytes(self, scale: Scale) -> int:
        """Bytes of disk that one trial takes, beside an empty server; what `experiment.toml` says
        unless told otherwise."""
        return round(self.about["room"]["bytes"] * scale.factor)

    def input_bytes(self, scale: Scale) -> int:
        """Bytes of the files that the experiment makes for its trials, and that stay."""
        return round(self.about["room"].get("input_bytes", 0) * scale.factor)

    def run(self, trial):
        """One engine in one repeat: a generator of Values. Blocks for its time; starts and stops
        servers."""
        raise NotImplementedError

    def plots(self, results) -> list:
        """Plots of a run (`results.Found` of this experiment)."""
        return []

    def tables(self, results) -> list:
        """Tables of a run."""
        return []

    def figures(self, results) -> list:
        """The documents' figures beside what was found."""
        return []

    def verdicts(self, results) -> list:
        """What the figures say of the claims."""
        return []
