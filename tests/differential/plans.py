"""Queries whose plans have rowid filters, ranges sorted by the server (MRR) and joins that batch
keys (BKA, BKAH), with all related optimizer settings.

The tables are large enough for such plans to pay off, and they change during the test. Engines may
choose different plans (`tests/sql/plans.sql` compares plans), but the rows must be the same."""

from statements import Statement, Stream

ROWS, VALUES_MAX = 4000, 400
COMPARE_EVERY = 60
# The row's key: an integer, a string, two columns, or no key.
KEYS = ["id INT PRIMARY KEY", "id VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY",
        "id INT NOT NULL, other INT DEFAULT 3, PRIMARY KEY (other, id DESC)", "id INT NOT NULL"]
COLUMNS = ("a INT, b INT, c VARCHAR(30) COLLATE utf8mb4_unicode_ci, d INT NOT NULL, e TEXT,"
           " v INT AS (b % 50)")
INDEXES = ["KEY a (a)", "KEY b (b)", "KEY ab (a, b)", "KEY c (c)", "KEY cb (c(4), b)",
           "KEY d (d DESC)", "KEY e (e(6))", "KEY v (v)", "UNIQUE u (d, a, id)"]
SWITCHES = ["mrr", "mrr_sort_keys", "mrr_cost_based", "rowid_filter", "index_condition_pushdown",
            "join_cache_incremental", "join_cache_hashed", "join_cache_bka",
            "optimize_join_buffer_size", "index_merge", "index_merge_sort_intersection",
            "extended_keys", "semijoin_with_cache", "outer_join_with_cache"]


class Plans(Stream):
    def __init__(self, rng, folder):
        super().__init__(rng, folder)
        self.steps = 0
        self.waiting = [text for name in ("t1", "t2", "t3") for text in self.made(name)]

    def next(self) -> list:
        self.steps += 1
        if self.waiting:
            return [Statement(self.waiting.pop(0))]
        if self.steps % COMPARE_EVERY == 0:
            return [Statement(text.format(t=name)) for name in ("t1", "t2", "t3")
                    for text in ("SELECT * FROM {t}", "CHECK TABLE {t}")]
        roll = self.rng.random()
        return [Statement(self.setting() if roll < 0.2 else self.change() if roll < 0.35
                          else self.join() if roll < 0.65 else self.query())]

    def made(self, name: str) -> list:
        rng = self.rng
        indexes = ", ".join(rng.sample(INDEXES, rng.randint(3, 6)))
        return [f"CREATE TABLE {name} ({rng.choice(KEYS)}, {COLUMNS}, {indexes})",
                f"INSERT INTO {name} (id, a, b, c, d, e) SELECT seq, "
                f"MOD(seq * 7919, {VALUES_MAX}), MOD(seq * 104729, {VALUES_MAX}), "
                "CONCAT('c', MOD(seq * 31, 300)), MOD(seq * 613, 997), "
                "CONCAT(MOD(seq, 90), REPEAT('e', MOD(seq, 60))) "
                f"FROM seq_1_to_{ROWS} ORDER BY seq",
                f"ANALYZE TABLE {name} PERSISTENT FOR ALL"]

    def setting(self) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.5:
            chosen = rng.sample(SWITCHES, rng.randint(1, 6))
            words = ",".join(f"{name}={rng.choice(['on', 'on', 'off'])}" for name in chosen)
            return f"SET optimizer_switch = '{words}'"
        if roll < 0.65:
            return "SET optimizer_switch = 'mrr=on,mrr_cost_based=off,mrr_sort_keys=on'"
        if roll < 0.9:
            return f"SET join_cache_level = {rng.randint(0, 8)}"
        return (f"SET mrr_buffer_size = {rng.choice([8192, 20000, 262144])}, "
                f"join_buffer_size = {rng.choice([2048, 30000, 262144])}")

    def change(self) -> str:
        """Changes rows, so that scans meet row versions and deleted entries."""
        rng, name = self.rng, self.rng.choice(["t1", "t2", "t3"])
        return rng.choice([
            f"UPDATE {name} SET b = b + 1 WHERE a = {self.number()}",
            f"UPDATE {name} SET a = NULL WHERE b = {self.number()} AND d < 300",
            f"UPDATE {name} SET c = UPPER(c) WHERE d < {rng.randint(1, 60)}",
            f"DELETE FROM {name} WHERE d = {rng.randint(0, 996)}", "BEGIN", "COMMIT", "ROLLBACK",
            f"ANALYZE TABLE {name} PERSISTENT FOR ALL"])

    def query(self) -> str:
        """A query over ranges of one table. One range may serve as a filter for another."""
        rng, name = self.rng, self.rng.choice(["t1", "t2", "t3"])
        wanted = rng.choice(["*", "*", "id, a, b", "a, b", "COUNT(*), SUM(d)", "id, v", "MAX(e)"])
        lock = rng.choice([""] * 6 + [" FOR UPDATE", " LOCK IN SHARE MODE"])
        return f"SELECT {wanted} FROM {name} WHERE {self.where()}{lock}"

    def join(self) -> str:
        rng = self.rng
        first, second, third = rng.sample(["t1", "t2", "t3"], 3)
        on = rng.choice(["x.b = y.a", "x.a = y.a AND x.b = y.b", "x.c = y.c", "x.d = y.d",
                         "x.id = y.id", "x.a = y.v"])
        kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
        wanted = rng.choice(["x.id, y.id, y.e", "COUNT(*), SUM(y.d)", "x.a, y.*"])
        text = f"SELECT {wanted} FROM {first} x {kind} {second} y ON {on}"
        if rng.random() < 0.3:
            text += f" JOIN {third} z ON y.b = z.a AND z.d < {rng.randint(2, 40)}"
        place = f" WHERE x.d < {rng.randint(1, 40)} AND {self.where('y.')}"
        if rng.random() < 0.2:
            place += f" AND x.a IN (SELECT b FROM {third} WHERE d < {rng.randint(10, 300)})"
        return text + place

    def where(self, alias: str = "") -> str:
        return " AND ".join(self.condition(alias) for _ in range(self.rng.choice([1, 2, 2, 3])))

    def condition(self, alias: str) -> str:
        rng = self.rng
        column = alias + rng.choice(["a", "a", "b", "b", "d", "v"])
        low = self.number()
        roll = rng.random()
        if roll < 0.1:
            return f"{alias}c LIKE 'c{rng.randint(1, 29)}%'"
        if roll < 0.15:
            return f"{alias}e LIKE '{rng.randint(1, 89)}e%'"
        if roll < 0.3:
            return f"{column} IN ({', '.join(str(self.number()) for _ in range(12))})"
        return f"{column} BETWEEN {low} AND {low + rng.choice([3, 20, 60, 150])}"

    def number(self) -> int:
        """Returns a value that some rows have."""
        return self.rng.randrange(VALUES_MAX)
