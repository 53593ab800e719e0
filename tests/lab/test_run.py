"""Runs: the order of trials, the remains of a stop or kill, reports of what cannot be done."""

import io
import json
import signal
import tempfile
from pathlib import Path
from unittest.mock import Mock

import browser
import pytest
from cheetah_lab import cli, engines, experiments, machine, run, sections, store
from cheetah_lab.model import Experiment, Scale
from cheetah_lab.progress import Progress
from cheetah_lab.report import write
from cheetah_tools import cgroup, setup
from cheetah_tools.paths import VAR
from cheetah_tools.say import Failure
from click.testing import CliRunner
from rich.console import Console
from labs import LOAD, SHOWN, Lab, children, needs_server, run_words, stop, until

COUNT = 'time.sleep(0.1)\nyield Value("count", trial.repeat + 1)'
ABOUT = {"title": "", "time": {"seconds": 10, "extra_seconds": 2}, "room": {"bytes": 1000}}


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def inside(lab, monkeypatch) -> Lab:
    monkeypatch.setattr(experiments, "FOLDER", lab.experiments)
    return lab


def execute(lab: Lab, keys: list, repeats: int = 2) -> tuple:
    """Runs all experiments here; returns the run and the number of failed trials."""
    chosen, scale = experiments.load(), Scale(0.02, repeats=repeats)
    found = run.find(lab.runs, run.describe(chosen, keys, scale), "", False)
    return found, run.execute(found, chosen, keys, scale)


def test_engines_take_turns_and_whoever_begins_changes():
    chosen = [Experiment("one", ABOUT), Experiment("two", ABOUT)]
    planned = [(trial.repeat, trial.experiment.name, trial.engine)
               for trial in run.plan(chosen, ["a", "b", "c"], Scale(repeats=2))]
    assert planned == [(0, "one", "a"), (0, "one", "b"), (0, "one", "c"),
                       (0, "two", "a"), (0, "two", "b"), (0, "two", "c"),
                       (1, "one", "b"), (1, "one", "c"), (1, "one", "a"),
                       (1, "two", "b"), (1, "two", "c"), (1, "two", "a")]


def test_what_a_document_compares_is_run_but_not_chosen():
    class More(Experiment):
        def engines(self, chosen, scale):
            return [*chosen, "extra"]
    planned = run.plan([More("more", ABOUT)], ["a"], Scale(repeats=1))
    assert [(trial.engine, trial.chosen) for trial in planned] == [("a", True), ("extra", False)]


def test_a_run_that_was_killed_goes_on_where_it_was(lab):
    lab.write("counts", COUNT)
    process = lab.begin(*run_words(repeats=5), "--run", "killed")
    until(lambda: len(lab.lines("killed")) >= 3, "three trials")
    stop(process)
    kept = lab.lines("killed")[:3]
    with open(lab.runs / "killed/trials.jsonl", "ab") as file:
        file.write(b'{"experiment": "counts", "eng')      # as if the kill had torn a line
    status, output = lab.run(repeats=5)
    assert status == 0 and "going on with the run killed" in output, output
    assert lab.lines("killed")[:3] == kept, "lines that were there have changed"
    keys = [(trial["engine"], trial["repeat"]) for trial in lab.trials("killed")]
    assert sorted(keys) == sorted((key, repeat) for key in ("cheetah", "innodb-dynamic")
                                  for repeat in range(5)), "each trial once"
    assert lab.about("killed")["ended"]
    status, output = lab.run(repeats=5)
    assert (status == 0 and "going on" not in output
            and len(list(lab.runs.glob("*/run.json"))) == 2), "a finished run was gone on with"


def test_what_a_user_may_not_expect_is_said_before(lab, capsys):
    """A run with one repeat makes no page, and an experiment may add engines of its document."""
    lab.write("counts", COUNT)
    status, output = lab.run(repeats=1)
    assert status == 0 and output.index("there will be no page") < output.index("measured"), output
    cli.say_before(experiments.load(), ["cheetah"], Scale(), ())
    assert not capsys.readouterr().out
    cli.say_before(experiments.load(), ["cheetah"], Scale(), ("cheetah",))
    assert "row_formats runs InnoDB COMPACT, " in capsys.readouterr().out


def test_a_run_with_other_settings_or_other_code_begins_anew(lab):
    lab.write("counts", COUNT)
    process = lab.begin(*run_words(repeats=9), "--run", "first")
    until(lambda: lab.lines("first"), "a trial")
    stop(process)
    assert "going on" not in lab.run(repeats=2)[1]
    lab.write("counts", COUNT.replace("0.1", "0.01"))
    assert "going on" not in lab.run(repeats=9)[1]
    status, output = lab.run("--run", "first", repeats=9)
    assert status == 1 and "first is there already" in output


