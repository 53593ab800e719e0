"""SET GLOBAL cheetah_buffer_pool_size under load: memory follows it, and rows are unchanged."""

import os

import pytest
from peak import TOLERANCE, idle_bytes, warm_up
from servers import begun, Client, check_table, run, wait_until, working

OPTIONS = {"loose_cheetah_buffer_pool_size": "32M", "loose_cheetah_log_file_size": "16M",
           "loose_cheetah_log_size_max": "128M", "performance_schema": "OFF",
           "loose_cheetah_flush_log_at_trx_commit": 2}
ROWS = 200_000
SMALL, LARGE = 16 << 20, 96 << 20
SHRINK_SECONDS = 30


def resize(server, size: int):
    server.sql(f"SET GLOBAL cheetah_buffer_pool_size = {size}")
    assert server.value("SELECT @@cheetah_buffer_pool_size") == size
    assert server.status("Cheetah_memory_bytes_limit") == size
    wait_until(lambda: server.status("Cheetah_memory_bytes") <= size * TOLERANCE,
               f"memory does not follow to {size} bytes", SHRINK_SECONDS)


class Worker(Client):
    def begin(self, cursor) -> None:
        self.first = self.number

    def work(self, cursor) -> None:
        self.first = (self.first * 31 + 7919) % ROWS
        cursor.execute("UPDATE t SET c = c + 1 WHERE "
                       f"a BETWEEN {self.first} AND {self.first + 300} AND a % 4 = {self.number}")
        cursor.execute(f"SELECT SUM(LENGTH(b)) FROM t WHERE a > {self.first} "
                       f"AND a < {self.first + 5000}")


def test_memory_follows_the_size_under_load(server, new_server):
    base = idle_bytes(new_server, OPTIONS)
    warm_up(server)
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(200), c INT, KEY (b)) ENGINE=CHEETAH",
        "INSERT INTO t SELECT seq, CONCAT(SHA2(seq, 256), SHA2(-seq, 256)), 0 FROM "
        f"seq_1_to_{ROWS}")
    text = server.sql("SELECT COUNT(*), SUM(CRC32(b)) FROM d.t")
    with working([Worker(server, number) for number in range(4)]) as workers:
        for size in (LARGE, SMALL, LARGE, SMALL):
            resize(server, size)
            if size == LARGE:
                wait_until(lambda: server.status("Cheetah_memory_bytes") > 2 * SMALL,
                           "what is there is used")
            done = sum(worker.done for worker in workers)
            wait_until(lambda done=done: sum(worker.done for worker in workers) > done + 20
                       or not all(worker.is_alive() for worker in workers), "work goes on")
    assert all(worker.done for worker in workers)
    resize(server, SMALL)
    assert server.sql("SELECT COUNT(*), SUM(CRC32(b)) FROM d.t") == text
    check_table(server, "t")
    used = server.anonymous_bytes() - base
    assert used < LARGE // 2, f"the server keeps {used / 2**20:.1f} MiB"


@pytest.mark.parametrize("buffering", ["OFF", "ON"])
def test_data_files_are_read_past_the_page_cache_or_through_it(new_server, buffering):
    """The setting determines whether evicted pages are read from the device again."""
    server = begun(new_server({**OPTIONS, "loose_cheetah_buffer_pool_size": "8M",
                               "loose_cheetah_data_file_buffering": buffering}))
    if buffering == "OFF" and not reads_past_the_cache(server.folder):
        pytest.skip(f"no reads past the page cache in {server.folder}")
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b VARBINARY(300)) ENGINE=CHEETAH",
        "INSERT INTO t SELECT seq, CONCAT(SHA2(seq, 512), SHA2(-seq, 512)) FROM seq_1_to_200000")
    server.restart()
    assert server.value("SELECT @@cheetah_data_file_buffering") == (buffering == "ON")
    scans = []
    for _ in range(3):
        before, _ = server.device_bytes()
        scans.append(server.sql("SELECT COUNT(*), SUM(CRC32(b)) FROM d.t"))
        after, _ = server.device_bytes()
    assert scans[0][0][0] == 200_000 and scans[0] == scans[1] == scans[2]
    stored_bytes = server.status("Cheetah_segment_live_bytes")
    assert stored_bytes > 3 * (8 << 20), "larger than memory"
    read_again = after - before
    assert read_again > stored_bytes / 2 if buffering == "OFF" else read_again < stored_bytes / 4


def reads_past_the_cache(folder) -> bool:
    """Returns whether the file system of a folder supports O_DIRECT."""
    path = folder / "direct"
    path.touch()
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    finally:
        path.unlink()
    return True
