"""Vector indexes, hidden tables of the same engine: InnoDB and Cheetah give the same answers."""

import random

import pymysql
import pytest
from cheetah_tools.paths import FIRST_SERIES, SERIES
from servers import crash

pytestmark = pytest.mark.skipif(SERIES == FIRST_SERIES, reason="10.11 has no vectors")
ROWS, DIMENSIONS = 200, 6
SEARCH = ("SELECT id FROM v ORDER BY VEC_DISTANCE_EUCLIDEAN(e, VEC_FromText('{}')) LIMIT 5")
TABLE = ("CREATE TABLE v (id INT PRIMARY KEY {}, e VECTOR({}) NOT NULL, note VARCHAR(20), "
         "VECTOR INDEX (e))")


def vector(rng) -> str:
    return str([round(rng.random(), 3) for _ in range(DIMENSIONS)]).replace(" ", "")


class Side:
    def __init__(self, server, engine: str):
        self.server, self.engine, self.name = server, engine, f"in_{engine}".lower()
        server.sql(f"CREATE DATABASE {self.name}")
        self.connect()

    def connect(self) -> None:
        """Connects again after a restart of the server."""
        self.connection = self.server.connect(self.name)
        self.run(f"SET default_storage_engine = {self.engine}")
        self.run("SET rand_seed1 = 1, rand_seed2 = 2")

    def run(self, text: str):
        """Returns the rows, or the error number."""
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(text)
                return list(cursor.fetchall())
            except pymysql.MySQLError as failure:
                return failure.args[0]


@pytest.fixture
def sides(server) -> list:
    return [Side(server, "InnoDB"), Side(server, "CHEETAH")]


def both(sides: list, text: str):
    left, right = (side.run(text) for side in sides)
    assert left == right, f"{text}: InnoDB {left}, Cheetah {right}"
    return right


def near(sides: list, text: str) -> list:
    """Returns the nearest rows, on which both engines must agree. A search through the index must
    find most of these rows, because its graph depends on random numbers."""
    exact = both(sides, text.replace("FROM v", "FROM v IGNORE INDEX (e)"))
    for side in sides:
        found = side.run(text)
        assert len(found) == len(exact), (side.engine, text, found)
        assert len(set(found) & set(exact)) >= len(exact) - 2, (side.engine, text, found, exact)
    return exact


def search(sides: list, rng) -> None:
    for _ in range(8):
        near(sides, SEARCH.format(vector(rng)))
    for side in sides:
        rows = side.run("CHECK TABLE v")
        assert [row[3] for row in rows] == ["OK"], rows


def fill(sides: list, rng, start: int = 1) -> None:
    for first in range(start, start + ROWS, 20):
        values = ", ".join(f"({no}, VEC_FromText('{vector(rng)}'), 'n{no}')"
                           for no in range(first, first + 20))
        both(sides, f"INSERT INTO v (id, e, note) VALUES {values}")


def test_vectors_are_found_whatever_happens_to_the_table(server, sides):
    rng = random.Random(7)
    both(sides, TABLE.format("AUTO_INCREMENT", DIMENSIONS))
    fill(sides, rng)
    search(sides, rng)
    for text in (f"UPDATE v SET e = VEC_FromText('{vector(rng)}') WHERE id = 7",
                 "UPDATE v SET id = id + 1000 WHERE id BETWEEN 20 AND 25",
                 "DELETE FROM v WHERE id % 9 = 3",
                 f"REPLACE INTO v VALUES (11, VEC_FromText('{vector(rng)}'), 'again')",
                 f"INSERT INTO v VALUES (12, VEC_FromText('{vector(rng)}'), 'duplicate')",
                 f"INSERT IGNORE INTO v VALUES (13, VEC_FromText('{vector(rng)}'), 'ignored')",
                 f"INSERT INTO v VALUES (14, VEC_FromText('{vector(rng)}'), 'o') "
                 f"ON DUPLICATE KEY UPDATE e = VALUES(e)"):
        both(sides, text)
        search(sides, rng)
    for text in ("BEGIN", "DELETE FROM v WHERE id < 90",
                 f"INSERT INTO v (e) VALUES (VEC_FromText('{vector(rng)}'))", "SAVEPOINT s",
                 "UPDATE v SET e = VEC_FromText('[1,1,1,1,1,1]') WHERE id > 150", "ROLLBACK TO s"):
        both(sides, text)
        near(sides, SEARCH.format(vector(rng)))
    both(sides, "ROLLBACK")
    search(sides, rng)
    for text in ("ALTER TABLE v ADD COLUMN more INT DEFAULT 5", "ALTER TABLE v FORCE",
                 "ALTER TABLE v ADD INDEX note (note)", "ALTER TABLE v DROP INDEX e",
                 "ALTER TABLE v ADD VECTOR INDEX e (e)", "RENAME TABLE v TO w",
                 "CREATE TABLE v LIKE w", "INSERT INTO v SELECT * FROM w", "DROP TABLE w",
                 "OPTIMIZE TABLE v", "DELETE FROM v", "INSERT INTO v (id, e) SELECT seq, "
                 "VEC_FromText(CONCAT('[', seq, ',1,2,3,4,5]')) FROM seq_1_to_100"):
        if text.startswith("OPTIMIZE"):
            assert [side.run(text)[-1][-1] for side in sides] == ["OK", "OK"]
        else:
            both(sides, text)
        if "w" not in text.split() and "DROP INDEX" not in text:
            search(sides, rng)
    both(sides, "TRUNCATE TABLE v")
    assert near(sides, SEARCH.format(vector(rng))) == []
    fill(sides, rng)
    search(sides, rng)
    crash(server)
    for side in sides:
        side.connect()
    search(sides, rng)
    fill(sides, rng, 5000)
    search(sides, rng)
    both(sides, "DROP TABLE v")
    assert server.sql("SELECT TABLE_NAME FROM information_schema.CHEETAH_TABLES "
                      "WHERE TABLE_NAME LIKE '%v%i%'") == []


@pytest.mark.parametrize("key", ["id INT PRIMARY KEY", "id INT NOT NULL",
                                 "id VARCHAR(40) CHARACTER SET latin1 PRIMARY KEY",
                                 "id INT, other BIGINT DEFAULT 7, PRIMARY KEY (other, id)"])
def test_vectors_are_found_by_any_primary_key(sides, key):
    rng = random.Random(3)
    both(sides, f"CREATE TABLE v ({key}, e VECTOR({DIMENSIONS}) NOT NULL, note VARCHAR(20), "
                "VECTOR INDEX (e) DISTANCE=cosine)")
    fill(sides, rng)
    for _ in range(8):
        near(sides, SEARCH.format(vector(rng)).replace("EUCLIDEAN", "COSINE"))
    both(sides, "DROP TABLE v")


def test_temporary_and_partitioned_tables_have_none(sides):
    assert both(sides, TABLE.format("", 3).replace("CREATE", "CREATE TEMPORARY")) != []
    assert both(sides, TABLE.format("", 3) + " PARTITION BY HASH (id) PARTITIONS 2") != []


def test_a_position_that_is_too_long_for_the_hidden_table_is_refused(server):
    """In most collations a position has several weights for each character."""
    side = Side(server, "CHEETAH")
    columns = f"e VECTOR({DIMENSIONS}) NOT NULL, VECTOR INDEX (e)"
    text = f"CREATE TABLE v (id VARCHAR(200) COLLATE utf8mb4_uca1400_ai_ci PRIMARY KEY, {columns})"
    assert side.run(text) == 1071 and side.run("SELECT * FROM v") == 1146
