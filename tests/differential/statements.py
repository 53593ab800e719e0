"""Random statements whose outcome does not depend on the optimizer's plan.

If the order of rows matters (LIMIT, changes of unique columns, IGNORE, REPLACE .. SELECT), the
statement has an ORDER BY without ties. Results that depend on the plan, such as floating-point sums
and the MIN of case-insensitive text, are avoided or made deterministic."""

import re
from collections import namedtuple

from columns import has_expansions, left_out, like_of, random_column
from tables import Table, random_index, random_table
from twins import difference

# `ordered`: rows are compared in order. `apply`: updates the generator's state after success.
# `compare`: compares the rows; apart from the rows, only the error is compared then. `only`: the
# only engine that runs the statement.
Statement = namedtuple("Statement", "text ordered apply counts_warnings compare only",
                       defaults=[False, None, False, None, None])


def no_matter(_left: list, _right: list) -> str:
    """Accepts any rows, so that only errors are compared."""
    return ""


class Stream:
    """An endless, seeded stream of statements, with the methods that `Round` calls on a generator.
    `folder`: a folder for files that the server writes."""

    ddl_compare = None   # how answers to changes of definitions are compared

    def __init__(self, rng, folder):
        self.rng, self.folder, self.names_made, self.in_transaction = rng, folder, 0, False
        self.tables = []    # the tables that `Round` compares
        self.kinds = []     # functions that return statements or None, with weights

    def settles(self, _innodb, _statement, _other) -> bool:
        """Returns whether InnoDB is at fault for a difference."""
        return False

    def columns_of(self, _table) -> str:
        return "*"

    def table(self):
        return self.rng.choice(self.tables)

    def ended(self) -> None:
        """Resets the state that a commit ends."""
        self.in_transaction = False

    def ddl(self, text: str, change=lambda: None) -> Statement:
        """A statement that commits the open transaction."""
        return Statement(text, apply=lambda: (self.ended(), change()), compare=self.ddl_compare)

    def next(self) -> list:
        """Returns the statements of one step, usually one statement."""
        made = self.rng.choices([k for k, _ in self.kinds], [w for _, w in self.kinds])[0]()
        return made if isinstance(made, list) else [made] if made else []


