"""`make test`: all tests, cheap failures first. The last lines list the failures and the totals.

Steps that run pytest are counted by its report (JUnit's XML), cargo's by their output, others as 1.

With a server series other than the first, only the steps that need a server run."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

from . import stuck
from .paths import FIRST_SERIES, PROJECT, SERIES, TARGET, VAR, show

LOGS = VAR / "test"
TOOL = [sys.executable, "tools/cheetah.py"]
PYTEST = [*TOOL, "pytest"]
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
SUITES_RESULT = re.compile(
    r"^suites: (\d+) of \d+ pass .*?, (\d+) differ with a listed reason, (\d+) without", re.M)

# Lines with which our suites, cargo, pytest and mtr report a failure.
FAILURE = re.compile(r"^(FAIL|ERROR |error(\[E\d+\])?:|.* panicked at |test .* \.\.\. FAILED$"
                     r"|test .* has been running for over |.*\[ fail \])")
FAILURE_LINES_MAX = 30

LINES_OF_FAILED = 25
LINES_OF_STUCK = 200
ENDED = "error: this step was ended"

# About twice the longest step on two processors. A step that hangs is ended and described.
STEP_MINUTES = 30

POLL_SECONDS = 0.1


class Step:
    """One command. `needs`: an earlier step that must have passed. Steps that often leave a
    processor idle run `beside` the others, one after the other."""

    def __init__(self, name: str, words: list, needs: str = "", beside: bool = False):
        self.name, self.words, self.needs, self.beside = name, words, needs, beside


STEPS = [
    Step("format", ["cargo", "fmt", "--all", "--check"]),
    Step("clippy", ["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D",
                    "warnings"]),
    Step("doc", ["env", "RUSTDOCFLAGS=-D warnings", "cargo", "doc", "--workspace", "--no-deps",
                 "--quiet"]),
    Step("tools", [*PYTEST, "tests/tools", "--ignore=tests/tools/test_crates.py"], beside=True),
    Step("crates", [*PYTEST, "tests/tools/test_crates.py"], beside=True),
    Step("cargo test", ["cargo", "test", "--workspace", "--no-fail-fast"]),
    Step("build", [*TOOL, "build"]),
    Step("sql", [*PYTEST, "tests/sql"], needs="build", beside=True),
    Step("server", [*PYTEST, "tests/server"], needs="build"),
    Step("differential", [*PYTEST, "tests/differential"], needs="build", beside=True),
    Step("isolation checker",
         [*PYTEST, "tests/isolation", "--ignore=tests/isolation/test_engines.py"]),
    Step("isolation", [*PYTEST, "tests/isolation/test_engines.py"], needs="build", beside=True),
    Step("apps", [*PYTEST, "tests/apps/test_peewee.py",
                  "tests/apps/test_dumps.py::test_tools_of_the_server"],
         needs="build", beside=True),
    Step("lab", [*PYTEST, "tests/lab"], needs="build", beside=True),
    Step("suites", [*TOOL, "suites", "--quick"], needs="build", beside=True),
]


class Running:
    """A step with a process and a time limit. `log`: another path; `more`: more environment."""

    def __init__(self, step: Step, seconds_max: float, log: Path = None, more: dict = None):
        self.step, self.seconds_max, self.started = step, seconds_max, time.monotonic()
        self.log = log or LOGS / f"{step.name.replace(' ', '-')}.log"
        self.report = self.log.with_suffix(".xml")
        self.report.unlink(missing_ok=True)
        settings = {"CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never",
                    "PYTEST_ADDOPTS": "--junitxml=" + shlex.quote(str(self.report))}
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(step.words, cwd=PROJECT, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out,
                                            env={**os.environ, **settings, **(more or {})})

    def is_over(self) -> bool:
        """Returns whether the step has ended; one that takes too long is ended and described."""
        if self.process.poll() is not None:
            return True
        if time.monotonic() - self.started < self.seconds_max:
            return False
        with open(self.log, "ab") as out:
            out.write(f"\n{ENDED} after {self.seconds_max:.0f} s, which were too many. "
                      "Its processes then:\n".encode())
            out.write(stuck.describe(self.process.pid).encode())
        stuck.stop(self.process)
        return True


class Sum:
    """The totals of the steps that have ended."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.bad, self.reasons = set(), []   # failed or skipped

    def add(self, running: Running) -> None:
        name, text = running.step.name, running.log.read_text(errors="replace")
        ok = running.process.returncode == 0
        passed, failed, skipped = counts(text, running.report, ok)
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        seconds = time.monotonic() - running.started
        print(f"{name:<42} {'ok' if ok else 'FAILED'} in {seconds:.0f} s  {passed} passed, "
              f"{failed} failed" + (f", {skipped} skipped" if skipped else ""))
        print("".join(f"    skipped: {reason[:300]}\n" for reason in skips(running.report)), end="")
        if failed:
            self.bad.add(name)
            self.reasons += [f"{name}: {line}" for line in failures(text)]
        if not ok:
            print("\n".join("    " + line[:300] for line in last_lines(text)))
        sys.stdout.flush()


