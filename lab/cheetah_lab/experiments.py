"""Finds and loads the experiments: folders with `experiment.toml` and `experiment.py`."""

import importlib.util
import os
import sys
import tomllib
from pathlib import Path

from cheetah_tools.paths import PROJECT, show
from cheetah_tools.say import Failure

from .model import Experiment

# $CHEETAH_EXPERIMENTS names another folder of experiments; tests of the lab use it.
FOLDER = Path(os.environ.get("CHEETAH_EXPERIMENTS") or PROJECT / "lab/experiments").resolve()
TEXTS, LISTS, TABLES = (("title", "question", "method", "document"), ("quotes",),
                        (("room", "bytes"), ("time", "seconds")))


def names() -> list:
    return sorted(place.parent.name for place in FOLDER.glob("*/experiment.toml"))


def load(chosen: list = ()) -> list:
    """Returns the chosen experiments, by default all. Raises Failure for a wrong name or folder."""
    known = names()
    if unknown := [name for name in chosen if name not in known]:
        raise Failure(f"no experiment {', '.join(unknown)}; there are {', '.join(known)}")
    return [_load(FOLDER / name) for name in known if name in chosen or not chosen]


def _load(folder: Path) -> Experiment:
    name = f"cheetah_lab_experiments.{folder.name}"
    specification = importlib.util.spec_from_file_location(name, folder / "experiment.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    kinds = [kind for kind in vars(module).values()
             if isinstance(kind, type) and issubclass(kind, Experiment) and kind.__module__ == name]
    if len(kinds) != 1:
        raise Failure(f"{show(folder / 'experiment.py')}: wanted one subclass of Experiment, "
                      f"found {len(kinds)}")
    return kinds[0](folder.name, about(folder / "experiment.toml"))


def about(place: Path) -> dict:
    """Returns the checked contents of an experiment.toml."""
    try:
        said = tomllib.loads(place.read_text())
    except tomllib.TOMLDecodeError as failure:
        raise Failure(f"{show(place)}: {failure}") from failure
    wrong = [key for key in TEXTS if not isinstance(said.get(key), str)]
    wrong += [key for key in LISTS if not isinstance(said.get(key), list)]
    wrong += [] if isinstance(said.get("claims"), dict) else ["[claims]"]
    wrong += [f"[{table}] {key}" for table, key in TABLES
              if not isinstance(said.get(table, {}).get(key), (int, float))]
    if wrong:
        raise Failure(f"{show(place)} lacks or has another type for: {', '.join(wrong)}")
    return said
