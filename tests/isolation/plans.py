"""Plans random transactions: what a client will do, chosen before any answer is known.

Each group has three keys; one to three groups are in use. After `WRITES_PER_GROUP` key choices a
new group replaces the old one: inserts never end, and lists stay short."""

import random
from collections import namedtuple

KEYS_PER_GROUP = 3
WRITES_PER_GROUP = 120

READ_STEP, WRITE_STEP, SAVEPOINT, BACK, SNAPSHOT_STEP = ("read", "write", "savepoint", "back",
                                                         "snapshot")
COUNT_STEP = "count"   # counts rows in the table and in an index, in one statement
# What a history has besides rows: words in a full-text index, or parents of a foreign key.
WORDS, TIED = "words", "tied"
VALUE_MIN = 100        # full-text words have at least three characters
RECENT_MAX = 12        # the maximum number of recent values of a group to search for
Plan = namedtuple("Plan", "level steps commits autocommit")


class Step:
    """One planned statement. `via` chooses its form; `lock` is "", "share" or "update". For a
    search, `value` holds pairs of a key and a value; the value is the word to search for."""

    def __init__(self, kind: str, keys=(), value=None, via: str = "", lock: str = ""):
        self.kind, self.keys, self.value, self.via, self.lock = kind, tuple(keys), value, via, lock


class Planner:
    def __init__(self, seed, model: str, levels, groups: int = 2, more: str = ""):
        self.more, self.recent = more, {}   # group -> pairs of a key and a value
        self.rng, self.model, self.levels = random.Random(seed), model, tuple(levels)
        self.groups, self.next_group = list(range(groups)), groups
        self.writes = {group: 0 for group in self.groups}
        self.values = VALUE_MIN - 1

    def plan(self) -> Plan:
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
        roll = self.rng.random()
        if roll < 0.03:
            return Step(COUNT_STEP)
        return (self.read(self.rng.choice(["", "", "", "share", "update"])) if roll < 0.5
                else self.write(self.key()))

    def read(self, lock: str) -> Step:
        """Reads one key, several keys, or a group, through the primary key or an index, with rows
        or from the index alone. With a full-text index it may search for the group's word or for
        values; with a foreign key it may read the parents, or a join with them."""
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
        """Returns up to three pairs of a key and a value that was, or is about to be, written."""
        recent = self.recent.get(group, [])
        return self.rng.sample(recent, min(len(recent), self.rng.randint(1, 3)))

    def read_then_write(self) -> list:
        """Returns the pattern of a lost update or of write skew."""
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
        """Returns a key of a group in use, and counts a write to the group."""
        place = self.rng.randrange(len(self.groups))
        group = self.groups[place]
        self.writes[group] += 1
        if self.writes[group] > WRITES_PER_GROUP:
            self.groups[place] = group = self.next_group
            self.writes[group] = 0
            self.next_group += 1
        return group * KEYS_PER_GROUP + self.rng.randrange(KEYS_PER_GROUP)

    def add_savepoint(self, steps: list) -> None:
        """Inserts a SAVEPOINT at a random position and a ROLLBACK TO at a later one."""
        first = self.rng.randint(0, len(steps))
        if steps and steps[0].kind == SNAPSHOT_STEP:
            first = max(first, 1)
        last = self.rng.randint(first, len(steps))
        steps.insert(first, Step(SAVEPOINT))
        steps.insert(last + 1, Step(BACK))

    def keys_used(self) -> range:
        return range(self.next_group * KEYS_PER_GROUP)
