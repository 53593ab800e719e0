"""Unused space is freed automatically, without OPTIMIZE or FLUSH."""

import time

import pytest
from cheetah_tools.engines import CHEETAH, allocated, is_log
from cheetah_tools.say import note
from servers import begun, crash, looking, run, wait_until

ROWS, LARGE_ROWS = 40_000, 1_000_000
# The maximum share that files keep of their size once four fifths of the rows are unneeded.
LEFT_MAX = 0.4
SECONDS_MAX = 120
# The number of steps, each of which inserts 2,000 rows in random order.
RANDOM_STEPS = 160
# A checkpoint begins at this number of outdated bytes. From twice this number on, it writes faster.
# It continues to its end, and segments that are partly needed are deleted after the second
# checkpoint.
OUTDATED_BYTES, OUTDATED_TIMES_MAX = 64 << 20, 6
SMALL_LOG_BYTES = 8 << 20
TABLE = """CREATE TABLE d.t (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL,
           g CHAR(32) NOT NULL, c VARCHAR(200) NOT NULL,
           PRIMARY KEY (id), KEY k (k), KEY g (g)) ENGINE=CHEETAH
           SELECT seq AS id, CRC32(seq) AS k, MD5(seq) AS g,
           CONCAT_WS(' ', 'the row with', SHA1(seq), SHA1(seq + 1)) AS c FROM mysql.seq_1_to_{}"""


def file_bytes(server) -> int:
    """Returns the allocated size of the engine's files without the log's, which are reused."""
    return CHEETAH.allocated_bytes(server, "")


def test_space_comes_back_by_itself(new_server, large):
    """Space is freed after rows throughout a table are deleted, an index is dropped, or a table is
    truncated. --large also deletes the end of a table and drops a table. Each case has its own
    server, because the test waits for all of them at the same time."""
    rows = LARGE_ROWS if large else ROWS
    statements = [("DELETE FROM t WHERE id % 5 <> 0", LEFT_MAX),
                  ("ALTER TABLE t DROP INDEX g", 0.8), ("TRUNCATE TABLE t", LEFT_MAX / 2)]
    if large:
        statements += [(f"DELETE FROM t WHERE id > {rows // 5}", LEFT_MAX),
                       ("DROP TABLE t", LEFT_MAX / 2)]
    options = {"loose_cheetah_buffer_pool_size": "256M"} if large else {}
    servers = [begun(new_server(options)) for _ in statements]
    for server in servers:
        run(server, TABLE.format(rows), "SET GLOBAL cheetah_checkpoint_now = ON")
    started, before = time.monotonic(), []
    for server, (statement, _) in zip(servers, statements):
        wait_until(lambda at=server: at.status("Cheetah_segment_bytes")
                   <= 1.3 * at.status("Cheetah_segment_live_bytes"), "no rest", SECONDS_MAX)
        before.append(file_bytes(server))
        server.sql(statement, "d")
    for server, (statement, most), size in zip(servers, statements, before):
        wait_until(lambda at=server, most=most * size: file_bytes(at) <= most,
                   f"{statement}: {most:.2f} of {size / 1e6:.1f} MB", SECONDS_MAX)
        note(f"{statement}: {most:.2f} of {size / 1e6:.1f} MB after at most "
             f"{time.monotonic() - started:.1f} s")


@pytest.mark.options({"loose_cheetah_log_size_max": "4G", "loose_cheetah_log_file_size": "64M"})
@pytest.mark.parametrize("buffering", ["none", "all"])
def test_files_stay_small_while_keys_come_at_random(server, buffering):
    """With a small cache, each page is written repeatedly if changes are not buffered. Only a
    checkpoint frees the previous images of pages, and here the log's size starts none."""
    server.sql(f"SET GLOBAL cheetah_change_buffering = '{buffering}'")
    server.sql("CREATE TABLE d.t (g BINARY(16) PRIMARY KEY, a INT UNSIGNED, c VARCHAR(100), "
               "KEY (a)) ENGINE=CHEETAH")
    # Sizes of the files, and the live bytes at that time.
    largest, started = [(0, 0)], time.monotonic()

    def look() -> None:
        size = file_bytes(server)
        if size > largest[-1][0]:
            largest.append((size, server.status("Cheetah_segment_live_bytes")))
    with looking(look, 0.05):
        for step in range(RANDOM_STEPS):
            server.sql("INSERT INTO d.t SELECT UNHEX(MD5(seq)), CRC32(seq), MD5(seq + 1) "
                       f"FROM mysql.seq_{step * 2000 + 1}_to_{step * 2000 + 2000}")
    most, live = largest[-1]
    written = server.status("Cheetah_pool_written_bytes")
    note(f"{time.monotonic() - started:.1f} s: {written / 1e6:.0f} MB written, at most "
         f"{most / 1e6:.0f} MB in files, of which {live / 1e6:.0f} MB were needed")
    assert buffering == "all" or written > 2 * OUTDATED_TIMES_MAX * OUTDATED_BYTES
    assert most < live + OUTDATED_TIMES_MAX * OUTDATED_BYTES


def log_bytes(server) -> int:
    folder = server.data / "#cheetah"
    return sum(allocated(file) for file in folder.rglob("*") if is_log(file))


@pytest.mark.options({"loose_cheetah_log_size_max": "1G", "loose_cheetah_log_file_size": "64M"})
def test_the_log_of_a_small_database_is_short(server):
    sizes = [log_bytes(server)]
    server.sql(TABLE.format(1000))
    sizes.append(log_bytes(server))
    for start in range(1000, 5000, 1000):
        crash(server)
        server.sql("INSERT INTO d.t SELECT seq, seq, MD5(seq), SHA1(seq) FROM "
                   f"mysql.seq_{start + 1}_to_{start + 1000}")
        sizes.append(log_bytes(server))
    wait_until(lambda: log_bytes(server) <= SMALL_LOG_BYTES, "the log stays long", SECONDS_MAX)
    note(f"MiB of log: {', '.join(f'{size / 2**20:.1f}' for size in sizes)}")
    # Each start begins a new file, and the next checkpoint removes old files.
    assert max(sizes) <= 2 * SMALL_LOG_BYTES
