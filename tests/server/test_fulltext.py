"""FULLTEXT keys under load: searches find the rows of a scan, after kills and on a replica."""

import pytest
from servers import Client, check_table, kill_under, run
from test_replication import catch_up, replicated

# Words of equal length, none across the boundary of two others, so LIKE finds only full words.
WORDS = [f"word{letter}{letter}" for letter in "abcdefghij"]
KILLS_MAX = 4
WRITERS = 3
TABLES = [f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(100), b TEXT, n INT NOT NULL "
          "DEFAULT 0, FULLTEXT ab (a, b)) ENGINE=CHEETAH" for name in ("t", "u")]
# Each list runs repeatedly on its own connection.
DDL = [["ALTER TABLE t ADD FULLTEXT b (b)", "ALTER TABLE t DROP INDEX b",
        "ALTER TABLE t ADD FULLTEXT a (a), ALGORITHM=COPY", "ALTER TABLE t DROP INDEX a"],
       ["RENAME TABLE u TO v", "RENAME TABLE v TO u", "TRUNCATE TABLE u",
        "INSERT INTO u SELECT seq, CONCAT('wordaa ', seq), 'wordbb wordcc', seq "
        "FROM seq_1_to_2000"]]
# Errors from missing or existing names and from conflicts of transactions.
EXPECTED = {1020, 1050, 1061, 1062, 1091, 1146, 1205, 1213, 1412}


def text(rng) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 6)))


def change(rng, name: str) -> str:
    key, other = rng.randint(1, 80), rng.randint(1, 80)
    return rng.choice([
        f"INSERT IGNORE INTO {name} VALUES ({key}, '{text(rng)}', '{text(rng)}', 0), "
        f"({other}, NULL, '{text(rng)}', 0)",
        f"REPLACE INTO {name} VALUES ({key}, '{text(rng)}', '{text(rng)}', 1)",
        f"INSERT INTO {name} VALUES ({key}, 'x', '{text(rng)}', 2) ON DUPLICATE KEY UPDATE "
        f"a = '{text(rng)}'",
        f"UPDATE {name} SET b = '{text(rng)}' WHERE id BETWEEN {key} AND {key + 5}",
        f"UPDATE IGNORE {name} SET id = {other} WHERE id = {key}",
        f"UPDATE {name} SET n = n + 1, a = CONCAT(COALESCE(a, ''), ' {rng.choice(WORDS)}') "
        f"WHERE MATCH (a, b) AGAINST ('{rng.choice(WORDS)}') AND LENGTH(a) < 80",
        f"DELETE FROM {name} WHERE id = {key}",
        f"DELETE FROM {name} WHERE MATCH (a, b) AGAINST ('+{rng.choice(WORDS)} "
        f"+{rng.choice(WORDS)}' IN BOOLEAN MODE) AND id % 7 = {rng.randint(0, 6)}"])


class Writer(Client):
    autocommit, refusals = False, EXPECTED

    def work(self, cursor) -> None:
        for no in range(self.rng.randint(1, 4)):
            cursor.execute(change(self.rng, self.rng.choice("ttu")))
            if no == 1 and self.rng.random() < 0.3:
                cursor.execute("SAVEPOINT s")
                cursor.execute(change(self.rng, "t"))
                cursor.execute("ROLLBACK TO s")
        cursor.execute("ROLLBACK" if self.rng.random() < 0.2 else "COMMIT")


class Definer(Client):
    refusals = EXPECTED

    def work(self, cursor) -> None:
        for statement in DDL[self.number]:
            self.attempt(cursor, statement)


def check_words(server, name: str) -> None:
    check_table(server, name)
    indexes = server.sql("SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index) FROM "
                         "information_schema.statistics WHERE table_schema = 'd' AND index_type = "
                         f"'FULLTEXT' AND table_name = '{name}' GROUP BY index_name")
    assert indexes, f"{name} has lost its index"
    for _, columns in indexes:
        for word in WORDS:
            searched = server.sql(f"SELECT id FROM {name} WHERE MATCH ({columns}) AGAINST "
                                  f"('{word}') ORDER BY id", "d")
            seen = server.sql(f"SELECT id FROM {name} WHERE CONCAT_WS(' ', {columns}) LIKE "
                              f"'%{word}%' ORDER BY id", "d")
            assert searched == seen, f"{name} ({columns}): {word}"


def test_words_fit_their_rows_after_kills(server, rng, rounds):
    run(server, *TABLES)
    for _ in range(min(rounds, KILLS_MAX)):
        writers = [Writer(server, rng.getrandbits(32)) for _ in range(WRITERS)]
        kill_under(server, [*writers, *(Definer(server, no) for no in range(len(DDL)))],
                   rng.uniform(0.3, 1.5))
        server.start()
        names = {row[0] for row in server.sql("SHOW TABLES", "d")}
        assert "t" in names and len(names) == 2, names
        for name in names:
            check_words(server, name)
        server.sql("ALTER TABLE t DROP INDEX IF EXISTS a, DROP INDEX IF EXISTS b", "d")


@pytest.mark.parametrize("binlog_format", ["ROW", "STATEMENT"])
def test_a_replica_finds_the_same(new_server, rng, binlog_format):
    """The binary log does not contain the index's words, so the replica derives them from its rows.
    One connection runs all statements, because searches do not lock gaps."""
    primary, replica = replicated(new_server, "optimistic", binlog_format=binlog_format)
    run(primary, *TABLES)
    with primary.cursor("d", autocommit=True) as cursor:
        for no in range(600):
            cursor.execute(change(rng, rng.choice("tu")))
            if no % 150 == 100:
                cursor.execute("ALTER TABLE t ADD FULLTEXT b (b)")
                cursor.execute("TRUNCATE TABLE u")
            if no % 150 == 140:
                cursor.execute("ALTER TABLE t DROP INDEX b")
    catch_up(primary, replica)
    assert not replica.sql("SHOW SLAVE STATUS")[0][19]
    for name in "tu":
        query = f"SELECT * FROM {name} ORDER BY id"
        assert primary.sql(query, "d") == replica.sql(query, "d"), name
        for server in (primary, replica):
            check_words(server, name)
