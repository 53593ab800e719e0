"""Paths and fixtures of the lab's tests."""

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / "lab"), str(PROJECT / "tools")]


def pytest_terminal_summary(terminalreporter):
    """The counts, worded as `make test` reads them."""
    counts = {outcome: len(terminalreporter.stats.get(outcome, [])) for outcome in ("passed", "failed", "error", "skipped")}
    terminalreporter.write_line(f"lab: {counts['passed']} passed, {counts['failed'] + counts['error']} failed, {counts['skipped']} skipped")
