"""The checker names hand-made anomalies and detects changes to a good history."""

import pytest
from checker import check
from history import ABORTED, COMMITTED, History, LOCKING, Op, READ, Txn, WRITE
from test_planted import Played

SEEDS = range(3)


def txn(number: int, level: str, ops: list, end: int, status=COMMITTED) -> Txn:
    return Txn(number, number, level, ops, status, (end * 10, end * 10 + 5))


def append(at: int, key, value) -> Op:
    return Op(WRITE, at * 10, at * 10 + 5, key=key, value=value)


def read(at: int, **seen) -> Op:
    return Op(READ, at * 10, at * 10 + 5, seen=seen)


def search(at: int, words: list, **seen) -> Op:
    return Op(READ, at * 10, at * 10 + 5, seen=seen, words=words)


def locking(at: int, **seen) -> Op:
    return Op(LOCKING, at * 10, at * 10 + 5, seen=seen)


def rc(number: int, *ops: Op, end: int, status=COMMITTED) -> Txn:
    return txn(number, "READ COMMITTED", list(ops), end, status)


class TestByHand:
    """Small histories whose anomaly must get its name."""

    def check(self, name: str, txns: list, final: dict, model="list", snapshot_isolation=False):
        found = [problem.name for problem in check(History(model, txns, final, snapshot_isolation))]
        assert found[:1] == ([name] if name else []), found

    @pytest.mark.parametrize("name, txns, final", [pytest.param(*case, id=id) for id, *case in (
        ("write_cycle", "G0", [rc(1, append(1, "x", 1), append(3, "y", 1), end=5),
                               rc(2, append(2, "x", 2), append(4, "y", 2), end=6)],
         {"x": [1, 2], "y": [2, 1]}),
        ("aborted_read", "G1a", [rc(1, append(1, "x", 1), end=3, status=ABORTED),
                                 rc(2, read(2, x=[1]), end=4)], {"x": []}),
        ("intermediate_read", "G1b", [rc(1, append(1, "x", 1), append(3, "x", 2), end=4),
                                      rc(2, read(2, x=[1]), end=5)], {"x": [1, 2]}),
        ("circular_information_flow", "G1c", [rc(1, append(1, "x", 1), read(3, y=[2]), end=5),
                                              rc(2, append(2, "y", 2), read(4, x=[1]), end=6)],
         {"x": [1], "y": [2]}),
        ("a_statement_of_read_committed_has_one_snapshot", "G-single",
         [rc(1, Op(READ, 1, 50, seen={"x": [], "y": [2]}), end=60),
          rc(2, append(2, "x", 1), append(3, "y", 2), end=4)], {"x": [1], "y": [2]}),
        ("stale_read_is_seen_by_the_clock_alone", "G-single-realtime",
         [rc(1, append(1, "x", 1), end=2), rc(2, read(3, x=[]), end=4)], {"x": [1]}),
        ("locked_rows_do_not_change", "G-single-realtime",
         [rc(0, append(0, "x", 9), end=1), rc(1, locking(2, x=[9]), append(5, "y", 1), end=6),
          rc(2, append(3, "x", 2), end=4)], {"x": [9, 2], "y": [1]}),
        ("dirty_write_of_registers", "G0", [rc(1, append(1, "x", 1), end=4),
                                            rc(2, append(2, "x", 2), end=6)], {"x": 2}),
        ("a_register_that_was_replaced_before_its_writers_end", "G1b",
         [rc(1, append(1, "x", 1), append(3, "x", 2), end=4), rc(2, read(2, x=1), end=5)],
         {"x": 2}),
        ("a_register_that_has_another_value_at_the_end", "lost write",
         [rc(1, append(1, "x", 1), end=2)], {"x": None}),
        ("appends_that_are_mixed_with_others", "G0",
         [rc(1, append(1, "x", 1), append(3, "x", 3), end=4), rc(2, append(2, "x", 2), end=5)],
         {"x": [1, 2, 3]}))])
    def test_read_committed(self, name, txns, final):
        self.check(name, txns, final, "list" if isinstance(final["x"], list) else "register")

    def test_read_skew_is_forbidden_to_snapshots_only(self):
        for level, name in (("READ COMMITTED", ""), ("REPEATABLE READ", "G-single")):
            one = txn(1, level, [read(1, x=[]), read(5, y=[2])], end=6)
            two = txn(2, level, [append(2, "x", 1), append(3, "y", 2)], end=4)
            self.check(name, [one, two], {"x": [1], "y": [2]})

    def test_write_skew_is_forbidden_when_serializable(self):
        for level, name in (("REPEATABLE READ", ""), ("SERIALIZABLE", "G2-item")):
            one = txn(1, level, [read(1, x=[], y=[]), append(3, "x", 1)], end=5)
            two = txn(2, level, [read(2, x=[], y=[]), append(4, "y", 2)], end=6)
            self.check(name, [one, two], {"x": [1], "y": [2]})

    def test_lost_update_is_forbidden_with_snapshot_isolation(self):
        for snapshot_isolation, name in ((False, ""), (True, "lost update")):
            one = txn(1, "REPEATABLE READ", [read(1, x=[]), append(3, "x", 1)], end=4)
            two = txn(2, "REPEATABLE READ", [read(2, x=[]), append(5, "x", 2)], end=6)
            self.check(name, [one, two], {"x": [1, 2]}, snapshot_isolation=snapshot_isolation)

    def test_a_search_finds_what_its_snapshot_has(self):
        start = rc(0, append(0, "x", 9), end=1)
        writer = rc(2, append(3, "x", 2), append(4, "y", 1), end=5)
        for level, name in (("READ COMMITTED", ""), ("REPEATABLE READ", "G-single")):
            for later in (search(8, [("x", 2)], x=[9, 2]), read(8, x=[9, 2])):
                early = txn(1, level, [search(2, [("x", 2)]), later], end=9)
                self.check(name, [start, writer, early], {"x": [9, 2], "y": [1]})
        late = rc(1, search(7, [("x", 2)]), end=9)
        self.check("G-single-realtime", [start, writer, late], {"x": [9, 2], "y": [1]})
        wrong = txn(1, "REPEATABLE READ", [search(2, [("x", 2)], x=[9])], end=9)
        self.check("words", [start, writer, wrong], {"x": [9, 2], "y": [1]})

    def test_a_search_finds_registers_that_stay(self):
        start, writer = rc(0, append(0, "x", 9), end=1), rc(2, append(4, "x", 2), end=6)
        for at, name in ((2, "impossible read"), (6, ""), (7, "")):
            reader = rc(1, search(at, [("x", 9)]), end=9)
            self.check(name, [start, writer, reader], {"x": 2}, model="register")
        own = rc(1, append(7, "x", 3), search(8, [("x", 3)]), end=9)
        self.check("internal", [start, writer, own], {"x": 3}, model="register")

    def test_words_are_locked_when_serializable(self):
        writer = rc(2, append(3, "x", 2), end=4)
        for level, name in (("REPEATABLE READ", ""), ("SERIALIZABLE", "G-single-realtime")):
            asking = search(2, [("x", 2)])
            asking.kind = LOCKING
            self.check(name, [txn(1, level, [asking, append(6, "y", 1)], end=7), writer],
                       {"x": [2], "y": [1]})

    def test_own_writes_after_a_savepoint(self):
        back = append(1, "x", 1)
        back.undone = 1
        good = rc(1, back, read(2, x=[]), append(3, "x", 2), read(4, x=[2]), end=5)
        self.check("", [good], {"x": [2]})
        self.check("internal", [rc(1, back, read(2, x=[1]), end=5)], {"x": []})


