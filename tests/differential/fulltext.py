"""Random tables with full-text indexes, changes of their texts, and searches in all modes.

InnoDB finds the words of a transaction only after its commit, so searches run outside of
transactions. InnoDB's row counts are exact only after ANALYZE TABLE, and after OPTIMIZE TABLE with
innodb_optimize_fulltext_only. Both statements run on copies of tables, and ranks are compared only
there. (On other tables OPTIMIZE TABLE sometimes crashes InnoDB's server.) Elsewhere only the rows
are compared. docs/users/fulltext.md ("Where ours differ") lists the other differences, and the
generator avoids each of them, as comments below note."""

import functools
import re
import subprocess

from cheetah_tools.paths import shared_data
from statements import no_matter, Statement, Stream
from twins import difference

# The settings with which InnoDB counts exactly.
OPTIONS = {"innodb_optimize_fulltext_only": 1, "innodb_ft_num_word_optimize": 10000,
           "innodb_stats_persistent": 1, "innodb_stats_auto_recalc": 0,
           "innodb_stats_persistent_sample_pages": 2000}
RANK_TOLERANCE, ORDER_TOLERANCE = 1e-4, 1e-6
WORDS = ["apple", "apples", "applesauce", "Apple", "river", "Rivers", "stone", "STONE", "database",
         "data", "mysql", "tutorial", "zebra", "word", "wordy", "night", "light", "Straße",
         "strasse", "café", "cafe", "Café", "naïve", "über", "uber", "ñandú", "l'eau", "don't",
         "rock'n'roll", "O'Neill", "a'b'cdef", "42", "007", "1001", "3D", "under_score", "_x_",
         "___", "x_1", "e-mail", "semi;colon", "tab\tbed", "line\nbreak", "point.less"]
STOP_WORDS = ["the", "The", "for", "in", "about", "com", "www", "a", "i", "how"]
SHORT_WORDS = ["xy", "ab", "q", "z1", "é"]
LONG_WORDS = ["abcdefghij" * 8 + "abcd", "abcdefghij" * 8 + "abcde", "abcdefghij" * 8 + "abcdx",
              "é" * 84, "é" * 85]
WIDE_WORDS = ["日本語", "テキスト", "Ελληνικά", "ελληνικα", "слово", "Слово", "ﬁne", "𝔘nicode"]
COLLATIONS = [("utf8mb4", "utf8mb4_general_ci"), ("utf8mb4", "utf8mb4_unicode_ci"),
              ("utf8mb4", "utf8mb4_bin"), ("latin1", "latin1_swedish_ci"),
              ("latin1", "latin1_general_cs"), ("latin1", "latin1_bin"),
              ("utf8mb3", "utf8mb3_general_ci")]
TYPES = ["VARCHAR(2000)", "TEXT", "MEDIUMTEXT", "CHAR(200)"]
KEYS = ["PRIMARY KEY (id)", "PRIMARY KEY (id)", "PRIMARY KEY (tag, id)", "PRIMARY KEY (tag(3), id)",
        "PRIMARY KEY (id DESC)", "UNIQUE KEY u (id)", ""]
NATURAL, BOOLEAN, EXPANSION = "IN NATURAL LANGUAGE MODE", "IN BOOLEAN MODE", "WITH QUERY EXPANSION"
REAL_TEXTS_MAX, REAL_TEXT_CHARS_MAX = 400, 700
ROWS_MAX = 150


class Index:
    def __init__(self, name: str, columns: list):
        self.name, self.columns = name, columns

    def definition(self) -> str:
        return f"FULLTEXT KEY {self.name} ({', '.join(self.columns)})"


