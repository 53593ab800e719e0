"""The engine's statistics of compression, its buffer pool and sizes. V1 to V8 are requests from
users who had measured InnoDB's compression. V1, V2 and V5 to V7 are in tests/sql."""

import time

import pytest
from cheetah_tools.engines import allocated, CHEETAH
from servers import (Client, expect_nothing_without_process, looking, run, WAIT_SECONDS_MAX,
                     wait_until, working)

ROWS = 20000
# The table from the first document, filled with random digits as described there.
SBTEST = """CREATE TABLE d.sbtest (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL DEFAULT 0,
            c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '',
            PRIMARY KEY (id), KEY k (k)) ENGINE=CHEETAH"""
FILL = f"""INSERT INTO d.sbtest SELECT seq, FLOOR(RAND() * {ROWS}),
           CONCAT_WS('-', {", ".join(["LPAD(FLOOR(RAND() * 1e11), 11, '0')"] * 10)}),
           CONCAT_WS('-', {", ".join(["LPAD(FLOOR(RAND() * 1e11), 11, '0')"] * 5)})
           FROM seq_1_to_{ROWS}"""
CHECKPOINT = "SET GLOBAL cheetah_checkpoint_now = ON"
LOOKS_MAX = 100
# Checks of growing files, and checks at moments when little was written.
LOOKS_AT_REMOVAL = 10
LOOKS_MIN, TIGHT_MIN = 10, 5
# The maximum number of bytes that the engine may be writing to a file at any moment.
EXTENT = 1 << 20


@pytest.fixture(autouse=True)
def filled(server) -> None:
    run(server, SBTEST, FILL)
    rest(server)


def rest(server) -> None:
    """Waits until no background work changes pages, and writes all pages to disk."""
    wait_until(lambda: server.status("Cheetah_transactions_to_purge") == 0, "purge is not done")
    server.sql(CHECKPOINT)


def pool_lines(server) -> dict:
    """Returns the lines of the pool's section in the engine's status, keyed by their beginnings."""
    text = server.sql("SHOW ENGINE CHEETAH STATUS")[0][2]
    assert text.startswith("Per second averages calculated from the last "), text
    section = text.split("BUFFER POOL AND MEMORY\n", 1)[1].split("\n---", 1)[0]
    found = {}
    for line in section.splitlines():
        words = line.rsplit(None, 1)
        found[words[0].strip()] = words[-1]
        if "reads/s" in line:
            found["reads/s"] = float(line.split()[0])
    return found


def test_V8_the_status_has_the_buffer_pool_with_reads_and_free_buffers(server):
    server.restart()
    fresh = pool_lines(server)
    server.sql("SELECT SUM(CRC32(pad)) FROM d.sbtest")
    rate, pages = server.sql("SELECT pages_read_rate, number_pages_read "
                             "FROM information_schema.cheetah_buffer_pool_stats")[0]
    assert rate > 0 and pages >= ROWS * 150 // 16384, f"{rate} of {pages} pages"
    scanned = pool_lines(server)
    used = [int(lines["Buffer pool size"]) - int(lines["Free buffers"])
            for lines in (fresh, scanned)]
    # Statistics may read more pages between the two views.
    pages_later = server.sql("SELECT number_pages_read "
                             "FROM information_schema.cheetah_buffer_pool_stats")[0][0]
    assert ROWS * 150 // 16384 <= used[1] - used[0] <= pages_later + 1
    assert int(fresh["Buffer pool size"]) >= int(fresh["Free buffers"]) > 0
    assert scanned["reads/s"] > 0
    # Statistics collected in the background may still read.
    wait_until(lambda: pool_lines(server)["reads/s"] == 0, "something reads on")
    after = pool_lines(server)
    shown = server.sql("SELECT pool_id, pool_size, free_buffers, database_pages, "
                       "modified_database_pages, pages_made_young "
                       "FROM information_schema.cheetah_buffer_pool_stats")[0]
    lines = [int(after[name]) for name in ("Buffer pool size", "Free buffers", "Database pages",
                                           "Modified db pages")]
    alike = all(abs(number - line) <= 8 for number, line in zip(shown[1:], lines))
    assert alike and (shown[0], shown[-1]) == (0, None), f"the view has {shown}, the status {lines}"
    expect_nothing_without_process(server, "buffer_pool_stats", "cmp", "cmp_reset",
                                   "cmp_per_index", "cmp_per_index_reset")


