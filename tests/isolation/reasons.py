"""Why Cheetah may let a session wait that InnoDB lets go on, or the other way round.

A difference of locks is played once more, up to its step, and the engine that lets somebody wait is
asked for whom, and for what; InnoDB's deadlocks are left standing for that. A reason holds if the
statements so far agree with it:

- precise-ranges: InnoDB waits for a record, or because of a gap, for which one of the two has not
  asked: it lies behind or beside the keys of its search. Or Cheetah waits for a record that SKIP
  LOCKED has not passed here, as it lay behind another's range only.
- duplicate-row: a row that has the unique key of one that is to come. InnoDB locks the entry of the
  unique index with its gap, Cheetah the row; and Cheetah looks at all unique keys before it asks
  for a place for the row. What ON DUPLICATE KEY UPDATE has not found before that row Cheetah locks,
  InnoDB the gap.
- covering: a read with shared locks that needs the index only. Cheetah locks the row, InnoDB the
  entry.
- upgrade: who has a row asks for more of it while others wait for it. In Cheetah he passes them, in
  InnoDB they are a deadlock.
- kept: InnoDB at READ COMMITTED keeps a row that it has waited for, even if it does not match, and
  one that it has not got with NOWAIT; Cheetah gives it back.
- deleted: a row, or an entry, whose deletion has been committed before the one who has locked it
  came. InnoDB locks it as long as it is not purged, Cheetah passes it, and locks its place and the
  range around it where ranges are locked.
- entry: InnoDB waits for an entry whose row its holder did not get: he waits for that, has waited
  in vain, or has passed it with SKIP LOCKED. Cheetah locks no entries.
- reinsert: a record comes back whose deletion is not purged. InnoDB changes that one, Cheetah asks
  for the place like any insert.
- plan: the server reads one of the two statements' tables by another access, as it is estimated
  otherwise. Nothing follows for the engines: such a script says nothing from this step on, and
  interleavings.py bounds how many may.
- gone: two have waited for a record that is there no more. InnoDB lets both go on, Cheetah the
  first, and the second when that one has ended.
- place: in a deadlock of InnoDB somebody waits for a row whose insert waits for a range of a
  secondary index. InnoDB has put the row in its place before that, Cheetah puts nothing before it
  may put all.
- order: several sessions go on at once, and one of them is a little earlier than the other one here
  or there. The script is played again with their statements one after the other, in every order
  (orders.py): the engines have to agree in each, and each of them has to have done here what it
  does in one of them. Whom both end in a deadlock meanwhile, in the same statement, is rolled back
  before that.
- meanwhile: at READ COMMITTED somebody has waited within a scan, and a row has come, or moved,
  before the record that was waited for. Cheetah looks again from where it was and finds it, InnoDB
  does not. The statement sent once the wait is over has to give in both what it has given here.
- victim: both end a deadlock at this step, at the cost of another transaction or statement; the
  victim of each is in the other one's cycle. Or InnoDB ends one more in a cycle in which both end
  somebody, which is enough for Cheetah. (What else happens follows from that, further deadlocks
  included.) Where both have a victim in common and one of them has another one, that one's cycle
  must have a reason of those above. Where each has one of its own, InnoDB's must have such a cycle,
  and the script with that one rolled back before the step, in which the engines have to do what
  they have done here, be alike or have a reason itself.

Who waits for somebody that waits himself, for something else on the other engine and with a reason,
waits for that reason. A read that passes locked rows waits for none: each row that it has passed on
one side only is read alone, and waited for, and has to have a reason.
"""

from engines import CHEETAH, ends, INNODB
from statements import comparable, KEYS, Statement

PRECISE_RANGES, DUPLICATE_ROW, COVERING, VICTIM = ("precise-ranges", "duplicate-row", "covering",
                                                   "victim")
UPGRADE, KEPT, DELETED, ENTRY, REINSERT, PLAN = ("upgrade", "kept", "deleted", "entry", "reinsert",
                                                 "plan")
ORDER, PLACE, MEANWHILE, GONE = "order", "place", "meanwhile", "gone"
DEADLOCK, TIMEOUT = 1213, 1205


