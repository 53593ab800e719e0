"""Checks one engine's run by itself: do its transactions give the same results one by one?

At REPEATABLE READ and SERIALIZABLE, whatever a statement reads with a lock, changes, or does not
find remains so until its transaction ends. So the committed transactions, executed one after the
other in commit order, must give the same results and the same final table. This check does not
depend on the other engine, so it limits what a reason may excuse. It leaves out what was rolled
back (with its transaction, to a savepoint, or after a lock wait timeout), because no lock protects
it. A read with SKIP LOCKED may return fewer rows.

A consistent read at REPEATABLE READ, and a read outside a transaction, is executed where its
snapshot was taken. The check leaves the read out if that position is uncertain (the transaction had
already locked something) or if the transaction may see its own changes.

Sessions that continue at the same step may commit in any order after the transaction that unblocked
them; one of these orders must fit. READ COMMITTED promises no serial order of whole transactions.
"""

from collections import namedtuple
from itertools import islice

from engines import ends, reads
from sessions import DEADLOCK

TIMEOUT = 1205
ORDERS_MAX = 200   # a run with more possible orders is not judged
# Statements that happened at one position of the order, with their outcomes. `number` is the step
# of the script at which the unit completed. `leads` means that this step itself ended the
# transaction, so the sessions that it unblocked come later.
Unit = namedtuple("Unit", "number name entries leads", defaults=[False])


class Progress:
    """The state of a session within its transaction."""

    def __init__(self, inside: bool = False):
        self.inside, self.entries, self.mark = inside, [], None
        # the unit of the transaction's consistent reads, and whether its position is certain
        self.snapshot, self.is_certain = None, True


def units(entries: list, level: str) -> list:
    """Returns the units of a run in the order in which they were answered."""
    found, sessions = [], {}
    for number, entry in answered(entries):
        progress = sessions.setdefault(entry.name, Progress())
        if entry.outcome.error == DEADLOCK:
            sessions[entry.name] = Progress()
        elif entry.outcome.error == TIMEOUT:
            progress.is_certain = False
        elif entry.text.startswith(("BEGIN", "START")) or ends(entry.text):
            if progress.inside and not entry.text.startswith("ROLLBACK"):
                found.append(Unit(number, entry.name, progress.entries, entry.number == number))
            progress = sessions[entry.name] = Progress(not ends(entry.text))
            if "SNAPSHOT" in entry.text and level == "REPEATABLE READ":
                progress.snapshot = Unit(number, entry.name, [])
                found.append(progress.snapshot)
        elif "SAVEPOINT" in entry.text:
            go_back(progress, entry)
        elif not progress.inside:
            found.append(Unit(number, entry.name, [entry]))
        elif level == "REPEATABLE READ" and reads(entry.text):
            read_snapshot(progress, number, entry, found)
        else:
            progress.is_certain &= progress.snapshot is not None and not changes(entry)
            progress.entries.append(entry)
    return found


def go_back(progress: Progress, entry) -> None:
    """Sets a savepoint, or drops the entries that a rollback to it undoes."""
    if " TO " not in entry.text:
        progress.mark = len(progress.entries)
    elif not entry.outcome.error and progress.mark is not None:
        del progress.entries[progress.mark:]
        progress.is_certain = False


def read_snapshot(progress: Progress, number: int, entry, found: list) -> None:
    """Adds a consistent read to the unit of its transaction's snapshot."""
    if not progress.is_certain:
        return
    if progress.snapshot is None:
        progress.snapshot = Unit(number, entry.name, [])
        found.append(progress.snapshot)
    progress.snapshot.entries.append(entry)


def changes(entry) -> bool:
    return not entry.text.startswith("SELECT")


def answered(entries: list):
    """Yields (step at which the entry was answered, entry) in order."""
    for step in entries:
        if not step.waited and not step.deferred and step.outcome is not None:
            yield step.number, step
        for woken in step.woke:
            yield step.number, woken


def orders(found: list):
    """Yields every order of the units: those of one step vary, each session's own stay in order."""
    if not found:
        yield []
        return
    together = [unit for unit in found if unit.number == found[0].number]
    rest, leading = found[len(together):], [unit for unit in together[:1] if unit.leads]
    for first in (leading + others for others in merged(together[len(leading):])):
        for others in orders(rest):
            yield first + others


def merged(together: list):
    """Yields every order of these units that keeps the order within each session."""
    if not together:
        yield []
    seen = set()
    for at, unit in enumerate(together):
        if unit.name not in seen:
            seen.add(unit.name)
            for others in merged(together[:at] + together[at + 1:]):
                yield [unit] + others


def unexplained(entries: list, final: tuple, level: str, execute) -> str:
    """Returns what no commit order explains, or "". `execute(texts)` runs statements one after the
    other on a fresh table and returns their outcomes and the final table."""
    if level not in ("REPEATABLE READ", "SERIALIZABLE"):
        return ""
    possible, first = list(islice(orders(units(entries, level)), ORDERS_MAX + 1)), ""
    for order in possible:
        wrong = misfit(order, final, execute)
        if not wrong or len(possible) > ORDERS_MAX:
            return ""
        first = first or wrong
    return first


def misfit(order: list, final: tuple, execute) -> str:
    """Returns the first statement that gives another result in this order, or ""."""
    played = [entry for unit in order for entry in unit.entries]
    outcomes, table = execute([entry.text for entry in played])
    for entry, outcome in zip(played, outcomes):
        if not agrees(entry, outcome):
            return (f"{entry.name}'s step {entry.number} has {entry.outcome.text()}; "
                    f"in the order of commits: {outcome.text()}")
    return "" if table == final else f"the table at the end is, in the order of commits: {table}"


def agrees(entry, outcome) -> bool:
    """Returns whether the serial run gave the same result; SKIP LOCKED may omit rows."""
    if " SKIP LOCKED" in entry.text and entry.outcome.rows is not None and outcome.rows is not None:
        return set(entry.outcome.rows) <= set(outcome.rows)
    return entry.outcome.key() == outcome.key()
