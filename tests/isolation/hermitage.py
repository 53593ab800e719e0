#!/usr/bin/env python3
"""Plays Hermitage's scenarios on both engines, at all levels, with snapshot isolation off and on.

Every step is compared: rows, changed rows, errors, waits, and when waiting sessions continue. A
cell that differs must be listed in differences.tsv with its reason, and a listed cell must differ:
the list is exact. Cheetah must never show an anomaly that InnoDB prevents, listed or not. `--write`
updates the lines in differences.tsv and the section "Hermitage" of docs/developers/transactions.md.

    python3 tests/isolation/hermitage.py [--only P4] [--trace] [--write]"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.dont_write_bytecode = True

from cheetah_tools import say  # noqa: E402
from cheetah_tools.paths import PROJECT  # noqa: E402
from cheetah_tools.server import PrivateServer, scratch  # noqa: E402
from differences import Differences  # noqa: E402
from engines import CHEETAH, Features, INNODB, fresh_database, transaction_settings  # noqa: E402
from scenarios import SCENARIOS, Went  # noqa: E402
from sessions import LEVELS, OPTIONS, Play  # noqa: E402

SHORT = {"READ UNCOMMITTED": "RU", "READ COMMITTED": "RC", "REPEATABLE READ": "RR",
         "SERIALIZABLE": "SER"}
DOCUMENT = PROJECT / "docs/developers/transactions.md"
BEGIN, END = ("<!-- hermitage: written by tests/isolation/hermitage.py --write -->",
              "<!-- end of hermitage -->")


class Cell:
    def __init__(self, scenario, entries: list, final: tuple):
        self.entries, self.final = entries, final
        self.anomaly = scenario.anomaly(Went(entries, final))
        self.errors = sorted({entry.outcome.error for entry in entries
                              if entry.outcome is not None and entry.outcome.error})
        self.waits = any(entry.waited for entry in entries)

    def key(self) -> tuple:
        """Returns a key that is equal for two engines that behave alike at every step."""
        return (tuple(entry.key() for entry in self.entries), self.final)

    def text(self) -> str:
        how = (["waits"] if self.waits else []) + [f"{number}" for number in self.errors]
        return ("**yes**" if self.anomaly else "no") + (f" ({', '.join(how)})" if how else "")


def main(arguments: list) -> int:
    """Runs the command; returns 1 on failures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="only scenarios whose name contains this")
    parser.add_argument("--trace", action="store_true",
                        help="print every step of cells that differ")
    parser.add_argument("--write", action="store_true",
                        help="write differences.tsv and docs/developers/transactions.md")
    choice = parser.parse_args(arguments)
    started = time.monotonic()
    server = PrivateServer(scratch("hermitage"), OPTIONS)
    with server:
        features = Features(server)
        grid = Grid(server, features,
                    [s for s in SCENARIOS
                     if not choice.only or choice.only.lower() in s.name.lower()])
        grid.run()
    server.remove()
    grid.print_tables()
    failures = grid.judge(Differences("hermitage"), choice)
    if not choice.only:
        failures += document(grid, choice.write)
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"hermitage: {len(grid.cells)} cells, {len(grid.differing())} differ from InnoDB; "
          f"engine: {features.text()}; {time.monotonic() - started:.0f} s")
    return 1 if failures else 0


