#!/usr/bin/env python3
"""Runs random transactions on many connections, records what each saw, and checks the history.

Each history has its own seed, model (lists or registers), level (or a mixture of levels) and number
of clients. One thread drives all connections, so one counter provides all times. A history with a
problem is saved under var/isolation/; `python3 tests/isolation/checker.py FILE` checks it again.

    python3 tests/isolation/histories.py [--engine InnoDB] [--histories 20] [--txns 2000] [--seed 1]
"""

import argparse
import random
import select
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.dont_write_bytecode = True

from cheetah_tools import say  # noqa: E402
from cheetah_tools.paths import VAR, show  # noqa: E402
from cheetah_tools.server import PrivateServer, scratch  # noqa: E402
from checker import check  # noqa: E402
import clients  # noqa: E402
from engines import CHEETAH, Features, fresh_database, INNODB, transaction_settings  # noqa: E402
from history import COMMITTED, History  # noqa: E402
from plans import Planner, TIED, WORDS  # noqa: E402
from sessions import LEVELS, OPTIONS, Session  # noqa: E402
import tied  # noqa: E402

SILENCE_SECONDS = 120
# A small pool and log: pages are evicted and checkpoints follow each other while versions are read.
SMALL = {"loose_cheetah_buffer_pool_size": "8M", "loose_cheetah_log_file_size": "1M",
         "loose_cheetah_log_size_max": "8M"}
MIXED = LEVELS[1:]
RC, RR, SER = ("READ COMMITTED",), ("REPEATABLE READ",), ("SERIALIZABLE",)
# Used in turn: model, levels, clients, snapshot isolation, and what the table has besides rows.
KINDS = [("list", RR, 8, False, ""), ("list", RC, 8, False, ""), ("register", RR, 6, False, ""),
         ("list", SER, 6, False, ""), ("register", RC, 8, False, ""),
         ("list", MIXED, 12, False, ""), ("register", SER, 4, False, ""), ("list", RR, 8, True, ""),
         ("register", MIXED, 12, False, ""), ("list", LEVELS, 16, False, ""),
         ("list", RR, 8, False, WORDS), ("register", MIXED, 8, False, WORDS),
         ("list", RC, 8, False, WORDS), ("list", RR, 8, True, WORDS),
         ("list", SER, 4, False, WORDS),
         ("register", RR, 6, False, tied.CASCADE), ("register", MIXED, 8, False, tied.SET_NULL),
         ("register", RC, 8, False, tied.RESTRICT), ("register", MIXED, 8, False, tied.CASCADE),
         ("register", SER, 4, False, tied.RESTRICT)]


class Run:
    def __init__(self, server, features: Features, engine: str, seed: int, txns: int,
                 plant: bool = False):
        self.server, self.engine, self.seed = server, engine, seed
        self.model, self.levels, count, wanted, more = KINDS[seed % len(KINDS)]
        self.action = more if more in tied.ACTIONS else ""
        # InnoDB searches committed data whatever the snapshot is (docs/users/fulltext.md).
        self.more = TIED if self.action else "" if engine == INNODB else more
        self.snapshot_isolation = wanted and True in features.snapshot_isolation(engine)
        self.dirty_reads = engine == INNODB
        self.snapshot_at_start = features.snapshot_at_start[engine]
        self.database = fresh_database(server, "history")
        self.rng = random.Random(seed)
        self.copies = self.rng.choice([1, 1, 100, 400, 4000])
        for text in (tied.tables(self.action) if self.action
                     else clients.tables(self.model, self.more)):
            server.sql(f"{text} {'' if self.action else 'CHARSET latin1'} ENGINE={engine}",
                       self.database)
        self.planner = Planner(seed, self.model, self.levels, groups=self.rng.choice([1, 2, 2, 3]),
                               more=self.more)
        settings = transaction_settings(features, "REPEATABLE READ", self.snapshot_isolation)
        if plant:
            settings.append("SET foreign_key_checks = 0")
        self.left, self.now, self.txns = txns, 0, []
        kind = tied.TiedClient if self.action else clients.Client
        self.clients = [kind(n, Session(server, f"c{n}", self.database, settings), self)
                        for n in range(count)]

    def clock(self) -> int:
        self.now += 1
        return self.now

    def take_one(self) -> bool:
        """Returns whether to run another transaction, and counts it."""
        self.left -= 1
        return self.left >= 0

    def run(self) -> History:
        """Drives all clients to their end; returns the history."""
        try:
            running = [client for client in self.clients if client.start()]
            while running:
                ready = select.select(running, [], [], SILENCE_SECONDS)[0]
                if not ready:
                    raise say.Failure(f"no connection was answered for {SILENCE_SECONDS} s:\n"
                                      f"{self.waiting()}")
                for client in ready:
                    if not client.go_on():
                        running.remove(client)
            final = self.final()
        finally:
            for client in self.clients:
                client.session.close()
        return History(self.model, self.txns, final, self.snapshot_isolation, self.engine,
                       dirty_reads=self.dirty_reads)

    def final(self) -> dict:
        """Returns the final state by primary key, after checking that the indexes agree."""
        column = "val" if self.model == "list" else "v"
        rows = self.server.sql(f"SELECT id, {column} FROM h ORDER BY id", self.database)
        by_index = self.server.sql(f"SELECT id, {column} FROM h FORCE INDEX (g) WHERE grp >= 0 "
                                   "ORDER BY id", self.database)
        if rows != by_index:
            raise say.Failure("primary key and index disagree at the end: "
                              f"{set(rows) ^ set(by_index)}")
        if self.more == WORDS:
            by_word = self.server.sql(f"SELECT id, {column} FROM h "
                                      f"WHERE {self.clients[0].match('row')} ORDER BY id",
                                      self.database)
            if rows != by_word:
                raise say.Failure("primary key and full-text index disagree at the end: "
                                  f"{set(rows) ^ set(by_word)}")
        if self.action:
            parents = self.server.sql("SELECT id, v FROM p ORDER BY id", self.database)
            if [row for row in rows if row[1] is not None] != list(parents):
                raise say.Failure("children and parents disagree at the end: "
                                  f"{set(rows) ^ set(parents)}")
        for table in ("h", "p") if self.action else ("h",):
            verdict = self.server.sql(f"CHECK TABLE {table} EXTENDED", self.database)
            if [row[-1] for row in verdict] != ["OK"]:
                raise say.Failure(f"CHECK TABLE at the end: {verdict}")
        found = {key: (value if self.model == "register"
                       else [int(word) for word in value.split(",")])
                 for key, value in rows}
        return {key: found.get(key, [] if self.model == "list" else None)
                for key in {*self.planner.keys_used(), *found}}

    def waiting(self) -> str:
        return "\n".join(f"  {client.number}: {client.text}"
                         for client in self.clients if client.session.pending)

    def title(self) -> str:
        levels = ("all levels" if self.levels == LEVELS else "mixed" if self.levels == MIXED
                  else self.levels[0])
        more = ", full text" if self.more == WORDS else f", {self.action}" if self.action else ""
        return (f"{self.model}{more}, {levels}"
                f"{', snapshot isolation' if self.snapshot_isolation else ''}, "
                f"{len(self.clients)} clients")


