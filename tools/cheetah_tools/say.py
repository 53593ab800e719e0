"""User-visible output: steps, failures, tables, a progress bar; plain text without a terminal."""

import os
import signal
import sys
import time


class Failure(Exception):
    """An error to show without a traceback. It says what failed, where, and what to do."""


def step(text: str) -> None:
    """Announces work that takes a while."""
    print(f"- {text}", flush=True)


def note(text: str) -> None:
    """Prints a line of detail below a step."""
    print(f"  {text}", flush=True)


class PatientOutput:
    """Standard output that continues without a reader (`make up | head -1`)."""

    def __init__(self, inner):
        self._inner = inner

    def write(self, text: str) -> int:
        """Writes the text; discards it if the reader has closed the pipe."""
        try:
            return self._inner.write(text)
        except BrokenPipeError:
            self._forget_reader()
            return len(text)

    def flush(self) -> None:
        try:
            self._inner.flush()
        except BrokenPipeError:
            self._forget_reader()

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    def _forget_reader(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._inner.fileno())
        os.close(nowhere)


def run_main(main) -> None:
    """Runs a command: status 1 and a message for a Failure, 130 for Ctrl-C."""
    # SIGTERM is handled like Ctrl-C, so that private servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    sys.stdout = PatientOutput(sys.stdout)
    try:
        status = main(sys.argv[1:]) or 0
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr, flush=True)
        status = 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr, flush=True)
        status = 130
    sys.exit(status)


def table(head: list, rows: list) -> None:
    """Prints rows under a head; the first column is left-aligned, the others right-aligned."""
    cells = [[str(c) for c in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for number, row in enumerate(cells):
        parts = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  " + "  ".join(parts).rstrip(), flush=True)
        if number == 0:
            print("  " + "  ".join("-" * w for w in widths), flush=True)


def megabytes(count: float) -> str:
    """Returns a number of bytes in MB with one decimal place."""
    return f"{count / 1e6:,.1f} MB"


class Progress:
    """A progress bar over a known amount; prints steps of 25 % if the output is not a terminal."""

    def __init__(self, label: str, total: int):
        self.label, self.total, self.done = label, max(total, 1), 0
        self.started = self.shown = time.monotonic()
        self.live = sys.stdout.isatty()
        self.quarter = 0
        self._draw()

    def add(self, amount: int) -> None:
        self.done += amount
        now = time.monotonic()
        if self.live and now - self.shown >= 0.1:
            self.shown = now
            self._draw()
        elif not self.live and self.done * 4 // self.total > self.quarter:
            self.quarter = min(self.done * 4 // self.total, 4)
            if self.quarter < 4:
                print(f"  {self.label}: {self.quarter * 25} %", flush=True)

    def finish(self) -> float:
        """Ends the bar; returns the seconds it took."""
        seconds = time.monotonic() - self.started
        self.done = self.total
        if self.live:
            self._draw()
            print(flush=True)
        else:
            print(f"  {self.label}: done in {seconds:.1f} s", flush=True)
        return seconds

    def _draw(self) -> None:
        if not self.live:
            return
        part = min(self.done / self.total, 1.0)
        bar = "#" * int(30 * part)
        spent = time.monotonic() - self.started
        print(f"\r  {self.label:<28} [{bar:<30}] {part * 100:3.0f} %  {spent:6.1f} s", end="",
              flush=True)