def segment_bytes(server) -> int:
    return sum(allocated(file) for file in (server.data / "#cheetah").rglob("*.seg"))


def written_bytes(server) -> int:
    """Returns the number of bytes of pages, large values and moved pages written so far."""
    return sum(server.status(f"Cheetah_pool_{what}_bytes")
               for what in ("written", "blob_written", "moved"))


def table_status(server, name: str) -> dict:
    row = server.sql(f"SHOW TABLE STATUS FROM d LIKE '{name}'")[0]
    return dict(rows=row[4], average=row[5], data=row[6], index=row[8], free=row[9])


def test_V3_show_table_status_has_the_bytes_on_disk(server):
    run(server, "CREATE TABLE copy LIKE sbtest", "INSERT INTO copy SELECT * FROM sbtest",
        "DELETE FROM copy WHERE id % 2 = 0")
    rest(server)
    files, (tables, shown) = unchanged_around(
        server, lambda: segment_bytes(server),
        lambda: ([table_status(server, name) for name in ("sbtest", "copy")],
                 server.status("Cheetah_segment_bytes")))
    assert all(table["data"] > 5 * table["index"] > 0 for table in tables), f"{tables}"
    total = sum(table["data"] + table["index"] + table["free"] for table in tables)
    assert files * 0.7 <= total <= files * 1.02 + 65536
    assert abs(shown - files) <= 1 << 20, f"{shown} of {files}"


def test_V4_bytes_before_and_after_compression_are_seen_in_sql(server):
    names = ("logical_bytes", "stored_bytes", "ratio", "free_bytes", "allocated_bytes",
             "cached_bytes", "compression")
    (logical, stored, ratio, free, allocated, cached, codec), (indexes, files) = unchanged_around(
        server,
        lambda: server.sql(f"SELECT {', '.join(names)} FROM information_schema.cheetah_tables "
                           "WHERE table_name = 'sbtest'")[0],
        lambda: (server.sql("SELECT index_name, logical_bytes, stored_bytes, depth, leaf_pages, "
                            "pages, fill_percent, cached_bytes "
                            "FROM information_schema.cheetah_indexes WHERE table_name = 'sbtest'"),
                 segment_bytes(server)))
    assert logical >= ROWS * 190 and stored < logical / 2 and codec == "zstd"
    assert abs(float(ratio) - logical / stored) < 0.05, f"{ratio} for {logical} and {stored}"
    assert allocated == stored + free <= files + 65536, f"{allocated} of {files}"
    assert 0 < cached <= logical, f"{cached} of {logical} bytes in memory"
    assert [row[0] for row in indexes] == ["PRIMARY", "k"]
    assert (sum(row[1] for row in indexes), sum(row[2] for row in indexes)) == (logical, stored)
    assert sum(row[7] for row in indexes) == cached
    for name, _, _, depth, leaves, pages, fill, _ in indexes:
        assert depth == 2 and leaves == pages - 1
        assert 40 < float(fill) <= 100, f"{name} is filled by {fill} %: {indexes}"
    # Large values have pages of up to 64 KiB, which are included.
    run(server, "CREATE TABLE texts (a INT PRIMARY KEY, b LONGTEXT) ENGINE=CHEETAH",
        "INSERT INTO texts SELECT seq, REPEAT(MD5(seq), 6000) FROM seq_1_to_20", CHECKPOINT)
    logical, ratio = server.sql("SELECT logical_bytes, ratio FROM "
                                "information_schema.cheetah_tables WHERE table_name = 'texts'")[0]
    assert 20 * 192000 <= logical < 2 * 20 * 192000 and ratio > 10
    server.restart()
    fills = server.sql("SELECT fill_percent FROM information_schema.cheetah_indexes "
                       "WHERE table_name = 'sbtest'")
    assert fills == [(None,), (None,)], f"no leaf is in memory: {fills}"
    expect_nothing_without_process(server, "tables", "indexes", "foreign_keys", "cache_curve")


def unchanged_around(server, first, second) -> tuple:
    """Returns the results of both functions once the first result is the same before and after the
    second call. Other threads write meanwhile."""
    for _ in range(LOOKS_MAX):
        before, between, after = first(), second(), first()
        if before == after:
            return before, between
        time.sleep(0.05)
    pytest.fail(f"it changed during each of {LOOKS_MAX} looks: {before}, {after}")


