#!/usr/bin/env python3
"""Plays random scripts of several sessions on both engines and compares results and waits.

A step that has to wait is left waiting; which sessions continue, and when, is compared too. A
script ends at its first difference. The difference must have a reason (reasons.py); otherwise it is
a failure, which is shortened as far as possible and printed with its seed. Scripts that InnoDB
itself plays in two ways are left out and counted. Cheetah's whole run, with or without differences,
must match its transactions executed in commit order (commits.py). `--plant` omits a row from one
table: the run must then fail, which proves that it can.

    python3 tests/isolation/interleavings.py [--scripts 150] [--seed 1] [--show]"""

import argparse
import sys
import time
from collections import Counter, namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.dont_write_bytecode = True

from cheetah_tools import say  # noqa: E402
from cheetah_tools.paths import VAR, show  # noqa: E402
from cheetah_tools.server import PrivateServer, scratch  # noqa: E402
from commits import unexplained  # noqa: E402
from engines import CHEETAH, Features, fresh_database, INNODB  # noqa: E402
from orders import answers_from, done_in_an_order  # noqa: E402
from reasons import Difference, Look, MEANWHILE, ORDER, PLAN, vain  # noqa: E402
from scripts import Generator, SCENE, Script  # noqa: E402
from sessions import DEADLOCK, OPTIONS, Play, Session  # noqa: E402
from statements import NO_WAIT, Statement  # noqa: E402
from waits import cheetah_deadlock, cheetah_waits, innodb_waits  # noqa: E402

UNSTEADY = "InnoDB itself plays it in two ways"
# Reasons for which the rest of a script is not compared, and the largest share of such scripts.
LEFT_OUT, LEFT_OUT_MAX = (UNSTEADY, PLAN), 0.1
SHRINKS_MAX = 120
REPORTS = VAR / "isolation"


class Played(namedtuple("Played", "entries final")):
    """A script played on one engine: its entries and the final table."""

    def first_difference(self, other):
        """Returns the number of the first step that differs (or of the end), or None."""
        for mine, theirs in zip(self.entries, other.entries):
            if mine.key() != theirs.key():
                return mine.number
        return None if self.final == other.final else len(self.entries) - 1


