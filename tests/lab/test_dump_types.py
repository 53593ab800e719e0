"""Tests of what a dump can hold: all kinds of types, names and bytes, in every engine."""

import pytest
from cheetah_lab.engines import ALL
from cheetah_lab.inputs import own
from cheetah_tools import engines
from cheetah_tools.formatdata import write_dump
from cheetah_tools.server import PrivateServer

CLAUSE = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
ROWS = 300
ENGINES = ["innodb-compact", "innodb-4k", "innodb-holes", "myrocks", "cheetah", "cheetah-4k"]
OPTIONS = {"innodb_buffer_pool_size": 64 << 20, "innodb_log_file_size": 64 << 20,
           "innodb_flush_method": "nosync"}
# Every byte, every type whose text in a dump needs care, a trigger and a view.
TABLES = [
    "CREATE TABLE bytes (id INT PRIMARY KEY, b BLOB, v VARBINARY(300), n BIT(9), KEY (v(20)))",
    "CREATE TABLE texts (id INT AUTO_INCREMENT PRIMARY KEY, t MEDIUMTEXT CHARACTER SET utf8mb4, "
    "c CHAR(10) CHARACTER SET latin1, e ENUM('a','\u00e9 ''x''') CHARACTER SET utf8mb4, "
    "UNIQUE KEY by_text (t(30), id)) ROW_FORMAT=COMPRESSED",
    "CREATE TABLE numbers (id BIGINT UNSIGNED, d DECIMAL(30,10), f DOUBLE, w DATETIME(6), y YEAR, "
    "twice DOUBLE AS (f * 2) VIRTUAL, KEY (d, w)) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE `odd ``name` (`from` INT, "
    "`\u00fc-``x` VARCHAR(5) CHARACTER SET utf8mb4 DEFAULT ';')",
    "CREATE TABLE empty_one (id INT PRIMARY KEY)",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A private server, with our engine where it was built, and the tables to dump."""
    with PrivateServer(tmp_path_factory.mktemp("dumps") / "server", OPTIONS) as running:
        fill(running, "shop")
        yield running


@pytest.fixture
def database(server):
    """A name that is not taken."""
    server.sql(f"DROP DATABASE IF EXISTS {own.DATABASE}")
    return own.DATABASE


def fill(server, name: str) -> None:
    """The tables, with rows."""
    server.sql(f"CREATE DATABASE {name}")
    for statement in TABLES:
        server.sql(statement, name)
    with server.connect(name, autocommit=False) as connection, connection.cursor() as cursor:
        every = bytes(range(256))
        for number in range(ROWS):
            cursor.execute("INSERT INTO bytes VALUES (%s, %s, %s, %s)",
                           (number, every[number % 256:] + every[:number % 250],
                            None if number % 7 else b"\0' \\", number))
            cursor.execute("INSERT INTO texts (t, c, e) VALUES (%s, %s, %s)",
                           ((f"\U0001f406 {number} ; -- ' \" \\ \n\r\t\x00\x1a %s `x` "
                             "DELIMITER $$ ENGINE=MyISAM") * (number % 9),
                            "\u00e9\u00fc", "a" if number % 2 else "\u00e9 'x'"))
            cursor.execute("INSERT INTO numbers (id, d, f, w, y) VALUES (%s, %s, %s, %s, 1999)",
                           (2**64 - 1 - number, f"-{number}.0000000001", number / 3 * 1e300,
                            f"2024-02-29 23:59:59.{number:06}"))
            cursor.execute("INSERT INTO `odd ``name` VALUES (%s, %s)", (number, "\u00e9;\n'"))
        connection.commit()
    server.sql("CREATE VIEW seen AS SELECT id FROM texts WHERE id > 3", name)
    server.sql("CREATE TRIGGER counted AFTER INSERT ON empty_one FOR EACH ROW "
               "UPDATE texts SET c = 'x;y' WHERE id = NEW.id", name)


@pytest.fixture(scope="module")
def plain(server, tmp_path_factory):
    """mariadb-dump's file of those tables."""
    place = tmp_path_factory.mktemp("plain") / "shop.sql"
    write_dump(server, "shop", place, "--default-character-set=utf8mb4")
    return place


@pytest.fixture(scope="module")
def source(server) -> dict:
    """What `differences` compares with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own, "DATABASE", "shop")
        return own.described(server)


@pytest.mark.parametrize("key", ENGINES)
def test_every_engine_has_the_rows_of_the_source(server, database, plain, source, key):
    engine = ALL[key].engine
    if not engines.available(server, [engine]):
        pytest.skip(f"this server has no {engine.name}")
    own.load(server, plain, engine.clause())
    assert own.differences(server, source) == []
    assert server.value("SELECT COUNT(*) FROM seen", database) == ROWS - 3
    made = server.sql("SELECT DISTINCT engine FROM information_schema.tables "
                      f"WHERE table_schema = '{database}' AND table_type = 'BASE TABLE'")
    assert [name.upper() for name, in made] == [engine.name.upper()]


def test_other_rows_and_other_values_are_told(server, database, plain, source):
    own.load(server, plain, CLAUSE)
    server.sql("DELETE FROM bytes WHERE id = 5", database)
    server.sql("UPDATE texts SET t = 'another' WHERE id = 9", database)
    server.sql("DROP TABLE empty_one", database)
    assert own.differences(server, source) == [
        f"bytes has {ROWS - 1} rows, the source has {ROWS}", "empty_one is missing",
        "texts has other contents than the source"]
