"""Determines the version that a read saw and its writers; finds anomalies that need no graph."""

from collections import defaultdict, namedtuple

from history import ABORTED, COMMITTED, LOCKING, READ, WRITE

# A register's value (None: no row) and its writer (the first version has none).
Version = namedtuple("Version", "value writer")


def own_writes_at(txn, place: int, key) -> list:
    """Returns the transaction's writes to `key` before `place`, without those rolled back."""
    return [op.value for op in txn.ops[:place]
            if op.kind == WRITE and op.key == key and op.active_at(place)]


class Versions:
    """The parts shared by both models."""

    def __init__(self, history):
        self.history, self.problems = history, []
        self.writers = {}   # (key, value) -> (transaction, operation)
        for txn in history.txns:
            for op in txn.ops:
                if op.kind == WRITE and op.value is not None:
                    self.writers[op.key, op.value] = (txn, op)

    def problem(self, name: str, text: str) -> None:
        self.problems.append((name, text))

    def check_internal(self) -> None:
        for txn in self.history.txns:
            for place, op in enumerate(txn.ops):
                for key, seen in (op.seen or {}).items() if op.kind in (READ, LOCKING) else ():
                    own = own_writes_at(txn, place, key)
                    if own and not self.agrees(txn, key, seen, own, op.lengths):
                        self.problem("internal", f"{txn.name()} ({txn.level}) wrote {own} to key "
                                                 f"{key} and then read {seen}")
                self.check_words(txn, place, op)

    def check_words(self, txn, place: int, op) -> None:
        """Checks that rows found have one of the words, and that a search finds own writes."""
        wanted = defaultdict(set)
        for key, value in op.words or ():
            wanted[key].add(value)
        for key, seen in op.seen.items() if wanted else ():
            if not wanted[key] & set(self.words_of(seen)):
                self.problem("words", f"{txn.name()} ({txn.level}) searched for "
                                      f"{sorted(wanted[key])} and found key {key} with {seen}")
        for key, values in wanted.items():
            own = own_writes_at(txn, place, key)
            if key not in op.seen and values & set(self.own_words(own)):
                self.problem("internal", f"{txn.name()} ({txn.level}) wrote {own} to key {key} "
                                         f"and did not find it by {sorted(values)}")

    def visible_wrongly(self, txn, key, value) -> bool:
        """Returns whether `txn` must never see a value, and records the reason."""
        writer, op = self.writers.get((key, value), (None, None))
        reader = f"{txn.name()} ({txn.level})" if txn else "the state at the end"
        if writer is None:
            self.problem("value from nowhere",
                         f"{reader} saw {value} in key {key}, which nobody wrote")
        elif writer is txn:
            self.problem("internal", f"{reader} saw its own {value} in key {key}, which it had "
                                     "not written yet or had rolled back")
        elif writer.status == ABORTED:
            self.problem("G1a", f"{reader} saw {value} in key {key}, which {writer.name()} wrote "
                                "and rolled back")
        elif op.undone:
            self.problem("G1a", f"{reader} saw {value} in key {key}, which {writer.name()} wrote "
                                "and rolled back to a savepoint")
        else:
            return False
        return True