@needs_server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_only_its_results(lab, number):
    lab.write("a_counts", COUNT)
    lab.write("b_holds", 'with trial.server(16 << 20) as server:\n    trial.engine.flush(server)\n'
                         '    time.sleep(600)\n    yield Value("count", 1)')
    process = lab.begin(*run_words("--run", "stopped", engines=["cheetah"]))
    until(lambda: lab.lines("stopped") and children(process.pid), "a server")
    servers = children(process.pid)
    stop(process, number)
    assert process.returncode == 130
    assert [trial["experiment"] for trial in lab.trials("stopped")] == ["a_counts"]
    assert lab.about("stopped")["ended"] is None
    assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()], "a server runs on"
    assert not left_of(process.pid)


@needs_server
def test_what_a_killed_run_left_goes_with_the_next(lab):
    lab.write("holds", 'if trial.repeat == 0:\n    with trial.server(16 << 20) as server:\n'
                       '        time.sleep(600)\nyield Value("count", 1)')
    process = lab.begin(*run_words(engines=["cheetah"]))
    until(lambda: children(process.pid) and left_of(process.pid), "a server")
    servers = children(process.pid)
    stop(process)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in servers),
          "the kernel to end the server")
    assert left_of(process.pid)
    with run.cleaned():
        pass
    assert not left_of(process.pid)


def left_of(pid: int) -> list:
    return [*VAR.glob(f"tmp/lab-{pid}"), *Path(tempfile.gettempdir()).glob(f"cheetah-lab-{pid}-*"),
            *cgroup.ROOT.glob(f"cheetah-{pid}-*"),
            *(cgroup.ROOT / "memory").glob(f"cheetah-{pid}-*")]


def test_the_page_of_a_stopped_run_has_what_is_there(lab):
    lab.write("counts", COUNT + "\nif trial.repeat == 2: time.sleep(600)")
    process = lab.begin(*run_words("--run", "stopped", engines=["cheetah"], repeats=3))
    until(lambda: len(lab.lines("stopped")) == 2, "two trials")
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)[0]
    assert (process.returncode == 130
            and "goes on with the run stopped, of which 2 trials are there" in output), output
    assert (lab.runs / "stopped/index.html").exists()


def test_no_room_is_told_before_anything_begins(lab):
    lab.write("huge", COUNT, room_bytes=1e18)
    status, output = lab.run()
    assert (status == 1
            and "no room: at scale 0.02 the run needs 20,000,001 GB" in output
            and "most for huge" in output), output
    assert "no smaller scale would fit" in output and not list(lab.runs.glob("*/*"))


def test_the_scale_that_would_fit_is_told(lab):
    lab.write("large", COUNT, room_bytes=1e12)
    status, output = lab.call("run", "--scale", 1000, "--repeats", 1, "--engine", "cheetah")
    assert status == 1 and "SCALE=0.0" in output, output


@needs_server
def test_a_real_run_becomes_a_page_and_a_peer_that_is_absent_has_a_line_that_says_why(
        inside, monkeypatch):
    monkeypatch.setattr(setup, "absent", lambda: {"MyRocks": "no such package"})
    inside.write("load", LOAD, more=SHOWN)
    found, failed = execute(inside, ["myrocks", "cheetah"])
    assert failed == 0
    (section,) = sections.sections(found)
    assert (list(section.problems) == ["myrocks"]
            and "no such package" in section.problems["myrocks"])
    assert (section.found.engines == ["cheetah"]
            and section.found.values("cheetah", "rows") == [2000, 2000])
    assert section.commands["cheetah"] == ["INSERT INTO made.t VALUES .."]
    place = sections.page(found)
    with browser.open_browser() as driver:
        browser.check(driver, place)
        browser.visit(driver, place)
        assert "no such package" in driver.find_element("css selector", "#load .problems").text
        assert [row.text.split()[0]
                for row in driver.find_elements("css selector", "#load tbody tr")] == ["Cheetah"]


def test_what_an_engine_refused_is_not_tried_again_and_said_once(inside, capsys):
    inside.write("refusing", 'open("' + str(inside.runs.parent / "tries")
                 + '", "a").write("x")\nraise Refused("no such type")\nyield')
    found, failed = execute(inside, ["cheetah"], repeats=3)
    assert failed == 0 and (inside.runs.parent / "tries").read_text() == "x"
    said = capsys.readouterr().out
    assert said.count("no such type") == 1 and said.count("refused as before") == 2, said
    assert [trial["refused"] for trial in found.trials()] == ["no such type"] * 3


