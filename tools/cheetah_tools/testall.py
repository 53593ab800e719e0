"""`make test`: everything, in an order that shows cheap failures first. The last lines say what failed, and the sum."""

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
DIFFERENTIAL = [sys.executable, "tests/differential/run.py"]
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
SQL_RESULT = re.compile(r"^sql: (\d+) passed, (\d+) failed", re.M)
SERVER_RESULT = re.compile(r"^server: (\d+) passed, (\d+) failed, (\d+) skipped", re.M)
LICENCES_RESULT = re.compile(r"^licences: (\d+) passed, (\d+) failed, (\d+) skipped", re.M)
ISOLATION_RESULT = re.compile(r"^isolation: (\d+) passed, (\d+) failed", re.M)
SUITES_RESULT = re.compile(r"^suites: (\d+) of \d+ pass .*?, (\d+) differ with a listed reason, (\d+) without", re.M)

# Lines by which our suites, cargo, pytest and mtr say that something failed.
FAILURE = re.compile(r"^(FAIL|ERROR |error(\[E\d+\])?:|.* panicked at |test .* \.\.\. FAILED$|test .* has been running for over |.*\[ fail \])")
FAILURE_LINES_MAX = 30

LINES_OF_FAILED = 25
LINES_OF_STUCK = 200
ENDED = "error: this step was ended"

# Four times what the longest one takes on two processors. A step that hangs is ended, and says what it was at.
STEP_SECONDS_MAX = 1200


class Step:
    """One command. `needs` names a step that must have passed; `inverted`: the command must fail."""

    def __init__(self, name: str, words: list, needs: str = "", inverted: bool = False, result=None):
        self.name, self.words, self.needs, self.inverted, self.result = name, words, needs, inverted, result


STEPS = [
    Step("format", ["cargo", "fmt", "--all", "--check"]),
    Step("clippy", ["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    Step("licences", [*TOOL, "licences"], result=LICENCES_RESULT),
    Step("tools", [*TOOL, "pytest", "tests/tools"]),
    Step("cargo test", ["cargo", "test", "--workspace", "--no-fail-fast"], result=CARGO_RESULT),
    Step("build", [*TOOL, "build"]),
    Step("sql", [*TOOL, "sql-tests"], needs="build", result=SQL_RESULT),
    Step("server", [*TOOL, "server-tests"], needs="build", result=SERVER_RESULT),
    Step("differential", [*DIFFERENTIAL, "--statements", "24000"], needs="build"),
    Step("differential finds a planted difference", [*DIFFERENTIAL, "--right", "InnoDB", "--statements", "500", "--plant"],
         needs="build", inverted=True),
    Step("isolation checker finds planted anomalies", [sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests/isolation"]),
    Step("isolation checker finds planted engine bugs", [sys.executable, "tests/isolation/planted.py"], result=ISOLATION_RESULT),
    Step("isolation", [*TOOL, "isolation"], needs="build", result=ISOLATION_RESULT),
    Step("interleavings find a planted difference", [sys.executable, "tests/isolation/interleavings.py", "--plant", "--scripts", "4"],
         needs="build", inverted=True),
    Step("crash", [*TOOL, "crash", "--rounds", "8"], needs="build"),
    Step("check-data", [*TOOL, "check-data", "--quick"], needs="build"),
    Step("lab", [*TOOL, "pytest", "tests/lab"], needs="build"),
    Step("suites", [*TOOL, "suites", "--quick"], needs="build", result=SUITES_RESULT),
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
        passed, failed, skipped = passed + outcome[0], failed + outcome[1], skipped + outcome[2]
        if outcome[1] == 0:
            good.add(step.name)
        else:
            reasons += [f"{step.name}: {line}" for line in failures(log_of(step).read_text(errors="replace"))]
    print("\n".join(reasons), end="\n" if reasons else "")
    print(f"{time.monotonic() - started:.0f} s; logs in {show(LOGS)}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def run(step: Step) -> tuple:
    """Run one step; passed, failed, skipped. A step without counts of its own counts as one."""
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
    ok = status is not None and (status != 0) == step.inverted
    outcome = counts(step, text, report, ok)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    numbers = f"{outcome[0]} passed, {outcome[1]} failed" + (f", {outcome[2]} skipped" if outcome[2] else "")
    summary = lines[-1][:150] if lines and not step.result and not step.inverted and ok and not report.exists() else numbers
    print(f"{'ok' if ok else 'FAILED'} in {time.monotonic() - started:.0f} s  {summary}", flush=True)
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
        out.write(f"\n{ENDED} after {STEP_SECONDS_MAX} s, which were too many. Its processes then:\n".encode())
        out.write(stuck.describe(process.pid).encode())
        out.flush()
        stuck.stop(process)
        return None


def log_of(step: Step) -> Path:
    """Where its output goes."""
    return LOGS / (step.name.replace(" ", "-") + ".log")


def failures(text: str) -> list:
    """The lines of an output that say what failed, each with the two behind it; not more than a screen of them."""
    lines = [line for line in text.splitlines() if line.strip()]
    told = [lines[at:at + 3] for at, line in enumerate(lines) if FAILURE.search(line)]
    return [line[:300] for group in told for line in group][:FAILURE_LINES_MAX]


def suites(report: Path) -> list:
    """The suites in pytest's report (JUnit's XML); none where pytest did not run or did not end."""
    return list(xml.parse(report).getroot().iter("testsuite")) if report.exists() else []


def skips(report: Path) -> list:
    """Skipped tests, and why."""
    return [f"{case.get('name')}: {skipped.get('message')}" for suite in suites(report)
            for case in suite.iter("testcase") for skipped in case.iter("skipped")]


def counts(step: Step, text: str, report: Path, ok: bool) -> tuple:
    """Passed, failed, skipped tests of a step: by pytest's report, or from its output."""
    found = [tuple(map(int, numbers)) for numbers in step.result.findall(text)] if step.result else []
    if step.result is SUITES_RESULT:
        found = [(passed, bad, listed) for passed, listed, bad in found]
    for suite in suites(report):
        tests, *bad, skipped = (int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped"))
        found.append((tests - sum(bad) - skipped, sum(bad), skipped))
    total = [sum(column) for column in zip(*[(*row, 0)[:3] for row in found])] if found else [int(ok), 0, 0]
    if last_line(text).startswith("skipped"):
        return 0, 0, 1
    if not ok and total[1] == 0:
        total[1] = 1
    return tuple(total)


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")