class ListVersions(Versions):
    """Versions of lists: version `n` has n elements."""

    def __init__(self, history):
        super().__init__(history)
        self.final = {key: list(value or []) for key, value in history.final.items()}
        self.orders = {}
        for key, elements in self.final.items():
            self.check_final(key, elements)
            self.orders[key] = [self.writers.get((key, element), (None, None))[0]
                                for element in elements]
        self.check_appends()
        self.check_internal()

    def check_final(self, key, elements: list) -> None:
        if len(set(elements)) != len(elements):
            self.problem("duplicate", f"key {key} at the end: {elements}")
        for element in elements:
            self.visible_wrongly(None, key, element)

    def check_appends(self) -> None:
        """Checks that all committed appends exist and that a transaction's appends are adjacent."""
        places = {(key, element): place for key, elements in self.final.items()
                  for place, element in enumerate(elements)}
        for txn in self.history.txns:
            if txn.status != COMMITTED:
                continue
            mine = defaultdict(list)
            for op in txn.ops:
                if op.kind == WRITE and not op.undone:
                    mine[op.key].append(op.value)
            for key, values in mine.items():
                lost = [value for value in values if (key, value) not in places]
                if lost:
                    self.problem("lost append", f"{txn.name()} committed {lost} to key {key}; "
                                                f"the list at the end: {self.final.get(key)}")
                    continue
                found = [places[key, value] for value in values]
                if found != list(range(found[0], found[0] + len(found))):
                    self.problem("G0", f"{txn.name()}'s appends {values} to key {key} are mixed "
                                       f"with others: {self.final[key]}")

    def words_of(self, seen) -> list:
        return list(seen or ())

    def own_words(self, own: list) -> list:
        return own

    def writer_of_missing(self, _txn, key, value, _during):
        """Returns the transaction that appended the missing value; None if none committed it."""
        final = self.final.get(key, [])
        return self.orders[key][final.index(value)] if value in final else None

    def agrees(self, txn, key, seen, own: list, lengths: bool) -> bool:
        """Returns whether the list ends with the own appends after those that they followed."""
        final = self.final.get(key, [])
        if lengths:
            length = seen - len(own)
            return (length == final.index(own[0]) if txn.status == COMMITTED and own[0] in final
                    else 0 <= length <= len(final))
        seen = list(seen or [])
        return seen[-len(own):] == own and seen[:-len(own)] == final[:len(seen) - len(own)]

    def position(self, txn, op, key, _during):
        """Returns the number of elements of the version read; None if the read itself is wrong."""
        final, order, seen = self.final.get(key, []), self.orders.get(key, []), op.seen[key]
        if op.lengths:
            if seen > len(final):
                self.problem("order", f"{txn.name()} ({txn.level}) saw {seen} elements in key "
                                      f"{key}, which has {len(final)} at the end")
                return None
            length = seen
        else:
            seen = list(seen or [])
            if seen != final[:len(seen)]:
                self.explain_order(txn, key, seen, final)
                return None
            length = len(seen)
        if (0 < length < len(final) and order[length - 1] is order[length]
                and order[length] is not txn):
            self.problem("G1b", f"{txn.name()} ({txn.level}) saw key {key} with {length} "
                                "elements, in the middle of what "
                                f"{order[length].name()} appended")
            return None
        return length

    def explain_order(self, txn, key, seen: list, final: list) -> None:
        """Reports a list that is not a prefix of the final list."""
        if len(set(seen)) != len(seen):
            self.problem("duplicate", f"{txn.name()} ({txn.level}) saw key {key}: {seen}")
        elif not any([self.visible_wrongly(txn, key, value)
                      for value in seen if value not in final]):
            self.problem("order", f"{txn.name()} ({txn.level}) saw key {key}: {seen}; at the end "
                                  f"it is {final}")

    def writers_around(self, key, position: int, _txn) -> tuple:
        """Returns the writer of the version and the writer of the next version."""
        order = self.orders.get(key, [])
        return ((order[position - 1] if position else None),
                (order[position] if position < len(order) else None))

    def writer_before(self, txn, key):
        """Returns the writer of the version to which this transaction first appended."""
        order = self.orders.get(key, [])
        place = next((place for place, writer in enumerate(order) if writer is txn), 0)
        return order[place - 1] if place else None

    def writer_orders(self):
        """Yields (key, writers in version order)."""
        for key, order in self.orders.items():
            yield key, [writer for writer in order
                        if writer is not None and writer.status == COMMITTED]

    def exists(self, _key, position: int) -> bool:
        """Returns whether the version is a row; an empty list is an absent row."""
        return position > 0


