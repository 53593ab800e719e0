"""The logic of `make soak`: which rounds are drawn, when it ends, and its ledger's content."""

import itertools
import threading

import pytest
from cheetah_tools import build, soak, stuck
from cheetah_tools.paths import PROJECT
from cheetah_tools.say import Failure


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Keeps logs and ledger out of the project's folders, and gives the engine a commit's name."""
    monkeypatch.setattr(soak, "engine_of_project", lambda: "0123456789")
    monkeypatch.setattr(soak, "LOGS", tmp_path)
    monkeypatch.setattr(soak, "LEDGER", tmp_path / "soak.tsv")
    monkeypatch.setattr(soak, "LANDED", tmp_path / "landed.tsv")


class Rounds:
    """Fake rounds. Each takes `seconds` and returns the next result; the last one repeats."""

    def __init__(self, monkeypatch, seconds: int, *results):
        self.now, self.seconds = 0, seconds
        self.results = list(results) or [(True, 3, 1)]
        self.numbers, self.commands = [], []
        monkeypatch.setattr(soak.time, "monotonic", lambda: self.now)

    def __call__(self, number: int, command: list) -> tuple:
        result = self.results[min(len(self.numbers), len(self.results) - 1)]
        if result is KeyboardInterrupt:
            raise result
        self.now += self.seconds
        self.numbers.append(number)
        self.commands.append(command)
        return result


def test_a_seed_draws_the_same_rounds_and_all_kinds_come():
    first, again, other = ([(scenario.name, seed) for scenario, seed in
                            itertools.islice(soak.drawn(number), 300)] for number in (7, 7, 8))
    assert first == again != other
    assert {name for name, _ in first} == {scenario.name for scenario in soak.SCENARIOS}
    assert all(0 < seed < soak.SEED_MAX for _, seed in first)


def test_the_files_of_all_scenarios_are_there():
    for scenario in soak.SCENARIOS:
        files = [word for word in scenario.words if word.endswith(".py")]
        assert files and all((PROJECT / file).is_file() for file in files)


def test_no_round_begins_once_the_time_is_up(monkeypatch, capsys):
    run = Rounds(monkeypatch, 1000)
    assert soak.soak(0.5, 5, run) == 0
    assert len(run.commands) == 2 and run.commands[0] != run.commands[1]
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("soak: 2 rounds of engine ") and said.endswith(
        "from seed 5 in 0.56 hours: 6 tests passed, 0 rounds failed, 2 tests skipped")
    head, *rows = [line.split("\t") for line in soak.LEDGER.read_text().splitlines()]
    assert head == soak.HEAD
    assert [row[3:9] for row in rows] == [["5", "1", "3", "1", "1000", "good"],
                                          ["5", "2", "3", "1", "1000", "good"]]
    assert rows[1][9].split() == run.commands[1]


def test_a_failure_ends_it_with_the_command_that_repeats_it(monkeypatch, capsys):
    run = Rounds(monkeypatch, 1, (True, 4, 0), (False, 2, 0))
    assert soak.soak(8, 5, run) == 1
    said = capsys.readouterr().out
    assert "again with: python3 " + " ".join(run.commands[1]) in said
    assert "6 tests passed, 1 rounds failed" in said
    assert soak.LEDGER.read_text().splitlines()[-1].split("\t")[8] == "failed"


def test_a_soak_that_was_stopped_goes_on(monkeypatch, capsys):
    first = Rounds(monkeypatch, 1000, (True, 3, 1), (True, 3, 1), KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        soak.soak(1, 5, first)
    run = Rounds(monkeypatch, 1000)
    assert soak.soak(1, 5, run) == 0
    whole = [scenario.command(seed) for scenario, seed in itertools.islice(soak.drawn(5), 4)]
    assert first.commands + run.commands == whole
    said = capsys.readouterr().out
    assert "goes on: 2 rounds of engine " in said
    assert "soak: 4 rounds of engine " in said and "in 1.11 hours: 12 tests passed" in said
    assert [row.split("\t")[4] for row in soak.LEDGER.read_text().splitlines()[1:]] == list("1234")


def test_rounds_of_another_seed_or_engine_do_not_count(monkeypatch):
    for engine, seed in (("other", 5), (soak.engine_of_project(), 6)):
        soak.note("a commit", engine, seed, 1, 3, 0, 4000, "good", "a command")
    run = Rounds(monkeypatch, 4000)
    assert soak.soak(1, 5, run) == 0 and len(run.commands) == 1


def test_rounds_count_that_others_have_run_of_the_engine(monkeypatch, capsys):
    for number, result in ((1, "good"), (2, "failed"), (3, "good")):
        soak.note("a commit", soak.engine_of_project(), 5, number, 3, 0, 1000, result, "a command")
    soak.LEDGER.rename(soak.LANDED)
    run = Rounds(monkeypatch, 1000)
    assert soak.soak(1, 5, run) == 0 and run.numbers == [2, 4]
    said = capsys.readouterr().out
    assert "goes on: 2 rounds of engine " in said and "soak: 4 rounds of engine " in said
    run.numbers.clear()
    assert soak.soak(1.2, 5, run) == 0 and run.numbers == [5]


def test_a_soak_that_failed_goes_on_at_another_commit_only(monkeypatch):
    run = Rounds(monkeypatch, 4000)
    assert soak.soak(1, 5, lambda *_: (False, 0, 0)) == 1
    with pytest.raises(Failure, match="round 1 of SEED=5 failed at .*another SEED"):
        soak.soak(1, 5, run)
    monkeypatch.setattr(soak, "commit_of_project", lambda: "mended")
    assert soak.soak(1, 5, run) == 0 and run.numbers == [1]


def test_several_rounds_run_at_a_time(capsys):
    both, numbers = threading.Barrier(2, timeout=10), []

    def run(number, _command):
        numbers.append(number)
        if number < 3:
            both.wait()
        return number < 6, 1, 0

    assert soak.soak(8, 5, run, jobs=2) == 1
    assert sorted(numbers)[:6] == [1, 2, 3, 4, 5, 6] and len(numbers) <= 7
    assert f" {len(numbers) - 5} rounds failed" in capsys.readouterr().out
    noted = [int(line.split("\t")[4]) for line in soak.LEDGER.read_text().splitlines()[1:]]
    assert sorted(noted) == sorted(numbers)


def test_ctrl_c_ends_the_rounds_that_run_and_notes_none():
    def run(number, _command):
        if number == 2:
            raise KeyboardInterrupt
        return soak.run(number, ["-c", "import time; time.sleep(600)"])

    with pytest.raises(KeyboardInterrupt):
        soak.soak(8, 5, run, jobs=2)
    assert not soak.running and not soak.LEDGER.exists()


def test_rounds_that_only_skip_prove_nothing(monkeypatch, capsys):
    assert soak.soak(1, 5, Rounds(monkeypatch, 4000, (True, 0, 2))) == 1
    assert "soak: 0 rounds " in capsys.readouterr().out
    assert soak.LEDGER.read_text().splitlines()[-1].split("\t")[8] == "skipped"


def test_a_round_that_hangs_is_ended_and_says_what_it_was_at(monkeypatch):
    monkeypatch.setattr(soak, "SECONDS_MAX", 0.5)
    monkeypatch.setattr(stuck, "describe", lambda pid: f"process {pid} sleeps")
    ok, passed, skipped = soak.run(1, ["-c", "import time; time.sleep(600)"])
    assert (ok, passed, skipped) == (False, 0, 0) and " sleeps" in soak.log_of(1).read_text()


def test_a_round_counts_by_its_report_or_as_one():
    assert soak.run(1, ["-c", "print('differential: 500 statements')"]) == (True, 1, 0)
    assert soak.run(2, ["-c", "raise SystemExit(1)"]) == (False, 0, 0)


@pytest.mark.parametrize("words, named", [("--hours 0", "HOURS"), ("--hours 1 --jobs 0", "JOBS")])
def test_no_time_and_no_job_are_refused(words, named):
    with pytest.raises(Failure, match=named):
        soak.main(words.split())


def test_a_ledger_with_a_broken_line_is_refused():
    soak.LANDED.write_text("\t".join(soak.HEAD) + "\n2026-11-28 4:09:44 a line with spaces\n")
    with pytest.raises(Failure, match="landed.tsv: a line has 1 cells, not 10"):
        soak.soak(1, 5, lambda *_: (True, 1, 0))


def test_rounds_of_an_engine_that_is_no_commits_do_not_count(monkeypatch):
    monkeypatch.setattr(soak, "engine_of_project", lambda: "0123456789+")
    soak.note("a commit", "0123456789+", 5, 1, 3, 0, 4000, "good", "a command")
    run = Rounds(monkeypatch, 4000)
    assert soak.soak(1, 5, run) == 0 and run.numbers == [1]


def test_an_engine_is_named_by_what_it_is_built_from(tmp_path, monkeypatch):
    """Documents do not change the name; sources in no commit give one that does not count."""
    monkeypatch.setattr(build, "PROJECT", tmp_path)

    def commit(file: str) -> str:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(file)
        build.git("add", "-A")
        build.git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", file)
        return build.engine_of_project()

    assert build.engine_of_project().endswith("+")
    build.git("init", "-q")
    for file in ("Cargo.toml", "Cargo.lock", "crates/a.rs", "plugin/a.cc", "packaging/flags.txt"):
        commit(file)
    name = commit("packaging/exports.map")
    assert not name.endswith("+") and commit("notes/a") == name != commit("plugin/b.cc")
    (tmp_path / "plugin/c.cc").write_text("new")
    assert build.engine_of_project().endswith("+")
