"""Tests what a dump can hold (types, names and bytes, in every engine), and reads packed dumps."""

import bz2
import gzip
import lzma

import pytest
from cheetah_lab.engines import ALL
from cheetah_tools import dump, engines
from cheetah_tools.formatdata import write_dump
from cheetah_tools.say import Failure
from cheetah_tools.server import PrivateServer

DATABASE = "loaded"
ROWS = 300
ENGINES = ["innodb-compact", "innodb-4k", "innodb-holes", "myrocks", "cheetah", "cheetah-4k"]
OPTIONS = {"innodb_buffer_pool_size": 64 << 20, "innodb_log_file_size": 64 << 20,
           "innodb_flush_method": "nosync"}
# Tables with every byte value, every type that a dump must escape or convert, generated columns and
# partitions; `fill` adds a view and a trigger.
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
    """A private server with the tables to dump, and with Cheetah if it was built."""
    with PrivateServer(tmp_path_factory.mktemp("dumps") / "server", OPTIONS) as running:
        fill(running, "shop")
        yield running


def fill(server, name: str) -> None:
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
    """Returns mariadb-dump's file of these tables."""
    place = tmp_path_factory.mktemp("plain") / "shop.sql"
    write_dump(server, "shop", place, "--default-character-set=utf8mb4")
    return place


def described(server, database: str) -> dict:
    return {table: (server.value(f"SELECT COUNT(*) FROM {dump.quoted(table)}", database),
                    dump.rows_sum(server, database, table))
            for table in dump.base_tables(server, database)}


@pytest.mark.parametrize("key", ENGINES)
def test_every_engine_has_the_rows_of_the_source(server, plain, key):
    engine = ALL[key]
    if not engines.available(server, [engine]):
        pytest.skip(f"this server has no {engine.name}")
    server.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
    with open(plain, "rb") as source:
        dump.load(server, DATABASE, source, engine.clause())
    assert described(server, DATABASE) == described(server, "shop")
    assert server.value("SELECT COUNT(*) FROM seen", DATABASE) == ROWS - 3
    made = server.sql("SELECT DISTINCT engine FROM information_schema.tables "
                      f"WHERE table_schema = '{DATABASE}' AND table_type = 'BASE TABLE'")
    assert [name.upper() for name, in made] == [engine.name.upper()]


@pytest.mark.parametrize("pack, ending", [(gzip.compress, ".gz"), (bz2.compress, ".bz2"),
                                          (lzma.compress, ".xz")])
def test_a_dump_is_unpacked_to_its_end_or_not_at_all(plain, tmp_path, pack, ending):
    packed, target = tmp_path / f"d.sql{ending}", tmp_path / "d.sql"
    packed.write_bytes(pack(plain.read_bytes()))
    dump.unpack(packed, target)
    assert target.read_bytes() == plain.read_bytes()
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(Failure, match="cannot be read to its end"):
        dump.unpack(packed, tmp_path / "other.sql")
    assert not (tmp_path / "other.sql").exists()
