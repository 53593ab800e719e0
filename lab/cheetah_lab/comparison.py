"""A comparison as people read it: a table on the terminal, a page, Markdown, and JSON."""

import dataclasses
import json
from pathlib import Path

from cheetah_tools import say

from . import numbers, store
from .compare import (BETTER, FLOOR, OTHER, P_MAX, REPEATS_MIN, WORSE, Comparison, Line, mean,
                      unsure, visible)
from .model import ABSENT
from .report import markdown, page

HEAD = ("experiment", "engine", "measure", "first", "second", "repeats", "second / first", "p",
        "verdict")
CLASSES = {BETTER: "holds", WORSE: "worse", OTHER: "open"}   # verdict -> class of the page
HOW = ("Columns have geometric means (where a page of one run has medians) with the least and the "
       "greatest value; Welch's t-test on logarithms, Holm's correction over the lines of each "
       f"experiment; a line differs when p < {P_MAX:g} and the ratio is more than {FLOOR:.0%} away "
       "from 1.")
BLIND = 10          # who sees no smaller change than by this factor sees none
SHOWN_MAX = 40      # lines on a terminal; beyond, only those that moved


def write(found: Comparison, place: Path) -> Path:
    """Write `place`.html, .md and .json, each whole or not at all; where the page is."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for ending, text in (("md", as_markdown(found)),
                         ("json", json.dumps(plain(found), indent=1) + "\n"),
                         ("html", html(found))):
        store.replace(place.with_name(f"{place.name}.{ending}"), text)
    return place.with_name(place.name + ".html")


def show(found: Comparison) -> None:
    """Print what differs before, the lines (of many only those that moved), and what follows."""
    for text in warnings(found):
        print(text)
    lines = found.lines if len(found.lines) <= SHOWN_MAX else found.moved()
    for column in dict.fromkeys((line.experiment, line.engine) for line in lines):
        print(f"\n{column[0]}, {column[1]}")
        say.table(list(HEAD[2:]), [row(line)[2:] for line in lines
                                   if (line.experiment, line.engine) == column])
    print(("\n" if lines else "") + conclusion(found))


def conclusion(found: Comparison) -> str:
    """The last line: how many moved, of how many."""
    few = sum(line.p is None for line in found.lines)
    aside = f"; {few} with too few repeats to be compared" if few else ""
    exact = sum(map(unsure, found.lines))
    aside += (f"; too few repeats to be certain of {exact} with a difference but no spread" if exact
              else "")
    if len(found.lines) == few:
        return f"not comparable: {few} measures have fewer than {REPEATS_MIN} repeats on one side"
    moved = found.moved()
    if not moved:
        least = visible(found)
        power = ("" if not least
                 else f" (in half of them a change by a factor of {least:.3g} would have shown "
                      "about nine times in ten)" if least <= BLIND
                 else " (so few repeats and so much noise would have shown hardly any: give "
                      "REPEATS=6 and more)")
        return f"no difference shown in {len(found.lines) - few} measures{aside}{power}"
    words = {word: sum(line.verdict == word for line in moved) for word in (BETTER, WORSE, OTHER)}
    told = ", ".join(f"{count} {word if word == OTHER else 'got ' + word}"
                     for word, count in words.items() if count)
    return f"{len(moved)} of {len(found.lines) - few} measures differ: {told}{aside}"


def warnings(found: Comparison) -> list:
    """What a reader must know first: settings that differ, and what only one side has."""
    told = [f"{name} differs: {first if first not in (None, '') else 'not said'} | "
            f"{second if second not in (None, '') else 'not said'}"
            for name, first, second in found.settings]
    for side, keys in found.alone.items():
        if keys:
            several = sorted({f"{experiment} of {engine}" for experiment, engine, _, _ in keys})
            told.append(f"only in {side}: {len(keys)} measures ({', '.join(several[:6])}"
                        f"{', ..' if len(several) > 6 else ''})")
    return told


def row(line: Line) -> tuple:
    """The cells of a line."""
    at = "" if line.at is None else f" at {line.at:g}"
    p = ABSENT if line.p is None else "< 0.0001" if line.p < 0.0001 else f"{line.p:.4f}"
    return (line.experiment, line.engine, f"{line.label}{at}",
            *(numbers.around(mean(values), values, line.unit)
              for values in (line.first, line.second)),
            f"{len(line.first)}, {len(line.second)}",
            ABSENT if line.ratio is None else f"{line.ratio:.3f}", p, line.verdict)


def as_markdown(found: Comparison) -> str:
    """All of it as Markdown, every line."""
    names = [markdown.in_a_line(side.name) for side in (found.first, found.second)]
    text = [f"# {names[0]} and {names[1]}", "", conclusion(found) + ".", "",
            f"First: {names[0]}; second: {names[1]}. {HOW}", ""]
    text += [f"- {markdown.in_a_line(line)}" for line in warnings(found)] + [""]
    text += ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    text += ["| " + " | ".join(markdown.in_a_line(cell) for cell in row(line)) + " |"
             for line in found.lines]
    return "\n".join(text) + "\n"


def html(found: Comparison) -> str:
    """All of it as a page: what moved, then every line by experiment, the moved ones marked."""
    tables = {name: [line for line in found.lines if line.experiment == name]
              for name in dict.fromkeys(line.experiment for line in found.lines)}
    return page.rendered("comparison.html.j2", {
        "first": found.first, "second": found.second, "conclusion": conclusion(found),
        "warnings": warnings(found), "moved": found.moved(), "tables": tables, "row": row,
        "head": HEAD, "classes": CLASSES, "how": HOW, "when": page.when})


def plain(found: Comparison) -> dict:
    """All of it for other programs."""
    return {"first": found.first.name, "second": found.second.name,
            "conclusion": conclusion(found), "p_max": P_MAX, "floor": FLOOR,
            "settings": [{"name": name, "first": first, "second": second}
                         for name, first, second in found.settings],
            "alone": {side: [list(key) for key in keys] for side, keys in found.alone.items()},
            "lines": [dataclasses.asdict(line) for line in found.lines]}
