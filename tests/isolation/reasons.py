"""Explains why Cheetah waits where InnoDB does not, or the other way round.

A script whose locks differ is played once more, up to the differing step. The engine whose session
waits then reports the blocker and the record; InnoDB's deadlock detection is off meanwhile. A
reason holds if the statements so far agree with it:

- precise-ranges: InnoDB waits for a record, or because of a gap, that one of the two statements did
  not request: it is after or next to the keys of the search. Or Cheetah waits for a record that
  SKIP LOCKED passed in InnoDB only, where it was locked as the first record after another session's
  range.
- duplicate-row: a row already has the unique key of a new row. InnoDB locks the entry of the unique
  index with its gap, Cheetah locks the row; and Cheetah checks all unique keys before it requests a
  position for the new row. If ON DUPLICATE KEY UPDATE did not find an earlier key, Cheetah locks
  that key, InnoDB the gap.
- covering: a read with shared locks needs only the index. Cheetah locks the row, InnoDB the entry.
- upgrade: a lock holder requests a stronger lock while others wait for the row. Cheetah lets it
  overtake them, InnoDB reports a deadlock.
- kept: InnoDB at READ COMMITTED keeps the lock of a row that it waited for, even if the row does
  not match, and of a row that NOWAIT failed to lock; Cheetah releases it.
- deleted: the deletion of a row or an entry was committed before the blocker arrived there. InnoDB
  locks it until it is purged; Cheetah passes it, and locks its position and the range around it
  where ranges are locked.
- entry: InnoDB waits for an entry whose holder did not get the row: the holder still waits for the
  row, waited in vain, or passed it with SKIP LOCKED. Cheetah locks no entries.
- reinsert: a record is inserted again before its deletion is purged. InnoDB changes the old record;
  Cheetah requests the position like any insert.
- plan: the server chose different access paths for one of the two statements, because the engines'
  estimates differ. This says nothing about the engines, so the rest of the script is not compared;
  interleavings.py limits the number of such scripts.
- gone: two sessions waited for a record that no longer exists. InnoDB lets both continue. Cheetah
  lets the first continue, and the second when the first has ended.
- place: in a deadlock of InnoDB, a session waits for a new row whose insert waits for a range of a
  secondary index. InnoDB inserts the row before that wait; Cheetah inserts nothing until it may
  insert everything.
- order: several sessions continue at once, in a different order on each engine. The script is
  played again with their statements one after the other, in every order (orders.py): the engines
  must agree in each order, and the original outcome of each engine must occur in one of them. A
  statement that both engines end in a deadlock is rolled back before the step.
- meanwhile: at READ COMMITTED, a session waited within a scan, and another session inserted or
  moved a row to a position before the record waited for. Cheetah repeats the search from its last
  position and finds the row, InnoDB does not. Sent after the wait, the statement must give on both
  engines what Cheetah returned here.
- victim: both engines end a deadlock at this step, with different victims; the victim of each is in
  the other one's cycle. Or InnoDB ends one more statement in a cycle in which both end one, which
  is enough for Cheetah. (Everything else at this step follows from that, including further
  deadlocks.) If the engines share a victim and one of them has another victim, its cycle must have
  one of the reasons above. If each engine has its own victim, InnoDB's cycle must have such a
  reason, and the script with that victim rolled back before the step must give the same outcomes as
  here, and must be alike on both engines or have a reason itself.

A wait for a session has a reason if that session itself waits, and on the other engine waits for
something else with a reason. A read that passes locked rows does not wait: each row passed on one
side only is read alone, and the wait for it must have a reason."""

from collections import namedtuple

from engines import CHEETAH, ends, INNODB
from statements import comparable, KEYS, Statement

PRECISE_RANGES, DUPLICATE_ROW, COVERING, VICTIM = ("precise-ranges", "duplicate-row", "covering",
                                                   "victim")
UPGRADE, KEPT, DELETED, ENTRY, REINSERT, PLAN = ("upgrade", "kept", "deleted", "entry", "reinsert",
                                                 "plan")
ORDER, PLACE, MEANWHILE, GONE = "order", "place", "meanwhile", "gone"
DEADLOCK, TIMEOUT = 1213, 1205


