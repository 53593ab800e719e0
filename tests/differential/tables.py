"""Random tables: columns, primary keys, secondary indexes, generated columns and partitions."""

from collections import namedtuple

from columns import Column, random_column


class Index(namedtuple("Index", "name unique parts columns")):
    """A secondary index: its name, uniqueness, parts as SQL text, and columns."""

    def definition(self) -> str:
        return f"{'UNIQUE ' if self.unique else ''}INDEX `{self.name}` ({', '.join(self.parts)})"


class Table:
    def __init__(self, name: str):
        self.name, self.options, self.names_made = name, "", 0
        self.columns, self.indexes = [], []
        self.primary, self.primary_parts = [], []   # columns of the primary key; empty = none

    def create(self) -> str:
        """CREATE TABLE without an engine, so that the session's default engine is used."""
        lines = [c.definition() for c in self.columns]
        if self.primary:
            lines.append(f"PRIMARY KEY ({', '.join(self.primary_parts)})")
        lines += [i.definition() for i in self.indexes]
        return f"CREATE TABLE {self.name} (" + ", ".join(lines) + f"){self.options}"

    def stored(self) -> list:
        """Returns the columns that can be assigned."""
        return [c for c in self.columns if not c.generated]

    def changeable(self) -> list:
        """Returns the columns that UPDATE may set. AUTO_INCREMENT columns are excluded."""
        return [c for c in self.stored() if not c.auto_increment]

    def comparable(self) -> list:
        """Returns the columns that conditions and ORDER BY may use."""
        return [c for c in self.columns if c.family != "geometry"]

    def has_prefixes_of(self, column) -> bool:
        return any(f"`{column.name}`(" in part for index in self.indexes for part in index.parts)

    def unique_columns(self) -> set:
        names = {c.name for c in self.primary}
        for index in self.indexes:
            if index.unique:
                names |= {c.name for c in index.columns}
        return names

    def order(self, alias: str = "") -> str:
        """Returns an order without ties, or an empty string if the table has no primary key."""
        dot = alias + "." if alias else ""
        return ", ".join(f"{dot}`{c.name}`" for c in self.primary)

    def new_name(self, letter: str) -> str:
        self.names_made += 1
        return f"{letter}{self.names_made}"


def random_table(rng, name: str) -> Table:
    table = Table(name)
    for _ in range(rng.randint(2, 8)):
        table.columns.append(random_column(rng, table.new_name("c")))
    add_primary_key(rng, table)
    for _ in range(rng.choice([0, 1, 1, 2, 3, 4])):
        index = random_index(rng, table)
        if index:
            table.indexes.append(index)
    if rng.random() < 0.2:
        add_generated(rng, table)
    add_options(rng, table)
    return table


def add_primary_key(rng, table: Table) -> None:
    roll = rng.random()
    if roll < 0.4:
        key = Column(table.new_name("id"),
                     rng.choice(["INT", "BIGINT UNSIGNED", "SMALLINT", "INT UNSIGNED"]), "integer",
                     lambda r: str(r.randint(1, 60)), nullable=False, extra=" AUTO_INCREMENT")
        key.auto_increment = True
        table.columns.insert(rng.randint(0, len(table.columns)), key)
        table.primary, table.primary_parts = [key], [f"`{key.name}`"]
    elif roll < 0.85:
        # Prefix parts would leave ties in ORDER BY, so a primary key uses full columns.
        able = [c for c in table.columns
                if c.indexable and not c.must_prefix and c.prefix_max <= 100
                and not c.extra.strip()]
        for column in rng.sample(able, min(len(able), rng.choice([1, 1, 2, 3]))):
            column.nullable, column.extra = False, ""
            table.primary.append(column)
            table.primary_parts.append(f"`{column.name}`" + (" DESC" if rng.random() < 0.2 else ""))


def random_index(rng, table: Table):
    """Returns a secondary index on up to three columns, or None if no column can be indexed."""
    able = [c for c in table.columns if c.indexable]
    if not able:
        return None
    chosen = rng.sample(able, min(len(able), rng.choice([1, 1, 2, 3])))
    parts = []
    for column in chosen:
        part = f"`{column.name}`"
        if (column.must_prefix or (column.prefix_max > 200)
                or (column.prefix_max > 1 and rng.random() < 0.3)):
            part += f"({rng.randint(1, min(column.prefix_max, 30))})"
        parts.append(part + (" DESC" if rng.random() < 0.15 else ""))
    return Index(table.new_name("k"), rng.random() < 0.25, parts, chosen)


def add_generated(rng, table: Table) -> None:
    sources = [c for c in table.columns if c.family == "integer" and not c.auto_increment]
    if not sources:
        return
    source = rng.choice(sources)
    stored = rng.random() < 0.5
    column = Column(table.new_name("g"),
                    f"BIGINT AS (`{source.name}` % 7) {'PERSISTENT' if stored else 'VIRTUAL'}",
                    "integer", lambda r: str(r.randint(-6, 6)))
    column.generated = True
    column.virtual = not stored
    table.columns.append(column)
    if rng.random() < 0.5:
        table.indexes.append(Index(table.new_name("k"), False, [f"`{column.name}`"], [column]))


def add_options(rng, table: Table) -> None:
    """Sometimes adds partitions, if the primary key allows them."""
    whole = len(table.primary) == 1 and table.primary[0].family == "integer"
    others = any(i.unique for i in table.indexes)
    # The server refuses a partitioning function on columns of other types, and requires its column
    # in every unique key.
    if (whole and not others and not any(c.family == "geometry" for c in table.columns)
            and rng.random() < 0.12):
        table.options = f" PARTITION BY HASH (`{table.primary[0].name}`) PARTITIONS 3"
