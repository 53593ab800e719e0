"""Column types and their random values, as SQL text, from small pools: duplicates, equal but
different strings (in case, accents or trailing spaces) and limits of the type are frequent."""

# Without utf8mb4_uca1400_as_cs: with that collation the server's order of 'A' and 'ä' varies, even
# within one InnoDB table. tests/sql/collations_all.sql has all collations.
COLLATIONS = [
    "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "utf8mb4_nopad_bin",
    "utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_unicode_520_nopad_ci",
    "utf8mb4_czech_ci", "latin1_swedish_ci", "latin1_bin", "latin1_german2_ci", "latin1_nopad_bin",
    "ucs2_general_ci", "utf16_unicode_ci", "utf32_bin", "utf8mb3_general_ci", "sjis_japanese_ci",
    "big5_chinese_ci", "cp1250_czech_cs", "tis620_thai_ci", "ascii_general_ci",
]
LETTERS = ["a", "A", "b", "B", "c", "\u00e4", "\u00c4", "\u00df", "s", "S", "z", " ", "-", "_", "0",
           "9", "\t", "\u00e9", "ch"]
RARE_LETTERS = ["\u0e01", "\u4e2d", "\U0001f600", "\u0416", "%", "\\", "'", "\n"]
INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}


def quote(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\0", "\\0")):
        text = text.replace(plain, escaped)
    return f"'{text}'"


class Column:
    def __init__(self, name, type_text, family, literal, prefix_max=0, nullable=True, extra="",
                 must_prefix=False, indexable=True):
        self.name, self.type_text, self._literal = name, type_text, literal
        self.family = family            # integer, decimal, float, text, bytes, temporal, other
        # The maximum length of an index prefix in characters; 0 = no prefixes.
        self.prefix_max = prefix_max
        self.must_prefix = must_prefix  # blobs are indexed by prefix only
        self.indexable, self.nullable, self.extra = indexable, nullable, extra
        self.generated = self.virtual = self.auto_increment = False

    def literal(self, rng, bad_part=0.02) -> str:
        """Returns a random literal: sometimes NULL or DEFAULT, rarely a value that does not fit."""
        roll = rng.random()
        if roll < (0.12 if self.nullable else 0.004):
            return "NULL"
        if roll < 0.14:
            return "DEFAULT" if not self.generated else self._literal(rng)
        if roll > 1 - bad_part:
            return rng.choice(["'no such value'", "-99999999999999999999", "''", "'2001-02-30'",
                               "99999999999", "x'ff'"])
        return self._literal(rng)

    def plain(self, rng) -> str:
        """Returns a literal for a comparison. NULL, DEFAULT and unfit values are excluded because
        they warn for each row. '' is excluded for an ENUM because it is both a member and the
        stored form of an unfit value. A scan finds both, an index only one of them."""
        literal = self._literal(rng)
        return "'red'" if literal == "''" and self.type_text.startswith("ENUM") else literal

    def definition(self) -> str:
        null = "" if self.generated else ("" if self.nullable else " NOT NULL")
        return f"`{self.name}` {self.type_text}{null}{self.extra}"


def random_column(rng, name: str) -> Column:
    maker = rng.choices([integer, decimal, floating, bit, temporal, varying_text, fixed_text,
                         long_text, short_bytes, long_bytes, enumeration, set_of, json, address,
                         uuid, geometry],
                        [20, 6, 5, 3, 14, 16, 8, 6, 8, 4, 4, 3, 2, 3, 2, 1])[0]
    column = maker(rng, name)
    column.nullable = column.nullable and rng.random() < 0.65
    if column.nullable and rng.random() < 0.1:
        column.extra += " DEFAULT NULL"
    if rng.random() < 0.03:
        column.extra += " INVISIBLE" if column.nullable else ""
    return column


def integer(rng, name: str) -> Column:
    base = rng.choice(list(INTEGER_BITS))
    unsigned = rng.random() < 0.4
    bits = INTEGER_BITS[base]
    low, high = (0, 2**bits - 1) if unsigned else (-2**(bits - 1), 2**(bits - 1) - 1)

    def literal(r):
        small = r.randint(max(low, -8), 24)
        return str(r.choices([small, r.choice([low, high, low + 1, high - 1, 0]),
                              r.randint(low, high)], [80, 8, 12])[0])
    return Column(name,
                  base + (rng.choice([" UNSIGNED", " UNSIGNED ZEROFILL"]) if unsigned else ""),
                  "integer", literal)


def decimal(rng, name: str) -> Column:
    digits, scale = rng.choice([(5, 2), (10, 0), (18, 9), (30, 10), (65, 30), (4, 4)])
    whole = digits - scale

    def literal(r):
        sign = r.choice(["", "-"])
        left = str(r.randint(0, 10 ** min(whole, r.choice([1, 2, whole])) - 1)) if whole else "0"
        return (sign + left
                + ("." + str(r.randint(0, 10 ** min(scale, r.choice([1, scale])) - 1))
                   if scale else ""))
    return Column(name, f"DECIMAL({digits},{scale})", "decimal", literal)


def floating(rng, name: str) -> Column:
    """Returns a column that is never summed because the order of additions depends on the plan."""
    def literal(r):
        return r.choice([str(r.randint(-5, 5)), f"{r.uniform(-10, 10):.3f}", "0", "-0.0", "1e10",
                         "-2.5e-7", "0.5"])
    return Column(name, rng.choice(["FLOAT", "DOUBLE"]), "float", literal)


def bit(rng, name: str) -> Column:
    width = rng.choice([1, 3, 8, 9, 31, 64])
    return Column(name, f"BIT({width})", "bit",
                  lambda r: f"b'{r.getrandbits(min(width, r.choice([2, width]))):b}'")


def temporal(rng, name: str) -> Column:
    base = rng.choice(["DATE", "TIME", "DATETIME", "TIMESTAMP", "YEAR"])
    digits = rng.choice([0, 0, 1, 3, 6]) if base in ("TIME", "DATETIME", "TIMESTAMP") else 0

    def day(r):
        year = (r.choice([1999, 2000, 2024]) if base == "TIMESTAMP"
                else r.choice([1000, 1999, 2000, 2024, 9999]))
        return f"{year}-{r.randint(1, 12):02}-{r.randint(1, 28):02}"

    def clock(r):
        fraction = f".{r.randint(0, 999999):06}" if digits and r.random() < 0.7 else ""
        return (f"{r.randint(0, 23):02}:{r.choice([0, 30, 59]):02}:{r.choice([0, 1, 59]):02}"
                f"{fraction}")

    def literal(r):
        if base == "YEAR":
            return r.choice(["1901", "2000", "2024", "2155", str(r.randint(1990, 2030))])
        if base == "DATE":
            return f"'{day(r)}'"
        if base == "TIME":
            return r.choice([f"'{clock(r)}'", f"'-{clock(r)}'", "'838:59:59'", "'-838:59:59'",
                             "'00:00:00'"])
        return f"'{day(r)} {clock(r)}'"
    type_text = base + (f"({digits})" if digits else "")
    column = Column(name, type_text, "temporal", literal)
    if base == "TIMESTAMP":
        # Otherwise the first TIMESTAMP column implicitly gets DEFAULT and ON UPDATE.
        column.nullable = True
        column.extra = " NULL"
    return column


def words(r, longest: int) -> str:
    """Returns a short random string. Near-duplicates are frequent."""
    letters = LETTERS if r.random() < 0.93 else LETTERS + RARE_LETTERS
    text = "".join(r.choice(letters) for _ in range(r.choice([0, 1, 1, 2, 2, 3, 5])))
    if r.random() < 0.15:
        text += " " * r.randint(1, 3)
    return text[:longest]


def collated(rng, type_text: str) -> str:
    collation = rng.choice(COLLATIONS)
    return f"{type_text} CHARACTER SET {collation.split('_')[0]} COLLATE {collation}"


def left_out(type_text: str) -> dict:
    """Returns letters that the server orders inconsistently in any engine, each with its
    substitute. With these letters, the rows found would depend on the plan.

    For a CHAR with a NOPAD collation, the server's comparison places '' before a tab, but its
    padded keys place '' after the tab. In such a collation A and Ä are equal, but the server sorts
    the two-byte letter first because fewer spaces follow it. In cp1250_czech_cs '' and ' ' are
    equal but have different sort keys, so a sort with LIMIT returns another order than one without.
    Also, in this collation a sort places '' after a tab, as for padded values, while an index of
    any engine places '' before the tab."""
    if "czech_cs" in type_text:
        return str.maketrans(dict.fromkeys(" \t\n", "-"))
    if not (type_text.startswith("CHAR") and "nopad" in type_text):
        return {}
    several_bytes = [letter for letter in LETTERS + RARE_LETTERS if not letter.isascii()]
    return str.maketrans(dict.fromkeys(["\t", "\n", *several_bytes], "-"))


def prefix_of(type_text: str, length: int) -> int:
    """Returns the maximum length of an index prefix: 0 in cp1250_czech_cs, where a larger string
    may have the smaller prefix, and the server looks up ranges by prefixes in any engine."""
    return 0 if "czech_cs" in type_text else length


def has_expansions(type_text: str) -> bool:
    """Returns whether one letter may have the weight of two, as ß does, or two letters the weight
    of one. For values with such letters, prefixes have the problem that `prefix_of` describes."""
    return any(word in type_text for word in ("unicode", "uca1400", "german2", "czech"))


def like_of(rng, column: Column) -> str:
    """Returns a quoted LIKE pattern of an index range, except in a binary collation that pads with
    spaces: there any engine starts at the padded letter and misses the letter before a tab."""
    letter = rng.choice(["a", "A", "s", ""])
    misses_tabs = column.type_text.endswith("_bin") and "_nopad_" not in column.type_text
    return f"'%{letter}%'" if misses_tabs else f"'{letter}%'"


def varying_text(rng, name: str) -> Column:
    length = rng.choice([1, 5, 20, 63, 64, 200, 300])
    type_text = collated(rng, f"VARCHAR({length})")
    other_letters = left_out(type_text)

    def literal(r):
        text = words(r, length).translate(other_letters)
        return quote((text * 100)[:length] if r.random() < 0.04 else text)
    return Column(name, type_text, "text", literal, prefix_max=prefix_of(type_text, length))


def fixed_text(rng, name: str) -> Column:
    length = rng.choice([1, 3, 10, 60])
    type_text = collated(rng, f"CHAR({length})")
    other_letters = left_out(type_text)
    return Column(name, type_text, "text",
                  lambda r: quote(words(r, length).translate(other_letters)),
                  prefix_max=prefix_of(type_text, length))


def long_text(rng, name: str) -> Column:
    base = rng.choice(["TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"])
    longest, type_text = 60 if base == "TINYTEXT" else 90000, collated(rng, base)
    while not prefix_of(type_text, 1):
        type_text = collated(rng, base)

    def literal(r):
        if base != "TINYTEXT" and r.random() < 0.08:
            count = r.choice([100, 9000, 20000] if base == "TEXT" else [100, 9000, 20000, 90000])
            return f"REPEAT({quote(words(r, 3) or 'x')}, {count // 4})"
        return quote(words(r, longest))
    return Column(name, type_text, "text", literal, prefix_max=30, must_prefix=True)


def some_bytes(r, longest: int) -> str:
    count = min(longest, r.choice([0, 1, 1, 2, 3, 7]))
    return ("x'" + "".join(r.choice(["00", "01", "20", "61", "ff", "80"]) for _ in range(count))
            + "'")


def short_bytes(rng, name: str) -> Column:
    kind, length = rng.choice([("VARBINARY", length) for length in (1, 16, 255, 400)]
                              + [("BINARY", length) for length in (1, 4, 20)])
    return Column(name, f"{kind}({length})", "bytes", lambda r: some_bytes(r, length),
                  prefix_max=length)


def long_bytes(rng, name: str) -> Column:
    base = rng.choice(["TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"])

    def literal(r):
        if base != "TINYBLOB" and r.random() < 0.08:
            return f"REPEAT({some_bytes(r, 7)}, {r.choice([50, 3000, 9000])})"
        return some_bytes(r, 60)
    return Column(name, base, "bytes", literal, prefix_max=40, must_prefix=True)


def enumeration(rng, name: str) -> Column:
    return Column(name, "ENUM('red','green','blue','')", "choice",
                  lambda r: r.choice(["'red'", "'green'", "'blue'", "'RED'", "''"]))


def set_of(rng, name: str) -> Column:
    return Column(name, "SET('x','y','z','long name')", "choice",
                  lambda r: quote(",".join(m for m in ("x", "y", "z", "long name")
                                           if r.random() < 0.4)))


def json(rng, name: str) -> Column:
    return Column(name, "JSON", "text",
                  lambda r: r.choice(["'{}'", "'[1,2,3]'", "'{\"a\": 1}'", "'null'", "'\"s\"'"]),
                  prefix_max=20, must_prefix=True)


def address(rng, name: str) -> Column:
    if rng.random() < 0.5:
        return Column(name, "INET4", "other",
                      lambda r: f"'10.0.{r.randint(0, 2)}.{r.randint(0, 5)}'")
    return Column(name, "INET6", "other",
                  lambda r: r.choice(["'::'", "'::1'", f"'fe80::{r.randint(1, 9)}'",
                                      "'::ffff:1.2.3.4'"]))


def uuid(rng, name: str) -> Column:
    """Returns a UUID column. The server stores a UUID with its parts swapped."""
    return Column(name, "UUID", "other",
                  lambda r: f"'{r.randint(0, 9):08x}-0000-{r.choice([1, 4, 7])}000-8000-"
                            f"0000000000{r.randint(0, 20):02x}'")


def geometry(rng, name: str) -> Column:
    return Column(name, "POINT", "geometry",
                  lambda r: f"POINT({r.randint(0, 5)}, {r.randint(0, 5)})", indexable=False)