def main(arguments: list) -> int:
    """Runs the command; returns 1 if the checker found a problem."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", default=CHEETAH, help="CHEETAH or InnoDB")
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--txns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0,
                        help="the first history's seed; history n has seed + n")
    parser.add_argument("--keep", action="store_true", help="keep every history")
    parser.add_argument("--plant", action="store_true",
                        help="check no foreign keys: those with parents must fail")
    choice = parser.parse_args(arguments)
    engine = next((name for name in (INNODB, CHEETAH) if name.lower() == choice.engine.lower()),
                  choice.engine)
    bad, done, committed, started = [], 0, 0, time.monotonic()
    server = PrivateServer(scratch("histories"), {**OPTIONS, **SMALL})
    with server:
        features = Features(server)
        for seed in range(choice.seed, choice.seed + choice.histories):
            attempt = Run(server, features, engine, seed, choice.txns, choice.plant)
            problems, history, seconds = judge(attempt)
            txns = history.txns if history else attempt.txns
            good = sum(txn.status == COMMITTED for txn in txns)
            done, committed = done + len(txns), committed + good
            print(f"{'FAILED' if problems else 'ok':<6} seed {seed}: {attempt.title()}: "
                  f"{len(txns)} transactions, {good} committed, "
                  f"{attempt.now // 2} statements in {seconds:.1f} s", flush=True)
            if problems:
                bad.append(seed)
                report(attempt, history, problems, choice)
            elif choice.keep:
                history.save(place_of(attempt))
            if server.died():
                print(f"the server died; the end of its log:\n{server.log_tail(40)}")
                server.process = None
                server.start()
    server.remove()
    print(f"histories: {choice.histories} on {engine}, {done} transactions, {committed} committed, "
          f"in {time.monotonic() - started:.0f} s; {len(bad)} with a problem; {features.text()}")
    return 1 if bad else 0


def judge(attempt: Run) -> tuple:
    """Runs and checks a history; returns (problems, history, seconds)."""
    started = time.monotonic()
    try:
        history = attempt.run()
    except say.Failure as failure:
        return [str(failure)], None, time.monotonic() - started
    problems = [str(problem) for problem in check(history)]
    if not any(txn.status == COMMITTED and txn.ops for txn in history.txns):
        problems.append("no transaction was committed: nothing was tested")
    return problems, history, time.monotonic() - started


def place_of(attempt: Run) -> Path:
    return VAR / "isolation" / f"history-{attempt.engine}-{attempt.seed}.json.gz"


def report(attempt: Run, history, problems: list, choice) -> None:
    for problem in problems[:8]:
        print(f"    {problem[:1500]}")
    if len(problems) > 8:
        print(f"    and {len(problems) - 8} more")
    if history:
        history.save(place_of(attempt))
        print(f"  again: python3 tests/isolation/checker.py {show(place_of(attempt))}")
    print(f"  replay: python3 tests/isolation/histories.py --engine {attempt.engine} "
          f"--histories 1 --txns {choice.txns} --seed {attempt.seed}", flush=True)


if __name__ == "__main__":
    say.run_main(main)
