#!/usr/bin/env python3
"""Differential test: the same random statements on twins of InnoDB and Cheetah.

A round has its own seed, its own tables and 500 statements. A difference ends the round, prints one
line that replays it, and saves the round's statements to a file. `--plant` changes a row of one
twin without the generator's knowledge. The test must then fail, which proves that it detects
differences."""

import argparse
import random
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tools")]
sys.dont_write_bytecode = True

from cheetah_tools import say  # noqa: E402
from cheetah_tools.paths import VAR, show  # noqa: E402
from cheetah_tools.server import PrivateServer, scratch  # noqa: E402
import fulltext  # noqa: E402
import kinds  # noqa: E402
import plans  # noqa: E402
from graphs import Graph  # noqa: E402
from statements import Generator, Statement  # noqa: E402
from twins import LOST_CONNECTION, Twin, difference  # noqa: E402

STATEMENTS_PER_ROUND = 500
COMPARE_EVERY = 50
MODES = ["STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
         "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION", "NO_ENGINE_SUBSTITUTION",
         "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,PAD_CHAR_TO_FULL_LENGTH"]
OPTIONS = {"innodb_buffer_pool_size": "128M", "innodb_flush_log_at_trx_commit": 0,
           "innodb_autoinc_lock_mode": 1, "innodb_stats_persistent": 0}
REPORTS = VAR / "differential"
# The option that selects a kind of statements, their generator, and the server's options.
SUBJECTS = {"fulltext": (fulltext.Fulltext, fulltext.OPTIONS,
                         "tables with full-text indexes, and searches"),
            "graphs": (Graph, {}, "tables that foreign keys tie together"),
            "kinds": (kinds.Kinds, kinds.OPTIONS,
                      "tables of all kinds, most of which do not suit the statement"),
            "plans": (plans.Plans, {}, "queries in all settings of the optimizer")}


class Difference(Exception):
    """Reports that the twins disagree."""


