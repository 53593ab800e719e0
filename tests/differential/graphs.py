"""Random tables connected by foreign keys, and random changes of their rows and definitions.

Values are few, so most rows have children and parents, and chains of rows and tables that refer to
themselves are common. In some graphs tables refer to each other in circles. The constraints of
these graphs only refuse changes and have no cascading actions, because InnoDB's result in a circle
depends on which index entries it has already deleted. A statement that changes several rows gives
their order."""

from statements import Statement, Stream

VALUES = 6
ACTIONS = ["", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON UPDATE CASCADE",
           " ON UPDATE SET NULL", " ON DELETE CASCADE ON UPDATE CASCADE",
           " ON DELETE SET NULL ON UPDATE CASCADE", " ON DELETE CASCADE ON UPDATE SET NULL",
           " ON DELETE NO ACTION ON UPDATE NO ACTION"]
REFUSALS = ["", " ON DELETE RESTRICT", " ON UPDATE RESTRICT",
            " ON DELETE NO ACTION ON UPDATE NO ACTION"]
COLLATIONS = ["utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin",
              "utf8mb4_general_nopad_ci", "latin1_swedish_ci", "latin1_bin"]
CIRCLES = 0.25   # the fraction of graphs with circles
COLUMNS = "(id, a, b, code, of, v)"


class Node:
    """A table with a primary key `id`, an indexed string `code`, and columns that refer to rows."""

    def __init__(self, name: str):
        self.name = name


