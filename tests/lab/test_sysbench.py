"""Tests of sysbench's rows and reports, as the lab uses them."""

import collections
import os
import re
import subprocess
from pathlib import Path

import pytest
from cheetah_lab import engines
from cheetah_tools import sysbench
from cheetah_tools.say import Failure
from cheetah_tools.server import PrivateServer

REPORT = (
    "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n"
    "[ 1s ] thds: 4 tps: 882.20 qps: 17645.98 (r/w/o: 12354.29/3526.80/1764.90) "
    "lat (ms,99%): 11.86 err/s: 0.00 reconn/s: 0.00\n"
    "[ 1s ] queue length: 0, concurrency: 1\n"
    "[ 2.0s ] Checkpoint report:\n"
    "SQL statistics:\n"
    "    transactions:                        1764   (882.20 per sec.)\n"
    "    queries:                             35280  (17644.00 per sec.)\n"
    "    ignored errors:                      9      (4.50 per sec.)\n"
    "Latency (ms):\n"
    "         max:                                   99.00\n"
    "         99th percentile:                       50.00\n"
    "[ 2s ] thds: 4 tps: 1009.31 qps: 20186.15 (r/w/o: 14130.30/4037.23/2018.61) "
    "lat (ms,99%): 7.70 err/s: 1.50 reconn/s: 0.00\n"
    "[ 3s ] thds: 4 tps: 0.00 qps: 0.00 (r/w/o: 0.00/0.00/0.00) "
    "lat (ms,99%): 0.00 err/s: 0.00 reconn/s: 0.00\n"
    "[ 3s ] queue length: 312, concurrency: 4\n"
    "SQL statistics:\n"
    "    queries performed:\n"
    "        read:                            43260\n"
    "    transactions:                        3090   (1029.93 per sec.)\n"
    "    queries:                             61800  (20580.31 per sec.)\n"
    "    ignored errors:                      3      (1.00 per sec.)\n"
    "General statistics:\n"
    "    total time:                          3.0004s\n"
    "Latency (ms):\n"
    "         min:                                    1.86\n"
    "         avg:                                    3.88\n"
    "         max:                                   41.47\n"
    "         99th percentile:                        8.43\n")


def test_report_after_a_warm_up_is_the_last_one_and_only_its_seconds():
    found = sysbench.parse(REPORT, warm_seconds=1)
    assert (found.tps, found.p99_ms, found.max_ms) == (1029.93, 8.43, 41.47)
    assert found.seconds == [sysbench.Second(2, 1009.31, 7.70),
                             sysbench.Second(3, 0.0, 0.0, queue=312)]


def test_seconds_without_a_warm_up_are_all_there():
    assert [second.second for second in sysbench.parse(REPORT).seconds] == [1, 2, 3]


def test_what_is_no_report_is_refused():
    with pytest.raises(Failure, match="not as expected"):
        sysbench.parse("FATAL: unable to connect")


def test_options_say_rate_and_warm_up_only_where_there_are_any():
    tables = sysbench.Tables(100, 2)
    assert not [word for word in sysbench.words("oltp_read_write", tables, 4, 5)
                if word.startswith(("--rate", "--report"))]
    words = sysbench.words("oltp_read_write", tables, 4, 5, warm_seconds=2, rate=300,
                           each_second=True)
    assert {"--time=7", "--rate=300", "--report-interval=1", "--report-checkpoints=2",
            "--tables=2", "--table-size=100"} <= set(words)


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    monkeypatch.setattr(sysbench, "FOLDER", tmp_path)
    return tmp_path


@pytest.mark.parametrize("texts", ["digits", "old", "real"])
def test_rows_are_the_same_each_time_and_of_the_style(inputs, texts):
    place = sysbench.rows_file(sysbench.Tables(25, 2, texts, batch=10))
    first = place.read_text()
    place.unlink()
    assert sysbench.rows_file(sysbench.Tables(25, 2, texts, batch=10)).read_text() == first
    assert [line.split(" VALUES")[0] for line in first.splitlines()] == (
        ["INSERT INTO sbtest1"] * 3 + ["INSERT INTO sbtest2"] * 3)
    rows = re.findall(r"\((\d+),(\d+),'([^']*)','([^']*)'\)", first)
    assert [int(row[0]) for row in rows] == [*range(1, 26)] * 2
    assert all(1 <= int(row[1]) <= 25 for row in rows)
    assert len({row[1] for row in rows}) > 10
    found = {row[2:] for row in rows}
    if texts == "old":
        assert found == {(" ", "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt")}
    elif texts == "digits":
        assert len(found) == 50
        assert all(re.fullmatch(r"(\d{11}-){9}\d{11}", c)
                   and re.fullmatch(r"(\d{11}-){4}\d{11}", pad)
                   for c, pad in found)
    else:
        assert len(found) == 50 and {(len(c), len(pad)) for c, pad in found} == {(119, 59)}
        assert sum(" " in c for c, _ in found) > 40, "words"


