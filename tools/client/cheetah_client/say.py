"""Output for the operator."""

import sys
import time

UNITS = ("B", "kB", "MB", "GB", "TB")
LIVE_SECONDS, LINE_SECONDS = 0.5, 10.0


class Failure(Exception):
    """An error message for the operator: what failed, where, and what to do."""


def size(count: float) -> str:
    """Formats a number of bytes with a unit."""
    unit = 0
    while abs(count) >= 999.5 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    digits = 0 if unit == 0 or count >= 99.5 else 1
    return f"{count:,.{digits}f} {UNITS[unit]}"


def several(number: int, thing: str) -> str:
    """Formats a count with its noun: "1 table", "2 tables"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def span(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 120:
        return f"{seconds} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def line(words: str = "") -> None:
    print(words, flush=True)


def show_table(head: list, rows: list) -> None:
    """Prints rows under a header; the first column is left-aligned, others right-aligned."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    for row in cells:
        first, *others = (cell.ljust(width) if not at else cell.rjust(width)
                          for at, (cell, width) in enumerate(zip(row, widths)))
        line("  " + "  ".join([first, *others]).rstrip())


class Progress:
    """Progress of known size: one line on a terminal, otherwise one every ten seconds."""

    def __init__(self, label: str, total: int):
        self.label, self.total = label, total
        self.started = self.shown = time.monotonic()
        self.live = sys.stdout.isatty()

    def show(self, part: float, state: str = "") -> None:
        """Shows the completed part, from 0 to 1."""
        now = time.monotonic()
        if now - self.shown < (LIVE_SECONDS if self.live else LINE_SECONDS):
            return
        self.shown = now
        words = f"  {self.label}: {part:4.0%}"
        if 0 < part < 1:
            spent = now - self.started
            words += (f", {size(self.total * part / spent)}/s, "
                      f"about {span(spent * (1 - part) / part)} left")
        words += f" ({state})" if state else ""
        if self.live:
            print(f"\r{words}\033[K", end="", flush=True)
        else:
            line(words)

    def end(self, words: str) -> float:
        """Shows the end of the task and returns its duration in seconds."""
        seconds = time.monotonic() - self.started
        line(f"{chr(13) if self.live else ''}  {self.label}: {words}, {span(seconds)}"
             + ("\033[K" if self.live else ""))
        return seconds