class Generator(Stream):
    def __init__(self, rng, folder):
        super().__init__(rng, folder)
        self.savepoints = []
        self.insert_id = 1000
        self.kinds = [
            (self.insert, 26), (self.insert_select, 4), (self.on_duplicate, 6), (self.replace, 5),
            (self.update, 13), (self.update_shift, 3), (self.delete, 6), (self.multi_update, 2),
            (self.multi_delete, 2), (self.select, 22), (self.select_index, 8), (self.group, 6),
            (self.join, 4), (self.transaction, 14), (self.load_data, 1), (self.alter, 1.2),
            (self.new_table, 0.6), (self.maintain, 1), (self.handler, 1.5), (self.truncate, 0.3),
            (self.delete_returning, 1),
        ]

    def settles(self, innodb, statement, other) -> bool:
        """Returns whether InnoDB gives the other engine's answer when it reads through another
        index or none. Then InnoDB contradicts itself, and the plan causes the difference."""
        return statement.text.startswith("SELECT") and any(
            not difference(statement, innodb.run(text), other)
            for text in self.other_plans(statement.text))

    def other_plans(self, query: str) -> list:
        """Returns the query with hints for each index of its tables, and for none."""
        texts = [query]
        for table in self.tables:
            names = ", ".join(f"`{index.name}`" for index in table.indexes)
            hints = [f"IGNORE INDEX ({names})"] * bool(names)
            hints += ["FORCE INDEX (PRIMARY)"] * bool(table.primary)
            hints += [f"FORCE INDEX (`{index.name}`)" for index in table.indexes]
            place = re.compile(rf"(?<=(?:FROM|JOIN) )({table.name}(?: AS \w)?)"
                               r"(?: FORCE INDEX \(`\w+`\))?(?= |$)")
            texts += [place.sub(rf"\1 {hint}", text)
                      for text in texts if place.search(text) for hint in hints]
        return texts[1:]

    def next(self) -> list:
        return [self.new_table()] if len(self.tables) < 3 else super().next()

    def new_table(self) -> Statement:
        """CREATE TABLE, or DROP TABLE of the oldest table if there are five."""
        self.names_made += 1
        table = random_table(self.rng, f"t{self.names_made}")
        if len(self.tables) >= 5:
            old = self.tables[0]
            return self.ddl(f"DROP TABLE {old.name}", lambda: self.tables.remove(old))
        return self.ddl(table.create(), lambda: self.tables.append(table))

    def alter(self):
        rng, table = self.rng, self.table()
        roll = rng.random()
        if roll < 0.35:
            index = random_index(rng, table)
            if index is None or len(table.indexes) > 6:
                return None
            return self.copied(table, f"ADD {index.definition()}",
                               lambda: table.indexes.append(index))
        if roll < 0.5 and table.indexes:
            index = rng.choice(table.indexes)
            return self.copied(table, f"DROP INDEX `{index.name}`",
                               lambda: table.indexes.remove(index))
        if roll < 0.7 and len(table.columns) < 12:
            column = random_column(rng, table.new_name("c"))
            at = rng.randrange(len(table.columns) + 1)
            place = f" AFTER `{table.columns[at - 1].name}`" if at else " FIRST"
            return self.copied(table, f"ADD COLUMN {column.definition()}{place}",
                               lambda: table.columns.insert(at, column))
        kept = table.primary + [c for index in table.indexes for c in index.columns]
        free = [c for c in table.columns if c not in kept]
        if roll < 0.8 and len(free) > 1:
            column = rng.choice(free)
            return self.copied(table, f"DROP COLUMN `{column.name}`",
                               lambda: table.columns.remove(column))
        if roll < 0.85:
            return self.copied(table, "FORCE", lambda: None)
        self.names_made += 1
        name = f"t{self.names_made}"
        return self.ddl(f"RENAME TABLE {table.name} TO {name}",
                        lambda: setattr(table, "name", name))

    def copied(self, table: Table, text: str, change) -> Statement:
        """ALTER TABLE by a copy. Otherwise InnoDB sometimes copies on its own, and then forgets
        reserved AUTO_INCREMENT values. (Since 11.5 the server ignores alter_algorithm.)"""
        return self.ddl(f"ALTER TABLE {table.name} {text}, ALGORITHM=COPY", change)

    def truncate(self) -> Statement:
        return self.ddl(f"TRUNCATE TABLE {self.table().name}")

    def maintain(self) -> Statement:
        """CHECK TABLE or ANALYZE TABLE, whose verdicts must agree."""
        word = self.rng.choice(["CHECK TABLE {} EXTENDED", "CHECK TABLE {}", "ANALYZE TABLE {}"])
        return Statement(word.format(self.table().name), apply=None)

    def transaction(self) -> Statement:
        rng = self.rng
        if not self.in_transaction:
            return Statement("BEGIN", apply=lambda: setattr(self, "in_transaction", True))
        roll = rng.random()
        if roll < 0.25:
            return Statement("COMMIT", apply=self.ended)
        if roll < 0.45:
            return Statement("ROLLBACK", apply=self.ended)
        if roll < 0.7 or not self.savepoints:
            name = f"s{rng.randint(1, 4)}"
            return Statement(f"SAVEPOINT {name}", apply=lambda: self.savepoints.append(name))
        name = rng.choice(self.savepoints)
        return Statement(("ROLLBACK TO " if rng.random() < 0.75 else "RELEASE SAVEPOINT ") + name)

    def ended(self) -> None:
        super().ended()
        self.savepoints = []

    def insert(self) -> Statement:
        table = self.table()
        ignore = "IGNORE " if self.rng.random() < 0.2 else ""
        return Statement(f"INSERT {ignore}INTO {table.name} {self.values(table)}",
                         counts_warnings=True)

    def values(self, table: Table) -> str:
        rng = self.rng
        columns = [c for c in table.stored()
                   if rng.random() < 0.93 and not (c.auto_increment and rng.random() < 0.7)]
        if not columns:
            return "() VALUES ()"
        # With explicit and generated numbers in one statement, the gaps depend on the engine.
        made = rng.random() < 0.5
        rows = ["(" + ", ".join(self.cell(c, made) for c in columns) + ")"
                for _ in range(rng.choice([1, 1, 1, 2, 3, 5, 5, 30]))]
        return "(" + ", ".join(f"`{c.name}`" for c in columns) + ") VALUES " + ", ".join(rows)

    def cell(self, column, made: bool) -> str:
        """Returns a value. `made`: the engine generates that of an AUTO_INCREMENT column."""
        if column.auto_increment:
            return self.rng.choice(["NULL", "0"]) if made else column.plain(self.rng)
        return column.literal(self.rng)

    def replace(self) -> Statement:
        table = self.table()
        return Statement(f"REPLACE INTO {table.name} {self.values(table)}", counts_warnings=True)

    def on_duplicate(self) -> Statement:
        rng, table = self.rng, self.table()
        change = self.assignments(table)
        if not change:
            return self.insert()
        if rng.random() < 0.3:
            column = rng.choice(table.changeable())
            change = f"`{column.name}` = VALUES(`{column.name}`)"
        return Statement(f"INSERT INTO {table.name} {self.values(table)} "
                         f"ON DUPLICATE KEY UPDATE {change}")

    def insert_select(self):
        rng, target, source = self.rng, self.table(), self.table()
        if not source.primary or target is source:
            return None
        pairs = []
        for column in target.changeable():
            same = [c for c in source.columns
                    if c.family == column.family
                    and left_out(column.type_text).items() <= left_out(c.type_text).items()]
            if same:
                pairs.append((column, rng.choice(same)))
        if not pairs:
            return None
        verb = rng.choice(["INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO"])
        into = ", ".join(f"`{c.name}`" for c, _ in pairs)
        taken = ", ".join(f"`{c.name}`" for _, c in pairs)
        text = (f"{verb} {target.name} ({into}) SELECT {taken} FROM {source.name} "
                f"WHERE {self.place(source)} ORDER BY {source.order()} LIMIT {rng.randint(1, 12)}")
        # Gaps after an unknown row count depend on the engine, too: start from a given value.
        self.insert_id += 20
        return [Statement(f"SET insert_id = {self.insert_id}"), Statement(text)]

    def assignments(self, table: Table) -> str:
        able = table.changeable()
        if not able:
            return ""
        chosen = self.rng.sample(able, min(len(able), self.rng.choice([1, 1, 2, 3])))
        return ", ".join(f"`{c.name}` = {c.literal(self.rng)}" for c in chosen)

    def update(self):
        """UPDATE with a condition. It is ordered if it sets a unique column or has a limit."""
        rng, table = self.rng, self.table()
        change = self.assignments(table)
        if not change:
            return None
        touches = any(f"`{name}` =" in change for name in table.unique_columns())
        tail = ""
        if touches or rng.random() < 0.15:
            if not table.primary:
                return None
            tail = (f" ORDER BY {table.order()}"
                    + (f" LIMIT {rng.randint(1, 6)}" if rng.random() < 0.6 else ""))
        ignore = "IGNORE " if tail and rng.random() < 0.2 else ""
        return Statement(f"UPDATE {ignore}{table.name} SET {change} "
                         f"WHERE {self.place(table)}{tail}")

    def update_shift(self):
        """UPDATE that adds a constant to integers, including unique ones, in a fixed order."""
        rng, table = self.rng, self.table()
        able = [c for c in table.changeable() if c.family == "integer"]
        if not able or not table.primary:
            return None
        column = rng.choice(able)
        down = rng.choice(["", " DESC"])
        order = ", ".join(f"`{c.name}`{down}" for c in table.primary)
        shift = f"`{column.name}` = `{column.name}` + {rng.choice([1, -1, 3])}"
        return Statement(f"UPDATE {table.name} SET {shift} WHERE {self.place(table)} "
                         f"ORDER BY {order}")

    def delete(self) -> Statement:
        table = self.table()
        tail = ""
        if table.primary and self.rng.random() < 0.4:
            tail = f" ORDER BY {table.order()} LIMIT {self.rng.randint(1, 5)}"
        return Statement(f"DELETE FROM {table.name} WHERE {self.place(table)}{tail}")

    def delete_returning(self):
        table = self.table()
        return Statement(f"DELETE FROM {table.name} WHERE {self.place(table)} "
                         f"RETURNING {self.columns_of(table)}")

    def multi_update(self):
        """UPDATE of two joined tables with constants, so that the join's order does not matter."""
        pair = self.joined(virtual=False)
        if pair is None:
            return None
        left, right, on = pair
        quiet = [c for c in left.changeable() if c.name not in left.unique_columns()]
        if not quiet:
            return None
        column = self.rng.choice(quiet)
        return Statement(f"UPDATE {left.name} AS x JOIN {right.name} AS y ON {on} "
                         f"SET x.`{column.name}` = {column.plain(self.rng)} "
                         f"WHERE {self.place(right, 'y')}")

    def multi_delete(self):
        pair = self.joined(virtual=False)
        if pair is None:
            return None
        left, right, on = pair
        targets = self.rng.choice(["x", "x, y"])
        return Statement(f"DELETE {targets} FROM {left.name} AS x JOIN {right.name} AS y ON {on} "
                         f"WHERE {self.place(left, 'x')} AND {self.place(right, 'y')}")

    def load_data(self):
        """Writes rows to a file with a query and loads them with REPLACE or IGNORE."""
        rng, table = self.rng, self.table()
        if not table.primary:
            return None
        self.names_made += 1
        columns = ", ".join(f"`{c.name}`" for c in table.stored())
        # Each twin writes and reads its own file: {twin} is replaced by the database name.
        file = f"{self.folder}/{{twin}}-{self.names_made}.tsv"
        write = (f"SELECT {columns} INTO OUTFILE '{file}' CHARACTER SET utf8mb4 FROM {table.name} "
                 f"WHERE {self.place(table)} ORDER BY {table.order()} LIMIT 20")
        read = (f"LOAD DATA INFILE '{file}' {rng.choice(['REPLACE', 'IGNORE'])} "
                f"INTO TABLE {table.name} CHARACTER SET utf8mb4 ({columns})")
        return [Statement(write), Statement(f"DELETE FROM {table.name} WHERE {self.place(table)}"),
                Statement(read)]

    def select(self) -> Statement:
        rng, table = self.rng, self.table()
        text = f"SELECT {self.columns_of(table)} FROM {table.name} WHERE {self.where(table)}"
        if table.primary and rng.random() < 0.6:
            extra = ""
            if rng.random() < 0.5:
                extra = f"`{rng.choice(table.comparable()).name}`{rng.choice(['', ' DESC'])}, "
            down = rng.choice(["", " DESC"])
            text += " ORDER BY " + extra + ", ".join(f"`{c.name}`{down}" for c in table.primary)
            if rng.random() < 0.5:
                text += (f" LIMIT {rng.randint(0, 8)}"
                         + (f" OFFSET {rng.randint(0, 4)}" if rng.random() < 0.3 else ""))
            return Statement(text, ordered=True)
        return Statement(text)

    def select_index(self):
        """SELECT forced through one index, covering or not, forward or backward."""
        rng, table = self.rng, self.table()
        if not table.indexes:
            return None
        index = rng.choice(table.indexes)
        columns = (", ".join(f"`{c.name}`" for c in index.columns) if rng.random() < 0.5
                   else self.columns_of(table))
        where = self.where(table, among=index.columns) if rng.random() < 0.85 else "TRUE"
        text = f"SELECT {columns} FROM {table.name} FORCE INDEX (`{index.name}`) WHERE {where}"
        if table.primary and rng.random() < 0.5:
            down = rng.choice(["", " DESC"])
            text += " ORDER BY " + ", ".join(f"`{c.name}`{down}"
                                             for c in [*index.columns, *table.primary])
            return Statement(text + f" LIMIT {rng.randint(1, 10)}", ordered=True)
        return Statement(text)

    def group(self) -> Statement:
        rng, table = self.rng, self.table()
        able = table.comparable()
        column, by = rng.choice(able), rng.choice(able)
        wanted = ["COUNT(*)", f"COUNT(`{column.name}`)"]
        if column.family in ("integer", "decimal"):
            wanted += [f"SUM(`{column.name}`)", f"AVG(`{column.name}`)"]
        if column.family in ("integer", "decimal", "temporal", "bytes", "bit", "float"):
            # The plan decides whether the server zero-fills the extremes of a ZEROFILL column.
            number = " + 0" if column.family == "integer" else ""
            wanted += [f"MIN(`{column.name}`){number}", f"MAX(`{column.name}`){number}"]
            wanted += [f"COUNT(DISTINCT `{column.name}`)"]
        if column.family == "text":
            # Of equal strings either may be the smallest. Only trailing spaces differ in weight.
            wanted += [f"HEX(WEIGHT_STRING(RTRIM(LEFT(MIN(`{column.name}`), 5))))"]
        picked = ", ".join(rng.sample(wanted, rng.randint(1, min(3, len(wanted)))))
        text = f"SELECT {picked} FROM {table.name}"
        if rng.random() < 0.6:
            text += f" WHERE {self.where(table)}"
        if rng.random() < 0.5:
            text += f" GROUP BY `{by.name}`"
        return Statement(text)

    def join(self):
        pair = self.joined()
        if pair is None:
            return None
        left, right, on = pair
        kind = self.rng.choice(["JOIN", "LEFT JOIN"])
        return Statement(f"SELECT {self.columns_of(left, 'x')}, {self.columns_of(right, 'y')} "
                         f"FROM {left.name} AS x {kind} {right.name} AS y ON {on} "
                         f"WHERE {self.where(left, 'x')}")

    def handler(self):
        """HANDLER reads in primary key order. (Each handler reads in one direction only, because
        engines differ in the position after the end.)"""
        table = self.table()
        if not table.primary or table.options:
            return None
        first, way = self.rng.choice([("FIRST", "NEXT"), ("LAST", "PREV")])
        steps = [f"HANDLER {table.name} OPEN AS h", f"HANDLER h READ `PRIMARY` {first}"]
        steps += [f"HANDLER h READ `PRIMARY` {way} LIMIT {self.rng.randint(1, 3)}"
                  for _ in range(2)]
        return [Statement(text, ordered=True) for text in [*steps, "HANDLER h CLOSE"]]

    def columns_of(self, table: Table, alias: str = "") -> str:
        """Returns all columns by name, because `*` omits invisible columns."""
        dot = alias + "." if alias else ""
        return ", ".join(f"{dot}`{c.name}`" for c in table.columns)

    def joined(self, virtual=True):
        """Returns two tables and a condition on integers, or None."""
        left, right = self.table(), self.table()
        mine, theirs = ([c for c in table.columns
                         if c.family == "integer" and (virtual or not c.virtual)]
                        for table in (left, right))
        if left is right or not mine or not theirs:
            return None
        return left, right, f"x.`{self.rng.choice(mine).name}` = y.`{self.rng.choice(theirs).name}`"

    def where(self, table: Table, alias: str = "", among=None) -> str:
        rng = self.rng
        able = [c for c in (among or table.comparable()) if c.family != "geometry"]
        if not able:
            return "TRUE"
        terms = [self.condition(rng.choice(able), alias)
                 for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        return rng.choice([" AND ", " AND ", " OR "]).join(terms)

    def place(self, table: Table, alias: str = "") -> str:
        """Returns conditions for the rows to change. They use no virtual columns, because InnoDB
        sometimes loses rows when it sorts by indexes on them. They also exclude columns for which a
        prefix index would miss rows. `settles` can repeat a query but not a change."""
        able = [column for column in table.comparable() if not column.virtual
                and not (has_expansions(column.type_text) and table.has_prefixes_of(column))]
        return self.where(table, alias, able) if able else "TRUE"

    def condition(self, column, alias: str) -> str:
        rng = self.rng
        name = (alias + "." if alias else "") + f"`{column.name}`"
        value = column.plain(rng)
        roll = rng.random()
        if roll < 0.12:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        if roll < 0.3:
            return f"{name} BETWEEN {value} AND {column.plain(rng)}"
        if roll < 0.42:
            return f"{name} IN ({', '.join(column.plain(rng) for _ in range(rng.randint(1, 4)))})"
        if roll < 0.5 and column.family == "text":
            return f"{name} LIKE {like_of(rng, column)}"
        return f"{name} {rng.choice(['=', '=', '<', '<=', '>', '>=', '<>', '<=>'])} {value}"