class Graph(Stream):
    BESIDE_INNODB = True   # exclude constraints that InnoDB checks in its own order

    def __init__(self, rng, folder):
        super().__init__(rng, folder)
        self.to_tie = rng.randint(4, 9)
        self.has_circles, self.collation = rng.random() < CIRCLES, rng.choice(COLLATIONS)
        self.constraints = 0
        self.ties = {}   # (child, own columns, parent, its columns) -> actions
        self.kinds = [(self.insert, 30), (self.replace, 6), (self.on_duplicate, 6),
                      (self.update, 22), (self.delete, 12), (self.transaction, 10),
                      (self.savepoint, 4), (self.tie, 1), (self.untie, 0.7), (self.rename, 0.7),
                      (self.rebuild, 0.7), (self.redefine, 1.5)]

    def next(self) -> list:
        if len(self.tables) < 5:
            return [self.create()]
        return [self.tie()] if self.constraints < self.to_tie else super().next()

    def create(self) -> Statement:
        node = Node(f"n{len(self.tables) + 1}")
        direction = " DESC" if self.rng.random() < 0.3 else ""
        unique = "UNIQUE " if self.rng.random() < 0.3 else ""
        text = f"VARCHAR(%d) CHARACTER SET {self.collation.split('_')[0]} COLLATE {self.collation}"
        length = self.rng.choice([10, 20])
        return Statement(
            f"CREATE TABLE {node.name} (id INT PRIMARY KEY, a INT, b INT, code {text % length}, "
            f"of {text % 15}, v INT, {unique}KEY code (code{direction}), KEY ba (b, a), "
            "KEY ab (a, b))", apply=lambda: self.tables.append(node))

    def tie(self) -> Statement:
        """ADD FOREIGN KEY, in place or by a copy."""
        rng = self.rng
        own, columns = rng.choice([("a", "id"), ("b", "id"), ("of", "code"), ("b, a", "b, a"),
                                   ("a", "b")])
        child = self.table()
        # If a table refers to itself through an index other than the primary key, the order of the
        # indexes determines whether a row finds itself.
        parent = (self.table() if columns == "id"
                  else rng.choice([node for node in self.tables if node is not child]))
        # If two constraints share columns, InnoDB checks one in the middle of the other's action.
        tie = (child, own, parent, columns)
        actions = rng.choice(REFUSALS if self.has_circles else ACTIONS)
        if (tie in self.ties or self.disturbs({**self.ties, tie: actions})
                or (not self.has_circles and child is not parent and self.leads(parent, child))):
            return self.insert()
        self.ties[tie] = actions
        self.constraints += 1
        constraint = f"CONSTRAINT x{self.constraints} " if rng.random() < 0.8 else ""
        how = rng.choice(["", ", ALGORITHM = COPY"])
        return self.ddl(f"ALTER TABLE {child.name} ADD {constraint}FOREIGN KEY ({own}) REFERENCES "
                        f"{parent.name} ({columns}){actions}{how}")

    def disturbs(self, ties: dict) -> bool:
        """Returns whether a row may lose two parents in one statement while one constraint's action
        changes a column in the other's index. InnoDB then looks up the other parent again, and the
        order of constraints decides whether it was already deleted (docs/users/limits.md)."""
        if not self.BESIDE_INNODB:
            return False
        numbers = [(tie, actions) for tie, actions in ties.items() if tie[1] != "of"]
        return any(first[0] is second[0]
                   and self.origins(ties, first[2]) & self.origins(ties, second[2])
                   for first, actions in numbers for second, _ in numbers if first is not second
                   and ("SET NULL" in actions or "UPDATE CASCADE" in actions))

    def origins(self, ties: dict, node) -> set:
        """Returns a table and all tables that it refers to, directly or through others."""
        found, beyond = set(), {node}
        while beyond:
            found |= beyond
            beyond = {tie[2] for tie in ties if tie[0] in beyond} - found
        return found

    def leads(self, child, parent) -> bool:
        """Returns whether `child` refers to `parent`, directly or through other tables."""
        parents = {tie[2] for tie in self.ties if tie[0] is child and tie[2] is not child}
        return parent in parents or any(self.leads(between, parent) for between in parents)

    def untie(self) -> Statement:
        """DROP FOREIGN KEY of a constraint that may not exist."""
        return self.ddl(f"ALTER TABLE {self.table().name} DROP FOREIGN KEY IF EXISTS "
                        f"x{self.rng.randint(1, self.constraints)}")

    def rename(self) -> list:
        node = self.table()
        new = node.name + "r" if len(node.name) < 6 else "n" + node.name[1:].replace("r", "") + "s"
        return [self.ddl(f"RENAME TABLE {node.name} TO {new}", lambda: setattr(node, "name", new))]

    def rebuild(self) -> list:
        name = self.table().name
        return [self.ddl(f"ALTER TABLE {name} FORCE, ALGORITHM = COPY"),
                Statement("SELECT constraint_name, table_name, referenced_table_name, update_rule, "
                          "delete_rule FROM information_schema.referential_constraints "
                          "WHERE constraint_schema = '{twin}'")]

    def redefine(self) -> Statement:
        """Adds or drops keys and columns, or truncates a table. Such a change is refused if a
        constraint depends on the old definition or the rows."""
        name = self.table().name
        change = self.rng.choice(["ADD KEY more (v)", "DROP KEY more", "ADD COLUMN w INT DEFAULT 7",
                                  "DROP COLUMN w", "DROP KEY ba", "ADD KEY ba (b, a)",
                                  "DROP KEY ab", "ADD KEY ab (a, b)", "MODIFY b BIGINT"])
        statement = f"ALTER TABLE {name} {change}"
        if self.rng.random() < 0.15:
            statement = f"TRUNCATE TABLE {name}"
        return self.ddl(statement)

    def number(self) -> str:
        return "NULL" if self.rng.random() < 0.25 else str(self.rng.randint(1, VALUES))

    def text(self) -> str:
        """Returns a short string. Case and trailing spaces vary, which comparisons ignore."""
        if self.rng.random() < 0.25:
            return "NULL"
        word = self.rng.choice(["one", "two", "three", "four"])
        return f"'{self.rng.choice([word, word.upper(), word + ' '])}'"

    def row(self) -> str:
        key = self.rng.randint(1, VALUES)
        return (f"({key}, {self.number()}, {self.number()}, {self.text()}, {self.text()}, "
                f"{self.rng.randint(0, 9)})")

    def rows(self) -> str:
        return ", ".join(self.row() for _ in range(self.rng.choice([1, 1, 1, 2, 4])))

    def ignore(self) -> str:
        return " IGNORE" if self.rng.random() < 0.3 else ""

    def insert(self) -> Statement:
        return Statement(f"INSERT{self.ignore()} INTO {self.table().name} {COLUMNS} "
                         f"VALUES {self.rows()}")

    def replace(self) -> Statement:
        return Statement(f"REPLACE INTO {self.table().name} {COLUMNS} VALUES {self.row()}")

    def on_duplicate(self) -> Statement:
        return Statement(f"INSERT INTO {self.table().name} {COLUMNS} VALUES {self.row()} "
                         f"ON DUPLICATE KEY UPDATE {self.change()}")

    def change(self) -> str:
        column = self.rng.choice(["id", "a", "b", "code", "of", "v"])
        values = {"id": str(self.rng.randint(1, VALUES)), "code": self.text(), "of": self.text()}
        return f"{column} = {values.get(column, self.number())}"

    def where(self) -> str:
        """Returns a condition for rows, in the order of their keys."""
        condition = self.rng.choice([f"id = {self.rng.randint(1, VALUES)}",
                                     f"id > {self.rng.randint(1, VALUES)}",
                                     f"a = {self.rng.randint(1, VALUES)}",
                                     f"code = {self.text()}", "v > 6"])
        return f"WHERE {condition} ORDER BY id"

    def update(self) -> Statement:
        return Statement(f"UPDATE{self.ignore()} {self.table().name} SET {self.change()} "
                         f"{self.where()}")

    def delete(self) -> Statement:
        return Statement(f"DELETE{self.ignore()} FROM {self.table().name} {self.where()}")

    def transaction(self) -> Statement:
        if not self.in_transaction:
            return Statement("BEGIN", apply=lambda: setattr(self, "in_transaction", True))
        return Statement(self.rng.choice(["COMMIT", "ROLLBACK"]), apply=self.ended)

    def savepoint(self) -> list:
        if not self.in_transaction:
            return [self.update()]
        return [Statement("SAVEPOINT s"), self.delete(), self.update(), Statement("ROLLBACK TO s")]
