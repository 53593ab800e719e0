"""Tests which commit orders explain a run."""

from commits import unexplained
from sessions import Entry, Outcome

SERIALIZABLE, REPEATABLE_READ = "SERIALIZABLE", "REPEATABLE READ"


def execute(texts: list) -> tuple:
    """Runs statements on a single number, initially 0: `SELECT ..` reads it, `UPDATE +n` adds n."""
    number, outcomes = 0, []
    for text in texts:
        number += int(text.split("+")[1]) if "+" in text else 0
        outcomes.append(Outcome(affected=1) if "+" in text else Outcome(rows=((number,),)))
    return outcomes, ((number,),)


def run(*lines: tuple) -> list:
    """Returns a run's entries of (session, text, result) or (.., step that unblocked it)."""
    entries = []
    for number, (name, text, given, *cause) in enumerate(lines):
        made = Entry(number, name, text)
        made.outcome = (given if isinstance(given, Outcome)
                        else Outcome(rows=((given,),)) if text.startswith("SELECT")
                        else Outcome(affected=given))
        made.waited = bool(cause)
        entries.append(made)
    for entry, line in zip(entries, lines):
        if len(line) > 3:
            entries[line[3]].woke.append(entry)
    return entries


class TestCommits:
    def explained(self, entries: list, final: int, level: str = SERIALIZABLE) -> bool:
        """Returns whether some commit order explains this run."""
        return not unexplained(entries, ((final,),), level, execute)

    def test_transactions_that_follow_each_other_are_explained(self):
        entries = run(("a", "BEGIN", 0), ("a", "UPDATE +1", 1), ("b", "BEGIN", 0),
                      ("b", "SELECT .. FOR UPDATE", 1, 4), ("a", "COMMIT", 0),
                      ("b", "UPDATE +2", 1), ("b", "COMMIT", 0))
        assert self.explained(entries, 3)
        assert not self.explained(entries, 2), "the table at the end counts"

    def test_a_read_of_what_has_changed_before_the_commit_is_not(self):
        entries = run(("a", "BEGIN", 0), ("a", "SELECT .. FOR UPDATE", 0), ("b", "UPDATE +1", 1),
                      ("a", "COMMIT", 0))
        for level in (SERIALIZABLE, REPEATABLE_READ):
            assert not self.explained(entries, 1, level)
        assert self.explained(entries, 1, "READ COMMITTED"), "nothing is said of that level"

    def test_a_read_of_what_is_rolled_back_is_not(self):
        entries = run(("a", "BEGIN", 0), ("a", "UPDATE +1", 1), ("b", "SELECT ..", 1),
                      ("a", "ROLLBACK", 0))
        assert not self.explained(entries, 0)

    def test_what_is_rolled_back_does_not_count(self):
        lines = [("a", "BEGIN", 0), ("a", "SAVEPOINT s", 0), ("a", "UPDATE +5", 1),
                 ("a", "ROLLBACK TO SAVEPOINT s", 0), ("a", "UPDATE +1", 1), ("a", "COMMIT", 0),
                 ("b", "BEGIN", 0), ("b", "UPDATE +7", Outcome(1213)), ("b", "UPDATE +2", 1),
                 ("b", "ROLLBACK", 0), ("c", "UPDATE +9", Outcome(1205))]
        # A deadlock ends the session's transaction.
        assert self.explained(run(*lines), 3)
        assert not self.explained(run(*lines), 1)

    def test_a_consistent_read_is_as_old_as_its_snapshot(self):
        for first in (("a", "SELECT ..", 0), ("a", "SAVEPOINT s", 0)):
            for later, expected in ((0, first[1] != "SAVEPOINT s"), (1, first[1] == "SAVEPOINT s")):
                entries = run(("a", "BEGIN", 0), first, ("b", "UPDATE +1", 1),
                              ("a", "SELECT ..", later), ("a", "COMMIT", 0))
                assert self.explained(entries, 1, REPEATABLE_READ) == expected
        begun = [("a", "START TRANSACTION WITH CONSISTENT SNAPSHOT", 0), ("b", "UPDATE +1", 1)]
        assert self.explained(run(*begun, ("a", "SELECT ..", 0)), 1, REPEATABLE_READ)
        assert not self.explained(run(*begun, ("a", "SELECT ..", 1)), 1, REPEATABLE_READ)
        own = run(*begun, ("a", "UPDATE +3", 1), ("a", "SELECT ..", 3), ("a", "COMMIT", 0))
        assert self.explained(own, 4, REPEATABLE_READ)

    def test_those_that_go_on_at_one_step_come_in_any_order(self):
        # After the commit, the read comes before or after the update.
        for read, expected in ((0, False), (1, True), (2, False), (3, True)):
            lines = [("a", "BEGIN", 0), ("a", "UPDATE +1", 1),
                     ("b", "SELECT .. FOR UPDATE", read, 4), ("c", "UPDATE +2", 1, 4),
                     ("a", "COMMIT", 0)]
            assert self.explained(run(*lines), 3) == expected

    def test_what_skip_locked_passes_may_be_missing(self):
        text = "SELECT .. FOR UPDATE SKIP LOCKED"
        assert self.explained(run(("a", text, Outcome(rows=()))), 0)
        assert not self.explained(run(("a", text, 5)), 0)
