"""Hermitage's scenarios (Martin Kleppmann, github.com/ept/hermitage, mysql.md), as scripts.

Each scenario is a script over `test (id INT PRIMARY KEY, value INT)` with the rows (1, 10), (2,
20), and a function that examines the outcome. An anomaly requires that the transactions concerned
committed: an error in one of them prevents it. The names follow Adya (PL-2, PL-2.99, PL-3); OTV and
PMP follow Bailis et al., "Highly Available Transactions".

The scenarios whose names begin with FK are our own: parents `p (id, v)` and children `c (id, pid)`,
whose constraint has one action for deletions and key changes. The final state maps each child to
its parent, 0 for NULL, or ORPHAN."""

TABLE = "CREATE TABLE test (id INT PRIMARY KEY, value INT)"
ROWS = "INSERT INTO test VALUES (1, 10), (2, 20)"
ALL = "SELECT * FROM test"
ORPHAN = -1
FAMILY = ["CREATE TABLE p (id INT PRIMARY KEY, v INT)",
          "CREATE TABLE c (id INT PRIMARY KEY, pid INT, KEY pid (pid), "
          "CONSTRAINT tie FOREIGN KEY (pid) REFERENCES p (id) ON DELETE {0} ON UPDATE {0})"]
FAMILY_ROWS = ["INSERT INTO p VALUES (1, 10), (2, 20)", "INSERT INTO c VALUES (1, 1), (3, 1)"]
FAMILY_END = (f"SELECT c.id, IF(pid IS NULL, 0, COALESCE(p.id, {ORPHAN})) "
              "FROM c LEFT JOIN p ON p.id = pid ORDER BY c.id")
PARENTS, CHILDREN = "SELECT id, v FROM p", "SELECT id, pid FROM c"


class Went:
    """The outcome of a script: the entry of each step, and the final table."""

    def __init__(self, entries: list, final: tuple):
        self.entries, self.final = entries, dict(final)

    def rows(self, number: int) -> tuple:
        """Returns the rows of a step; none if it failed or was not reached."""
        outcome = self.entries[number].outcome
        return outcome.rows if outcome is not None and outcome.rows is not None else ()

    def value(self, number: int, key: int):
        return dict(self.rows(number)).get(key)

    def ok(self, *sessions: str) -> bool:
        """Returns whether every statement of these sessions ran without an error."""
        return all(entry.outcome is not None and not entry.outcome.error
                   for entry in self.entries if entry.name in sessions)

    def affected(self, number: int):
        """Returns the number of rows that a step changed, or None if it failed."""
        outcome = self.entries[number].outcome
        return None if outcome is None or outcome.error else outcome.affected


def script(text: str) -> list:
    """Parses lines of the form `1 statement`, or `12 statement` for sessions 1 and 2 in turn."""
    lines = [line.strip().partition(" ") for line in text.strip().splitlines()]
    return [("T" + session, statement) for sessions, _, statement in lines for session in sessions]


class Scenario:
    """A name, its meaning, a script, a verdict, and for a family the action of its constraint."""

    def __init__(self, name: str, meaning: str, text: str, anomaly, action: str = ""):
        self.name, self.meaning, self.anomaly = name, meaning, anomaly
        self.tables = [table.format(action) for table in FAMILY] if action else [TABLE]
        self.rows, self.end = ((FAMILY_ROWS, FAMILY_END) if action
                               else ([ROWS], f"{ALL} ORDER BY id"))
        self.steps = script(text)
        self.sessions = sorted({name for name, _ in self.steps})


def set_value(value, where) -> str:
    return f"UPDATE test SET value = {value} WHERE {where}"