class Definer(Client):
    def work(self, cursor) -> None:
        name = f"t{self.number}"
        change = self.rng.choice([
            f"TRUNCATE TABLE {name}", f"ALTER TABLE {name} DROP KEY k, ALGORITHM=INSTANT",
            f"ALTER TABLE {name} FORCE, ALGORITHM=COPY", f"ALTER TABLE {name} ADD KEY j (j)",
            f"RENAME TABLE {name} TO r{self.number}, r{self.number} TO {name}",
            f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 1, ALGORITHM=INSTANT"])
        cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, k INT, j INT, KEY k (k)) "
                       "ENGINE=CHEETAH")
        cursor.execute(f"INSERT INTO {name} SELECT seq, seq % 7, seq FROM "
                       f"seq_1_to_{self.rng.choice([100, 8000])}")
        time.sleep(self.rng.random() / 20)
        for statement in (change, f"SHOW INDEX FROM {name}", f"DROP TABLE {name}"):
            cursor.execute(statement)


def test_statistics_do_not_meet_tables_that_go_and_change(server):
    with working([Definer(server, number) for number in range(3)]) as definers:
        time.sleep(8)
    assert sum(definer.done for definer in definers) > 10
    assert server.status("Cheetah_troubles") == 0
    kept = ("SELECT table_rows FROM information_schema.CHEETAH_TABLES WHERE table_schema = '' AND "
            "table_name = '#statistics'")
    wait_until(lambda: server.value(kept) <= 2, "statistics of tables that have gone stay")


def files_beside_status(server) -> tuple:
    """Returns the largest allowed difference of files and status, and the bytes beyond it."""
    written, before = written_bytes(server), server.status("Cheetah_segment_bytes")
    files = segment_bytes(server)
    after = server.status("Cheetah_segment_bytes")
    # Meanwhile the files may have grown and shrunk again, but by no more than the bytes written.
    allowed = EXTENT + written_bytes(server) - written
    return allowed, max(min(before, after) - allowed - files,
                        files - max(before, after) - allowed, 0)


def files_beside_view(server, view: str) -> tuple:
    """Like `files_beside_status`, for the total of a view."""
    seen = []
    with looking(lambda: seen.append(CHEETAH.allocated_bytes(server, ""))):
        written = written_bytes(server)
        told = server.value(f"SELECT SUM(allocated_bytes) FROM information_schema.{view}")
        allowed = EXTENT + written_bytes(server) - written
    # A starved thread does not see the files shrink and grow again between two of its checks.
    return allowed, max(min(seen) - allowed - told, told - max(seen) - allowed, 0)


def look_again(look) -> tuple:
    """Returns the result of `look`, repeated while bytes differ. A removed file leaves the folder
    before the count, by as long as the file system needs."""
    for _ in range(LOOKS_AT_REMOVAL):
        allowed, apart = look()
        if apart == 0:
            return allowed, apart
        time.sleep(0.05)
    return look()


class Filler(Client):
    def begin(self, cursor) -> None:
        cursor.execute(f"CREATE TABLE w{self.number} LIKE sbtest")

    def work(self, cursor) -> None:
        name, rng = f"w{self.number}", self.rng
        cursor.execute(rng.choice([
            f"INSERT IGNORE INTO {name} SELECT * FROM sbtest WHERE id "
            f"BETWEEN {rng.randrange(ROWS)} AND {rng.randrange(ROWS)}",
            f"DELETE FROM {name} WHERE id % {rng.randrange(2, 5)} = 0",
            f"UPDATE {name} SET pad = REVERSE(pad) WHERE id % 7 = 0",
            f"TRUNCATE TABLE {name}", CHECKPOINT]))


def test_the_files_are_as_long_as_the_views_say_at_any_time(server):
    began, looks, tight = time.monotonic(), 0, 0
    with working([Filler(server, number) for number in range(2)]) as fillers:
        # A busy machine needs more time for enough checks, including some with little written.
        while (all(filler.is_alive() for filler in fillers)
               and (time.monotonic() < began + 6
                    or ((looks <= LOOKS_MIN or tight <= TIGHT_MIN)
                        and time.monotonic() < began + WAIT_SECONDS_MAX))):
            looked = [look_again(lambda: files_beside_status(server))]
            for view in ("cheetah_tables", "cheetah_indexes"):
                looked.append(look_again(lambda view=view: files_beside_view(server, view)))
            assert [apart for _, apart in looked] == [0] * len(looked)
            tight += max(allowed for allowed, _ in looked) < 2 * EXTENT
            looks += 1
    assert looks > LOOKS_MIN and tight > TIGHT_MIN