class Texts:
    """A table with `id`, `tag`, `n` and three text columns. No two rows have the same ID."""

    def __init__(self, name: str, rng):
        self.name, self.charset = name, rng.choice(COLLATIONS)
        self.key, self.columns = rng.choice(KEYS), {f"t{no}": rng.choice(TYPES) for no in (1, 2, 3)}
        self.indexes = []

    def create(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        keys = filter(None, [self.key, *(index.definition() for index in self.indexes)])
        parts = ", ".join(["id INT NOT NULL", "tag VARCHAR(20) NOT NULL", "n INT", columns, *keys])
        return (f"CREATE TABLE {self.name} ({parts}) "
                f"CHARACTER SET {self.charset[0]} COLLATE {self.charset[1]}")


@functools.cache
def real_texts() -> list:
    """Returns texts from the data sets next to the project, or an empty list."""
    texts = []
    for name in ("feed_beer", "ltgwiki"):
        path = shared_data() / f"{name}.sql.zst"
        if not path.exists():
            continue
        with subprocess.Popen(["zstd", "-dc", str(path)], stdout=subprocess.PIPE) as source:
            head = source.stdout.read(6_000_000).decode(errors="ignore")
            source.kill()
        found = [text for text in re.findall(r"'((?:[^'\\]|\\.)*)'", head)
                 if len(text) > 60][:REAL_TEXTS_MAX // 2]
        texts += [re.sub(r"\\(.)",
                         lambda match: {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1]),
                         text, flags=re.S)[:REAL_TEXT_CHARS_MAX]
                  for text in found]
    return texts


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def same_ranks(left: list, right: list) -> str:
    """Returns the difference of rows and ranks (the last column), or an empty string."""
    if len(left) != len(right):
        return "numbers of rows differ"
    for mine, other in zip(sorted(left, key=by_key_and_rank), sorted(right, key=by_key_and_rank),
                           strict=True):
        if mine[:-1] != other[:-1]:
            return f"rows differ: {mine} {other}"
        if abs(float(mine[-1]) - float(other[-1])) > RANK_TOLERANCE:
            return f"ranks differ: {mine} {other}"
    return ""


def ordered_ranks(left: list, right: list) -> str:
    """Like `same_ranks`, but also requires our rows in descending order of ranks."""
    ranks = [float(row[-1]) for row in right]
    if any(later > earlier + ORDER_TOLERANCE
           for earlier, later in zip(ranks, ranks[1:], strict=False)):
        return "rows are not in the order of their ranks"
    return same_ranks(left, right)


def by_key_and_rank(row) -> tuple:
    """Returns a sort key. Rows with equal keys are ordered by their rank."""
    return (*row[:-1], float(row[-1]))


class Fulltext(Stream):
    ddl_compare = staticmethod(no_matter)   # engines count work in their own ways

    def __init__(self, rng, folder):
        super().__init__(rng, folder)
        self.real, self.last_id = real_texts(), 0
        self.kinds = [(self.insert, 10), (self.replace, 3), (self.on_duplicate, 3),
                      (self.update, 8), (self.move, 3), (self.delete, 4), (self.transaction, 3),
                      (self.alter, 1.5), (self.empty, 0.4), (self.fill, 1.5), (self.search, 30),
                      (self.ranks, 12), (self.change_found, 1)]

    def columns_of(self, _table) -> str:
        return "id, tag, n, t1, t2, t3"

    def next(self) -> list:
        return self.new_table() if len(self.tables) < 3 else super().next()

    def settles(self, innodb, statement, other) -> bool:
        """Returns whether InnoDB gives the other engine's answer once the rows are copied to a new
        table. In the original table InnoDB's answers sometimes lack rows."""
        found = re.search(r"^SELECT .* FROM (\w+)", statement.text, re.S)
        if not found or "MATCH (" not in statement.text:
            return False
        name = found[1]
        for text in ("DROP TABLE IF EXISTS again", f"CREATE TABLE again LIKE {name}",
                     f"INSERT INTO again SELECT * FROM {name}", "OPTIMIZE TABLE again",
                     "OPTIMIZE TABLE again", "ANALYZE TABLE again"):
            innodb.run(text)
        fresh = innodb.run(statement.text.replace(f" FROM {name}", " FROM again", 1))
        innodb.run("DROP TABLE again")
        return not difference(statement, fresh, other)

    def word(self, table) -> str:
        """Returns one word from a small vocabulary, so that most searches find rows."""
        kinds = [WORDS, STOP_WORDS, SHORT_WORDS, LONG_WORDS]
        if table.charset[0] != "latin1":
            kinds.append(WIDE_WORDS[:-1] if table.charset[0] == "utf8mb3" else WIDE_WORDS)
        return self.rng.choice(self.rng.choices(kinds, [60, 12, 6, 2, 8][:len(kinds)])[0])

    def text(self, table, words_max=12) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.06:
            return "NULL"
        if roll < 0.1:
            return "''"
        if roll < 0.3 and words_max > 4 and self.real:
            real = rng.choice(self.real)
            wide = {"latin1": "latin-1"}.get(table.charset[0])
            real = (real.encode(wide, "replace").decode(wide) if wide
                    else re.sub("[^\0-\uffff]", "?", real))
            return quoted(real)
        text = ""
        for _ in range(rng.randint(1, words_max)):
            text += self.word(table) + rng.choice([" "] * 12 + [", ", ". ", "-", "\n", "/", " (",
                                                                ") ", "; ", "'", " ' ", "\"", "_"])
        return quoted(text)

    def row(self, table) -> str:
        self.last_id += 1
        columns = ", ".join(self.text(table) if not kind.startswith("CHAR") else self.char(table)
                            for kind in table.columns.values())
        return (f"({self.last_id}, '{self.rng.choice('abcde')}', {self.rng.randint(0, 9)}, "
                f"{columns})")

    def char(self, table) -> str:
        return f"LEFT({self.text(table, 4)}, 200)"

    def value(self, table, column: str) -> str:
        return self.char(table) if table.columns[column].startswith("CHAR") else self.text(table)

    def some_id(self) -> int:
        """Returns a random recent ID. Rows with earlier IDs were mostly deleted."""
        return self.rng.randint(max(1, self.last_id - ROWS_MAX), max(1, self.last_id))

    def insert(self) -> Statement:
        table = self.table()
        rows = ", ".join(self.row(table) for _ in range(self.rng.choice([1, 1, 2, 5])))
        ignore = self.rng.choice(["", "", " IGNORE"])
        return Statement(f"INSERT{ignore} INTO {table.name} VALUES {rows}")

    def again(self, table) -> str:
        """Returns a row whose ID may already exist."""
        return re.sub(r"^\(\d+", f"({self.some_id()}", self.row(table))

    def has_one_key(self, table) -> bool:
        """Returns whether the ID alone is a key. Else an existing ID is added, not replaced."""
        return table.key in ("PRIMARY KEY (id)", "PRIMARY KEY (id DESC)", "UNIQUE KEY u (id)")

    def replace(self) -> Statement:
        table = self.table()
        if not self.has_one_key(table):
            return self.insert()
        rows = ", ".join(self.again(table) for _ in range(self.rng.choice([1, 2])))
        return Statement(f"REPLACE INTO {table.name} VALUES {rows}")

    def on_duplicate(self) -> Statement:
        table = self.table()
        if not self.has_one_key(table):
            return self.insert()
        return Statement(f"INSERT INTO {table.name} VALUES {self.again(table)} "
                         f"ON DUPLICATE KEY UPDATE {self.change(table)}")

    def change(self, table) -> str:
        rng = self.rng
        if rng.random() < 0.15:
            return f"n = n + {rng.randint(1, 3)}"
        columns = rng.sample(list(table.columns), rng.choice([1, 1, 2, 3]))
        return ", ".join(f"{column} = {self.value(table, column)}" for column in columns)

    def where(self) -> str:
        if self.rng.random() < 0.6:
            return f"id = {self.some_id()}"
        start = self.some_id()
        return (f"id BETWEEN {start} AND {start + self.rng.randint(0, 8)} "
                f"AND n < {self.rng.randint(3, 9)}")

    def update(self) -> Statement:
        table = self.table()
        return Statement(f"UPDATE {table.name} SET {self.change(table)} WHERE {self.where()}")

    def move(self) -> Statement:
        table = self.table()
        self.last_id += 1
        more = f", {self.change(table)}" if self.rng.random() < 0.4 else ""
        what = self.rng.choice([f"id = {self.last_id}", f"tag = '{self.rng.choice('abcde')}'"])
        return Statement(f"UPDATE {table.name} SET {what}{more} WHERE id = {self.some_id()}")

    def delete(self) -> Statement:
        where = self.rng.choice([self.where(), self.where(), f"id < {self.last_id - ROWS_MAX}"])
        return Statement(f"DELETE FROM {self.table().name} WHERE {where}")

    def change_found(self) -> list:
        """UPDATE or DELETE of the rows that a search finds. The search result is compared first."""
        table = self.table()
        found = f"MATCH ({self.columns(table)}) AGAINST ({quoted(self.word(table))})"
        if self.in_transaction:
            return [self.update()]
        look = Statement(f"SELECT id FROM {table.name} WHERE {found}")
        return [look, Statement(self.rng.choice([
            f"UPDATE {table.name} SET n = n + 1 WHERE {found}",
            f"UPDATE {table.name} SET t1 = 'found zebra' WHERE {found}",
            f"DELETE FROM {table.name} WHERE {found} AND n = 3"]))]

    def transaction(self) -> list:
        if not self.in_transaction:
            return [Statement("BEGIN", apply=lambda: setattr(self, "in_transaction", True))]
        if self.rng.random() < 0.4:
            return [Statement("SAVEPOINT s"), self.update(), self.insert(), self.delete(),
                    Statement("ROLLBACK TO s")]
        return [self.end()]

    def end(self) -> Statement:
        return Statement(self.rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]), apply=self.ended)

    def new_table(self) -> list:
        self.names_made += 1
        table = Texts(f"t{self.names_made}", self.rng)
        for no in range(self.rng.choice([1, 1, 2])):
            index = self.new_index(table, f"f{no}")
            if index.columns not in [other.columns for other in table.indexes]:
                table.indexes.append(index)
        rows = ", ".join(self.row(table) for _ in range(20))
        return [Statement(table.create(), apply=lambda: self.tables.append(table)),
                Statement(f"INSERT INTO {table.name} VALUES {rows}")]

    def new_index(self, table, name: str) -> Index:
        return Index(name, self.rng.sample(list(table.columns), self.rng.choice([1, 2, 2, 3])))

    def alter(self) -> Statement:
        rng, table = self.rng, self.table()
        self.names_made += 1
        name, how = (f"f{self.names_made}",
                     rng.choice(["", ", ALGORITHM = INPLACE", ", ALGORITHM = COPY"]))
        # InnoDB cannot rebuild a table in place if it has several full-text indexes.
        built = how if "COPY" in how else ""
        roll = rng.random()
        if roll < 0.35 and len(table.indexes) < 3:
            index = self.new_index(table, name)
            if index.columns not in [other.columns for other in table.indexes]:
                return self.ddl(f"ALTER TABLE {table.name} ADD {index.definition()}{how}",
                                lambda: table.indexes.append(index))
        if roll < 0.55 and len(table.indexes) > 1:
            index = rng.choice(table.indexes)
            return self.ddl(f"ALTER TABLE {table.name} DROP INDEX {index.name}{how}",
                            lambda: table.indexes.remove(index))
        if roll < 0.75:
            index = rng.choice(table.indexes)
            return self.ddl(f"ALTER TABLE {table.name} RENAME INDEX {index.name} TO {name}",
                            lambda: setattr(index, "name", name))
        if roll < 0.85:
            # The next step drops the column, so that statements for the old columns still fit.
            return self.ddl(f"ALTER TABLE {table.name} ADD COLUMN c{self.names_made} INT "
                            f"DEFAULT 7 FIRST{rng.choice(['', built])}",
                            lambda: self.drop_column(table, f"c{self.names_made}"))
        return self.ddl(f"ALTER TABLE {table.name} FORCE{built}")

    def drop_column(self, table, column: str) -> None:
        self.kinds.append((lambda: self.ddl(f"ALTER TABLE {table.name} DROP COLUMN {column}",
                                            self.kinds.pop), 1e9))

    def empty(self) -> Statement:
        return self.ddl(f"TRUNCATE TABLE {self.table().name}")

    def fill(self) -> list:
        source = self.table()
        columns, name = self.columns_of(source), f"copy{self.names_made}"
        self.names_made += 1
        copy = Texts(name, self.rng)
        copy.charset, copy.key, copy.columns, copy.indexes = (
            source.charset, source.key, source.columns, source.indexes)
        made = [self.ddl(copy.create())]
        if self.rng.random() < 0.5:
            made.append(Statement(f"INSERT INTO {name} ({columns}) "
                                  f"SELECT {columns} FROM {source.name}"))
        else:
            file = f"{self.folder}/{{twin}}-{name}.tsv"
            made += [Statement(f"SELECT {columns} INTO OUTFILE '{file}' CHARACTER SET utf8mb4 "
                               f"FROM {source.name}"),
                     Statement(f"LOAD DATA INFILE '{file}' INTO TABLE {name} "
                               f"CHARACTER SET utf8mb4 ({columns})")]
        made += [Statement(f"CHECK TABLE {name}"), *self.searches(copy, 4),
                 Statement(f"DELETE FROM {name} WHERE n < 5"), *self.searches(copy, 2),
                 Statement(f"CHECK TABLE {name}"), self.ddl(f"DROP TABLE {name}")]
        return made

    def columns(self, table) -> str:
        """Returns the columns of an index in any order, or rarely others, which is an error."""
        rng = self.rng
        columns = (list(rng.choice(table.indexes).columns) if rng.random() < 0.97
                   else rng.sample(list(table.columns), 1))
        rng.shuffle(columns)
        return ", ".join(columns)

    def search(self) -> list:
        """Searches without ranks: InnoDB counts deleted rows and estimates the row count."""
        return [*self.outside(), *self.searches(self.table(), self.rng.randint(2, 6))]

    def searches(self, table, count: int) -> list:
        return [self.one_search(table) for _ in range(count)]

    def one_search(self, table) -> Statement:
        """A search in one of the forms in which a statement may use MATCH."""
        rng = self.rng
        mode = rng.choices([NATURAL, BOOLEAN, EXPANSION], [4, 6, 1.5])[0]
        match = (f"MATCH ({self.columns(table)}) "
                 f"AGAINST ({quoted(self.query(table, mode, settled=False))} {mode})")
        roll = rng.random()
        if roll < 0.1:
            return Statement(f"SELECT COUNT(*) FROM {table.name} WHERE {match}")
        if roll < 0.2:
            return Statement(f"SELECT id FROM {table.name} WHERE {match} AND n > 4 "
                             f"AND id > {self.some_id()}")
        if roll < 0.25:
            return Statement(
                f"SELECT id FROM {table.name} WHERE NOT {match}" if mode == NATURAL
                else f"SELECT id FROM {table.name} WHERE id = {self.some_id()} AND {match}")
        return Statement(f"SELECT id, tag, n FROM {table.name} WHERE {match}")

    def ranks(self) -> list:
        """Compares rows and ranks, on a copy of a table because InnoDB counts deleted rows."""
        rng, table, copy = self.rng, self.table(), f"copy{self.names_made}"
        self.names_made += 1
        made = [*self.outside(), self.ddl(f"CREATE TABLE {copy} LIKE {table.name}"),
                Statement(f"INSERT INTO {copy} SELECT * FROM {table.name}"),
                *[Statement(f"OPTIMIZE TABLE {copy}", only="InnoDB")] * 2,
                Statement(f"ANALYZE TABLE {copy}", compare=no_matter)]
        for _ in range(rng.randint(3, 8)):
            # The words of an expanded query depend on how InnoDB stores rows.
            mode = rng.choices([NATURAL, BOOLEAN], [4, 6])[0]
            match = (f"MATCH ({self.columns(table)}) "
                     f"AGAINST ({quoted(self.query(table, mode, settled=True))} {mode})")
            where, compare = ((f" WHERE {match}", ordered_ranks) if rng.random() < 0.7
                              else ("", same_ranks))
            made.append(Statement(f"SELECT id, {match} AS r FROM {copy}{where}", compare=compare))
        return [*made, self.ddl(f"DROP TABLE {copy}")]

    def outside(self) -> list:
        """Ends the open transaction, if any."""
        return [self.end()] if self.in_transaction else []

    def query(self, table, mode: str, settled: bool) -> str:
        """Returns a query for that mode. Some queries are malformed."""
        rng = self.rng
        if mode == BOOLEAN:
            query = self.boolean_list(table, rng.choice([0, 0, 1, 2]))
        else:
            query = " ".join(self.plain_item(table, mode)
                             for _ in range(rng.choice([0, 1, 1, 2, 3, 5])))
        if rng.random() < 0.12:
            query = self.spoiled(query)
        # After two + and a parenthesis, InnoDB skips rows for a phrase with +.
        query = re.sub(r'(\+\s*)+"', lambda found: '"' if "(" in query[:found.start()] and
                       query.count("+", 0, found.start()) > 1 else found[0], query)
        if mode == EXPANSION:
            # With a `*`, InnoDB may treat words of the found rows as prefixes.
            query = query.replace("*", "")
        if table.charset[1].endswith("_bin"):
            # InnoDB finds no phrase with capital letters in a binary collation.
            query = query.replace('"', "")
        if not settled and '"' in query:
            # If a prefix follows a phrase, InnoDB does not search its cache for the prefix.
            query = query.replace("*", "")
        return query

    def plain_item(self, table, mode: str) -> str:
        """Returns a word, a phrase, or operators that have no meaning in this mode."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.15:
            return '"' + self.phrase(table) + '"'
        if roll < 0.2 and mode == NATURAL:
            return self.word(table) + rng.choice([" *", "*", " * "])
        if roll < 0.3:
            return rng.choice("+-~<>@(") + self.word(table) + rng.choice(["", ")", "@3", "%", "-"])
        return self.word(table)

    def phrase(self, table) -> str:
        """Returns words that may be adjacent in a row."""
        words = [self.word(table) for _ in range(self.rng.choice([1, 2, 2, 3]))]
        return self.rng.choice([" ", " ", ", ", "  "]).join(words)

    def boolean_list(self, table, depth: int) -> str:
        return " ".join(self.boolean_item(table, depth)
                        for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4])))

    def boolean_item(self, table, depth: int) -> str:
        rng = self.rng
        operator = rng.choice(["", "", "", "+", "+", "-", "~", "<", ">"])
        roll = rng.random()
        if roll < 0.2 and depth:
            return f"{operator}({self.boolean_list(table, depth - 1)})"
        if roll < 0.35:
            near = rng.choice(["", "", f"@{rng.randint(0, 8)}", f" @{rng.randint(1, 20)}"])
            return f'{operator}"{self.phrase(table)}"{near}'
        word = self.word(table).partition("-")[0]
        if roll < 0.55:
            return (operator + word[:rng.randint(1, len(word))].rstrip("'")
                    + rng.choice(["*", "*", " *"]))
        return operator + word

    def spoiled(self, query: str) -> str:
        rng = self.rng
        at = rng.randint(0, len(query))
        if rng.random() < 0.3:
            return query[:at] + query[at + 1:]
        return query[:at] + rng.choice([*'"+-~<>()*@%', "@2", "++", "'", " "]) + query[at:]
