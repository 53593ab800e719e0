"""Shows the progress of a run: a bar on a terminal, and a line for each trial.

The time left is the declared time (experiment.toml) of the remaining trials, multiplied by the
ratio of actual to declared time of the finished trials."""

from rich import progress
from rich.console import Console

START_SECONDS = 1        # the time to start a server, at any scale
FOR_EVER = 1e9           # the estimate of the bar uses all trials, not only the last ones


class Progress:
    """A context manager. `begin` and `end` frame each trial; `step` shows what the trial does."""

    def __init__(self, planned: list, factor: float, console: Console = None):
        """`planned` holds the trials to run (run.Planned)."""
        self.factor, self.total, self.count, self.title = factor, len(planned), 0, ""
        self.said, self.done, self.spent = sum(map(self._declared, planned)), 0.0, 0.0
        console = console or Console()
        self.bar = progress.Progress(*progress.Progress.get_default_columns(), console=console,
                                     transient=True, disable=not console.is_terminal,
                                     speed_estimate_period=FOR_EVER)
        self.task = self.bar.add_task("", total=self.said)

    def __enter__(self):
        self.bar.start()
        return self

    def __exit__(self, *_):
        self.bar.stop()

    def begin(self, planned) -> None:
        self.title = planned.title()
        self.step("")

    def step(self, text: str) -> None:
        self.bar.update(self.task, description=f"{self.title}{': ' if text else ''}{text}")

    def end(self, planned, outcome: str, seconds: float) -> None:
        self.count, self.spent = self.count + 1, self.spent + seconds
        self.done += self._declared(planned)
        self.bar.update(self.task, completed=self.done)
        left = (self.said - self.done) * self.spent / self.done
        self.bar.console.print(
            f"  {self.count}/{self.total} {planned.title()}: {outcome} in {seconds:.1f} s; "
            + (f"about {human(left)} left" if self.count < self.total else "done"),
            markup=False, highlight=False, soft_wrap=True)

    def _declared(self, planned) -> float:
        return START_SECONDS + planned.experiment.seconds(self.factor, planned.chosen)


def human(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