def main(arguments: list) -> int:
    """Runs the command; arguments name single steps, which then run without the steps they need."""
    parser = argparse.ArgumentParser(prog="cheetah.py test")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--step-minutes", type=float, default=STEP_MINUTES)
    chosen = parser.parse_args(arguments)
    LOGS.mkdir(parents=True, exist_ok=True)
    total, started = Sum(), time.monotonic()
    run_all([step for step in STEPS if is_chosen(step, chosen.names)], total,
            chosen.step_minutes * 60)
    print("\n".join(total.reasons), end="\n" if total.reasons else "")
    print(f"{time.monotonic() - started:.0f} s; logs in {show(LOGS)}")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


def is_chosen(step: Step, names: list) -> bool:
    """Returns whether to run a step: one of the named, or without names all that fit the series."""
    if names:
        return step.name in names
    return SERIES == FIRST_SERIES or "build" in (step.name, step.needs)


def run_all(steps: list, total: Sum, seconds_max: float) -> None:
    """Runs the steps in order, those `beside` others in a second sequence; counts ended ones."""
    left, running = list(steps), []
    try:
        while left or running:
            for each in [each for each in running if each.is_over()]:
                running.remove(each)
                total.add(each)
            for beside in (False, True):
                if not any(each.step.beside == beside for each in running):
                    begin_next(left, beside, running, total, seconds_max)
            time.sleep(POLL_SECONDS)
    except BaseException:
        for each in running:
            stuck.stop(each.process)   # makes our tools stop their servers
        print("stopped")
        raise


def begin_next(left: list, beside: bool, running: list, total: Sum, seconds_max: float) -> None:
    """Begins the next step of this sequence, once the step that it needs is over."""
    step = next((step for step in left if step.beside == beside), None)
    waits_for = [] if step is None else [*left, *(each.step for each in running)]
    if step is None or any(other.name == step.needs for other in waits_for):
        return
    left.remove(step)
    if step.needs in total.bad:
        print(f"{step.name:<42} skipped: {step.needs} failed", flush=True)
        total.skipped += 1
        total.bad.add(step.name)
    else:
        running.append(Running(step, seconds_max))


def last_lines(text: str) -> list:
    """Returns the end of a failed step's output, and the processes of one that was ended."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    end = next((at for at, line in enumerate(lines) if line.startswith(ENDED)), len(lines))
    return lines[max(0, end - LINES_OF_FAILED):end] + lines[end:][:LINES_OF_STUCK]


def failures(text: str) -> list:
    """Returns the lines that report failures, with two lines after each; a screenful at most."""
    lines = [line for line in text.splitlines() if line.strip()]
    told = [lines[at:at + 3] for at, line in enumerate(lines) if FAILURE.search(line)]
    return [line[:300] for group in told for line in group][:FAILURE_LINES_MAX]


def suites(report: Path) -> list:
    """Returns the suites in pytest's report; empty if pytest did not run or was killed."""
    return list(xml.parse(report).getroot().iter("testsuite")) if report.exists() else []


def skips(report: Path) -> list:
    return [f"{case.get('name')}: {skipped.get('message')}" for suite in suites(report)
            for case in suite.iter("testcase") for skipped in case.iter("skipped")]


def counts(text: str, report: Path, ok: bool) -> tuple:
    found = [tuple(map(int, row)) for row in CARGO_RESULT.findall(text)]
    found += [(int(row[0]), int(row[2]), int(row[1])) for row in SUITES_RESULT.findall(text)]
    for suite in suites(report):
        total, *bad, skipped = (int(suite.get(name))
                                for name in ("tests", "failures", "errors", "skipped"))
        found.append((total - sum(bad) - skipped, sum(bad), skipped))
    passed, failed, skipped = map(sum, zip(*(found or [(int(ok), 0, 0)])))
    return passed, failed or int(not ok), skipped
