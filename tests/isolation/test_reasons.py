"""Tests which lock differences have a reason and which have none."""

from reasons import Difference, DUPLICATE_ROW, Look, PRECISE_RANGES, UPGRADE, VICTIM
from sessions import Entry, Outcome
from waits import Wait

LEVEL = "REPEATABLE READ"


def entry(number: int, name: str, text: str, waits: bool = False, error: int = 0) -> Entry:
    made = Entry(number, name, text)
    made.outcome, made.waited = None if waits else Outcome(error), waits
    return made


def look(waits: list, states: list, entries: list, *under_way: Entry) -> Look:
    return Look(waits, states, [()] * len(entries), entries,
                {under.name: under for under in under_way})


class TestOneWaits:
    """`c` changes k of row 40, initially 8, to 12; `b` reads k from 5 to 9."""

    def reason(self, value: int) -> str:
        """Returns why `b` waits in InnoDB, and not in Cheetah, for the record of row 40 with this
        value of k, which the row had when `c` changed it."""
        text = "UPDATE t FORCE INDEX (k) SET v = v + 10 WHERE k BETWEEN 5 AND 9"
        before = [entry(0, "c", "BEGIN"),
                  entry(1, "c", "UPDATE t FORCE INDEX (u) SET k = 12 WHERE u IS NULL")]
        theirs, ours = entry(2, "b", text, waits=True), entry(2, "b", text)
        states = [((40, k, None, 2, "G0"),) for k in (8, value, 12, 12)]
        return Difference(LEVEL, ours, theirs).explain(
            look([Wait("b", "c", "k", "X", False, value, 40)], states, [*before, theirs], theirs),
            look([], states, [*before, ours]))

    def test_a_record_behind_the_range_has_not_been_asked_for_whatever_its_row_was(self):
        assert self.reason(10) == PRECISE_RANGES

    def test_a_record_within_the_range_has(self):
        assert self.reason(8) == ""


class TestKeysThatWereMissed:
    def reason(self, level: str, u: int) -> str:
        """Returns why `b` waits in Cheetah for 28, which `a` missed; row 10 has u = 10."""
        upsert, text = (f"INSERT INTO t VALUES (28, 0, {u}, 0, 'g0') "
                        "ON DUPLICATE KEY UPDATE v = v + 10",
                        "SELECT * FROM t FORCE INDEX (PRIMARY) WHERE id = 28 FOR UPDATE")
        before = [entry(0, "a", "BEGIN"), entry(1, "a", upsert)]
        theirs, ours = entry(2, "b", text), entry(2, "b", text, waits=True)
        states = [((10, 0, 10, 1, "G0"),)] * 4
        return Difference(level, ours, theirs).explain(
            look([], states, [*before, theirs]),
            look([Wait("b", "a", "PRIMARY", "X", False, 28, 28)], states, [*before, ours], ours))

    def test_a_key_is_locked_that_was_looked_for_before_the_one_that_was_found(self):
        assert self.reason(LEVEL, 10) == DUPLICATE_ROW

    def test_there_is_none_when_nothing_was_found_or_where_no_ranges_are_locked(self):
        assert self.reason(LEVEL, 11) == ""
        assert self.reason("READ COMMITTED", 10) == ""


