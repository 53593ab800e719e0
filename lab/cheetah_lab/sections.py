"""Converts the trials of a run to the contents of its page, experiment by experiment."""

from pathlib import Path

from . import engines, experiments
from .results import Found, Section
from .store import Run

REPEATS_FOR_PAGE = 2    # figures without a spread are not shown


def page(run: Run) -> Path | None:
    """Writes the page of a run if any engine has enough repeats for it; returns its path."""
    found = sections(run)
    if not any(repeats(section) >= REPEATS_FOR_PAGE for section in found):
        return None
    from .report import write   # importing matplotlib takes a second
    return write(run.folder, {"name": run.name, **run.about}, found)


def sections(run: Run) -> list:
    """Returns a section for each experiment of the run that this lab has, also skipped ones."""
    trials = run.trials()
    names = [name for name in run.about["experiments"] if name in experiments.names()]
    return [section(experiment, [trial for trial in trials
                                 if trial["experiment"] == experiment.name], run.about)
            for experiment in (experiments.load(names) if names else [])]


def section(experiment, trials: list, about: dict) -> Section:
    experiment.choose(about["asked"].get("options", {}))
    keys = about["experiments"][experiment.name]["engines"]
    known = {key: engine for key, engine in engines.ALL.items() if key in keys}
    problems, commands, remarks = {}, {}, {}
    skipped = about["experiments"][experiment.name]["skipped"]
    for key in known:
        own = [trial for trial in trials if trial["engine"] == key]
        reasons = [trial.get("refused") or f"failed: {trial['failed']}" for trial in own
                   if "values" not in trial]
        if skipped or reasons:
            problems[key] = f"skipped: {skipped}" if skipped else "; ".join(dict.fromkeys(reasons))
        commands[key] = list(dict.fromkeys(command for trial in own
                                           for command in trial["commands"]))
        remarks[key] = [remark for trial in own if "values" in trial
                        for remark in trial.get("remarks", [])]
    return Section(experiment, Found([trial for trial in trials if "values" in trial], known),
                   problems, commands, trials, remarks)


def repeats(section: Section) -> int:
    counts = [sum(trial["engine"] == key and "values" in trial for trial in section.trials)
              for key in section.found.known]
    return max(counts, default=0)