class Stage:
    """The server, the tables for each engine, and the sessions, which are reused."""

    program, scene, generator, connect, difference = (
        "interleavings", SCENE, Generator, Session, Difference)

    def __init__(self, server, engine: str, plant: bool = False):
        self.server, self.plant = server, plant
        self.features = Features(server)
        self.engines = {INNODB: INNODB, CHEETAH: engine}   # side -> engine
        self.databases = {side: fresh_database(server, f"play_{side.lower()}")
                          for side in self.engines}
        self.root = Session(server, "root", "", [
            "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "SET innodb_lock_wait_timeout = 0", "SET cheetah_lock_wait_timeout = 0"])
        # Off: the engines differ in which rows count as changed; random histories cover it.
        for name, _ in server.sql("SHOW VARIABLES LIKE '%snapshot_isolation'"):
            self.root.must(f"SET GLOBAL {name} = OFF")
        self.pools = {engine: {} for engine in self.databases}
        self.alone = self.connect(server, "alone", fresh_database(server, "play_alone"))
        for text in self.scene.create(INNODB):
            self.alone.must(text)
        # While this snapshot is open, nothing is purged: locks do not depend on purge's progress.
        self.keeper = Session(server, "keeper", "")

    def session(self, engine: str, name: str) -> Session:
        pool = self.pools[engine]
        if name not in pool:
            pool[name] = self.connect(self.server, name, self.databases[engine])
        return pool[name]

    def play(self, script: Script, engine: str) -> Played:
        play = Play(self.begin(script, engine), script.impatient)
        play.run(script.steps)
        play.finish()
        self.keeper.must("COMMIT")
        return Played(play.entries, self.contents(engine))

    def execute(self, texts: list) -> tuple:
        """Runs statements one after the other on InnoDB tables in the state in which a script
        begins; returns their outcomes and the final tables."""
        self.alone.must("BEGIN")
        outcomes = [self.alone.ask(text) for text in texts]
        found = tuple(
            self.alone.must(f"SELECT * FROM {name} FORCE INDEX (PRIMARY) ORDER BY id").rows
            for name in self.scene.tables)
        self.alone.must("ROLLBACK")
        return outcomes, found

    def begin(self, script: Script, engine: str) -> dict:
        database = self.databases[engine]
        for text in (f"USE {database}", *self.scene.drop(),
                     *self.scene.create(self.engines[engine])):
            self.root.must(text)
        if self.plant and engine == CHEETAH:
            self.root.must(self.scene.plant)
        self.keeper.must("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        sessions = {name: self.session(engine, name) for name in script.sessions()}
        for name, session in sessions.items():
            timeout = 1 if name in script.impatient else 50
            for text in (f"SET SESSION TRANSACTION ISOLATION LEVEL {script.level}",
                         f"SET innodb_lock_wait_timeout = {timeout}",
                         f"SET cheetah_lock_wait_timeout = {timeout}"):
                session.must(text)
        return sessions

    def look(self, script: Script, engine: str, number: int, deadlocks: bool, victims=()) -> Look:
        """Returns the waits at a step of the script. With `deadlocks`, deadlocks that arise at this
        step are left unresolved (InnoDB) or reported (Cheetah), and the statements deferred after a
        deadlock's victim (`victims`) are left out."""
        sessions = self.begin(script, engine)
        play, states, plans = Play(sessions, script.impatient), [], []
        for at, step in enumerate(play.steps(script.steps)):
            states.append(self.dirty_rows(engine))
            plans.append(self.plan(step[1]))
            if at == number:
                break
            play.run([step], at)
        self.be_patient(play)
        for victim in victims:
            play.queues[victim.name] = [entry for entry in play.queues[victim.name]
                                        if entry.number < victim.number]
        if deadlocks:
            self.root.must("SET GLOBAL innodb_deadlock_detect = OFF")
        play.run([(step[0], NO_WAIT.sub("", step[1]))], number)
        states.append(self.dirty_rows(engine))
        waits = (innodb_waits(self.root, sessions) if engine == INNODB
                 else cheetah_waits(self.root, sessions))
        last, under_way = play.entries[-1], dict(play.under_way)
        is_told = deadlocks or (
            NO_WAIT.search(step[1])
            and any(e.outcome and e.outcome.error == DEADLOCK for e in (last, *last.woke)))
        if engine == CHEETAH and is_told:
            waits += cheetah_deadlock(self.root, sessions)
        for entry in sorted((last, *last.woke),
                            key=lambda entry: entry.outcome is None or not vain(entry)):
            under_way.setdefault(entry.name, entry)
        self.stop(play)
        return Look(waits, states, plans, play.entries, under_way)

    def dirty_rows(self, engine: str) -> tuple:
        """Returns the table with uncommitted changes, if the engine shows them."""
        return self.root.must(f"SELECT * FROM {self.databases[engine]}.t").rows

    def plan(self, text: str) -> tuple:
        """Returns the plan of a statement on the most recently created table: the type of access
        and the index. Returns nothing if EXPLAIN would have to lock a row."""
        explained = (self.root.ask(f"EXPLAIN {text}")
                     if text.startswith(("SELECT", "UPDATE", "DELETE")) else None)
        return (explained.rows[0][3], explained.rows[0][5]) if explained and explained.rows else ()

    def be_patient(self, play: Play) -> None:
        """Raises the lock wait timeouts, so that sessions that wait from now on keep waiting."""
        for name in play.impatient:
            for variable in ("innodb_lock_wait_timeout", "cheetah_lock_wait_timeout"):
                play.sessions[name].must(f"SET {variable} = 50")
        play.impatient = set()

    def stop(self, play: Play) -> None:
        """Ends all running statements and rolls everything back."""
        for session in play.sessions.values():
            if session.pending:
                self.root.ask(f"KILL QUERY {session.connection.thread_id()}")
                session.take()
        for session in play.sessions.values():
            # A kill that arrives just after its statement has ended may hit this ROLLBACK.
            if session.ask("ROLLBACK").error:
                session.must("ROLLBACK")
        self.root.must("SET GLOBAL innodb_deadlock_detect = ON")
        self.keeper.must("COMMIT")

    def contents(self, engine: str) -> tuple:
        """Returns all tables; their indexes must agree, and CHECK TABLE must find no errors."""
        tables = []
        for name in self.scene.tables:
            found = {index: self.root.must(f"SELECT * FROM {name} FORCE INDEX ({index}) {where} "
                                           "ORDER BY id").rows
                     for table, index, where in self.scene.looks if table == name}
            verdict = [row[-1] for row in self.root.must(f"CHECK TABLE {name} EXTENDED").rows]
            if verdict != ["OK"] or len(set(found.values())) > 1:
                raise say.Failure(f"{engine}: CHECK TABLE {name} says {verdict}; "
                                  f"by each index: {found}")
            tables.append(found["PRIMARY"])
        return tuple(tables)


class Comparison:
    """Both engines' runs and the verdict. `is_ordered`: no two sessions should go on at once."""

    def __init__(self, stage: Stage, script: Script, is_ordered: bool = False):
        self.script, self.is_ordered = script, is_ordered
        self.theirs, self.ours = stage.play(script, INNODB), stage.play(script, CHEETAH)
        self.number = self.ours.first_difference(self.theirs)
        self.reason, self.waits = "", {}
        self.unexplained = ("" if is_ordered
                            else unexplained(self.ours.entries, self.ours.final, script.level,
                                             stage.execute))
        if self.number is not None:
            mine, other = self.ours.entries[self.number], self.theirs.entries[self.number]
            self.reason = (stage.features.explain(script.level, mine)
                           or self.locks_differ(stage, mine, other))

    def locks_differ(self, stage: Stage, mine, other) -> str:
        """Returns the reason why the sessions that wait at this step differ between the engines."""
        difference = stage.difference(self.script.level, mine, other)
        victims_differ = difference.victims_differ()
        if victims_differ and mine.has_deadlock() and other.has_deadlock():
            # The first victim is the same; the rest must be as if it had rolled back itself.
            steps = [*self.script.steps[:self.number], (mine.name, "ROLLBACK")]
            rest = Comparison(stage, self.script.with_steps(steps), self.is_ordered)
            if rest.reason:
                return rest.reason
        if (not difference.is_of_locks() and not victims_differ
                and not self.is_all_by_victims(stage, difference)):
            return self.order(stage, difference)
        # A statement with NOWAIT waits during the check, which may create a deadlock.
        is_standing = (victims_differ or difference.deadlock_differs()
                       or bool(NO_WAIT.search(mine.text)))
        theirs = stage.look(self.script, INNODB, self.number, is_standing)
        # Cheetah ended a session in a deadlock that InnoDB did not end.
        of_deadlock = victims_differ or bool(difference.ended_here - difference.ended_there)
        ours = stage.look(self.script, CHEETAH, self.number, of_deadlock,
                          difference.victims_here.values() if of_deadlock else ())
        reason = difference.explain(
            theirs, ours, lambda engine: stage.look(self.script, engine, self.number - 1, False))
        self.waits = {INNODB: theirs.waits, CHEETAH: ours.waits}
        return (reason or self.victims_one_by_one(stage, difference, theirs, ours)
                or self.rows_passed(stage, mine, other) or self.order(stage, difference))

    def victims_one_by_one(self, stage: Stage, difference: Difference, theirs: Look,
                           ours: Look) -> str:
        """Returns the reason of a deadlock that only InnoDB has. It counts only if, with the victim
        rolled back before this step, all else is as here and no difference is unexplained."""
        is_possible = difference.victims_differ() and self.number < len(self.script.steps)
        for victim in difference.victims_there.values() if is_possible else ():
            reason = (victim.name not in difference.ended_here
                      and difference.explain_victim(victim, theirs, ours))
            if not reason or victim.number == self.number:
                continue
            numbers = [n for n in range(self.number + 1)
                       if self.script.steps[n][0] != victim.name or n < victim.number]
            steps = [self.script.steps[n] for n in numbers]
            rest = Comparison(stage, self.script.with_steps(
                [*steps[:-1], (victim.name, "ROLLBACK"), steps[-1]]), self.is_ordered)
            numbers.insert(-1, -1)
            done = [{n: key for n, key in answers_from(numbers, len(numbers) - 2,
                                                       side.entries).items() if n >= 0}
                    for side in (rest.theirs, rest.ours)]
            here = [{n: entry.outcome.key() for n, entry in answers.items()
                     if entry.name != victim.name}
                    for answers in (difference.other, difference.mine)]
            if done == here and not rest.fails():
                return reason
        return ""

    def is_all_by_victims(self, stage: Stage, difference: Difference) -> bool:
        """Returns whether one engine ends a deadlock, and both agree but for its victims."""
        victims = difference.victims_of_one()
        steps = [step for n, step in enumerate(self.script.steps[:self.number + 1])
                 if not any(step[0] == victim.name and n >= victim.number for victim in victims)]
        return (bool(victims and steps) and not self.is_ordered
                and not Comparison(stage, self.script.with_steps(steps), is_ordered=True).fails())

    def rows_passed(self, stage: Stage, mine, other) -> str:
        """Explains why SKIP LOCKED passes other rows on one engine than on the other: each such row
        is read alone, without SKIP LOCKED, and that wait must have a reason."""
        if " SKIP LOCKED" not in mine.text or any(
                e.outcome is None or e.outcome.rows is None for e in (mine, other)):
            return ""
        reasons = []
        for row in sorted(set(mine.outcome.rows) ^ set(other.outcome.rows), key=repr):
            steps = [*self.script.steps[:self.number], (mine.name, Statement(mine.text).alone(row))]
            alone = Comparison(stage, self.script.with_steps(steps), is_ordered=True)
            reasons.append(alone.reason if alone.number == self.number else "")
        return reasons[0] if reasons and all(reasons) else ""

    def order(self, stage: Stage, difference: Difference) -> str:
        """Returns the reason of a difference that disappears when sessions continue one by one."""
        if self.is_ordered:
            return ""
        played = [(self.theirs.entries, difference.other), (self.ours.entries, difference.mine)]
        done = done_in_an_order(self.number, played, lambda steps: Comparison(
            stage, self.script.with_steps(steps), is_ordered=True))
        if done == [False, True] and difference.has_come_meanwhile(self.ours.entries):
            return MEANWHILE
        return ORDER if done == [True, True] else ""

    def fails(self) -> bool:
        """Returns whether a difference has no reason or no order explains a run."""
        return bool(self.unexplained) or (self.number is not None and not self.reason)

    def text(self) -> str:
        lines = []
        for mine, other in zip(self.ours.entries, self.theirs.entries):
            same = mine.key() == other.key()
            lines.append(f"/* {mine.name} */ {mine.text};  -- {mine.number}: "
                         + (other.text_of() if same else ""))
            if not same:
                lines += [f"      -- InnoDB:  {other.text_of()}",
                          f"      -- CHEETAH: {mine.text_of()}"]
        lines += [f"-- {side}: {wait.text()}" for side, waits in self.waits.items()
                  for wait in waits]
        lines += [f"-- CHEETAH by itself: {self.unexplained}"] if self.unexplained else []
        lines.append(f"-- at the end: {self.theirs.final}"
                     + ("" if self.ours.final == self.theirs.final
                        else f", CHEETAH {self.ours.final}"))
        return "\n".join(lines)


def main(arguments: list, kind=Stage) -> int:
    """Runs the command; returns 1 if a difference has no reason."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scripts", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1,
                        help="the first script's seed; script n has seed + n")
    parser.add_argument("--show", action="store_true", help="print every script with its outcomes")
    parser.add_argument("--engine", default=CHEETAH,
                        help="what is compared with InnoDB; InnoDB itself must agree with itself")
    parser.add_argument("--plant", action="store_true",
                        help="let one row be missing in Cheetah's table: this must fail")
    parser.add_argument("--keep-going", type=int, default=5, help="stop after so many failures")
    choice = parser.parse_args(arguments)
    started, counts, failed = time.monotonic(), Counter(), []
    server = PrivateServer(scratch(kind.program), {**OPTIONS, "innodb_deadlock_report": "off"})
    with server:
        stage = kind(server, choice.engine, choice.plant)
        for seed in range(choice.seed, choice.seed + choice.scripts):
            outcome = judge(stage, stage.generator(seed).script(), choice)
            counts[outcome or "failed"] += 1
            if not outcome:
                failed.append(seed)
                if len(failed) >= choice.keep_going:
                    break
    server.remove()
    left_out = sum(counts[name] for name in LEFT_OUT)
    if left_out > max(LEFT_OUT_MAX * sum(counts.values()), 1):
        print(f"FAILED: {left_out} scripts say nothing from some step on")
        failed.append(None)
    reasons = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    print(f"{kind.program}: {sum(counts.values())} scripts in {time.monotonic() - started:.0f} s: "
          f"{reasons}; {stage.features.text()}")
    return 1 if failed else 0


def judge(stage: Stage, script: Script, choice) -> str:
    """Returns "alike" or the reason of a difference, or "" after reporting a failure."""
    comparison = Comparison(stage, script)
    if choice.show:
        print(f"-- seed {script.seed}, {script.level}: {comparison.reason or comparison.number}\n"
              f"{comparison.text()}\n", flush=True)
    if not comparison.fails():
        return comparison.reason or "alike"
    for _ in range(3):
        again = comparison if comparison.unexplained else Comparison(stage, script)
        if again.unexplained:
            break
        if again.theirs.first_difference(comparison.theirs) is not None:
            return UNSTEADY
        if again.reason:
            return again.reason
    report(stage, script, comparison, choice)
    return ""


def shrink(stage: Stage, script: Script) -> Comparison:
    """Removes steps as long as a difference without a reason remains."""
    best, left, size = Comparison(stage, script), SHRINKS_MAX, max(len(script.steps) // 2, 1)
    while size and left > 0:
        place, smaller = 0, False
        while place < len(best.script.steps) and left > 0:
            steps = best.script.steps[:place] + best.script.steps[place + size:]
            left -= 1
            tried = Comparison(stage, script.with_steps(steps)) if steps else None
            if tried and tried.fails():
                best, smaller = tried, True
            else:
                place += size
        size = size if smaller and size == 1 else size // 2
    return best


def report(stage: Stage, script: Script, comparison: Comparison, choice) -> None:
    short = shrink(stage, script)
    text = (f"{short.script.text().split(chr(10) + '/*')[0]}\n"
            f"{(short if short.fails() else comparison).text()}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    place = REPORTS / f"{stage.program}-{script.seed}.sql"
    place.write_text(text + "\n")
    print(f"FAILED: seed {script.seed}: a difference without a reason ({show(place)})\n{text}")
    print(f"  replay: python3 tests/isolation/{stage.program}.py --scripts 1 "
          f"--seed {script.seed}\n", flush=True)


if __name__ == "__main__":
    say.run_main(main)
