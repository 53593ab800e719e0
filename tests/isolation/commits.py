"""One engine's run of a script, judged by itself: is it what its transactions do one after the
other?

From REPEATABLE READ on, whatever a statement reads with a lock, changes or does not find stays so
until its transaction ends. So the committed transactions, executed one after the other in the order
of their commits, must give the same results, and the same table in the end. This holds whatever the
other engine does, so it bounds what a reason may excuse. Left out, as nothing keeps it as it was,
is what was rolled back: with its transaction, to a savepoint, or because it has waited in vain.
What SKIP LOCKED passes may be missing.

A consistent read of REPEATABLE READ, and one outside of transactions, is executed where its
snapshot was taken. Where that is not certain (its transaction had locked something before), or the
transaction may see changes of its own, it is left out.

Sessions that go on at one step may commit in any order behind the one that lets them: one of them
has to fit. At READ COMMITTED no order of whole transactions is promised.
"""

from itertools import islice

from engines import ends, reads
from sessions import DEADLOCK

TIMEOUT = 1205
ORDERS_MAX = 200   # of a run that may have come about in more nothing is said


class Unit:
    """What happened at one moment of the order: statements with their outcomes. `number`: the step
    of the script at which it came about. `leads`: by that step itself, a transaction's end, so that
    others that it has let go on came later."""

    def __init__(self, number: int, name: str, entries: list, leads: bool = False):
        self.number, self.name, self.entries, self.leads = number, name, entries, leads


class Progress:
    """How far a session is in its transaction."""

    def __init__(self, inside: bool = False):
        self.inside, self.entries, self.mark = inside, [], None
        # the unit of its consistent reads; whether there may be one
        self.snapshot, self.is_certain = None, True


def units(entries: list, level: str) -> list:
    """The units of a run, in the order in which they were answered."""
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
    """A savepoint is set, or what came after it is rolled back."""
    if " TO " not in entry.text:
        progress.mark = len(progress.entries)
    elif not entry.outcome.error and progress.mark is not None:
        del progress.entries[progress.mark:]
        progress.is_certain = False


def read_snapshot(progress: Progress, number: int, entry, found: list) -> None:
    """A consistent read within a transaction."""
    if not progress.is_certain:
        return
    if progress.snapshot is None:
        progress.snapshot = Unit(number, entry.name, [])
        found.append(progress.snapshot)
    progress.snapshot.entries.append(entry)


def changes(entry) -> bool:
    """Whether a statement may have changed something."""
    return not entry.text.startswith("SELECT")


def answered(entries: list):
    """(step at which it was answered, entry), one after the other."""
    for step in entries:
        if not step.waited and not step.deferred and step.outcome is not None:
            yield step.number, step
        for woken in step.woke:
            yield step.number, woken


def orders(found: list):
    """The units in each order that they may have come about in: those of one step in any, but each
    session's as they are."""
    if not found:
        yield []
        return
    together = [unit for unit in found if unit.number == found[0].number]
    rest, leading = found[len(together):], [unit for unit in together[:1] if unit.leads]
    for first in (leading + others for others in merged(together[len(leading):])):
        for others in orders(rest):
            yield first + others


def merged(together: list):
    """Each order of these units that leaves those of a session in theirs."""
    if not together:
        yield []
    seen = set()
    for at, unit in enumerate(together):
        if unit.name not in seen:
            seen.add(unit.name)
            for others in merged(together[:at] + together[at + 1:]):
                yield [unit] + others


def unexplained(entries: list, final: tuple, level: str, execute) -> str:
    """What no order of the commits explains; nothing if one does. `execute(texts)` runs statements
    one after the other on a fresh table: their outcomes, and the table at the end."""
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
    """The first statement that does something else in this order."""
    played = [entry for unit in order for entry in unit.entries]
    outcomes, table = execute([entry.text for entry in played])
    for entry, outcome in zip(played, outcomes):
        if not agrees(entry, outcome):
            return (f"{entry.name}'s step {entry.number} has {entry.outcome.text()}; "
                    f"in the order of commits: {outcome.text()}")
    return "" if table == final else f"the table at the end is, in the order of commits: {table}"


def agrees(entry, outcome) -> bool:
    """Whether a statement has done what it does alone; one that skips locked rows may skip some."""
    if " SKIP LOCKED" in entry.text and entry.outcome.rows is not None and outcome.rows is not None:
        return set(entry.outcome.rows) <= set(outcome.rows)
    return entry.outcome.key() == outcome.key()