class Look:
    """One engine at the step that differs: who waits, every state of the table so far, the plan of
    each step, the steps, and what was under way in each session."""

    def __init__(self, waits: list, states: list, plans: list, entries: list, under_way: dict):
        self.waits, self.states, self.plans, self.entries, self.under_way = (
            waits, states, plans, entries, under_way)

    def is_upgrade(self, wait) -> bool:
        """Whether the two wait for each other for the same record."""
        return any(other.waiter == wait.blocker and other.blocker == wait.waiter
                   and other.place() == wait.place() for other in self.waits)


def answers(entry) -> dict:
    """Step -> outcome, of what answered at this step."""
    done = {other.number: other for other in entry.woke}
    if not entry.waited and not entry.deferred and entry.outcome is not None:
        done[entry.number] = entry
    return done


class Difference:
    """A step that went otherwise on the two engines."""

    def __init__(self, level: str, mine, other):
        self.level, self.mine, self.other = level, answers(mine), answers(other)
        self.number, self.other_plans, self.waits_here, self.rows_there = mine.number, set(), [], ()
        # sessions that InnoDB stops and Cheetah does not
        self.blocked = self.stopped(self.other, self.mine)
        self.blocked_here = self.stopped(self.mine, self.other)   # the other way round

    def stopped(self, theirs: dict, ours: dict) -> set:
        """Sessions that wait, waited in vain, or pass more locked rows, only in `theirs`."""
        return {e.name for n, e in ours.items()
                if not vain(e) and (n not in theirs or vain(theirs[n]) or passes(theirs[n], e))}

    def is_of_locks(self) -> bool:
        """Whether a lock was waited for on one side only, and nothing that answered on both sides
        answered otherwise."""
        # their transactions have gone
        victims = self.deadlocked(self.mine) ^ self.deadlocked(self.other)
        for number in self.mine.keys() & self.other.keys():
            mine, other = self.mine[number], self.other[number]
            excused = (vain(mine) or vain(other) or passes(mine, other) or passes(other, mine)
                       or mine.name in victims)
            if mine.outcome.key() != other.outcome.key() and not excused:
                return False
        return bool(self.blocked or self.blocked_here or self.deadlock_differs())

    def deadlock_differs(self) -> bool:
        """Whether not the same sessions ended a deadlock."""
        return self.deadlocked(self.mine) != self.deadlocked(self.other)

    def has_deadlock_here(self) -> bool:
        """Whether Cheetah ended a deadlock that was none in InnoDB."""
        return bool(self.deadlocked(self.mine) - self.deadlocked(self.other))

    def victims_here(self) -> list:
        """What Cheetah ended in a deadlock."""
        return [e for e in self.mine.values() if e.outcome.error == DEADLOCK]

    def victims_of_one(self) -> list:
        """What was ended in a deadlock on one of the engines."""
        mine, other = ({n: e for n, e in side.items() if e.outcome.error == DEADLOCK}
                       for side in (self.mine, self.other))
        return [*mine.values(), *other.values()] if not mine or not other else []

    def victims_differ(self) -> bool:
        """Whether both engines end a deadlock, and not in the same way."""
        mine, other = ({n for n, e in side.items() if e.outcome.error == DEADLOCK}
                       for side in (self.mine, self.other))
        return bool(mine and other and mine != other)

    def explain(self, theirs: Look, ours: Look, before=None) -> str:
        """The reason, or nothing. `before` looks at an engine one step earlier."""
        mine, other = self.deadlocked(self.mine), self.deadlocked(self.other)
        if self.victims_differ():
            cycles = [{wait.waiter for wait in cycle(look.waits)} for look in (theirs, ours)]
            if (mine - other or mine) & cycles[0] and (other - mine or other) & cycles[1]:
                return VICTIM
            if mine < other and all({wait.waiter for wait in cycle(theirs.waits, {victim})} & mine
                                    for victim in other - mine):
                # both have ended somebody in these cycles; that would have been enough
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
            found.append(self.reason_of_no_cycle(before(CHEETAH), theirs, self.judge_ours,
                                                 other - mine)
                         if before and self.number else "")
        if mine > other:
            found.append(self.reason_of_cycle(ours, theirs, self.judge_ours, mine - other))
            found.append(self.reason_of_no_cycle(before(INNODB), ours, self.judge_theirs,
                                                 mine - other)
                         if before and self.number else "")
        return next((reason for reason in found if reason), "")

    def has_come_meanwhile(self, entries: list) -> bool:
        """Whether each statement that has given something else here has waited while another
        session may have put a row where it looks."""
        unlike = [n for n in self.mine.keys() & self.other.keys()
                  if self.mine[n].outcome.key() != self.other[n].outcome.key()]
        return (self.level == "READ COMMITTED" and bool(unlike)
                and all(self.meets(Statement(entries[n].text), entries[n + 1:self.number + 1],
                                   entries[n].name)
                        for n in unlike))

    @staticmethod
    def meets(asking: Statement, entries: list, name: str) -> bool:
        """Whether one of these statements, of others than `name`, may put a row where it looks."""
        others = [Statement(entry.text) for step in entries for entry in (step, *step.woke)
                  if entry.name != name]
        return any((other.row and asking.finds(other.row))
                   or (other.sets and other.changes(asking.index))
                   for other in others if asking.index)

    def compare(self, theirs: Look, ours: Look) -> None:
        """Keep what looks at both engines tell of each other."""
        self.other_plans = {at for at, plans in enumerate(zip(theirs.plans, ours.plans))
                            if all(plans) and plans[0] != plans[1]}
        self.waits_here, self.rows_there = ours.waits, theirs.states[-1] if theirs.states else ()

    def judge_behind(self, wait, look: Look, there: Look, judge_there) -> str:
        """Whether the one who is waited for has come further with the statement that he waits in
        himself than on the other engine, which has him wait for something else with a reason. He
        must have the record by that statement only."""
        here, elsewhere = look.under_way.get(wait.blocker), there.under_way.get(wait.blocker)
        versions = self.versions(wait, look.states)
        holding = [s for s in self.statements_of(wait.blocker, look) if self.touches([s], versions)]
        if (here is None or elsewhere is None or not holding
                or any(s.number != here.number or s.number != elsewhere.number for s in holding)):
            return ""
        waits = [other for other in there.waits
                 if other.waiter == wait.blocker
                 and not any(other.is_as(own) for own in look.waits)]
        reasons = [judge_there(other, there) for other in waits]
        return reasons[0] if reasons and all(reasons) else ""

    def victims_of_theirs_only(self) -> list:
        """What InnoDB ended in a deadlock of transactions that Cheetah has not ended in one."""
        return [e for e in self.other.values()
                if e.outcome.error == DEADLOCK and e.name not in self.deadlocked(self.mine)]

    def explain_victim(self, victim, theirs: Look, ours: Look) -> str:
        """Why InnoDB ended a transaction in a deadlock that is none in Cheetah."""
        self.compare(theirs, ours)
        return self.reason_of_cycle(theirs, ours, self.judge_cycle, {victim.name})

    def judge_cycle(self, wait, look: Look) -> str:
        """Why there is a wait in a deadlock of InnoDB that is none in Cheetah."""
        return (self.judge_theirs(wait, look) or self.judge_entry(wait, look)
                or self.judge_place(wait, look))

    def judge_place(self, wait, look: Look) -> str:
        """Whether the row of an insert is waited for that itself waits for a range, here too:
        InnoDB has put it in its place before."""
        under_way = look.under_way.get(wait.blocker)
        row = Statement(under_way.text).row if under_way else None
        waits_for_range = any(own.waiter == wait.blocker and own.inserts for own in self.waits_here)
        return (PLACE
                if row and waits_for_range and wait.index == "PRIMARY" and not wait.inserts
                and row[0] == wait.value
                else "")

    def judge_plans(self, wait, look: Look) -> str:
        """Whether one of the statements that meet is executed otherwise."""
        held = self.statements_of(wait.blocker, look) + self.statements_of(wait.waiter, look)
        return PLAN if any(s.number in self.other_plans for s in held) else ""

    def reason_of_cycle(self, look: Look, other: Look, judge, victims: set) -> str:
        """Why there is a wait in the deadlocks of these victims on one engine that the other one
        does not have."""
        reasons = [judge(wait, look) or self.judge_plans(wait, look)
                   for wait in cycle(look.waits, victims)
                   if not any(wait.is_as(there) for there in other.waits)]
        return next((reason for reason in reasons if reason), "")

    @staticmethod
    def reason_of_no_cycle(look: Look, other: Look, judge, victims: set) -> str:
        """Why somebody who is in a deadlock of these victims on the other engine has waited for
        something else here."""
        members = {wait.waiter for wait in cycle(other.waits, victims)}
        elsewhere = [wait for wait in look.waits
                     if wait.waiter in members
                     and not any(wait.is_as(there) for there in other.waits)]
        return next((reason for reason in (judge(wait, look) for wait in elsewhere) if reason), "")

    @staticmethod
    def deadlocked(done: dict) -> set:
        """Sessions that were the victim of a deadlock."""
        return {e.name for e in done.values() if e.outcome.error == DEADLOCK}

    def statements_of(self, name: str, look: Look) -> list:
        """What a session has locked with in its transaction, up to what is under way."""
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
        """The statement of an entry, if it locks."""
        statement = Statement(entry.text, entry.number)
        statement.is_vain = entry.outcome is None or entry.outcome.error == TIMEOUT
        return [statement] if statement.locks(self.level, inside) else []

    def judge_theirs(self, wait, look: Look) -> str:
        """Why InnoDB waits and Cheetah does not."""
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
        if self.touches(held, versions) and (self.removed_by_others(wait, look)
                                             or not self.touches_late(wait, held, look)):
            return DELETED
        # those that keep it waiting, if they lock the row
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
        """Whether a statement has to do with a record. One in the index of its search it meets
        there by its value, whatever values the row has had."""
        if asking.index == wait.index and not asking.changes(wait.index):
            return (asking.reads(wait.index, wait.value)
                    or any(asking.checks(row) for row in versions))
        return Difference.touches([asking], versions)

    @staticmethod
    def is_next(statement: Statement, wait, look: Look) -> bool:
        """Whether the record is the first one behind a range that the statement has read by the
        same index."""
        if statement.is_vain or statement.index != wait.index:
            return False
        values = [comparable(row[KEYS[wait.index]]) for row in look.states[statement.number]]
        return any((high < wait.value or (high == wait.value and not with_high))
                   and not any(high < value < wait.value for value in values)
                   for _, _, high, with_high in statement.ranges)

    @staticmethod
    def is_behind_one_that_went(wait, asking: Statement, look: Look) -> bool:
        """Whether a unique value that is to come has been there and has gone, and the entry behind
        it is waited for."""
        if wait.index != "u" or asking.index == "u":
            return False
        values = asking.puts("u", look.states)
        there = [{comparable(row[KEYS["u"]]) for row in state}
                 for state in look.states[:asking.number + 1]]
        gone = set().union(*there) - there[-1]
        return (wait.value not in values
                and any(value in gone and value < wait.value for value in values))

    def has_passed(self, statement: Statement, wait, look: Look) -> bool:
        """Whether a read has passed locked rows, and this one may be among them."""
        if not statement.text.endswith(" SKIP LOCKED"):
            return False
        matching = [row for row in look.states[statement.number] if statement.matches(row)]
        return len(look.entries[statement.number].outcome.rows or ()) < len(matching)

    def judge_entry(self, wait, look: Look) -> str:
        """Why somebody who has a row waits for one of its entries in InnoDB: who has that has not
        had the row. In Cheetah he has it."""
        versions = self.versions(wait, look.states)
        holding = [s for s in self.statements_of(wait.blocker, look)
                   if self.touches([s], versions) and not s.is_vain]
        if (wait.index == "PRIMARY" or not holding
                or not all(s.is_covered() or self.only_checks([s], versions) for s in holding)):
            return ""
        return COVERING if any(s.is_covered() for s in holding) else DUPLICATE_ROW

    def removed_by_others(self, wait, look: Look) -> bool:
        """Whether the record has gone, and not by the transaction that has it locked."""
        seen = [at for at, state in enumerate(look.states) if any(wait.is_on(row) for row in state)]
        if not seen or seen[-1] >= self.number:
            return False
        step = look.entries[seen[-1]]
        return not any(e.name == wait.blocker and Statement(e.text).may_remove(wait.index)
                       for e in (step, *step.woke))

    def touches_late(self, wait, held: list, look: Look) -> bool:
        """Whether one of the statements has to do with a row as it was when that came, or later."""
        return any(self.touches([s], self.versions(wait, look.states[s.number:])) for s in held)

    @staticmethod
    def versions(wait, states: list) -> list:
        """All versions of the row, or rows, that have had the record which is waited for."""
        rows = ({row[0] for state in states for row in state if wait.is_on(row)}
                if wait.row is None else {wait.row})
        return [row for state in states for row in state if row[0] in rows]

    def judge_ours(self, wait, look: Look) -> str:
        """Why Cheetah waits and InnoDB does not."""
        asking = Statement(look.under_way[wait.waiter].text)
        held = self.statements_of(wait.blocker, look)
        if wait.inserts:
            was_there = any(wait.is_on(row) for state in look.states for row in state)
            is_read = any(s.reads(wait.index, wait.value) for s in held)
            return (REINSERT
                    if was_there and is_read and not any(wait.is_on(row) for row in look.states[-1])
                    else "")
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
        # Writers share a lock only of a row that has their unique key.
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
        """Whether both have waited for a record that this step has taken away, and the first of
        them has gone on."""
        is_there = any(wait.is_on(row) for row in (*look.states[-1], *self.rows_there))
        went_on = any(entry.name == wait.blocker and n != self.number
                      for n, entry in self.mine.items())
        return (went_on and not is_there and not wait.inserts
                and look.under_way[wait.waiter].number < self.number)

    def was_passed(self, statement: Statement, wait, look: Look) -> bool:
        """Whether InnoDB has passed the record as locked, and Cheetah has not: it lay behind a
        range of another open transaction."""
        others = {entry.name for entry in look.entries} - {wait.blocker}
        earlier = [s for name in others for s in self.statements_of(name, look)
                   if s.number < statement.number]
        return (" SKIP LOCKED" in statement.text
                and any(self.is_next(s, wait, look) for s in earlier))

    def has_missed(self, statement: Statement, wait, look: Look) -> bool:
        """Whether ON DUPLICATE KEY UPDATE has not found this primary key, and the row by its other
        unique key; Cheetah locks what it has not found."""
        if (self.level == "READ COMMITTED" or " ON DUPLICATE" not in statement.text
                or wait.index != "PRIMARY" or statement.row[0] != wait.value):
            return False
        there = look.states[statement.number]
        return (any(row[2] == statement.row[2] for row in there)
                and not any(row[0] == wait.value for row in (*there, *look.states[-1])))

    @staticmethod
    def is_to_come(statement: Statement, wait, look: Look) -> bool:
        """Whether the one who is waited for is on his way to the record with this statement, and
        waits at an earlier one of the index himself."""
        under_way = look.under_way.get(wait.blocker)
        if (under_way is None or under_way.number != statement.number
                or " DESC" in statement.text or "MAX(" in statement.text):
            return False
        return any(own.waiter == wait.blocker and not own.inserts
                   and own.index == wait.index == statement.index and own.value < wait.value
                   for own in look.waits)

    @staticmethod
    def touches(statements: list, versions: list) -> bool:
        """Whether one of the statements has to do with a row of these versions."""
        return any(s.finds(row) or s.checks(row) or (s.row and s.row[0] == row[0])
                   for s in statements for row in versions)

    @staticmethod
    def only_checks(statements: list, versions: list) -> bool:
        """Whether those that have to do with the row only have a unique key in common with it."""
        found = [s for s in statements
                 if Difference.touches([s], versions) and not (s.is_vain and len(statements) > 1)]
        return bool(found) and not any(s.finds(row) for s in found for row in versions)


def cycle(waits: list, members=()) -> list:
    """Those waits of which others come back; with `members`, only where one of them waits in the
    same cycle."""
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
    """Whether a read that passes locked rows has passed some that the other one has not."""
    if " SKIP LOCKED" not in entry.text or entry.outcome.rows is None:
        return False
    return other.outcome.rows is not None and set(entry.outcome.rows) < set(other.outcome.rows)


def vain(entry) -> bool:
    """Whether a statement has ended without the lock that it wanted."""
    return entry.outcome.error in (DEADLOCK, TIMEOUT)