class TestMutated:
    """Histories played by the engine without a planted bug, each with one change."""

    def mutate(self, model: str, level: str, change) -> None:
        """`change(history)` returns whether it could. The checker must then find a problem."""
        changed = 0
        for seed in SEEDS:
            history = Played(model, level, False, seed).history
            if change(history):
                changed += 1
                assert check(history), f"seed {seed}"
        assert changed

    @pytest.mark.parametrize("how", [
        lambda list_, middle: list_[:-1],   # the last append dropped
        lambda list_, middle: [*list_[:middle], list_[middle + 1], list_[middle],
                               *list_[middle + 2:]],   # two appends swapped
        lambda list_, middle: [*list_, list_[0]]])   # the first append duplicated
    def test_the_longest_list_has_other_appends(self, how):
        def change(history):
            key = max(history.final, key=lambda key: len(history.final[key] or ()))
            elements = list(history.final[key])
            history.final[key] = how(elements, len(elements) // 2)
            return True
        self.mutate("list", "READ COMMITTED", change)

    @pytest.mark.parametrize("how", [lambda seen: [],               # emptied
                                     lambda seen: seen[:1] + seen[2:]])   # second element removed
    def test_a_read_has_seen_less(self, how):
        self.mutate("list", "READ COMMITTED", lambda history: self.change_read(history, how))

    def test_a_commit_becomes_a_rollback(self):
        def change(history):
            txn = next(t for t in history.txns for op in t.ops
                       if t.status == COMMITTED and op.kind == WRITE and op.value is not None
                       and not op.undone and op.value in values_of(history.final[op.key]))
            txn.status = ABORTED
            return True
        self.mutate("list", "READ COMMITTED", change)
        self.mutate("register", "READ COMMITTED", change)

    def test_a_rollback_becomes_a_commit(self):
        def change(history):
            txn = [t for t in history.txns
                   if t.status == ABORTED
                   and any(op.kind == WRITE and not op.undone for op in t.ops)][3]
            txn.status = COMMITTED
            return True
        self.mutate("list", "READ COMMITTED", change)

    def test_a_value_that_nobody_wrote(self):
        def change(history):
            ops = [op for t in history.txns for op in t.ops if op.kind == READ]
            ops[30].seen[next(iter(ops[30].seen))] = 10**9
            return True
        self.mutate("register", "READ COMMITTED", change)

    def change_read(self, history, how) -> bool:
        ops = [op for t in history.txns for op in t.ops if op.kind == READ and not op.lengths]
        for op in ops[len(ops) // 2:]:
            for key, seen in op.seen.items():
                if len(seen) > 4:
                    op.seen[key] = how(seen)
                    return True
        return False


def values_of(value) -> list:
    return value if isinstance(value, list) else [value]
