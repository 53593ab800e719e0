"""`make test`: everything, in an order that shows cheap failures first. The last lines say what
failed, and the sum.

A step that runs pytest is counted by its report (JUnit's XML), cargo's tests by their own lines;
any other step counts as one.
"""

import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

from . import stuck
from .paths import PROJECT, TARGET, VAR, show

LOGS = VAR / "test"
TOOL = [sys.executable, "tools/cheetah.py"]
PYTEST = [*TOOL, "pytest"]
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
SUITES_RESULT = re.compile(
    r"^suites: (\d+) of \d+ pass .*?, (\d+) differ with a listed reason, (\d+) without", re.M)

# Lines by which our suites, cargo, pytest and mtr say that something failed.
FAILURE = re.compile(r"^(FAIL|ERROR |error(\[E\d+\])?:|.* panicked at |test .* \.\.\. FAILED$"
                     r"|test .* has been running for over |.*\[ fail \])")
FAILURE_LINES_MAX = 30

LINES_OF_FAILED = 25
LINES_OF_STUCK = 200
ENDED = "error: this step was ended"

# About three times what the longest one takes on two processors. A step that hangs is ended, and
# says what it was at.
STEP_SECONDS_MAX = 1200


class Step:
    """One command. `needs` names a step that must have passed."""

    def __init__(self, name: str, words: list, needs: str = ""):
        self.name, self.words, self.needs = name, words, needs


STEPS = [
    Step("format", ["cargo", "fmt", "--all", "--check"]),
    Step("clippy", ["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D",
                    "warnings"]),
    Step("tools", [*PYTEST, "tests/tools"]),
    Step("cargo test", ["cargo", "test", "--workspace", "--no-fail-fast"]),
    Step("build", [*TOOL, "build"]),
    Step("sql", [*PYTEST, "tests/sql"], needs="build"),
    Step("server", [*PYTEST, "tests/server"], needs="build"),
    Step("differential", [*PYTEST, "tests/differential"], needs="build"),
    Step("isolation checker",
         [*PYTEST, "tests/isolation", "--ignore=tests/isolation/test_engines.py"]),
    Step("isolation", [*PYTEST, "tests/isolation/test_engines.py"], needs="build"),
    Step("lab", [*PYTEST, "tests/lab"], needs="build"),
    Step("suites", [*TOOL, "suites", "--quick"], needs="build"),
]


def main(arguments: list) -> int:
    """The command; arguments name single steps."""
    LOGS.mkdir(parents=True, exist_ok=True)
    passed = failed = skipped = 0
    good, reasons = set(), []
    started = time.monotonic()
    for step in STEPS:
        if arguments and step.name not in arguments:
            continue
        if step.needs and step.needs not in good and not arguments:
            print(f"{step.name:<42} skipped: {step.needs} failed", flush=True)
            skipped += 1
            continue
        outcome = run(step)
        passed, failed, skipped = (passed + outcome[0], failed + outcome[1], skipped + outcome[2])
        if outcome[1] == 0:
            good.add(step.name)
        else:
            text = log_of(step).read_text(errors="replace")
            reasons += [f"{step.name}: {line}" for line in failures(text)]
    print("\n".join(reasons), end="\n" if reasons else "")
    print(f"{time.monotonic() - started:.0f} s; logs in {show(LOGS)}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def run(step: Step) -> tuple:
    """Run one step; passed, failed, skipped."""
    print(f"{step.name:<42} ", end="", flush=True)
    log, report = log_of(step), log_of(step).with_suffix(".xml")
    report.unlink(missing_ok=True)
    settings = {"CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never",
                "PYTEST_ADDOPTS": "--junitxml=" + shlex.quote(str(report))}
    started = time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen(step.words, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=out, env={**os.environ, **settings})
        try:
            status = waited(process, out)
        except BaseException:
            stuck.stop(process)   # our tools stop their servers on this
            print("stopped")
            raise
    text = log.read_text(errors="replace")
    ok = status == 0
    outcome = counts(text, report, ok)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    print(f"{'ok' if ok else 'FAILED'} in {time.monotonic() - started:.0f} s  {outcome[0]} passed, "
          f"{outcome[1]} failed" + (f", {outcome[2]} skipped" if outcome[2] else ""), flush=True)
    print("".join(f"    skipped: {reason[:300]}\n" for reason in skips(report)), end="", flush=True)
    if not ok:
        end = next((at for at, line in enumerate(lines) if line.startswith(ENDED)), len(lines))
        told = lines[max(0, end - LINES_OF_FAILED):end] + lines[end:][:LINES_OF_STUCK]
        print("\n".join("    " + line[:300] for line in told), flush=True)
    return outcome


def waited(process: subprocess.Popen, out):
    """Its exit status; None when it took too long and was ended, of which `out` then tells."""
    try:
        return process.wait(STEP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        out.write(f"\n{ENDED} after {STEP_SECONDS_MAX} s, which were too many. "
                  "Its processes then:\n".encode())
        out.write(stuck.describe(process.pid).encode())
        out.flush()
        stuck.stop(process)
        return None


def log_of(step: Step) -> Path:
    """Where its output goes."""
    return LOGS / (step.name.replace(" ", "-") + ".log")


def failures(text: str) -> list:
    """The lines of an output that say what failed, each with two more; a screen at most."""
    lines = [line for line in text.splitlines() if line.strip()]
    told = [lines[at:at + 3] for at, line in enumerate(lines) if FAILURE.search(line)]
    return [line[:300] for group in told for line in group][:FAILURE_LINES_MAX]


def suites(report: Path) -> list:
    """The suites in pytest's report; none where pytest did not run, or was ended by force."""
    return list(xml.parse(report).getroot().iter("testsuite")) if report.exists() else []


def skips(report: Path) -> list:
    """Skipped tests, and why."""
    return [f"{case.get('name')}: {skipped.get('message')}" for suite in suites(report)
            for case in suite.iter("testcase") for skipped in case.iter("skipped")]


def counts(text: str, report: Path, ok: bool) -> tuple:
    """Passed, failed, skipped tests of a step."""
    found = [tuple(map(int, row)) for row in CARGO_RESULT.findall(text)]
    found += [(int(row[0]), int(row[2]), int(row[1])) for row in SUITES_RESULT.findall(text)]
    for suite in suites(report):
        total, *bad, skipped = (int(suite.get(name))
                                for name in ("tests", "failures", "errors", "skipped"))
        found.append((total - sum(bad) - skipped, sum(bad), skipped))
    passed, failed, skipped = map(sum, zip(*(found or [(int(ok), 0, 0)])))
    return passed, failed or int(not ok), skipped
