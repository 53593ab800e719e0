"""The memory of servers: the limit holds, the page cache is held, lack of memory is reported."""

import itertools
import os
import signal
import subprocess
import sys

import pytest
from cheetah_lab import engines, trial
from cheetah_lab.model import Scale
from cheetah_lab.report import content, page
from cheetah_lab.results import Found, Section
from cheetah_tools import cgroup
from cheetah_tools.say import Failure
from labs import needs_server, until

CACHE_BYTES = 8 << 20
# options that send data through the page cache
THROUGH_PAGE_CACHE = {
    "innodb-dynamic": {"innodb_flush_method": "fsync"},
    "cheetah": {"cheetah_data_file_buffering": "ON"},
    "myrocks": {"rocksdb_use_direct_reads": 0, "rocksdb_use_direct_io_for_flush_and_compaction": 0}}
ROWS = 3000
GROUP = cgroup.make(64 << 20)
if GROUP:
    GROUP.remove()
needs_group = pytest.mark.skipif(not GROUP,
                                 reason="no memory cgroup can be had here: it takes root")


@needs_server
@needs_group
@pytest.mark.parametrize("engine", ["innodb-dynamic", "cheetah", "myrocks"])
def test_the_page_cache_of_a_held_server_stays_small(tmp_path, engine):
    """Far more is written and read than the cache may keep; the limit ends with the server."""
    made = trial.Trial(engines.ALL[engine], Scale(), 0, True, tmp_path)
    try:
        with made.server(CACHE_BYTES, **THROUGH_PAGE_CACHE.get(engine, {})) as server:
            group = cgroup.MemoryGroup(server.cgroup)
            server.sql("CREATE DATABASE made")
            server.sql("CREATE TABLE made.t (id INT PRIMARY KEY, text LONGBLOB) "
                       f"{made.engine.clause()}")
            fill(server, 0, ROWS)
            loose = group.file_bytes()
            with made.held(server, "made", "rows"):
                # A page cut while it is dirty leaves the cache only with a later cut.
                until(lambda: group.file_bytes() < loose, "a first cut of the page cache")
                for first in range(ROWS, 2 * ROWS, 100):
                    fill(server, first, 100)
                    until(lambda: group.file_bytes() < 1.5 * trial.PAGE_CACHE_BYTES,
                          "the page cache to be cut")
                server.sql("SELECT SUM(CRC32(text)) FROM made.t")
            assert loose > trial.PAGE_CACHE_BYTES, ("the page cache was not used before, "
                                                    "so nothing was shown")
            assert group.kills() == 0
            server.sql("SELECT SUM(CRC32(text)) FROM made.t")
    except trial.Refused as refused:
        pytest.skip(str(refused))
    held, = made.held_phases
    assert made.limited and held["phase"] == "rows" and held["cache"] == CACHE_BYTES
    # The size is measured before each cut, and pages being written cannot leave the cache.
    assert (held["page_cache"] < 2 * trial.PAGE_CACHE_BYTES
            and held["page_cache"] <= held["page_cache_most"]), held
    assert held["on_disk"] > held["cache"] + held["page_cache"] and held["own"] > CACHE_BYTES


def fill(server, first: int, rows: int) -> None:
    for at in range(first, first + rows, 500):
        last = min(at + 500, first + rows) - 1
        server.sql(f"INSERT INTO made.t WITH RECURSIVE n (i) AS (SELECT {at} "
                   f"UNION ALL SELECT i + 1 FROM n WHERE i < {last}) "
                   "SELECT i, CONCAT(RANDOM_BYTES(1000), RANDOM_BYTES(1000), RANDOM_BYTES(1000), "
                   "RANDOM_BYTES(1000), RANDOM_BYTES(1000), RANDOM_BYTES(1000), "
                   "RANDOM_BYTES(1000), RANDOM_BYTES(1000)) FROM n")


@needs_group
def test_a_limit_that_is_too_low_is_refused():
    """The limit is refused before the kernel kills the process because of it."""
    group = cgroup.make(64 << 20)
    process = subprocess.Popen(
        [sys.executable, "-c",
         "import sys; kept = b'x' * (32 << 20); print(1, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=lambda: (group.folder / "cgroup.procs").write_text(str(os.getpid())))
    try:
        process.stdout.readline()
        with pytest.raises(Failure, match="MiB of its own"):
            group.limit(16 << 20)
        assert process.poll() is None and group.kills() == 0
    finally:
        process.communicate()
        group.remove()


@needs_group
def test_who_is_killed_for_want_of_memory_is_counted():
    group = cgroup.make(32 << 20)
    try:
        done = subprocess.run(
            [sys.executable, "-c", "kept = b'x' * (256 << 20)"], check=False,
            preexec_fn=lambda: (group.folder / "cgroup.procs").write_text(str(os.getpid())))
        assert done.returncode == -signal.SIGKILL and group.kills() == 1
        with pytest.raises(Failure, match="the kernel killed the server"):
            trial.Memory(group, 8 << 20).check()
    finally:
        group.remove()


def test_files_that_do_not_come_to_rest_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "REST_SECONDS_MAX", 0)
    made, sizes = (trial.Trial(engines.ALL["innodb-dynamic"], Scale(), 1, True, tmp_path),
                   itertools.count(1000))
    monkeypatch.setattr(made.engine, "bytes_on_disk", lambda *_: next(sizes), raising=False)
    assert made.bytes_at_rest(None, "made") == 1000
    assert made.remarks == ["not at rest after 0 s, repeat 2: measured with 1,000 bytes of files"]


def test_the_page_says_in_how_many_trials_memory_was_limited():
    assert page.memory({"yes": 0, "no": 4}).startswith("not limited")
    assert ("in all trials" in page.memory({"yes": 4, "no": 0})
            and "in 3 of 4 trials" in page.memory({"yes": 3, "no": 1}))


def test_memory_and_data_are_a_table():
    held = {"phase": "rows", "on_disk": 50e6, "cache": 8e6, "page_cache": 17e6,
            "page_cache_most": 20e6, "own": 90e6}
    trials = ([{"engine": "cheetah", "repeat": repeat, "values": [], "held": [held]}
               for repeat in range(2)]
              + [{"engine": "myrocks", "repeat": 0, "failed": "x"}])
    found = Found(trials[:2], engines.ALL)
    table, = content.memory(Section(None, found, {}, {}, trials))
    row, = table.rows
    assert (row[0].text == "Cheetah, rows" and row[1].values == [50e6, 50e6]
            and row[-1].values == [2, 2] and len(row) == len(table.head))
    free = {"engine": "cheetah", "repeat": 2, "values": [],
            "held": [{**held, "page_cache": None, "page_cache_most": None}]}
    (without,), = (table.rows for table in content.memory(Section(None, found, {}, {}, [free])))
    assert [without[3].text, without[4].text, without[-1].values] == [
        "not limited", "not limited", []]
    assert content.memory(Section(None, found, {}, {}, trials[2:])) == []