def test_a_trial_that_fails_is_kept_with_its_reason_and_tried_again(lab):
    marker = lab.runs.parent / "mended"
    lab.write("fails", 'import os\nif trial.engine.key == "cheetah" '
                       f'and not os.path.exists("{marker}"): raise Failure("it broke")\n{COUNT}')
    status, output = lab.run("--run", "mended")
    assert (status == 1 and "2 trials failed" in output
            and output.count("failed (it broke)") == 2), output
    assert [trial.get("failed") for trial in lab.trials("mended")] == [
        None, "it broke", "it broke", None]
    marker.write_text("")
    status, output = lab.run()
    assert status == 0 and "2 trials are there, 2 are left" in output, output
    assert (all("values" in trial for trial in store.named(lab.runs, "mended").trials())
            and lab.about("mended")["ended"])


@pytest.mark.parametrize("body, reason", [
    ('yield Value("weight", 1)', "yields the measure weight, which it does not declare"),
    ('yield Value("count", float("nan"))', "ValueError"),
    ("yield 1 / 0", "ZeroDivisionError"),
])
def test_values_that_cannot_be_kept_fail_their_trial_alone(inside, body, reason):
    inside.write("a_wrong", body)
    inside.write("b_counts", COUNT)
    found, failed = execute(inside, ["cheetah"], repeats=1)
    assert failed == 1 and len(found.trials()) == 2
    assert [reason in trial.get("failed", "") for trial in found.trials()] == [True, False]
    json.loads((found.folder / "trials.jsonl").read_text().splitlines()[0])


def test_two_runs_at_once_are_refused(lab):
    lab.write("counts", COUNT)
    with store.alone(lab.runs):
        status, output = lab.run()
    assert status == 1 and "another run of the lab is going on" in output


def test_nothing_is_built_while_another_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(cli.build, "build", Mock(side_effect=AssertionError("it was built")))
    with store.alone(tmp_path):
        done = CliRunner().invoke(cli.lab, ["--runs", str(tmp_path), "run", "--build",
                                            "--experiment", "row_counts"])
    assert (isinstance(done.exception, Failure)
            and "another run of the lab is going on" in str(done.exception))


@pytest.mark.parametrize("words, kept", [("another", 1), ("the plugin", 3)])
def test_a_plugin_that_is_replaced_ends_the_run_and_the_trial_of_two_plugins_is_not_kept(
        inside, monkeypatch, words, kept):
    plugin = inside.runs.parent / "ha_cheetah.so"
    plugin.write_text("the plugin")
    monkeypatch.setattr(machine, "PLUGIN", plugin)
    replaced = ('if trial.repeat == 1:\n'
                f'    fresh = __import__("pathlib").Path("{plugin}.new")\n'
                f'    fresh.write_text("{words}")\n'
                f'    fresh.rename("{plugin}")\n')
    inside.write("counts", replaced + COUNT)
    if words == "the plugin":   # rebuilt without a change
        execute(inside, ["cheetah"], repeats=3)
    else:
        with pytest.raises(Failure, match=r"was replaced while the run .* was going on .* its 1 "
                                          r"trials are of the plugin before, and are kept"):
            execute(inside, ["cheetah"], repeats=3)
    (found,) = store.every(inside.runs)
    assert ([trial["repeat"] for trial in found.trials()] == list(range(kept))
            and found.about["ended"] is None)


def test_an_experiment_that_is_not_there_is_named(lab):
    lab.write("counts", COUNT)
    status, output = lab.run("--experiment", "weights")
    assert status == 1 and "no experiment weights; there are counts" in output
    assert lab.run("--scale", "0")[0] == 2


def test_the_time_left_is_learnt_from_the_trials():
    """experiment.toml declares 10 s per trial (2 s for engines that the user did not choose), and
    each trial adds a second for its server. The measured times are twice as long."""
    one = Experiment("one", ABOUT)
    planned = [run.Planned(one, key, 0, key == "cheetah") for key in ("cheetah", "innodb-4k")]
    said = io.StringIO()
    with Progress(planned, 1.0, Console(file=said)) as progress:
        for trial, seconds in zip(planned, (22, 6)):
            progress.begin(trial)
            progress.end(trial, "measured", seconds)
    assert said.getvalue().splitlines() == [
        "  1/2 one, Cheetah, repeat 1: measured in 22.0 s; about 6 s left",
        "  2/2 one, InnoDB KEY_BLOCK_SIZE=4, repeat 1: measured in 6.0 s; done"]


def test_some_experiments_run_only_when_they_are_named():
    usual = {experiment.name for experiment in cli.chosen_by(())}
    assert "row_counts" in usual and "recovery" not in usual
    assert [experiment.name for experiment in cli.chosen_by(("recovery",))] == ["recovery"]


