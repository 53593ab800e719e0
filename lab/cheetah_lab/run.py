"""Runs the trials of a run one after the other, and saves each as it ends.

Within each repeat and experiment the engines take turns, and each repeat begins with another
engine. A temporary disturbance of the machine thus affects every engine, and shows as spread."""

import contextlib
import datetime
import json
import os
import shutil
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from cheetah_tools import cgroup
from cheetah_tools.paths import PLUGIN, show
from cheetah_tools.say import Failure, note, step
from cheetah_tools.server import scratch

from . import engines, experiments, machine, store
from .model import TURN, Experiment, Scale
from .progress import Progress
from .trial import Refused, Trial


@dataclass(frozen=True)
class Planned:
    experiment: Experiment
    engine: str
    repeat: int
    chosen: bool

    def title(self) -> str:
        return f"{self.experiment.name}, {engines.ALL[self.engine].label}, repeat {self.repeat + 1}"

    def key(self) -> tuple:
        return self.experiment.name, self.engine, self.repeat


def plan(chosen: list, asked: list, scale: Scale) -> list:
    """Returns all trials in order. `chosen`: experiments that can run; `asked`: engines' keys."""
    trials = []
    for repeat in range(scale.repeats):
        for experiment in chosen:
            keys = experiment.engines(asked, scale)
            first = repeat % len(keys) if keys else 0
            trials += [Planned(experiment, key, repeat, key in asked)
                       for key in keys[first:] + keys[:first]]
    return trials


def describe(chosen: list, asked: list, scale: Scale, inputs: dict = None,
             named: dict = None) -> dict:
    """Returns the initial contents of run.json, without the name. `inputs`: further settings that
    affect the measurements; `named`: the experiments and engines that the user named."""
    return {
        "begun": now(), "ended": None, "named": named or {},
        "asked": {"experiments": [experiment.name for experiment in chosen], "engines": asked,
                  "factor": scale.factor, "full": scale.full, "repeats": scale.repeats,
                  **(inputs or {})},
        "plugin": machine.plugin(), "code": machine.code(experiments.FOLDER),
        "experiments": {experiment.name: {"engines": experiment.engines(asked, scale),
                                          "skipped": experiment.skip(),
                                          "measures": {m.key: [m.label, m.unit, m.better]
                                                       for m in experiment.measures}}
                        for experiment in chosen},
        "engines": {key: {"label": engine.label, "family": engine.family,
                          "table": engine.clause()}
                    for key, engine in engines.ALL.items()},
        "machine": machine.machine(), "versions": machine.versions(),
        "memory_group": machine.memory_group(),
    }


def find(runs: Path, about: dict, name: str, fresh: bool) -> store.Run:
    """Returns the newest unfinished run alike, or a new one. Raises Failure for a taken name."""
    if name and (runs / name).exists():
        run = store.named(runs, name)
        if fresh or not run.same(about):
            other = ("" if fresh
                     else ", with other settings, another plugin or other code of the lab")
            raise Failure(f"{show(run.folder)} is there already{other}: "
                          "give another name (RUN=), or delete that folder")
        return run
    if not name and not fresh:
        for run in store.every(runs):
            if run.about["ended"] is None and run.same(about):
                return run
    run = store.Run(runs / (name or new_name(runs)), about)
    run.save()
    return run


def new_name(runs: Path) -> str:
    name = datetime.datetime.now().strftime("%Y-%m-%d-%H%M")
    return next(word for word in (name, *(f"{name}-{number}" for number in range(2, 1000)))
                if not (runs / word).exists())


def execute(run: store.Run, chosen: list, asked: list, scale: Scale) -> int:
    """Runs the remaining trials; returns how many failed. Raises Failure if the plugin was
    replaced, without saving that trial. Blocks to the end, also for a clean-up after Ctrl-C."""
    able = [experiment for experiment in chosen if not experiment.skip()]
    for experiment in chosen:
        if experiment.skip():
            note(f"{experiment.name} is skipped: {experiment.skip()}")
    done = run.done()
    planned = [trial for trial in plan(able, asked, scale) if trial.key() not in done]
    refusals = {(trial["experiment"], trial["engine"]): trial["refused"]
                for trial in run.trials() if "refused" in trial}
    if done:
        step(f"going on with the run {run.name}: {len(done)} trials are there, "
             f"{len(planned)} are left (FRESH=1, or --fresh, begins anew)")
    failed, told = 0, set()
    file = same_plugin(run, None)
    with cleaned() as folder, Progress(planned, scale.factor) as progress:
        for together in rounds(planned):
            for trial, said in measured(together, scale, folder, progress,
                                        run.folder / "errors.log", refusals):
                file = same_plugin(run, file)
                run.append(said)
                failed += "failed" in said
                progress.end(trial, (outcome(said) if said.get("refused") not in told
                                     else "refused as before"), said["seconds"])
                told |= {said["refused"]} if "refused" in said else set()
    return failed


def rounds(planned: list) -> list:
    """Returns the trials in lists. The trials of one repeat of an experiment that is measured
    `together` share a list and take turns; every other trial is alone."""
    found = []
    for trial in planned:
        last = found[-1][-1] if found else None
        if (last and trial.experiment.together and last.experiment is trial.experiment
                and last.repeat == trial.repeat):
            found[-1].append(trial)
        else:
            found.append([trial])
    return found