def test_skewed_keys_are_few_and_scattered():
    """Half of the reads go to a few dozen of a thousand rows, and these rows are not adjacent."""
    done = subprocess.run([str(sysbench.PROGRAM), str(sysbench.SCATTERED), "--table-size=1000",
                           "--rand-seed=1", "draw"], capture_output=True, text=True, check=True,
                          env={**sysbench.environment(), "CHEETAH_WORKLOAD": "oltp_point_select"})
    keys = collections.Counter(int(line.split()[1]) for line in done.stdout.splitlines()
                               if line.startswith("key "))
    assert min(keys) >= 1 and max(keys) <= 1000 and len(keys) > 800
    hot = [key for key, _ in keys.most_common(50)]
    all_ranks = sum(1 / rank ** 0.9 for rank in range(1, 1001))
    assert keys[hot[0]] == pytest.approx(sum(keys.values()) / all_ranks, rel=0.1)
    assert sum(keys[key] for key in hot) > sum(keys.values()) * 0.4
    assert sum(abs(one - other) < 10 for one, other in zip(hot, hot[1:])) < 5


def test_rows_are_written_again_when_what_writes_them_has_changed(inputs, tmp_path_factory,
                                                                  monkeypatch):
    tables = sysbench.Tables(5)
    place = sysbench.rows_file(tables)
    begun, left = (inputs / f"{place.stem}.new.{os.getpid()}",
                   inputs / f"{place.stem}.new.{2**22 + 1}")
    begun.touch()
    left.touch()
    assert sysbench.rows_file(tables) == place
    other = tmp_path_factory.mktemp("script") / "rows.lua"
    other.write_text(sysbench.ROWS_SCRIPT.read_text().replace("OLD_C, OLD_PAD = \" \"",
                                                              "OLD_C, OLD_PAD = \"c\""))
    monkeypatch.setattr(sysbench, "ROWS_SCRIPT", other)
    assert (sysbench.rows_file(tables) != place and not place.exists() and begun.exists()
            and not left.exists())


def test_nothing_is_left_of_rows_that_are_not_whole(inputs, monkeypatch):
    def stopped(words, **_):
        next(Path(word.partition("=")[2]) for word in words if word.startswith("--target=")).touch()
        raise KeyboardInterrupt
    monkeypatch.setattr(sysbench.subprocess, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        sysbench.rows_file(sysbench.Tables(5))
    assert not list(inputs.iterdir())


def test_one_row_in_each_insert(inputs):
    assert len(sysbench.rows_file(sysbench.Tables(7, 1, batch=1)).read_text().splitlines()) == 7


@pytest.mark.parametrize("key", ["innodb-dynamic", "cheetah"])
def test_tables_are_loaded_and_a_workload_runs_at_a_rate(inputs, tmp_path, key):
    engine = engines.ALL[key]
    tables = sysbench.Tables(500, 2)
    with PrivateServer(tmp_path / "server", sysbench.server_options(4, 2),
                       plugin=key == "cheetah") as server:
        if not server.has_engine(engine.name):
            pytest.skip(f"no engine {engine.name} here: make build")
        assert sysbench.load(server, engine, tables, key_last=True) > 0
        sysbench.warm(server, tables)
        assert server.sql("SELECT COUNT(*), COUNT(DISTINCT c), MIN(id), MAX(id) FROM sbtest2",
                          "sbtest") == [(500, 500, 1, 500)]
        assert "KEY `k_2` (`k`)" in server.sql("SHOW CREATE TABLE sbtest2", "sbtest")[0][1]
        found = sysbench.run(server, "oltp_read_write", tables, 2, 2, rate=20, each_second=True)
        assert 5 < found.tps < 45
        assert found.max_ms >= found.p99_ms * 0.9 > 0
        assert len(found.seconds) >= 1
        with pytest.raises(Failure, match="no_such_workload"):
            sysbench.run(server, "no_such_workload", tables, 1, 1)