def test_every_experiment_of_the_project_is_whole():
    found = experiments.load()
    assert {experiment.name for experiment in found} == set(experiments.names()) and found
    for experiment in found:
        keys = [measure.key for measure in experiment.measures]
        assert keys and len(set(keys)) == len(keys)
        for scale in (Scale(), Scale(full=True), Scale(0.02)):
            assert set(experiment.engines(engines.QUICK, scale)) <= set(engines.ALL)
            assert experiment.room_bytes(scale) > 0


@pytest.mark.parametrize("reason", ["refused", "failed"])
def test_a_page_is_written_when_every_engine_has_a_problem(tmp_path, reason):
    chosen, scale = experiments.load(), Scale(0.02, repeats=2)
    found = run.find(tmp_path, run.describe(chosen, engines.QUICK, scale), "problems", False)
    for trial in run.plan(chosen, engines.QUICK, scale):
        found.append({"experiment": trial.experiment.name, "engine": trial.engine,
                      "repeat": trial.repeat, "chosen": trial.chosen,
                      reason: "it is not to be had", "seconds": 0, "commands": [], "limited": None,
                      "held": []})
    assert sections.page(found) is None, "a page without a figure"
    told = sections.sections(found)
    assert [section.experiment.name for section in told] == experiments.names()
    place = write(found.folder, {"name": found.name, **found.about}, told)
    assert "it is not to be had" in place.read_text()


def test_a_page_that_cannot_be_written_does_not_cost_the_values(lab):
    lab.write("counts", COUNT, more="    def plots(self, found):\n        return 1 / 0\n")
    status, output = lab.run("--run", "plain", engines=["cheetah"])
    assert (status == 1 and "no page: ZeroDivisionError" in output
            and "lab page plain" in output), output
    assert len(lab.trials("plain")) == 2 and lab.about("plain")["ended"]
    assert "page of plain" in (lab.runs / "plain/errors.log").read_text()


def test_a_disk_that_is_full_is_told_and_the_run_goes_on_later(tmp_path, monkeypatch):
    full = Mock(side_effect=OSError(28, "No space left on device"))
    found = store.Run(tmp_path / "run", {"begun": ""})
    found.save()
    found.append(trial := {"experiment": "a", "engine": "cheetah", "repeat": 0, "values": []})
    with monkeypatch.context() as patched:
        patched.setattr(store.os, "fsync", full)
        with pytest.raises(Failure, match="No space left on device; when that is mended, the same "
                                          "command goes on"):
            found.append({**trial, "repeat": 1})
    with open(found.folder / "trials.jsonl", "ab") as file:
        file.write(b'{"experiment"')
    found.append({**trial, "repeat": 2})
    assert [line["repeat"] for line in found.trials()] == [0, 1, 2]


def test_what_measures_and_nothing_else_is_in_the_hash_of_the_code(tmp_path, monkeypatch):
    for name in ("lab/cheetah_lab/trial.py", "lab/cheetah_lab/judge.py",
                 "lab/cheetah_lab/report/page.py", "tools/load/point_select.cc",
                 "own/a/experiment.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(machine, "PROJECT", tmp_path)

    def changes(name: str) -> bool:
        before = machine.code(tmp_path / "own")
        (tmp_path / name).write_text("changed")
        return machine.code(tmp_path / "own") != before
    assert (changes("lab/cheetah_lab/trial.py") and changes("tools/load/point_select.cc")
            and changes("own/a/experiment.py"))
    assert not changes("lab/cheetah_lab/judge.py") and not changes("lab/cheetah_lab/report/page.py")


@pytest.mark.parametrize("words, status, why", [
    (["--experiment", "weights"], 1, "no experiment weights"),
    (["--scale", "x"], 2, "x"), (["--engine", "oracle"], 2, "oracle"),
])
def test_what_cannot_be_run_is_told_before_anything_is_built(tmp_path, monkeypatch, capsys, words,
                                                             status, why):
    monkeypatch.setattr(cli.build, "build", Mock(side_effect=AssertionError("it was built")))
    done = CliRunner().invoke(cli.lab, ["--runs", str(tmp_path), "run", "--build", *words])
    said = done.output + str(done.exception)
    assert (done.exit_code == status and why in said and "built" not in said
            and not list(tmp_path.iterdir()))


@pytest.mark.parametrize("words, why", [
    (["--scale", "nan"], "not a number"),
    (["--run", "../../x"], "letters, digits"),
    (["--run", ".hidden"], "letters, digits"),
])
def test_words_that_name_nothing_are_refused(tmp_path, words, why):
    done = CliRunner().invoke(cli.lab, ["--runs", str(tmp_path), "run", "--experiment",
                                        "row_counts", *words])
    assert done.exit_code == 2 and why in done.output and not list(tmp_path.iterdir())
