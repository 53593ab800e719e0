"""Tests of `make test` itself: how steps are counted, and how a hanging step is ended."""

import os
import re
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from cheetah_tools import stuck, testall

CARGO = ("test result: ok. 3 passed; 0 failed; 1 ignored\n"
         "test result: ok. 4 passed; 0 failed; 0 ignored\n")
PYTEST = ('<testsuites><testsuite errors="1" failures="2" skipped="1" tests="9">'
          '<testcase name="a"/><testcase name="b"><skipped message="no mounts here"/></testcase>'
          "</testsuite></testsuites>")


def is_asleep(file: Path, program: str) -> bool:
    number = stuck.read(file).strip()
    words = stuck.read(Path(f"/proc/{number}/stat")) if number else ""
    return f"({program})" in words and words.rpartition(")")[2].split()[:1] == ["S"]


def run(tmp_path, monkeypatch, program: str, script: str) -> testall.Sum:
    """Runs a step that may take a second once the program whose ID it writes sleeps."""
    monkeypatch.setattr(testall, "LOGS", tmp_path)
    begin = testall.Running

    def once_begun(step, seconds_max):
        running, deadline = begin(step, seconds_max), time.monotonic() + 60
        while not is_asleep(tmp_path / "pid", program) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.started = time.monotonic()
        return running
    monkeypatch.setattr(testall, "Running", once_begun)
    total = testall.Sum()
    step = testall.Step("hangs", ["sh", "-c", script.format(tmp_path / "pid")])
    testall.run_all([step], total, 1)
    return total


def test_counts_are_summed_and_a_failure_without_a_count_counts(tmp_path):
    report = tmp_path / "step.xml"
    assert testall.counts(CARGO, report, True) == (7, 0, 1)
    assert testall.counts(CARGO, report, False) == (7, 1, 1)
    assert testall.counts("3 passed in words", report, True) == (1, 0, 0)
    assert testall.counts("", report, False) == (0, 1, 0)
    report.write_text(PYTEST)
    assert testall.counts("", report, False) == (5, 3, 1)
    assert testall.skips(report) == ["b: no mounts here"]


@pytest.mark.parametrize(("words", "seconds"), [([], 1800), (["--step-minutes", "60"], 3600)])
def test_what_a_step_may_take_is_said_in_minutes(words, seconds, tmp_path, monkeypatch):
    monkeypatch.setattr(testall, "LOGS", tmp_path)
    monkeypatch.setattr(testall, "STEPS", [testall.Step("quick", ["true"]),
                                           testall.Step("other", ["false"])])
    begin, given = testall.Running, []
    monkeypatch.setattr(testall, "Running",
                        lambda step, most: given.append((step.name, most)) or begin(step, most))
    assert testall.main([*words, "quick"]) == 0 and given == [("quick", seconds)]


def test_another_series_runs_what_needs_a_server(monkeypatch):
    assert all(testall.is_chosen(step, []) for step in testall.STEPS)
    monkeypatch.setattr(testall, "SERIES", "11.8")
    chosen = {step.name for step in testall.STEPS if testall.is_chosen(step, [])}
    assert {"build", "sql", "suites"} <= chosen and not {"format", "cargo test"} & chosen


def test_lines_that_say_what_failed_are_told():
    text = "ok a\nFAILED b.py::c - d\n  because\n\n  twice\nok c\ntest d ... FAILED\n"
    assert testall.failures(text) == ["FAILED b.py::c - d", "  because", "  twice",
                                      "test d ... FAILED"]


def test_a_step_that_hangs_is_ended_with_all_it_started_and_says_what_it_was_at(
        tmp_path, monkeypatch, capsys):
    total = run(tmp_path, monkeypatch, "sleep", "sleep 600 & echo begun; echo $! > {}; wait")
    assert (total.passed, total.failed, total.skipped) == (0, 1, 0)
    shown = capsys.readouterr().out
    assert re.search(r"FAILED in \d+ s(.|\n)*begun(.|\n)*was ended after 1 s(.|\n)*"
                     r": sleep 600\n +sleep +S ", shown)
    assert not stuck.is_alive(int((tmp_path / "pid").read_text()))


def test_ctrl_c_while_a_step_is_ended_ends_it_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(stuck, "describe", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(stuck, "STOP_SECONDS_MAX", 1)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, monkeypatch, "sh", "trap '' TERM; echo $$ > {}; sleep 600 & wait")
    assert not stuck.is_alive(int((tmp_path / "pid").read_text()))


def test_steps_run_beside_the_others_in_their_order_and_all_are_counted(
        tmp_path, monkeypatch, capsys):
    def step(name, script, **more):
        text = f"cd {tmp_path}; until_there() {{ until [ -e $1 ]; do sleep 0.05; done; }}; {script}"
        return testall.Step(name, ["sh", "-c", text], **more)
    monkeypatch.setattr(testall, "LOGS", tmp_path)
    monkeypatch.setattr(testall, "STEPS", [
        step("first", "sleep 0.3; touch built"),
        step("side one", "[ -e built ] && touch one && until_there two", needs="first",
             beside=True),
        step("main", "until_there one; touch two; until_there three; exit 3"),
        step("side two", "[ -e two ] && touch three", needs="first", beside=True),
        step("skipped", "touch four", needs="main"),
        step("side skipped", "touch four", needs="main", beside=True)])
    assert testall.main([]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"\nskipped +skipped: main failed", shown), shown
    assert re.search(r"\nside skipped +skipped: main failed", shown), shown
    assert "3 passed, 1 failed, 2 skipped" in shown and not (tmp_path / "four").exists()
    assert testall.main(["side two"]) == 0   # alone, without the step it needs


def test_gdb_has_a_limit_for_all_processes_together(monkeypatch):
    monkeypatch.setattr(stuck.subprocess, "run", lambda *_, **__: pytest.fail("gdb was begun"))
    assert "no time is left for gdb" in stuck.backtraces(os.getpid(), 0)
