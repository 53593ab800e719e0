"""Loads each data set next to the project into InnoDB and Cheetah and compares checksums.

Data sets over 5 MB (compressed) are used only with --large, as in `make check-data`."""

import pytest
from cheetah_tools import dump
from cheetah_tools.engines import CHEETAH, INNODB
from cheetah_tools.paths import shared_data
from cheetah_tools.say import note

OPTIONS = {"innodb_flush_log_at_trx_commit": 0, "innodb_buffer_pool_size": "256M",
           "innodb_log_file_size": "96M", "loose_cheetah_buffer_pool_size": "256M",
           "loose_cheetah_log_file_size": "64M", "loose_cheetah_log_size_max": "1G"}
SMALL_BYTES_MAX = 5e6


def pytest_generate_tests(metafunc):
    """Creates one test per data set, or a single skipped test if there are no data sets."""
    if "path" not in metafunc.fixturenames:
        return
    paths = [path for path in sorted(shared_data().glob("*.sql.zst"))
             if metafunc.config.option.large or path.stat().st_size < SMALL_BYTES_MAX]
    none = pytest.param(None, id="none", marks=pytest.mark.skip(f"no data sets in {shared_data()}"))
    metafunc.parametrize("path", paths or [none], ids=lambda path: path and path.name.split(".")[0])


def test_tables_have_the_checksums_that_they_have_in_innodb(path, server):
    """The tables are loaded without SPATIAL keys."""
    sums = []
    for engine in (INNODB, CHEETAH):
        server.sql(f"CREATE DATABASE {engine.name}")
        source = dump.open_dump(path)
        dump.load(server, engine.name, source.stdout, engine.clause(), label=engine.label)
        assert source.wait() == 0, "the file cannot be unpacked to its end"
        sums.append(dump.checksums(server, engine.name))
    assert sums[0] == sums[1] and None not in sums[1].values()
    note(f"{path.name}: {len(sums[0])} tables agree")
    server.restart()
    assert dump.checksums(server, CHEETAH.name) == sums[1], "another checksum after a restart"


def test_checksums_agree_where_columns_are_generated(server):
    for engine in (INNODB, CHEETAH):
        server.sql(f"CREATE DATABASE {engine.name}")
        server.sql("CREATE TABLE t (a INT PRIMARY KEY, b DATETIME NOT NULL, "
                   "c DATE AS (DATE(b)) STORED, v INT AS (a + 1) VIRTUAL, d VARCHAR(9)) "
                   f"{engine.clause()}", engine.name)
        server.sql("INSERT INTO t (a, b, d) SELECT seq, '2024-01-01' + INTERVAL seq HOUR, "
                   "IF(seq % 3, seq, NULL) FROM seq_1_to_50", engine.name)
    sums = [dump.checksums(server, engine.name) for engine in (INNODB, CHEETAH)]
    assert sums[0] == sums[1] and sums[0]["t"]
    server.sql("UPDATE t SET d = 'x' WHERE a = 3", CHEETAH.name)
    assert dump.checksums(server, CHEETAH.name) != sums[0]
