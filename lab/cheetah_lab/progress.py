"""What a person sees of a run: a bar with an estimate of the time left on a terminal, a line for
each trial otherwise."""

import time

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

START_SECONDS = 1        # of a server: what a trial takes at any scale


class Estimate:
    """Seconds of trials: measured ones where there are any, else what experiment.toml says,
    corrected by what the other trials of the experiment (or of the run) took beside what theirs
    say."""

    def __init__(self, factor: float):
        self.factor = factor
        self._measured = {}          # (experiment, engine) -> seconds of its trials
        self._said, self._took = {}, {}   # by experiment: sums over its trials

    def add(self, experiment, engine: str, chosen: bool, seconds: float) -> None:
        """A trial ended."""
        self._measured.setdefault((experiment.name, engine), []).append(seconds)
        self._said[experiment.name] = (self._said.get(experiment.name, 0)
                                       + self._declared(experiment, chosen))
        self._took[experiment.name] = self._took.get(experiment.name, 0) + seconds

    def of(self, experiment, engine: str, chosen: bool) -> float:
        """Seconds that a trial will take, as far as can be said."""
        measured = self._measured.get((experiment.name, engine))
        if measured:
            return sum(measured) / len(measured)
        if experiment.name in self._said:
            return (self._declared(experiment, chosen) * self._took[experiment.name]
                    / self._said[experiment.name])
        correction = sum(self._took.values()) / sum(self._said.values()) if self._said else 1.0
        return self._declared(experiment, chosen) * correction

    def _declared(self, experiment, chosen: bool) -> float:
        return START_SECONDS + experiment.seconds(self.factor, chosen)


class Progress:
    """The run as it goes. A context; in it `begin` and `end` frame each trial, `step` says what it
    does."""

    def __init__(self, planned: list, estimate: Estimate, console: Console = None):
        """`planned`: the trials to come (run.Planned)."""
        self.console = console or Console()
        self.estimate, self.left, self.total = estimate, list(planned), len(planned)
        self.spent, self.started, self.now, self.doing = 0.0, time.monotonic(), "", ""
        self._trial_began = None
        self._live = (Live(get_renderable=self._draw, console=self.console, refresh_per_second=4,
                           transient=True)
                      if self.console.is_terminal else None)

    def __enter__(self):
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_):
        if self._live:
            self._live.stop()

    def begin(self, planned) -> None:
        """A trial begins."""
        self.now, self.doing, self._trial_began = planned.title(), "", time.monotonic()

    def step(self, text: str) -> None:
        """What the trial does now."""
        self.doing = text

    def end(self, planned, outcome: str, seconds: float) -> None:
        """The trial ended after so many seconds; `outcome` says how, in a word or a line."""
        self.spent += seconds
        self.left.remove(planned)
        self._trial_began = None
        self.console.print(f"  {self.total - len(self.left)}/{self.total} {planned.title()}: "
                           f"{outcome} in {seconds:.1f} s; {self.time_left()}",
                           markup=False, highlight=False, soft_wrap=True)

    def time_left(self) -> str:
        """The estimate in words."""
        seconds = self._seconds_left()
        return f"about {human(seconds)} left" if self.left else "done"

    def _seconds_left(self) -> float:
        left = sum(self.estimate.of(planned.experiment, planned.engine, planned.chosen)
                   for planned in self.left)
        if self._trial_began and self.left:
            current = self.estimate.of(self.left[0].experiment, self.left[0].engine,
                                       self.left[0].chosen)
            left -= min(time.monotonic() - self._trial_began, current)
        return left

    def _draw(self):
        left = self._seconds_left()
        spent = self.spent + (time.monotonic() - self._trial_began if self._trial_began else 0)
        bar = Grid.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=spent + left or 1, completed=spent, width=40),
                    f"{self.total - len(self.left)} of {self.total} trials,",
                    f"{human(time.monotonic() - self.started)} gone,", self.time_left())
        return Group(Text(f"{self.now}{': ' if self.doing else ''}{self.doing}",
                          overflow="ellipsis", no_wrap=True), bar)


def human(seconds: float) -> str:
    """A span of time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
