"""The ledger of `make crash IMAGES=n`: where a run continues, when it stops, what it reports."""

from unittest.mock import Mock

import pytest
from cheetah_tools import images
from cheetah_tools.say import Failure

CHUNK = images.CHUNK_SEEDS
GOOD = "5000 crash images at 900 moments of {} workloads from seed {} in 9 s: all good\n"


class Simulation:
    """A fake simulation: each chunk has a thousand images, and the chunks in `bad` fail."""

    def __init__(self, bad=()):
        self.bad, self.explored, self.stopped = bad, [], False

    def explore(self, no: int) -> tuple:
        self.explored.append(no)
        if no in self.bad:
            return None, f"FAILED from seed {no * CHUNK + 1}"
        return 1000, ""

    def stop(self) -> None:
        self.stopped = True


def run(path, wanted: int, bad=(), jobs: int = 1, commit: str = "abc1234") -> tuple:
    """Returns a command's exit status, the chunks it explored, and the total of images."""
    simulation = Simulation(bad)
    with images.Ledger(path) as ledger:
        status = images.run(ledger, commit, wanted, jobs, simulation)
        return status, sorted(simulation.explored), ledger.images


def test_a_run_goes_on_behind_the_last_one_at_any_commit(tmp_path, capsys):
    path = tmp_path / "ledger.tsv"
    assert run(path, 2500) == (0, [0, 1, 2], 3000)
    assert run(path, 1, commit="def5678") == (0, [3], 4000)
    assert run(path, 3000, jobs=2)[2] >= 7000
    lines = path.read_text().splitlines()
    assert lines[0].split("\t") == images.HEAD
    assert lines[4].split("\t")[1:] == ["def5678", str(3 * CHUNK + 1), str(CHUNK), "1000", "0"]
    said = capsys.readouterr().out
    assert f"3000 at abc1234 from seeds 1 to {3 * CHUNK} in" in said
    assert "0 lost or wrong; 4000 in all" in said


def test_a_failure_stops_it_is_noted_and_comes_first_the_next_time(tmp_path, capsys):
    path = tmp_path / "ledger.tsv"
    assert run(path, 9000, bad=[2]) == (1, [0, 1, 2], 2000)
    assert f"FAILED from seed {2 * CHUNK + 1}\n" in capsys.readouterr().out
    assert path.read_text().splitlines()[-1].split("\t")[4:] == ["0", "1"]
    assert run(path, 9000, bad=[2]) == (1, [2], 2000)
    assert run(path, 2000) == (0, [2, 3], 4000)


def test_chunks_that_were_stopped_are_run_again(tmp_path):
    path = tmp_path / "ledger.tsv"
    with images.Ledger(path) as ledger:
        ledger.add("abc", 0, 1000, 0)
        ledger.add("abc", 2, 1000, 0)
    assert run(path, 2000) == (0, [1, 3], 4000)


def test_a_last_line_that_was_cut_short_is_left_out_and_its_chunk_run_again(tmp_path):
    path = tmp_path / "ledger.tsv"
    assert run(path, 2000) == (0, [0, 1], 2000)
    before, whole = path.read_text().splitlines(keepends=True)[:2], path.read_text()
    for length in range(len("".join(before)), len(whole)):
        path.write_text(whole[:length])
        assert run(path, 1000, commit="def5678") == (0, [1], 2000)
        lines = path.read_text().splitlines(keepends=True)
        assert lines[:2] == before and len(lines) == 3 and "\tdef5678\t" in lines[2]
    path.write_text(before[0][:5])
    assert run(path, 1000) == (0, [0], 1000) and path.read_text().startswith(before[0])


def test_ctrl_c_ends_what_runs_and_notes_nothing_of_it(tmp_path, monkeypatch):
    simulation = Simulation()
    monkeypatch.setattr(images, "wait", Mock(side_effect=KeyboardInterrupt))
    with images.Ledger(tmp_path / "l") as ledger, pytest.raises(KeyboardInterrupt):
        images.run(ledger, "abc", 1, 1, simulation)
    assert simulation.stopped and len((tmp_path / "l").read_text().splitlines()) == 1


def test_a_second_run_at_a_time_is_refused(tmp_path):
    with images.Ledger(tmp_path / "l"), pytest.raises(Failure, match="another run"):
        images.Ledger(tmp_path / "l")


def test_only_a_whole_chunk_that_says_so_is_good():
    good = GOOD.format(CHUNK, 101)
    assert images.outcome(101, 0, "running 1 test\n" + good + "ok\n") == (5000, "")
    for first, status, text in [(101, 101, good), (201, 0, good), (101, 0, "ok\n"),
                                (101, 0, GOOD.format(CHUNK - 1, 101))]:
        assert images.outcome(first, status, text)[0] is None
    again = "repeat with: CHEETAH_CRASH_SEED=7 CHEETAH_CRASH_IMAGES=1 cargo test\n"
    wrong = "seed 7: plan seed 7: power cut before operation 9\n  3 rows, but it counts 4\n"
    panic = f"panic while exploring seed 7; {again}"
    text = f"x\n{panic}{wrong}  after 5 good images\n{again}"
    assert images.outcome(101, 134, text)[1] == (
        f"FAILED from seed 101, exit status 134:\n{panic}{wrong}{again}".rstrip())
