"""Renders the HTML page of a run."""

from datetime import datetime
from pathlib import Path

import jinja2
from markupsafe import Markup

from . import plots
from .. import machine, numbers
from ..model import ABSENT, FAILS, HOLDS, OPEN
from ..trial import LOOSE_BYTES, PAGE_CACHE_BYTES

HERE = Path(__file__).parent
OUTCOMES = {HOLDS: "holds", FAILS: "fails", OPEN: "open"}   # outcome -> class of the page
MACHINE = {"processor": "Processor", "cores": "Cores", "memory_bytes": "Memory",
           "system": "System", "kernel": "Kernel", "file_system": "File system",
           "disk_bytes": "Disk", "disk_free_bytes": "Free before the run"}


def html(told: dict) -> str:
    """Returns the page of a run. The page is self-contained and readable in light, dark and print.
    Every value is escaped; an undefined name is an error."""
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True,
                              undefined=jinja2.StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True)
    made.filters["breakable"] = breakable
    return made.get_template("page.html.j2").render(
        **context(told), drawing=Markup, style=Markup((HERE / "style.css").read_text()),
        light=plots.variables(False), dark=plots.variables(True))


def breakable(text) -> Markup:
    """Returns text that may break within a range and a name of many words, but not in a number."""
    return Markup.escape(text).replace("..", Markup("..<wbr>")).replace("_", Markup("_<wbr>"))


def context(told: dict) -> dict:
    run = told["run"]
    counted = {outcome: sum(verdict["outcome"] == outcome for verdict in told["verdicts"])
               for outcome in OUTCOMES}
    return {**told, "outcomes": OUTCOMES, "counted": counted,
            "command": command(run["asked"], run.get("named", {})), "began": when(run["begun"]),
            "ended": when(run["ended"]) if run.get("ended") else "", "facts": facts(told),
            # other engines in the table of the documents' figures, in order of appearance
            "shared": list(dict.fromkeys(label for figure in told["figures"]
                                         for label in figure["others"])),
            "versions": run["versions"], "engines": engines(run), "headed": headed,
            "absent": ABSENT}


def command(asked: dict, named: dict) -> str:
    """Returns the command that makes this run again. `named`: what the user named."""
    if named.get("words"):
        return named["words"]
    words = ["make lab", "FULL=1" if asked.get("full") else "",
             f"SCALE={asked['factor']:g}" if asked.get("factor", 1) != 1 else "",
             f"REPEATS={asked['repeats']}" if asked.get("repeats", 3) != 3 else "",
             f'EXPERIMENT="{" ".join(named["experiments"])}"' if named.get("experiments") else "",
             f'ENGINES="{" ".join(named["engines"])}"' if named.get("engines") else "",
             f"RUN={named['run']}" if named.get("run") else ""]
    return " ".join(filter(None, words))


def facts(told: dict) -> list:
    """Returns (name, value) pairs that describe the machine."""
    about = told["run"]["machine"]
    found = [(name, (numbers.number(about[key], "bytes") if key.endswith("bytes")
                     else str(about[key])))
             for key, name in MACHINE.items() if key in about]
    return [*found, ("Price of a read", machine.told(about)),
            ("Servers' memory", memory(told["limited"]))]


def memory(limited: dict) -> str:
    trials = sum(limited.values())
    if not limited["yes"]:
        return ("not limited: no memory cgroup can be had here; what an engine does not find in "
                "its cache may come from the page cache")
    in_all = ("in all trials" if limited["yes"] == trials
              else f"in {limited['yes']} of {trials} trials; in the others no memory cgroup was "
                   "to be had")
    page_cache, loose = (numbers.number(count, "bytes")
                         for count in (PAGE_CACHE_BYTES, LOOSE_BYTES))
    return (f"limited by a memory cgroup, page cache included, {in_all}. All engines read and "
            f"write data past the page cache. While they load they have {loose} beside the cache; "
            f"for what is measured past the cache, their page cache is cut to {page_cache} fifty "
            "times a second (what there was is in the tables of memory and data)")


def engines(run: dict) -> list:
    part = {key for experiment in run["experiments"].values() for key in experiment["engines"]}
    return [(engine["label"], engine["table"]) for key, engine in run["engines"].items()
            if key in part]


def headed(label: str) -> str:
    """Returns such a label as a column head. An engine without a format in its label is marked "by
    default", because the figures name formats of their own."""
    return f"{label} by default" if label in ("Cheetah", "InnoDB DYNAMIC") else label


def when(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%-d %B %Y, %H:%M UTC")