def measured(together: list, scale: Scale, folder: Path, progress, errors: Path, refusals: dict):
    """Runs trials that take turns, one unpaused, and yields each with its line as it ends."""
    with contextlib.ExitStack() as stack:
        going = []
        for planned in together:
            going.append(Going(planned, scale, folder / "-".join(map(str, planned.key())),
                               progress.step, errors, refusals))
            stack.callback(going[-1].close)
        while going:
            for one in list(going):
                progress.begin(one.planned)
                if not one.go_on():
                    going.remove(one)
                    yield one.planned, one.said()


def same_plugin(run: store.Run, file) -> tuple:
    """Returns the state of the plugin's file for the next check; `file` is the state at the
    previous check, None at the first. Raises Failure if the plugin is not the run's."""
    state = machine.plugin_file()
    if state != file and machine.plugin() != run.about["plugin"]:
        raise Failure(f"{show(PLUGIN)} was replaced while the run {run.name} was going on "
                      "(by make build or make test?): "
                      f"its {len(run.done())} trials are of the plugin before, and are kept; "
                      "the same command begins a new run with the plugin of now. "
                      "Build nothing while the lab runs")
    return state


def outcome(said: dict) -> str:
    return next((f"{word} ({(said[word].splitlines() or [''])[0]})"
                 for word in ("failed", "refused") if word in said), "measured")


class Going:
    """A running trial. An engine that refused once is not tried again."""

    def __init__(self, planned: Planned, scale: Scale, folder: Path, on_step, errors: Path,
                 refusals: dict):
        self.planned, self.folder, self.errors, self.refusals = planned, folder, errors, refusals
        self.trial = Trial(engines.ALL[planned.engine], scale, planned.repeat, planned.chosen,
                           folder, on_step)
        self._turns = values_of(planned.experiment, self.trial)
        self._ended, self._seconds = {}, 0.0
        folder.mkdir(parents=True)

    def go_on(self) -> bool:
        """Runs to the next turn; returns False if the trial has ended. Blocks."""
        key, began = self.planned.key()[:2], time.monotonic()
        try:
            if key in self.refusals:
                raise Refused(self.refusals[key])
            self.trial.resume()
            next(self._turns)
            self.trial.pause()
            return True
        except StopIteration as end:
            self._ended["values"] = end.value
        except Refused as refusal:
            self._ended["refused"] = self.refusals[key] = str(refusal)
        except Failure as failure:
            self._ended["failed"] = str(failure)
        except Exception as error:   # one error must not end a run of half an hour
            self._ended["failed"] = f"{type(error).__name__}: {error}"
            keep_traceback(self.errors, self.planned.title())
        finally:
            self._seconds += time.monotonic() - began
        self.close()
        return False

    def close(self) -> None:
        self._turns.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self) -> dict:
        planned, trial = self.planned, self.trial
        return {"experiment": planned.experiment.name, "engine": planned.engine,
                "repeat": planned.repeat, "chosen": planned.chosen, **self._ended,
                "seconds": round(self._seconds, 3), "commands": trial.commands,
                "remarks": trial.remarks, "limited": trial.limited, "held": trial.held_phases}


def keep_traceback(errors: Path, what: str) -> None:
    with open(errors, "a") as log:
        log.write(f"{now()} {what}\n{traceback.format_exc()}\n")


def values_of(experiment: Experiment, trial: Trial):
    """Returns [measure, value, at] of all values of a trial, and yields at its turns. Raises
    Failure for an undeclared measure, and ValueError for values that are not numbers."""
    known = {measure.key for measure in experiment.measures}
    values = []
    with contextlib.closing(experiment.run(trial)) as found:
        for value in found:
            if value is TURN:
                yield
                continue
            if value.measure not in known:
                raise Failure(f"{experiment.name} yields the measure {value.measure}, "
                              "which it does not declare")
            values.append([value.measure, float(value.value),
                           None if value.at is None else float(value.at)])
    json.dumps(values, allow_nan=False)
    return values


@contextlib.contextmanager
def cleaned():
    """Provides a folder for servers. Afterwards no folders, processes or groups remain."""
    sweep()
    folder = scratch("lab")
    short = Path(tempfile.mkdtemp(prefix=f"cheetah-lab-{os.getpid()}-"))
    # Sockets, whose paths must be short, are in this folder.
    before, tempfile.tempdir = tempfile.tempdir, str(short)
    with one_interrupt():
        try:
            yield folder
        finally:
            tempfile.tempdir = before
            end_children()
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(short, ignore_errors=True)
            sweep()


def sweep() -> None:
    """Deletes the groups and socket folders of killed runs, whose servers ended with them."""
    cgroup.sweep()
    for left in Path(tempfile.gettempdir()).glob("cheetah-lab-*"):
        owner = left.name.split("-")[2]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def one_interrupt():
    """Makes the first Ctrl-C or SIGTERM raise KeyboardInterrupt; later ones are ignored."""
    def interrupted(*_):
        for number in handlers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt
    handlers = {number: signal.signal(number, interrupted)
                for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def end_children() -> None:
    children = [int(word) for file in Path("/proc/self/task").glob("*/children")
                for word in file.read_text().split()]
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