class Grid:
    """All cells, indexed by (scenario name, level, snapshot isolation, engine)."""

    def __init__(self, server, features: Features, scenarios: list):
        self.server, self.features, self.scenarios, self.cells = server, features, scenarios, {}

    def run(self) -> None:
        """Plays every scenario, on engines without snapshot isolation only with the setting off."""
        for scenario in self.scenarios:
            for level in LEVELS:
                for engine in (INNODB, CHEETAH):
                    for snapshot_isolation in self.features.snapshot_isolation(engine):
                        self.cells[scenario.name, level, snapshot_isolation, engine] = self.play(
                            scenario, level, snapshot_isolation, engine)

    def play(self, scenario, level: str, snapshot_isolation: bool, engine: str) -> Cell:
        database = fresh_database(self.server, "hermitage")
        for text in [*(f"{table} ENGINE={engine}" for table in scenario.tables), *scenario.rows]:
            self.server.sql(text, database)
        entries = Play.of(self.server, database, scenario.sessions, scenario.steps,
                          transaction_settings(self.features, level, snapshot_isolation))
        return Cell(scenario, entries, tuple(self.server.sql(scenario.end, database)))

    def pairs(self) -> list:
        """Returns (name, level, snapshot isolation) of the cells that both engines have."""
        return [key[:3] for key in self.cells
                if key[3] == CHEETAH and (*key[:3], INNODB) in self.cells]

    def differing(self) -> list:
        return [pair for pair in self.pairs()
                if self.cells[(*pair, INNODB)].key() != self.cells[(*pair, CHEETAH)].key()]

    def judge(self, listed: Differences, choice) -> list:
        """Returns the failures: Cheetah's own anomalies, and differences unlisted or gone."""
        failures = []
        for pair in self.pairs():
            if self.cells[(*pair, CHEETAH)].anomaly and not self.allowed(pair):
                failures.append(f"{label(pair)}: Cheetah shows the anomaly, InnoDB does not\n"
                                f"{self.side_by_side(pair)}")
        found = {label(pair): self.reason(pair) for pair in self.differing()}
        if choice.trace:
            for pair in self.differing():
                print(f"{label(pair)} ({found[label(pair)] or 'UNEXPLAINED'})\n"
                      f"{self.side_by_side(pair)}")
        if choice.write and not choice.only:
            listed.replace(found)
        for name, text in listed.judge(found, {label(pair) for pair in self.pairs()}).items():
            pair = next(pair for pair in self.pairs() if label(pair) == name)
            failures.append(f"{name}: {text}\n{self.side_by_side(pair)}")
        return failures

    def allowed(self, pair: tuple) -> bool:
        """Returns whether InnoDB shows the anomaly at this level, or at READ COMMITTED: Cheetah has
        no READ UNCOMMITTED, and dirty reads may prevent an anomaly in InnoDB."""
        levels = [pair[1], "READ COMMITTED"] if pair[1] == "READ UNCOMMITTED" else [pair[1]]
        return any(self.cells[pair[0], level, pair[2], INNODB].anomaly for level in levels)

    def reason(self, pair: tuple) -> str:
        """Returns why the first differing step may differ, or "" if no known reason explains it."""
        ours, theirs = self.cells[(*pair, CHEETAH)], self.cells[(*pair, INNODB)]
        for mine, other in zip(ours.entries, theirs.entries):
            if mine.key() != other.key():
                return self.features.explain(pair[1], mine)
        return ""

    def side_by_side(self, pair: tuple) -> str:
        """Returns both traces; a star marks each step that differs."""
        ours, theirs = self.cells[(*pair, CHEETAH)], self.cells[(*pair, INNODB)]
        lines = []
        for mine, other in zip(ours.entries, theirs.entries):
            star = " " if mine.key() == other.key() else "*"
            lines.append(f"  {star} {mine.number} {mine.name} {mine.text}\n"
                         f"        InnoDB:  {other.text_of()}\n"
                         f"        CHEETAH: {mine.text_of()}")
        lines.append(f"    at the end: InnoDB {theirs.final}, CHEETAH {ours.final}")
        return "\n".join(lines)

    def table(self, snapshot_isolation: bool) -> list:
        engines = [e for e in (INNODB, CHEETAH)
                   if snapshot_isolation in self.features.snapshot_isolation(e)]
        columns = [(level, engine) for level in LEVELS for engine in engines]
        return [["anomaly", *(f"{SHORT[level]} {engine}" for level, engine in columns)],
                *([scenario.name, *(self.cells[scenario.name, level, snapshot_isolation,
                                               engine].text() for level, engine in columns)]
                  for scenario in self.scenarios)]

    def tables(self):
        """Yields (heading, rows) of each setting that an engine supports."""
        for snapshot_isolation in (False, True):
            rows = self.table(snapshot_isolation)
            if len(rows[0]) > 1:
                yield f"snapshot isolation {'ON' if snapshot_isolation else 'OFF'}:", rows

    def print_tables(self) -> None:
        for heading, rows in self.tables():
            print(heading)
            say.table(rows[0], [[cell.replace("**", "") for cell in row] for row in rows[1:]])

    def markdown(self) -> str:
        parts = []
        for heading, rows in self.tables():
            lines = ["| " + " | ".join(row) + " |" for row in rows]
            lines.insert(1, "|" + "---|" * len(rows[0]))
            parts.append(f"With {heading}\n\n" + "\n".join(lines))
        return "\n\n".join(parts) + "\n"


def label(pair: tuple) -> str:
    """Returns the name of a cell in differences.tsv."""
    return f"{pair[0]} / {pair[1]}" + (" / snapshot isolation" if pair[2] else "")


def document(grid: Grid, write: bool) -> list:
    """Returns a failure if the document does not show the measured tables."""
    text = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    wanted = f"{BEGIN}\n{grid.markdown()}{END}"
    if BEGIN in text and END in text:
        before, rest = text.split(BEGIN, 1)
        fresh = before + wanted + rest.split(END, 1)[1]
    else:
        fresh = text
    if fresh == text and wanted in text:
        return []
    if write and wanted in fresh:
        DOCUMENT.write_text(fresh)
        return []
    return ["docs/developers/transactions.md, section Hermitage, does not show what was measured; "
            "tests/isolation/hermitage.py --write"]


if __name__ == "__main__":
    say.run_main(main)