class RegisterVersions(Versions):
    """Versions of registers, in the order in which their writers held the row lock."""

    def __init__(self, history):
        super().__init__(history)
        self.orders = defaultdict(lambda: [Version(None, None)])
        self.places = {}
        holds = defaultdict(list)
        for txn in history.txns:
            self.add_holds(txn, holds)
        for key, of_key in holds.items():
            self.order_by_holds(key, sorted(of_key, key=lambda hold: hold[0]))
        self.check_final()
        self.check_internal()

    def add_holds(self, txn, holds) -> None:
        """Records how long each row lock was held. A rollback of an insertion releases its lock."""
        first = {}
        for op in txn.ops:
            if op.kind != WRITE:
                continue
            if op.undone:
                holds[op.key].append((op.answered, txn.ops[op.undone - 1].answered, txn, False))
            else:
                first.setdefault(op.key, op.answered)
        for key, since in first.items():
            holds[key].append((since, txn.end[0], txn, True))

    def order_by_holds(self, key, holds: list) -> None:
        """Orders one key's versions; two transactions must not hold its lock at the same time."""
        owner, until = None, -1
        for since, end, txn, lasts in holds:
            if since < until and owner is not txn:
                self.problem("G0", f"{txn.name()} wrote key {key} while {owner.name()} had "
                                   "written it and was not at its end")
            if end > until:
                owner, until = txn, end
            if lasts and txn.status == COMMITTED:
                value = [op.value for op in txn.ops
                         if op.kind == WRITE and op.key == key and not op.undone][-1]
                if value is not None:
                    self.places[key, value] = len(self.orders[key])
                self.orders[key].append(Version(value, txn))

    def check_final(self) -> None:
        for key in {*self.orders, *self.history.final}:
            last, found = self.orders[key][-1].value, self.history.final.get(key)
            if found != last and not (found is not None and self.visible_wrongly(None, key, found)):
                self.problem("lost write", f"key {key} is {found} at the end; the last committed "
                                           f"write was {last}")

    def words_of(self, seen) -> list:
        return [seen]

    def own_words(self, own: list) -> list:
        return own[-1:]

    def writer_of_missing(self, txn, key, value, during):
        """Returns None, because the value may have been written later or replaced earlier. Checks
        that the value was not present during the whole read."""
        place, (sent, answered) = self.places.get((key, value)), during
        if place is not None:
            order = self.orders[key]
            ends = order[place + 1].writer.end[0] if place + 1 < len(order) else answered + 1
            if order[place].writer.end[1] <= sent and ends >= answered:
                self.problem("impossible read",
                             f"{txn.name()} ({txn.level}) did not find key {key} by {value}, "
                             "which it was all the time")
        return None

    def agrees(self, _txn, _key, seen, own: list, _lengths) -> bool:
        """Returns whether the value is the one last written."""
        return seen == own[-1]

    def position(self, txn, op, key, during):
        """Returns the version's number; None if it is unknown or the read itself is wrong."""
        seen = op.seen[key]
        if seen is None:
            return self.absent_position(txn, key, during)
        if (key, seen) in self.places:
            return self.places[key, seen]
        if not self.visible_wrongly(txn, key, seen):
            writer = self.writers[key, seen][0]
            self.problem("G1b", f"{txn.name()} ({txn.level}) saw {seen} in key {key}, which "
                                f"{writer.name()} replaced before its end")
        return None

    def absent_position(self, txn, key, during):
        """Returns the version of an absent row, if the read's times leave one possibility."""
        order, sent, answered = self.orders[key], *during
        possible = []
        for place, version in enumerate(order):
            since = version.writer.end[0] if version.writer else -1
            until = order[place + 1].writer.end[1] if place + 1 < len(order) else answered + 1
            if version.value is None and since < answered and until > sent:
                possible.append(place)
        if not possible:
            self.problem("impossible read", f"{txn.name()} ({txn.level}) did not find key {key}, "
                                            "though it was there all the time")
        return possible[0] if len(possible) == 1 else None

    def writers_around(self, key, position: int, _txn) -> tuple:
        """Returns the writer of the version and the writer of the next version."""
        order = self.orders[key]
        return (order[position].writer,
                (order[position + 1].writer if position + 1 < len(order) else None))

    def writer_before(self, txn, key):
        """Returns the writer of the version that this transaction replaced."""
        order = self.orders[key]
        return next((order[place - 1].writer for place, version in enumerate(order)
                     if place and version.writer is txn), None)

    def writer_orders(self):
        """Yields (key, writers in version order)."""
        for key, order in self.orders.items():
            yield key, [version.writer for version in order[1:]]

    def exists(self, key, position: int) -> bool:
        """Returns whether the version is a row."""
        return self.orders[key][position].value is not None
