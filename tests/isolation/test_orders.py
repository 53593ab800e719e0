"""Tests whether sessions' order or the choice of deadlock victims explains a difference."""

from orders import done_in_an_order, ordered
from reasons import Difference, Look, VICTIM
from sessions import Entry, Outcome
from waits import Wait

STEPS = [("a", "BEGIN"), ("b", "BEGIN"), ("c", "LOCK"), ("a", "WAIT"), ("b", "WAIT"),
         ("a", "THEN"), ("c", "COMMIT")]


def entry(number: int, affected: int = 0, waited: bool = False, error: int = 0) -> Entry:
    made = Entry(number, *STEPS[number])
    made.outcome, made.waited = Outcome(error, affected=affected), waited
    return made


class Side:
    def __init__(self, texts: list, affected):
        """The statements and their outcomes; `affected(at)` gives the number of changed rows."""
        self.entries = [Entry(at, *text) for at, text in enumerate(texts)]
        for at, made in enumerate(self.entries):
            made.outcome = Outcome(affected=int(affected(at)))


class Comparison:
    """Two identical engines: only the first of the two waiting statements changes a row."""

    def __init__(self, texts: list, fails: bool):
        first = min(texts.index(("a", "WAIT")), texts.index(("b", "WAIT")))
        self.theirs = self.ours = Side(texts, lambda at: at == first)
        self._fails = fails

    def fails(self) -> bool:
        return self._fails


class TestOrders:
    def judge(self, theirs: tuple, ours: tuple, fails: bool = False) -> bool:
        """Returns whether the order explains these numbers of rows changed by `a` and `b`."""
        entries = [entry(number, waited=number in (3, 4)) for number in range(len(STEPS))]
        entries[5].deferred = True
        played = [(entries, {3: entry(3, a, True), 4: entry(4, b, True), 5: entry(5), 6: entry(6)})
                  for a, b in (theirs, ours)]
        return done_in_an_order(6, played, lambda texts: Comparison(texts, fails)) == [True, True]

    def test_those_who_waited_are_sent_behind_the_step_that_let_them_go_on(self):
        assert ordered(STEPS, 6, (4, 3)) == [0, 1, 2, 6, 4, 3, 5]

    def test_what_each_engine_does_in_one_of_the_orders_is_a_matter_of_order(self):
        assert self.judge((1, 0), (0, 1))

    def test_what_happens_in_no_order_is_a_difference(self):
        assert not self.judge((1, 0), (1, 1)) and not self.judge((0, 0), (0, 1))

    def test_engines_that_differ_in_an_order_differ(self):
        assert not self.judge((1, 0), (0, 1), fails=True)

    def test_whom_both_end_in_a_deadlock_is_rolled_back_before(self):
        entries = [entry(number, waited=number in (3, 4)) for number in range(len(STEPS))]
        played = [(entries, {3: entry(3, 0, True, error), 4: entry(4, 1, True), 6: entry(6)})
                  for error in (1213, 1213)]
        asked = []

        class Alike:
            def __init__(self, texts):
                asked.append(texts)
                self.theirs = self.ours = Side(texts, lambda at: texts[at] == ("b", "WAIT"))

            def fails(self):
                return False
        assert done_in_an_order(6, played, Alike) == [True, True]
        assert asked == [[("a", "BEGIN"), ("b", "BEGIN"), ("c", "LOCK"), ("a", "THEN"),
                          ("a", "ROLLBACK"), ("c", "COMMIT"), ("b", "WAIT")]]
        for error in (0, 1205):
            other = (entries, {**played[1][1], 3: entry(3, 0, True, error)})
            # Only one engine reported a deadlock for the statement.
            assert done_in_an_order(6, [played[0], other], Alike) != [True, True]


class TestVictims:
    def test_a_victim_must_be_in_the_cycle_of_the_other_engine(self):
        for waits, expected in (([("a", "b"), ("b", "a")], VICTIM), ([("a", "c"), ("c", "a")], "")):
            step, sides = entry(6), []
            for victim in (3, 4):
                side = entry(6)
                side.woke = [entry(victim, waited=True, error=1213)]
                sides.append(side)
            look = Look([Wait(*pair, "k", "X", False, 4, 20) for pair in waits], [], [], [step], {})
            assert Difference("SERIALIZABLE", *sides).explain(look, look) == expected
