"""Space comes back by itself: no OPTIMIZE, no FLUSH, only time."""

import time

import pytest
from cheetah_tools.engines import CHEETAH, allocated, is_log
from cheetah_tools.say import note
from servers import begun, crash, looking, wait_until

ROWS, LARGE_ROWS = 40_000, 1_000_000
# After the statement that makes four fifths needless the files have at most this part of what they
# had.
LEFT_MAX = 0.4
SECONDS_MAX = 120
# Inserted in random order, 2,000 rows at a time.
RANDOM_STEPS = 160
# Bytes that are no longer needed from which on a checkpoint begins. It hurries from twice that on,
# goes on writing until its end, and segments of which a part is needed go after the second one.
OUTDATED_BYTES, OUTDATED_TIMES_MAX = 64 << 20, 6
SMALL_LOG_BYTES = 8 << 20
TABLE = """CREATE TABLE d.t (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL,
           g CHAR(32) NOT NULL, c VARCHAR(200) NOT NULL,
           PRIMARY KEY (id), KEY k (k), KEY g (g)) ENGINE=CHEETAH
           SELECT seq AS id, CRC32(seq) AS k, MD5(seq) AS g,
           CONCAT_WS(' ', 'the row with', SHA1(seq), SHA1(seq + 1)) AS c FROM mysql.seq_1_to_{}"""


def file_bytes(server) -> int:
    """What the file system says of the engine's files but the log's, which are used again."""
    return CHEETAH.allocated_bytes(server, "")


def test_space_comes_back_by_itself(new_server, large):
    """Of rows all over a table, of an index, of all; --large: of a table's end, of a table. Each on
    a server of its own, as this waits for all at the same time."""
    rows = LARGE_ROWS if large else ROWS
    statements = [("DELETE FROM t WHERE id % 5 <> 0", LEFT_MAX),
                  ("ALTER TABLE t DROP INDEX g", 0.8), ("TRUNCATE TABLE t", LEFT_MAX / 2)]
    if large:
        statements += [(f"DELETE FROM t WHERE id > {rows // 5}", LEFT_MAX),
                       ("DROP TABLE t", LEFT_MAX / 2)]
    options = {"loose_cheetah_buffer_pool_size": "256M"} if large else {}
    servers = [begun(new_server(options)) for _ in statements]
    for server in servers:
        server.sql(TABLE.format(rows))
        server.sql("SET GLOBAL cheetah_checkpoint_now = ON")
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
    """A cache that is too small has each page written again and again, where changes may not wait
    for their pages; only a checkpoint lets the images before go, and the log alone would ask for
    none here."""
    server.sql(f"SET GLOBAL cheetah_change_buffering = '{buffering}'")
    server.sql("CREATE TABLE d.t (g BINARY(16) PRIMARY KEY, a INT UNSIGNED, c VARCHAR(100), "
               "KEY (a)) ENGINE=CHEETAH")
    largest, started = [(0, 0)], time.monotonic()   # of the files, and what was needed then

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
    """What the file system says of the log's files."""
    folder = server.data / "#cheetah"
    return sum(allocated(file) for file in folder.rglob("*") if is_log(file))


@pytest.mark.options({"loose_cheetah_log_size_max": "1G", "loose_cheetah_log_file_size": "64M"})
def test_the_log_of_a_small_database_is_short(server):
    """With the default sizes: at first, with some rows, and after restarts."""
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
    # Each start goes on in a file of its own, and old ones go at the next checkpoint.
    assert max(sizes) <= 2 * SMALL_LOG_BYTES