SCENARIOS = [
    Scenario("G0", "write cycle: two transactions' writes are mixed", f"""
        1 {set_value(11, 'id = 1')}
        2 {set_value(12, 'id = 1')}
        1 {set_value(21, 'id = 2')}
        1 COMMIT
        1 {ALL}
        2 {set_value(22, 'id = 2')}
        2 COMMIT""",
             lambda r: r.ok("T1", "T2") and r.final not in ({1: 11, 2: 21}, {1: 12, 2: 22})),
    Scenario("G1a", "aborted read: what was rolled back is read", f"""
        1 {set_value(101, 'id = 1')}
        2 {ALL}
        1 ROLLBACK
        2 {ALL}
        2 COMMIT""", lambda r: r.ok("T2") and 101 in (r.value(1, 1), r.value(3, 1))),
    Scenario("G1b", "intermediate read: a value that its writer replaced is read", f"""
        1 {set_value(101, 'id = 1')}
        2 {ALL}
        1 {set_value(11, 'id = 1')}
        1 COMMIT
        2 {ALL}
        2 COMMIT""", lambda r: r.ok("T2") and 101 in (r.value(1, 1), r.value(4, 1))),
    Scenario("G1c", "circular information flow: two transactions read each other's writes", f"""
        1 {set_value(11, 'id = 1')}
        2 {set_value(22, 'id = 2')}
        1 {ALL} WHERE id = 2
        2 {ALL} WHERE id = 1
        12 COMMIT""", lambda r: r.ok("T1", "T2") and r.value(2, 2) == 22 and r.value(3, 1) == 11),
    Scenario("OTV", "observed transaction vanishes: a part of a transaction is seen, then not", f"""
        1 {set_value(11, 'id = 1')}
        1 {set_value(19, 'id = 2')}
        2 {set_value(12, 'id = 1')}
        1 COMMIT
        3 {ALL}
        2 {set_value(18, 'id = 2')}
        3 {ALL}
        2 COMMIT
        3 {ALL}
        3 COMMIT""",
             lambda r: r.ok("T3") and any((r.value(n, 1), r.value(n, 2)) in ((12, 19), (11, 18))
                                          for n in (4, 6, 8))),
    Scenario("PMP", "predicate-many-preceders: a predicate read twice finds a row that was not "
             "there", f"""
        1 {ALL} WHERE value = 30
        2 INSERT INTO test VALUES (3, 30)
        2 COMMIT
        1 {ALL} WHERE value % 3 = 0
        1 COMMIT""", lambda r: r.ok("T1", "T2") and r.rows(0) == () and r.value(3, 3) == 30),
    Scenario("PMP-write", "the same with a write: DELETE does not find the row that was read", f"""
        1 UPDATE test SET value = value + 10
        2 {ALL} WHERE value = 20
        2 DELETE FROM test WHERE value = 20
        1 COMMIT
        2 {ALL}
        2 COMMIT""", lambda r: r.ok("T1", "T2") and r.value(1, 2) == 20 and 2 in r.final),
    Scenario("P4", "lost update: both read, both write what they read", f"""
        12 {ALL} WHERE id = 1
        1 {set_value(11, 'id = 1')}
        2 {set_value(12, 'id = 1')}
        12 COMMIT""", lambda r: r.ok("T1", "T2") and r.value(0, 1) == 10 and r.value(1, 1) == 10),
    Scenario("G-single", "read skew: half of a transaction is seen", f"""
        12 {ALL} WHERE id = 1
        2 {ALL} WHERE id = 2
        2 {set_value(12, 'id = 1')}
        2 {set_value(18, 'id = 2')}
        2 COMMIT
        1 {ALL} WHERE id = 2
        1 COMMIT""", lambda r: r.ok("T1", "T2") and r.value(0, 1) == 10 and r.value(6, 2) == 18),
    Scenario("G-single, dependencies", "read skew over two predicates", f"""
        1 {ALL} WHERE value % 5 = 0
        2 UPDATE test SET value = 12 WHERE value = 10
        2 COMMIT
        1 {ALL} WHERE value % 3 = 0
        1 COMMIT""", lambda r: r.ok("T1", "T2") and r.value(0, 1) == 10 and r.value(3, 1) == 12),
    Scenario("G-single, write 1", "read skew where a write sees the other half", f"""
        1 {ALL} WHERE id = 1
        2 {ALL}
        2 {set_value(12, 'id = 1')}
        2 {set_value(18, 'id = 2')}
        2 COMMIT
        1 DELETE FROM test WHERE value = 20
        1 {ALL} WHERE id = 2
        1 COMMIT""", lambda r: r.ok("T1", "T2") and r.value(0, 1) == 10 and r.affected(5) == 0),
    Scenario("G-single, write 2", "the same, but the first transaction rolls back: "
                                  "the second must not suffer", f"""
        1 {ALL} WHERE id = 1
        2 {ALL}
        2 {set_value(12, 'id = 1')}
        1 DELETE FROM test WHERE value = 20
        2 {set_value(18, 'id = 2')}
        1 ROLLBACK
        2 COMMIT""", lambda r: r.ok("T2") and r.final != {1: 12, 2: 18}),
    Scenario("G2-item", "write skew: each writes what the other read", f"""
        12 {ALL} WHERE id IN (1, 2)
        1 {set_value(11, 'id = 1')}
        2 {set_value(21, 'id = 2')}
        12 COMMIT""",
             lambda r: (r.ok("T1", "T2") and {r.value(0, 1), r.value(1, 1)} == {10}
                        and {r.value(0, 2), r.value(1, 2)} == {20})),
    Scenario("G2", "anti-dependency cycle: each inserts what the other's predicate would find", f"""
        12 {ALL} WHERE value % 3 = 0
        1 INSERT INTO test VALUES (3, 30)
        2 INSERT INTO test VALUES (4, 42)
        12 COMMIT
        1 {ALL} WHERE value % 3 = 0""",
             lambda r: r.ok("T1", "T2") and r.rows(0) == () and r.rows(1) == ()),
    Scenario("G2, two edges", "the read-only transaction anomaly of Fekete et al.", f"""
        1 {ALL}
        2 UPDATE test SET value = value + 5 WHERE id = 2
        2 COMMIT
        3 {ALL}
        3 COMMIT
        1 {set_value(0, 'id = 1')}
        1 COMMIT""",
             lambda r: (r.ok("T1", "T2", "T3") and r.value(0, 2) == 20 and r.value(3, 1) == 10
                        and r.value(3, 2) == 25)),
]