class Round:
    """Runs the statements of one seed on both twins."""

    def __init__(self, server, seed: int, left: str, right: str, plant: bool, generator=Generator):
        self.rng, self.seed, self.plant = random.Random(seed), seed, plant
        mode = self.rng.choice(MODES)
        self.twins = [Twin(server.socket, "left_twin", left, mode),
                      Twin(server.socket, "right_twin", right, mode)]
        self.folder = scratch("loads")
        self.generator = generator(self.rng, self.folder)
        self.history = [f"SET sql_mode = '{mode}'"]
        self.done = self.failed_on_both = self.settled = 0
        self.skips_change = False   # skip the change of a search result that differed

    def run(self, count: int) -> None:
        """Runs `count` statements. Raises Difference at the first disagreement."""
        while self.done < count:
            for statement in self.generator.next():
                self.both(statement)
            for table in self.generator.tables if self.plant and self.done == count // 2 else ():
                self.twins[1].run(f"DELETE FROM {table.name} LIMIT 1")
            if self.done % COMPARE_EVERY == 0:
                self.compare_tables()
        self.compare_tables()

    def both(self, statement: Statement) -> None:
        if statement.only:
            for twin in [twin for twin in self.twins if twin.engine == statement.only]:
                twin.run(statement.text)
            return
        if (self.skips_change and statement.text.startswith(("UPDATE", "DELETE"))
                and "MATCH (" in statement.text):
            self.skips_change = False
            return
        self.history.append(statement.text)
        left, right = (twin.run(statement.text) for twin in self.twins)
        self.done += 1
        if {left.error, right.error} & LOST_CONNECTION:
            raise Difference(f"the server was lost at: {statement.text[:3000]}\n"
                             f"  {left.text()}\n  {right.text()}")
        found = difference(statement, left, right)
        self.skips_change = bool(found) and self.contradicts_itself(statement, left, right)
        if self.skips_change:
            self.settled += 1
            print(f"InnoDB contradicts itself, seed {self.seed}, statement {self.done}: "
                  f"{statement.text[:300]}")
        elif found:
            raise Difference(f"{found}\n  statement {self.done}: {statement.text[:3000]}\n"
                             f"  {self.twins[0].engine}: {left.text()}\n"
                             f"  {self.twins[1].engine}: {right.text()}")
        if left.error:
            self.failed_on_both += 1
            self.history[-1] += f" -- error {left.error}"
        elif statement.apply:
            statement.apply()

    def contradicts_itself(self, statement: Statement, left, right) -> bool:
        """Returns whether InnoDB gives the other engine's answer when queried in another way."""
        for twin, other in zip(self.twins, (right, left)):
            if twin.engine == "InnoDB":
                return self.generator.settles(twin, statement, other)
        return False

    def compare_tables(self) -> None:
        """Compares the full contents, the row counts and the output of CHECK TABLE. (CHECKSUM TABLE
        is unsuitable because it includes the undefined bits of a NULL BIT.)"""
        for table in self.generator.tables:
            for text in (f"SELECT {self.generator.columns_of(table)} FROM {table.name}",
                         f"SELECT COUNT(*) FROM {table.name}", f"CHECK TABLE {table.name}"):
                self.both(Statement(text))

    def close(self) -> None:
        for twin in self.twins:
            twin.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(arguments: list) -> int:
    """Runs the command line. Returns 1 if the twins disagreed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--left", default="InnoDB")
    parser.add_argument("--right", default="CHEETAH")
    parser.add_argument("--seed", type=int, default=1,
                        help="the first round's seed; round n has seed + n")
    parser.add_argument("--statements", type=int, default=20000)
    parser.add_argument("--plant", action="store_true",
                        help="change one twin behind the test's back")
    for option, (*_, told) in SUBJECTS.items():
        parser.add_argument("--" + option, action="store_true", help=told)
    parser.add_argument("--keep-going", type=int, default=5,
                        help="stop after this many rounds with a difference")
    parser.add_argument("--load", help="a further plugin, such as ha_rocksdb.so, to have a third "
                                       "engine's opinion")
    choice = parser.parse_args(arguments)
    folder = scratch("differential")
    asked = [subject for option, subject in SUBJECTS.items() if getattr(choice, option)]
    generator, more, _ = asked[0] if asked else (Generator, {}, "")
    server = PrivateServer(folder, {**OPTIONS, **more,
                                    **({"plugin-load-add": choice.load} if choice.load else {})})
    rounds = -(-choice.statements // STATEMENTS_PER_ROUND)
    bad, done, refused, settled, started = [], 0, 0, 0, time.monotonic()
    with server:
        for engine in (choice.left, choice.right):
            if not server.has_engine(engine):
                raise say.Failure(f"engine {engine} is not in this server; make build")
        for number in range(rounds):
            seed = choice.seed + number
            attempt = Round(server, seed, choice.left, choice.right, choice.plant, generator)
            try:
                attempt.run(STATEMENTS_PER_ROUND)
            except Difference as found:
                bad.append(seed)
                report(attempt, found, choice)
            attempt.close()
            done += attempt.done
            refused += attempt.failed_on_both
            settled += attempt.settled
            if server.died():
                print(f"the server died; end of its log:\n{server.log_tail(40)}")
                server.process = None
                server.start()
            if len(bad) >= choice.keep_going:
                break
    server.remove()
    seconds = time.monotonic() - started
    if settled:
        print(f"{settled} answers of InnoDB differed from its own by another index, "
              "or for a new table with the same rows")
    print(f"differential: {done} statements on {choice.left} and {choice.right} "
          f"({refused} refused by both) in {seconds:.0f} s, "
          f"{len(bad)} of {number + 1} rounds with a difference")
    return 1 if bad else 0


def report(attempt: Round, found: Difference, choice) -> None:
    REPORTS.mkdir(parents=True, exist_ok=True)
    file = REPORTS / f"{attempt.seed}.sql"
    file.write_text(";\n".join(attempt.history) + ";\n")
    print(f"DIFFERENCE, seed {attempt.seed}: {found}")
    print(f"  replay: python3 tests/differential/run.py --left {choice.left} "
          f"--right {choice.right} --seed {attempt.seed} --statements {STATEMENTS_PER_ROUND}   "
          f"(statements: {show(file)})", flush=True)


if __name__ == "__main__":
    say.run_main(main)