class Look(namedtuple("Look", "waits states plans entries under_way")):
    """The state of one engine at the differing step: its waits, every state of the table so far,
    the plan of each step, the entries, and the running statement of each session."""

    def is_upgrade(self, wait) -> bool:
        """Returns whether the two sessions wait for each other for the same record."""
        return any(other.waiter == wait.blocker and other.blocker == wait.waiter
                   and other.place() == wait.place() for other in self.waits)


def answers(entry) -> dict:
    """Returns step -> entry for the statements answered at this step."""
    done = {other.number: other for other in entry.woke}
    if not entry.waited and not entry.deferred and entry.outcome is not None:
        done[entry.number] = entry
    return done


def victims(done: dict) -> dict:
    """Returns step -> entry for the statements that ended in a deadlock."""
    return {n: entry for n, entry in done.items() if entry.outcome.error == DEADLOCK}


class Difference:
    """A step whose outcome differs between the two engines."""

    def __init__(self, level: str, mine, other):
        self.level, self.mine, self.other = level, answers(mine), answers(other)
        self.number, self.other_plans, self.waits_here, self.rows_there = mine.number, set(), [], ()
        # step -> the statement that ended in a deadlock, and the sessions of these statements
        self.victims_here, self.victims_there = victims(self.mine), victims(self.other)
        self.ended_here, self.ended_there = ({e.name for e in side.values()} for side in (
            self.victims_here, self.victims_there))
        # sessions that InnoDB stops and Cheetah does not
        self.blocked = self.stopped(self.other, self.mine)
        self.blocked_here = self.stopped(self.mine, self.other)   # the other way round

    def stopped(self, theirs: dict, ours: dict) -> set:
        """Returns the sessions that wait, in vain or not, or pass rows only in `theirs`."""
        return {e.name for n, e in ours.items()
                if not vain(e) and (n not in theirs or vain(theirs[n]) or passes(theirs[n], e))}

    def is_of_locks(self) -> bool:
        """Returns whether the engines differ only in lock waits or deadlocks, and all statements
        answered on both sides, except those affected by locks, agree."""
        for number in self.mine.keys() & self.other.keys():
            mine, other = self.mine[number], self.other[number]
            # the transactions of the last sessions were rolled back on one engine only
            excused = (vain(mine) or vain(other) or passes(mine, other) or passes(other, mine)
                       or mine.name in self.ended_here ^ self.ended_there)
            if mine.outcome.key() != other.outcome.key() and not excused:
                return False
        return bool(self.blocked or self.blocked_here or self.deadlock_differs())

    def deadlock_differs(self) -> bool:
        """Returns whether the engines ended different sessions in a deadlock."""
        return self.ended_here != self.ended_there

    def victims_of_one(self) -> list:
        """Returns the statements ended in a deadlock if only one engine has any."""
        found = [*self.victims_here.values(), *self.victims_there.values()]
        return [] if self.victims_here and self.victims_there else found

    def victims_differ(self) -> bool:
        """Returns whether both engines end deadlocks, but with different victims."""
        mine, other = self.victims_here.keys(), self.victims_there.keys()
        return bool(mine and other and mine != other)

    def explain(self, theirs: Look, ours: Look, before=None) -> str:
        """Returns the reason, or "". `before` looks at an engine one step earlier."""
        mine, other = self.ended_here, self.ended_there
        if self.victims_differ():
            cycles = [{wait.waiter for wait in cycle(look.waits)} for look in (theirs, ours)]
            if (mine - other or mine) & cycles[0] and (other - mine or other) & cycles[1]:
                return VICTIM
            if mine < other and all({wait.waiter for wait in cycle(theirs.waits, {victim})} & mine
                                    for victim in other - mine):
                # Both engines ended the same session in these cycles, which would have been enough.
                return VICTIM
            if not (mine < other or other < mine):
                return ""   # see explain_victim
        self.compare(theirs, ours)
        found = []
        sides = ((self.blocked, (theirs, self.judge_theirs), (ours, self.judge_ours)),
                 (self.blocked_here, (ours, self.judge_ours), (theirs, self.judge_theirs)))
        for sessions, (look, judge), there in sides:
            for name in sorted(sessions):
                reasons = [judge(wait, look) or self.judge_plans(wait, look)
                           or self.judge_behind(wait, look, *there)
                           for wait in look.waits if wait.waiter == name]
                found.append(reasons[0] if reasons and all(reasons) else "")
        if other > mine:
            found.append(self.reason_of_cycle(theirs, ours, self.judge_cycle, other - mine))
            if before and self.number:
                found.append(self.reason_of_no_cycle(before(CHEETAH), theirs, self.judge_ours,
                                                     other - mine))
        if mine > other:
            found.append(self.reason_of_cycle(ours, theirs, self.judge_ours, mine - other))
            if before and self.number:
                found.append(self.reason_of_no_cycle(before(INNODB), ours, self.judge_theirs,
                                                     mine - other))
        return next(filter(None, found), "")

    def has_come_meanwhile(self, entries: list) -> bool:
        """Returns whether each statement with a different outcome waited while another session may
        have inserted a row into the range of its search."""
        unlike = [n for n in self.mine.keys() & self.other.keys()
                  if self.mine[n].outcome.key() != self.other[n].outcome.key()]
        return self.level == "READ COMMITTED" and bool(unlike) and all(
            self.meets(Statement(entries[n].text), entries[n + 1:self.number + 1], entries[n].name)
            for n in unlike)

    @staticmethod
    def meets(asking: Statement, entries: list, name: str) -> bool:
        """Returns whether a session other than `name` may have put a row where the search reads."""
        others = [Statement(entry.text) for step in entries for entry in (step, *step.woke)
                  if entry.name != name]
        return any((other.row and asking.finds(other.row))
                   or (other.sets and other.changes(asking.index))
                   for other in others if asking.index)

    def compare(self, theirs: Look, ours: Look) -> None:
        """Saves what the other checks need from both engines."""
        self.other_plans = {at for at, plans in enumerate(zip(theirs.plans, ours.plans))
                            if all(plans) and plans[0] != plans[1]}
        self.waits_here, self.rows_there = ours.waits, theirs.states[-1] if theirs.states else ()

    def judge_behind(self, wait, look: Look, there: Look, judge_there) -> str:
        """Explains a wait by the blocker's progress: on the other engine, the blocker's own
        statement waits earlier, for another record and with a reason. Only this statement may have
        locked the record."""
        here, elsewhere = look.under_way.get(wait.blocker), there.under_way.get(wait.blocker)
        versions = self.versions(wait, look.states)
        holding = [s for s in self.statements_of(wait.blocker, look) if self.touches([s], versions)]
        if (here is None or elsewhere is None or not holding
                or any(s.number != here.number or s.number != elsewhere.number for s in holding)):
            return ""
        reasons = [judge_there(other, there) for other in there.waits
                   if other.waiter == wait.blocker
                   and not any(other.is_as(own) for own in look.waits)]
        return reasons[0] if reasons and all(reasons) else ""

    def explain_victim(self, victim, theirs: Look, ours: Look) -> str:
        """Explains why InnoDB ended a transaction in a deadlock that Cheetah does not have."""
        self.compare(theirs, ours)
        return self.reason_of_cycle(theirs, ours, self.judge_cycle, {victim.name})

    def judge_cycle(self, wait, look: Look) -> str:
        """Explains a wait in a deadlock that only InnoDB has."""
        return (self.judge_theirs(wait, look) or self.judge_entry(wait, look)
                or self.judge_place(wait, look))

    def judge_place(self, wait, look: Look) -> str:
        """Checks for `place`: a new row, already in InnoDB, whose insert waits for a range here."""
        under_way = look.under_way.get(wait.blocker)
        row = Statement(under_way.text).row if under_way else None
        waits_for_range = any(own.waiter == wait.blocker and own.inserts for own in self.waits_here)
        is_new = wait.index == "PRIMARY" and not wait.inserts and row and row[0] == wait.value
        return PLACE if waits_for_range and is_new else ""

    def judge_plans(self, wait, look: Look) -> str:
        """Checks for the reason `plan`: the engines execute a statement differently."""
        held = self.statements_of(wait.blocker, look) + self.statements_of(wait.waiter, look)
        return PLAN if any(s.number in self.other_plans for s in held) else ""

    def reason_of_cycle(self, look: Look, other: Look, judge, victims: set) -> str:
        """Explains a wait in the deadlocks of these victims that only this engine has."""
        reasons = [judge(wait, look) or self.judge_plans(wait, look)
                   for wait in cycle(look.waits, victims)
                   if not any(wait.is_as(there) for there in other.waits)]
        return next(filter(None, reasons), "")

    @staticmethod
    def reason_of_no_cycle(look: Look, other: Look, judge, victims: set) -> str:
        """Explains why a member of the other engine's deadlock waited for something else here."""
        members = {wait.waiter for wait in cycle(other.waits, victims)}
        elsewhere = [wait for wait in look.waits
                     if wait.waiter in members
                     and not any(wait.is_as(there) for there in other.waits)]
        return next(filter(None, (judge(wait, look) for wait in elsewhere)), "")

    def statements_of(self, name: str, look: Look) -> list:
        """Returns the locking statements of a session's transaction, up to its running one."""
        statements, inside = [], False
        for entry in look.entries:
            is_under_way = look.under_way.get(name) is entry
            if entry.name != name or (entry.outcome is None and not is_under_way):
                continue
            if not is_under_way and (ends(entry.text) or entry.outcome.error == DEADLOCK):
                statements, inside = [], False
            elif entry.text.startswith(("BEGIN", "START")):
                statements, inside = [], True
            elif inside or is_under_way:
                statements += self.locking(entry, inside)
        return statements

    def locking(self, entry, inside: bool) -> list:
        """Returns the entry's statement in a list, or an empty list if it does not lock."""
        statement = Statement(entry.text, entry.number)
        statement.is_vain = entry.outcome is None or entry.outcome.error == TIMEOUT
        return [statement] if statement.locks(self.level, inside) else []

    def judge_theirs(self, wait, look: Look) -> str:
        """Explains why InnoDB waits and Cheetah does not."""
        asking = Statement(look.under_way[wait.waiter].text, look.under_way[wait.waiter].number)
        held = self.statements_of(wait.blocker, look)
        if look.is_upgrade(wait):
            return UPGRADE
        if wait.inserts:
            if any(asking.checks(row) for row in look.states[-1]):
                return DUPLICATE_ROW
            values = asking.puts(wait.index, look.states)
            if (self.level != "READ COMMITTED"
                    and any(s.reads(wait.index, value) for s in held for value in values)):
                return ""
            ranges = self.level != "READ COMMITTED" and any(s.index == wait.index for s in held)
            return (PRECISE_RANGES if ranges
                    else DUPLICATE_ROW if any(s.row or s.sets for s in held) else "")
        if self.is_behind_one_that_went(wait, asking, look):
            return DUPLICATE_ROW
        versions = self.versions(wait, look.states)
        # whether a statement concerns the row in a version of its time or later
        is_late = any(self.touches([s], self.versions(wait, look.states[s.number:])) for s in held)
        if self.touches(held, versions) and (self.removed_by_others(wait, look) or not is_late):
            return DELETED
        # the statements that block the wait if they lock the row
        strong = [s for s in held if not (wait.shared and s.is_shared_read())]
        if not self.asks_for(asking, wait, versions) or not self.touches(strong, versions):
            return PRECISE_RANGES
        holding = [s for s in held if self.touches([s], versions)]
        if self.level == "READ COMMITTED":
            if not any(s.matches(row) for s in held
                       for row in self.versions(wait, look.states[s.number:])):
                return KEPT
            if all(s.is_vain and s.text.endswith(" NOWAIT") for s in holding):
                return KEPT
        if (wait.index != "PRIMARY"
                and all(s.is_vain or self.has_passed(s, wait, look) for s in holding)):
            return ENTRY
        return PRECISE_RANGES if any(self.is_next(s, wait, look) for s in held) else ""

    @staticmethod
    def asks_for(asking: Statement, wait, versions: list) -> bool:
        """Returns whether a statement requests a record. In the index of its search, a statement
        finds a record by its value, whatever values the row had."""
        if asking.index == wait.index and not asking.changes(wait.index):
            return (asking.reads(wait.index, wait.value)
                    or any(asking.checks(row) for row in versions))
        return Difference.touches([asking], versions)

    @staticmethod
    def is_next(statement: Statement, wait, look: Look) -> bool:
        """Returns whether the record is the first one after a range that the statement read."""
        if statement.is_vain or statement.index != wait.index:
            return False
        values = [comparable(row[KEYS[wait.index]]) for row in look.states[statement.number]]
        return any((high < wait.value or (high == wait.value and not with_high))
                   and not any(high < value < wait.value for value in values)
                   for _, _, high, with_high in statement.ranges)

    @staticmethod
    def is_behind_one_that_went(wait, asking: Statement, look: Look) -> bool:
        """Returns whether the wait is for the entry after a removed new unique value."""
        if wait.index != "u" or asking.index == "u":
            return False
        values = asking.puts("u", look.states)
        there = [{comparable(row[KEYS["u"]]) for row in state}
                 for state in look.states[:asking.number + 1]]
        gone = set().union(*there) - there[-1]
        return (wait.value not in values
                and any(value in gone and value < wait.value for value in values))

    def has_passed(self, statement: Statement, wait, look: Look) -> bool:
        """Returns whether a read passed locked rows, which may include this one."""
        if not statement.text.endswith(" SKIP LOCKED"):
            return False
        matching = [row for row in look.states[statement.number] if statement.matches(row)]
        return len(look.entries[statement.number].outcome.rows or ()) < len(matching)

    def judge_entry(self, wait, look: Look) -> str:
        """Explains why InnoDB waits for an entry of a row: the blocker locked the entry without the
        row. In Cheetah the waiter has the row."""
        versions = self.versions(wait, look.states)
        holding = [s for s in self.statements_of(wait.blocker, look)
                   if self.touches([s], versions) and not s.is_vain]
        if (wait.index == "PRIMARY" or not holding
                or not all(s.is_covered() or self.only_checks([s], versions) for s in holding)):
            return ""
        return COVERING if any(s.is_covered() for s in holding) else DUPLICATE_ROW

    def removed_by_others(self, wait, look: Look) -> bool:
        """Returns whether a transaction other than the blocker removed the record."""
        seen = [at for at, state in enumerate(look.states) if any(wait.is_on(row) for row in state)]
        if not seen or seen[-1] >= self.number:
            return False
        step = look.entries[seen[-1]]
        return not any(e.name == wait.blocker and Statement(e.text).may_remove(wait.index)
                       for e in (step, *step.woke))

    @staticmethod
    def versions(wait, states: list) -> list:
        """Returns all versions of the row or rows that had the record waited for."""
        rows = ({row[0] for state in states for row in state if wait.is_on(row)}
                if wait.row is None else {wait.row})
        return [row for state in states for row in state if row[0] in rows]

    def judge_ours(self, wait, look: Look) -> str:
        """Explains why Cheetah waits and InnoDB does not."""
        asking = Statement(look.under_way[wait.waiter].text)
        held = self.statements_of(wait.blocker, look)
        if wait.inserts:
            has_gone = (any(wait.is_on(row) for state in look.states for row in state)
                        and not any(wait.is_on(row) for row in look.states[-1]))
            is_read = any(s.reads(wait.index, wait.value) for s in held)
            return REINSERT if has_gone and is_read else ""
        if self.has_gone(wait, look):
            return GONE
        if any(self.has_missed(s, wait, look) for s in held):
            return DUPLICATE_ROW
        versions = self.versions(wait, look.states)
        if (wait.shared and not asking.text.startswith("SELECT")
                and any(asking.checks(row) for row in versions)):
            return DUPLICATE_ROW
        holding = [s for s in held
                   if self.touches([s], versions) and not self.is_to_come(s, wait, look)]
        # Writers share only the lock of a row that has their unique key.
        if (wait.held_shared and holding and not any(s.is_shared_read() for s in holding)
                and any(s.checks(row) for s in holding for row in versions)):
            return DUPLICATE_ROW
        if holding and all(self.was_passed(s, wait, look) for s in holding):
            return PRECISE_RANGES
        if asking.is_covered() or (holding and all(s.is_covered() or self.only_checks([s], versions)
                                                   for s in holding)):
            return (COVERING if asking.is_covered() or any(s.is_covered() for s in holding)
                    else DUPLICATE_ROW)
        return DUPLICATE_ROW if self.only_checks([asking], versions) else ""

    def has_gone(self, wait, look: Look) -> bool:
        """Returns whether both waited for a record that this step removed, and one went on."""
        is_there = any(wait.is_on(row) for row in (*look.states[-1], *self.rows_there))
        went_on = any(entry.name == wait.blocker and n != self.number
                      for n, entry in self.mine.items())
        return (went_on and not is_there and not wait.inserts
                and look.under_way[wait.waiter].number < self.number)

    def was_passed(self, statement: Statement, wait, look: Look) -> bool:
        """Returns whether InnoDB passed the record as locked and Cheetah did not: the record is the
        first one after the range of another open transaction."""
        others = {entry.name for entry in look.entries} - {wait.blocker}
        earlier = [s for name in others for s in self.statements_of(name, look)
                   if s.number < statement.number]
        return (" SKIP LOCKED" in statement.text
                and any(self.is_next(s, wait, look) for s in earlier))

    def has_missed(self, statement: Statement, wait, look: Look) -> bool:
        """Returns whether ON DUPLICATE KEY UPDATE did not find this primary key, but found the row
        by its other unique key. Cheetah locks the primary key that it did not find."""
        if (self.level == "READ COMMITTED" or " ON DUPLICATE" not in statement.text
                or wait.index != "PRIMARY" or statement.row[0] != wait.value):
            return False
        there = look.states[statement.number]
        return (any(row[2] == statement.row[2] for row in there)
                and not any(row[0] == wait.value for row in (*there, *look.states[-1])))

    @staticmethod
    def is_to_come(statement: Statement, wait, look: Look) -> bool:
        """Returns whether the blocker's running statement has not reached the record yet, because
        it waits for an earlier record of the index."""
        under_way = look.under_way.get(wait.blocker)
        if (under_way is None or under_way.number != statement.number
                or " DESC" in statement.text or "MAX(" in statement.text):
            return False
        return any(own.waiter == wait.blocker and not own.inserts
                   and own.index == wait.index == statement.index and own.value < wait.value
                   for own in look.waits)

    @staticmethod
    def touches(statements: list, versions: list) -> bool:
        """Returns whether one of the statements concerns a row of these versions."""
        return any(s.finds(row) or s.checks(row) or (s.row and s.row[0] == row[0])
                   for s in statements for row in versions)

    @staticmethod
    def only_checks(statements: list, versions: list) -> bool:
        """Returns whether the statements concern the row only through a common unique key."""
        found = [s for s in statements
                 if Difference.touches([s], versions) and not (s.is_vain and len(statements) > 1)]
        return bool(found) and not any(s.finds(row) for s in found for row in versions)


def cycle(waits: list, members=()) -> list:
    """Returns the waits that are part of a cycle, or of a cycle with one of `members`."""
    def reaches(start: str, goal: str, seen: set) -> bool:
        if start == goal:
            return True
        onward = {w.blocker for w in waits if w.waiter == start} - seen
        return any(reaches(name, goal, seen | onward) for name in onward)

    def is_with(name: str) -> bool:
        return any(reaches(name, member, set()) and reaches(member, name, set())
                   for member in members)

    return [wait for wait in waits
            if reaches(wait.blocker, wait.waiter, set()) and (not members or is_with(wait.waiter))]


def passes(entry, other) -> bool:
    """Returns whether a read with SKIP LOCKED passed rows that the other read returned."""
    if " SKIP LOCKED" not in entry.text or entry.outcome.rows is None:
        return False
    return other.outcome.rows is not None and set(entry.outcome.rows) < set(other.outcome.rows)


def vain(entry) -> bool:
    """Returns whether a statement ended without the lock that it requested."""
    return entry.outcome.error in (DEADLOCK, TIMEOUT)