class TestSomebodyHasComeFurther:
    def reason(self, held: str) -> str:
        """Returns why `b`, which locked row 30 with `held`, waits in Cheetah for row 40 of `a`.
        There `a` waits for row 50; in InnoDB `a` waits for row 40, just after the range of `b`."""
        waiting = entry(2, "a", "SELECT * FROM t FORCE INDEX (PRIMARY) WHERE id >= 40 FOR UPDATE",
                        waits=True)
        before = [entry(0, "b", "BEGIN"), entry(1, "b", held), waiting]
        text = "SELECT * FROM t FORCE INDEX (PRIMARY) WHERE id = 40 FOR UPDATE"
        theirs, ours = entry(3, "b", text), entry(3, "b", text, waits=True)
        states = [tuple((n, 4, n, 0, "g0") for n in (30, 40, 50))] * 5
        there = look([Wait("a", "b", "PRIMARY", "X", False, 40, 40)], states, [*before, theirs],
                     waiting)
        here = look([Wait("a", "b", "PRIMARY", "X", False, 50, 50),
                     Wait("b", "a", "PRIMARY", "X", False, 40, 40)], states, [*before, ours],
                    waiting, ours)
        return Difference(LEVEL, ours, theirs).explain(there, here)

    def test_who_waits_behind_him_waits_for_the_same_reason(self):
        assert (self.reason("SELECT * FROM t FORCE INDEX (PRIMARY) WHERE id < 40 FOR UPDATE")
                == PRECISE_RANGES)

    def test_what_he_waits_for_elsewhere_must_have_one(self):
        assert self.reason("SELECT * FROM t FORCE INDEX (PRIMARY) WHERE id > 20 FOR UPDATE") == ""


class TestOneVictimMore:
    """At one step, both engines end a deadlock of `a` and `d`, InnoDB also one of `c` and `d`."""

    def reason(self, place_of_c: int, ended=("ac", "a")) -> str:
        """`d` waits for row 10, locked by `c`, which waits for row `place_of_c`, locked by `d`."""
        insert = entry(1, "c", "INSERT INTO t VALUES (10, 0, 83, 0, 'G1') "
                               "ON DUPLICATE KEY UPDATE v = v + 10", waits=True)
        before = [entry(0, "c", "BEGIN"), insert]
        sides = []
        for victims in ended:
            side = entry(3, "d", "DELETE t FROM t FORCE INDEX (PRIMARY) WHERE v = 2")
            side.woke = [entry(at, name, "UPDATE", error=1213)
                         for at, name in enumerate(victims, 1)]
            sides.append(side)
        states = [((10, 0, 10, 1, "G0"), (20, 4, 20, 2, "g0"))] * 5
        both = [Wait("a", "d", "PRIMARY", "X", False, 20, 20),
                Wait("c", "d", "PRIMARY", "X", False, place_of_c, place_of_c)]
        theirs = look([*both, Wait("d", "c", "PRIMARY", "X", False, 10, 10)], states,
                      [*before, sides[0]], insert, sides[0])
        ours = look([*both, Wait("d", "a", "PRIMARY", "X", False, 48, 48)], states,
                    [*before, sides[1]], insert, sides[1])
        return Difference(LEVEL, sides[1], sides[0]).explain(theirs, ours)

    def test_its_cycle_must_have_a_reason(self):
        assert self.reason(10) == UPGRADE

    def test_it_needs_none_when_the_common_victim_is_in_it(self):
        assert self.reason(20, ("cd", "d")) == VICTIM

    def test_it_is_not_excused_by_the_other_deadlock(self):
        assert self.reason(20) == ""


class TestRowsThatCameMeanwhile:
    def found(self, level: str, text: str) -> bool:
        """Returns whether `a` may have found another row after its wait, because of `c`."""
        steps = [entry(0, "a", "DELETE t FROM t FORCE INDEX (PRIMARY) WHERE id < 30", waits=True),
                 entry(1, "c", text), entry(2, "c", "COMMIT")]
        sides = []
        for affected in (3, 4):
            side, woken = entry(2, "c", "COMMIT"), Entry(0, "a", steps[0].text)
            woken.outcome, side.woke = Outcome(affected=affected), [woken]
            sides.append(side)
        return Difference(level, *sides).has_come_meanwhile(steps)

    def test_only_where_somebody_has_put_a_row_there_and_ranges_are_not_locked(self):
        insert = "INSERT INTO t VALUES (16, 2, NULL, 1, 'g0')"
        assert self.found("READ COMMITTED", insert) and not self.found("REPEATABLE READ", insert)
        assert not self.found("READ COMMITTED", insert.replace("16", "36"))
        assert not self.found("READ COMMITTED", "DELETE t FROM t FORCE INDEX (k) WHERE k = 4")
