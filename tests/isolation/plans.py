"""Random transactions as plans: what a client will do, before anybody knows what it will see.

Keys live in groups of three; two or three groups are in use at a time, and one that was written
often enough is left for a new one, so that rows are inserted all the time and lists stay short.
"""

import random

KEYS_PER_GROUP = 3
WRITES_PER_GROUP = 120

READ_STEP, WRITE_STEP, SAVEPOINT, BACK, SNAPSHOT_STEP = ("read", "write", "savepoint", "back",
                                                         "snapshot")
COUNT_STEP = "count"   # rows by the engine's count and by an index, in one statement
# What a history has besides rows: words of a full-text index, or parents that a foreign key names.
WORDS, TIED = "words", "tied"
VALUE_MIN = 100        # a full-text index has words of three characters and more
RECENT_MAX = 12        # values of a group that are searched for


class Step:
    """One thing to do. `via` and `how` choose the statement; `lock` is "", "share" or "update".
    `value` of a read: pairs of a key and a value, to be found by the word that the value is."""

    def __init__(self, kind: str, keys=(), value=None, via: str = "", lock: str = ""):
        self.kind, self.keys, self.value, self.via, self.lock = kind, tuple(keys), value, via, lock


class Plan:
    """One transaction."""

    def __init__(self, level: str, steps: list, commits: bool, autocommit: bool):
        self.level, self.steps, self.commits, self.autocommit = level, steps, commits, autocommit


class Planner:
    """Makes plans for one history."""

    def __init__(self, seed, model: str, levels, groups: int = 2, more: str = ""):
        self.more, self.recent = more, {}   # group -> pairs of a key and a value
        self.rng, self.model, self.levels = random.Random(seed), model, tuple(levels)
        self.groups, self.next_group = list(range(groups)), groups
        self.writes = {group: 0 for group in self.groups}
        self.values = VALUE_MIN - 1

    def plan(self) -> Plan:
        """The next transaction."""
        rng, level = self.rng, self.rng.choice(self.levels)
        if rng.random() < 0.06:
            return Plan(level, [self.read("")], True, True)
        steps = []
        if level == "REPEATABLE READ" and rng.random() < 0.15:
            steps.append(Step(SNAPSHOT_STEP))
        kind = rng.random()
        if kind < 0.01:   # an old snapshot, or many locks
            steps += [self.read("") for _ in range(25)]
        elif kind < 0.2:
            steps += [self.read("") for _ in range(rng.randint(2, 4))]
        elif kind < 0.4:
            steps += self.read_then_write()
        else:
            steps += [self.any_step() for _ in range(rng.randint(1, 5))]
        if rng.random() < 0.15:
            self.add_savepoint(steps)
        return Plan(level, steps, rng.random() > 0.07, False)

    def any_step(self) -> Step:
        """A read or a write."""
        roll = self.rng.random()
        if roll < 0.03:
            return Step(COUNT_STEP)
        return (self.read(self.rng.choice(["", "", "", "share", "update"])) if roll < 0.5
                else self.write(self.key()))

    def read(self, lock: str) -> Step:
        """One key, some keys, a group by the primary key or an index, whole or covered; by a word
        that the whole group has, or by words that are values; by the parents, or with them."""
        more = {WORDS: ["words", "words", "found", "found"], TIED: ["parents", "joined", "joined"]}
        via = self.rng.choice(["id", "id", "ids", "range", "group", "covered",
                               *more.get(self.more, [])])
        group = self.rng.choice(self.groups)
        keys = [group * KEYS_PER_GROUP + n for n in range(KEYS_PER_GROUP)]
        if via == "id":
            keys = [self.rng.choice(keys)]
        elif via == "ids":
            keys = sorted({self.key() for _ in range(3)})
        elif via == "found":
            return Step(READ_STEP, keys, self.values_of(group), via=via, lock=lock)
        return Step(READ_STEP, keys, via=via, lock=lock)

    def values_of(self, group: int) -> list:
        """Up to three pairs of a key and a value that somebody has written, or is about to."""
        recent = self.recent.get(group, [])
        return self.rng.sample(recent, min(len(recent), self.rng.randint(1, 3)))

    def read_then_write(self) -> list:
        """The pattern of a lost update, or of write skew."""
        key, other = self.key(), self.key()
        lock = self.rng.choice(["", "", "update"])
        steps = [Step(READ_STEP, [key], via="id", lock=lock)]
        if self.rng.random() < 0.5:
            steps.append(Step(READ_STEP, [other], via="id", lock=lock))
            key = self.rng.choice([key, other])
        steps.append(self.write(key))
        if self.rng.random() < 0.3:
            steps.append(Step(READ_STEP, [key], via="id"))
        return steps

    def write(self, key: int) -> Step:
        """An append, or a register's new value or end."""
        self.values += 1
        if self.model == "list":
            hows = ["upsert", "upsert", "update", "replace"]
        else:
            hows = ["upsert", "update", "update", "replace", "delete"]
        how = self.rng.choice(hows + {WORDS: ["matched"],
                                      TIED: ["orphan", "take"]}.get(self.more, []))
        recent = self.recent.setdefault(key // KEYS_PER_GROUP, [])
        recent.append((key, self.values))
        del recent[:-RECENT_MAX]
        return Step(WRITE_STEP, [key], None if how == "delete" else self.values, via=how)

    def key(self) -> int:
        """A key of a group in use; counts as a write of the group."""
        place = self.rng.randrange(len(self.groups))
        group = self.groups[place]
        self.writes[group] += 1
        if self.writes[group] > WRITES_PER_GROUP:
            self.groups[place] = group = self.next_group
            self.writes[group] = 0
            self.next_group += 1
        return group * KEYS_PER_GROUP + self.rng.randrange(KEYS_PER_GROUP)

    def add_savepoint(self, steps: list) -> None:
        """SAVEPOINT somewhere, ROLLBACK TO somewhere behind it."""
        first = self.rng.randint(0, len(steps))
        if steps and steps[0].kind == SNAPSHOT_STEP:
            first = max(first, 1)
        last = self.rng.randint(first, len(steps))
        steps.insert(first, Step(SAVEPOINT))
        steps.insert(last + 1, Step(BACK))

    def keys_used(self) -> range:
        """All keys there ever were."""
        return range(self.next_group * KEYS_PER_GROUP)