def families(name: str, meaning: str, text: str, anomaly,
             actions=("RESTRICT", "CASCADE", "SET NULL")) -> list:
    return [Scenario(f"FK {name}, {action}" if len(actions) > 1 else f"FK {name}", meaning, text,
                     anomaly, action)
            for action in actions]


def has_orphan(went: Went) -> bool:
    return ORPHAN in went.final.values()


def sees_half(*steps: int):
    """Returns a verdict: whether one of these reads of all children sees only one of parent 1's two
    children, or one child changed and the other unchanged."""
    def is_half(rows: dict) -> bool:
        return len(rows) == 1 or (len(rows) == 2 and len(set(rows.values())) == 2)
    return lambda went: any(is_half(dict(went.rows(step))) for step in steps)


SCENARIOS += [
    *families("child first", "a parent is deleted while a child that names it is open", """
        1 INSERT INTO c VALUES (9, 2)
        2 DELETE FROM p WHERE id = 2
        12 COMMIT""", has_orphan),
    *families("child rolled back", "the same, but the child does not come", """
        1 INSERT INTO c VALUES (9, 2)
        2 DELETE FROM p WHERE id = 2
        1 ROLLBACK
        2 COMMIT""", lambda r: 9 in r.final, ("RESTRICT",)),
    *families("parent first", "a child names a parent whose deletion is open", """
        1 DELETE FROM p WHERE id = 2
        2 INSERT INTO c VALUES (9, 2)
        12 COMMIT""", has_orphan, ("RESTRICT",)),
    *families("parent rolled back", "the same, but the parent stays: so must the child", """
        1 DELETE FROM p WHERE id = 2
        2 INSERT INTO c VALUES (9, 2)
        1 ROLLBACK
        2 COMMIT""", lambda r: r.final.get(9) != 2, ("RESTRICT",)),
    *families("parent of a snapshot", "a child names a parent that only its snapshot has", f"""
        1 {PARENTS}
        2 DELETE FROM p WHERE id = 2
        2 COMMIT
        1 {PARENTS}
        1 INSERT INTO c VALUES (9, 2)
        1 COMMIT""", has_orphan, ("RESTRICT",)),
    *families("child after a snapshot",
              "a parent is deleted whose child the snapshot does not have", f"""
        1 {CHILDREN}
        2 INSERT INTO c VALUES (9, 2)
        2 COMMIT
        1 {CHILDREN}
        1 DELETE FROM p WHERE id = 2
        1 COMMIT
        1 {CHILDREN}
        1 COMMIT""", has_orphan, ("RESTRICT", "CASCADE")),
    *families("parent changed since a snapshot",
              "a child names a parent whose row has changed", f"""
        1 {PARENTS}
        2 UPDATE p SET v = v + 1 WHERE id = 2
        2 COMMIT
        1 INSERT INTO c VALUES (9, 2)
        1 COMMIT""", lambda r: r.ok("T1") and r.final.get(9) != 2, ("RESTRICT",)),
    *families("new key", "a child names the old key of a parent whose change is open", """
        1 UPDATE p SET id = 5 WHERE id = 1
        2 INSERT INTO c VALUES (9, 1)
        12 COMMIT""", has_orphan, ("RESTRICT", "CASCADE")),
    *families("half an action",
              "some of the children have followed their parent, and some have not", f"""
        1 {PARENTS}
        2 DELETE FROM p WHERE id = 1
        1 {CHILDREN}
        2 COMMIT
        1 {CHILDREN}
        1 COMMIT""", sees_half(2, 4), ("CASCADE", "SET NULL")),
    *families("parent gone, child there",
              "read skew: the parent before its deletion, its children after it", f"""
        1 {PARENTS}
        2 DELETE FROM p WHERE id = 1
        2 COMMIT
        1 {CHILDREN}
        1 COMMIT""", lambda r: r.ok("T1", "T2") and r.value(0, 1) == 10 and r.value(3, 1) != 1,
              ("CASCADE", "SET NULL")),
    *families("moving child",
              "a child goes to another parent, and its old one is deleted meanwhile", """
        1 DELETE FROM c WHERE id = 3
        1 UPDATE c SET pid = 2 WHERE id = 1
        2 DELETE FROM p WHERE id = 1
        12 COMMIT""", lambda r: r.ok("T1") and r.final != {1: 2}, ("RESTRICT", "CASCADE")),
    *families("moving back", "the same, but the child stays where it was", """
        1 UPDATE c SET pid = 2 WHERE id = 1
        2 DELETE FROM p WHERE id = 1
        1 ROLLBACK
        2 COMMIT""", has_orphan, ("CASCADE", "SET NULL")),
]
