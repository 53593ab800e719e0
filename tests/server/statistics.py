"""What the engine tells of compression, its buffer pool and sizes. V1 to V8 are wishes of those who measured InnoDB's compression first."""

import random
import threading
import time

from cheetah_tools.engines import allocated
from cheetah_tools.servertests import WAIT_SECONDS_MAX, expect, wait_until

ROWS = 20000
# The table of the first document, filled as there: digits by chance.
SBTEST = """CREATE TABLE d.sbtest (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '',
            pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k (k)) ENGINE=CHEETAH"""
FILL = f"""INSERT INTO d.sbtest SELECT seq, FLOOR(RAND() * {ROWS}),
           CONCAT_WS('-', {", ".join(["LPAD(FLOOR(RAND() * 1e11), 11, '0')"] * 10)}), CONCAT_WS('-', {", ".join(["LPAD(FLOOR(RAND() * 1e11), 11, '0')"] * 5)})
           FROM seq_1_to_{ROWS}"""
CHECKPOINT = "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS"
LOOKS_MAX = 100
# Looks at growing files, and those at a moment when little was written.
LOOKS_MIN, TIGHT_MIN = 10, 5
# What the engine may have in hand at a moment, on its way to a file.
EXTENT = 1 << 20


def started(context, options: dict = None):
    """A server with the table of the first document, all of it on disk."""
    server = context.server(options)
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql(SBTEST)
    server.sql(FILL, "d")
    rest(server)
    return server


def rest(server) -> None:
    """Wait until nothing is left that changes pages by itself, and bring all to disk."""
    wait_until(lambda: server.status("Cheetah_transactions_to_purge") == 0, "purge is not done", server)
    server.sql(CHECKPOINT)


def columns(server, view: str) -> list:
    """The names of a view's columns, in order."""
    return [name for name, in server.sql("SELECT column_name FROM information_schema.columns WHERE table_schema = 'information_schema' "
                                         f"AND table_name = '{view}' ORDER BY ordinal_position")]


def expect_columns_of_innodb(server, *names) -> None:
    """Our views begin with the columns of InnoDB's."""
    for name in names:
        ours, theirs = columns(server, "CHEETAH_" + name), columns(server, "INNODB_" + name)
        expect(theirs and ours[:len(theirs)] == theirs, f"{name}: {ours}, InnoDB has {theirs}", server)


def expect_nothing_without_process(server, *names) -> None:
    """Who may not see other connections is refused these views."""
    import pymysql
    server.sql("CREATE USER nobody@localhost")
    connection = pymysql.connect(unix_socket=str(server.socket), user="nobody")
    for name in names:
        with connection.cursor() as cursor:
            try:
                cursor.execute(f"SELECT * FROM information_schema.{name}")
                answer = cursor.fetchall()
            except pymysql.MySQLError as refusal:
                answer = refusal.args[0]
        expect(answer == 1227, f"a user without PROCESS gets {answer} from {name}", server)
    connection.close()


def test_V1_images_that_are_made_and_read_are_counted_with_their_times(context):
    """By length and by index, in InnoDB's columns; the _RESET twins start the counters again."""
    server = started(context)
    expect_columns_of_innodb(server, "CMP", "CMP_RESET", "CMP_PER_INDEX", "CMP_PER_INDEX_RESET")
    made = "SELECT page_size, compress_ops, compress_time, compress_time_us FROM information_schema.cheetah_cmp"
    rows = server.sql(made)
    expect([row[0] for row in rows] == [1024, 2048, 4096, 8192, 16384, 32768, 65536], f"{rows}", server)
    pages = sum(row[1] for row in rows)
    expect(pages >= ROWS * 150 // 16384, f"{pages} images for {ROWS} rows", server)
    # Digits by chance compress to less than half.
    expect(rows[3][1] > pages / 2, f"most images have up to 8 KiB: {rows}", server)
    expect(all(seconds == us // 1000000 for _, _, seconds, us in rows), f"{rows}", server)
    expect(pages * 2 <= sum(row[3] for row in rows) <= pages * 50000, f"microseconds for {pages} images: {rows}", server)
    by_index = dict(server.sql("SELECT index_name, compress_ops FROM information_schema.cheetah_cmp_per_index "
                               "WHERE database_name = 'd' AND table_name = 'sbtest'"))
    expect(by_index.keys() == {"PRIMARY", "k"} and by_index["PRIMARY"] > by_index["k"] > 0, f"{by_index}", server)
    # More may have been made since the first look.
    pages = sum(row[1] for row in server.sql(made))
    expect(sum(by_index.values()) <= pages, f"{by_index} of {pages}", server)
    server.restart()
    server.sql("SELECT SUM(CRC32(pad)) FROM d.sbtest")
    read = "SELECT uncompress_ops, uncompress_time_us FROM information_schema.cheetah_cmp_per_index{} WHERE table_name = 'sbtest' AND index_name = 'PRIMARY'"
    (count, us), = server.sql(read.format(""))
    expect(ROWS * 150 // 16384 <= count <= us, f"{count} images read in {us} us", server)
    expect(server.sql(read.format("_reset")) == [(count, us)], "the twin shows something else", server)
    expect(server.sql(read.format("")) == [(0, 0)], "the counters of indexes go on after _RESET", server)
    total = "SELECT SUM(uncompress_ops) FROM information_schema.cheetah_cmp"
    before = server.value(total)
    expect(before >= count, f"{before} of {count}: each view is counted by itself", server)
    expect(server.value(total + "_reset") >= before and server.value(total) < count, "the counters go on after _RESET", server)
    expect_nothing_without_process(server, "cheetah_cmp", "cheetah_cmp_reset", "cheetah_cmp_per_index", "cheetah_cmp_per_index_reset")
    server.stop()


def test_V2_no_page_fails_to_compress(context):
    """Digits by chance, and bytes that nothing compresses, at every codec: the views are filled, and nothing failed."""
    server = started(context)
    for codec in ("zstd", "lz4", "none"):
        server.sql(f"CREATE TABLE d.noise_{codec} (a INT PRIMARY KEY, b VARBINARY(2000)) ENGINE=CHEETAH COMPRESSION='{codec}'")
        server.sql(f"""INSERT INTO d.noise_{codec} SELECT seq, UNHEX(CONCAT({", ".join(["SHA2(RAND(), 512)"] * 30)})) FROM seq_1_to_500""", "d")
    server.sql(CHECKPOINT)
    rows = server.sql("SELECT SUM(compress_ops), SUM(compress_ops - compress_ops_ok) FROM information_schema.cheetah_cmp")
    expect(rows[0][0] > 3 * 500 * 1900 // 16384 and rows[0][1] == 0, f"images, and failures: {rows}", server)
    rows = server.sql("SELECT table_name, compress_ops, compress_ops - compress_ops_ok FROM information_schema.cheetah_cmp_per_index "
                      "WHERE table_name LIKE 'noise%'")
    expect(len(rows) == 3 and all(count > 0 and failed == 0 for _, count, failed in rows), f"{rows}", server)
    server.stop()


def pool_lines(server) -> dict:
    """The section of the pool in the engine's status: lines by what they begin with."""
    text = server.sql("SHOW ENGINE CHEETAH STATUS")[0][2]
    expect(text.startswith("Per second averages calculated from the last "), text, server)
    section = text.split("BUFFER POOL AND MEMORY\n", 1)[1].split("\n---", 1)[0]
    found = {}
    for line in section.splitlines():
        words = line.rsplit(None, 1)
        found[words[0].strip()] = words[-1]
        if "reads/s" in line:
            found["reads/s"] = float(line.split()[0])
    return found


def test_V8_the_status_has_the_buffer_pool_with_reads_and_free_buffers(context):
    """Free buffers go down while a table is read, reads/s is above zero for that time and zero afterwards; the view agrees."""
    server = started(context)
    expect_columns_of_innodb(server, "BUFFER_POOL_STATS")
    server.restart()
    fresh = pool_lines(server)
    server.sql("SELECT SUM(CRC32(pad)) FROM d.sbtest")
    rate, pages = server.sql("SELECT pages_read_rate, number_pages_read FROM information_schema.cheetah_buffer_pool_stats")[0]
    expect(rate > 0 and pages >= ROWS * 150 // 16384, f"{rate} of {pages} pages", server)
    scanned = pool_lines(server)
    used = [int(lines["Buffer pool size"]) - int(lines["Free buffers"]) for lines in (fresh, scanned)]
    expect(ROWS * 150 // 16384 <= used[1] - used[0] <= pages + 1, f"buffers in use before and after: {used}, for {pages} pages", server)
    expect(int(fresh["Buffer pool size"]) >= int(fresh["Free buffers"]) > 0, f"{fresh}", server)
    expect(scanned["reads/s"] > 0, f"{scanned}", server)
    after = pool_lines(server)
    expect(after["reads/s"] == 0, f"{after}", server)
    shown = server.sql("SELECT pool_id, pool_size, free_buffers, database_pages, modified_database_pages, pages_made_young "
                       "FROM information_schema.cheetah_buffer_pool_stats")[0]
    lines = [int(after[name]) for name in ("Buffer pool size", "Free buffers", "Database pages", "Modified db pages")]
    alike = all(abs(number - line) <= 8 for number, line in zip(shown[1:], lines))
    expect(alike and (shown[0], shown[-1]) == (0, None), f"the view has {shown}, the status {lines}", server)
    expect_nothing_without_process(server, "cheetah_buffer_pool_stats")
    server.stop()


def file_bytes(server) -> int:
    """What the file system says of all files of the engine but the log."""
    total = 0
    for file in (server.data / "#cheetah").rglob("*"):
        try:
            total += file.stat().st_blocks * 512 if file.is_file() and file.parent.name != "wal" else 0
        except FileNotFoundError:   # it has just gone
            pass
    return total


class Watch:
    """Looks at the size of the files for as long as its block takes: they grow and shrink meanwhile."""

    def __init__(self, server):
        self.server, self.seen, self.ended = server, [], threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self) -> None:
        """Until the end."""
        while not self.ended.is_set():
            self.seen.append(file_bytes(self.server))

    def __enter__(self):
        self.seen.append(file_bytes(self.server))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.seen.append(file_bytes(self.server))


def segment_bytes(server) -> int:
    """What the file system says of the files with the pages."""
    return sum(allocated(file) for file in (server.data / "#cheetah").rglob("*.seg"))


def written_bytes(server) -> int:
    """Bytes of pages, large values and moved pages that have been written so far."""
    return sum(server.status(f"Cheetah_pool_{what}_bytes") for what in ("written", "blob_written", "moved"))


def table_status(server, name: str) -> dict:
    """SHOW TABLE STATUS of one table."""
    row = server.sql(f"SHOW TABLE STATUS FROM d LIKE '{name}'")[0]
    return dict(rows=row[4], average=row[5], data=row[6], index=row[8], free=row[9])


def test_V3_show_table_status_has_the_bytes_on_disk(context):
    """Data, index and free bytes of all tables are what the files take, but for the engine's own tables and file headers."""
    server = started(context)
    server.sql("CREATE TABLE d.copy LIKE d.sbtest")
    server.sql("INSERT INTO d.copy SELECT * FROM d.sbtest")
    server.sql("DELETE FROM d.copy WHERE id % 2 = 0")
    rest(server)
    files, (tables, shown) = unchanged_around(
        server, lambda: segment_bytes(server),
        lambda: ([table_status(server, name) for name in ("sbtest", "copy")], server.status("Cheetah_segment_bytes")))
    expect(all(table["data"] > 5 * table["index"] > 0 for table in tables), f"{tables}", server)
    total = sum(table["data"] + table["index"] + table["free"] for table in tables)
    expect(files * 0.7 <= total <= files * 1.02 + 65536, f"{tables}: {total} bytes, the files have {files}", server)
    expect(abs(shown - files) <= 1 << 20, f"{shown} of {files}", server)
    server.stop()


def test_V4_bytes_before_and_after_compression_are_seen_in_sql(context):
    """Both, their ratio, and what is in memory, for each table and index; the file system agrees."""
    server = started(context)
    names = ("logical_bytes", "stored_bytes", "ratio", "free_bytes", "allocated_bytes", "cached_bytes", "compression")
    (logical, stored, ratio, free, allocated, cached, codec), (indexes, files) = unchanged_around(
        server, lambda: server.sql(f"SELECT {', '.join(names)} FROM information_schema.cheetah_tables WHERE table_name = 'sbtest'")[0],
        lambda: (server.sql("SELECT index_name, logical_bytes, stored_bytes, depth, leaf_pages, pages, fill_percent, cached_bytes "
                            "FROM information_schema.cheetah_indexes WHERE table_name = 'sbtest'"), segment_bytes(server)))
    expect(logical >= ROWS * 190 and stored < logical / 2 and codec == "zstd", f"{logical} bytes, {stored} on disk", server)
    expect(abs(float(ratio) - logical / stored) < 0.05, f"{ratio} for {logical} and {stored}", server)
    expect(allocated == stored + free <= files + 65536, f"{allocated} of {files}", server)
    expect(0 < cached <= logical, f"{cached} of {logical} bytes in memory", server)
    expect([row[0] for row in indexes] == ["PRIMARY", "k"], f"{indexes}", server)
    expect((sum(row[1] for row in indexes), sum(row[2] for row in indexes)) == (logical, stored), f"{indexes}", server)
    expect(sum(row[7] for row in indexes) == cached, f"{indexes}, {cached}", server)
    for name, _, _, depth, leaves, pages, fill, _ in indexes:
        expect(depth == 2 and leaves == pages - 1, f"{name}: {indexes}", server)
        expect(40 < float(fill) <= 100, f"{name} is filled by {fill} %: {indexes}", server)
    # Large values: their pages have up to 64 KiB, and count so.
    server.sql("CREATE TABLE d.texts (a INT PRIMARY KEY, b LONGTEXT) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.texts SELECT seq, REPEAT(MD5(seq), 6000) FROM seq_1_to_20", "d")
    server.sql(CHECKPOINT)
    logical, ratio = server.sql("SELECT logical_bytes, ratio FROM information_schema.cheetah_tables WHERE table_name = 'texts'")[0]
    expect(20 * 192000 <= logical < 2 * 20 * 192000 and ratio > 10, f"{logical} bytes, ratio {ratio}", server)
    server.restart()
    fills = server.sql("SELECT fill_percent FROM information_schema.cheetah_indexes WHERE table_name = 'sbtest'")
    expect(fills == [(None,), (None,)], f"no leaf is in memory: {fills}", server)
    expect_nothing_without_process(server, "cheetah_tables", "cheetah_indexes")
    server.stop()


def test_V5_information_schema_tables_has_rows_and_lengths(context):
    """Rows are exact, the length is that on disk, that of a row is the quotient."""
    server = started(context)
    server.sql("DELETE FROM d.sbtest WHERE id % 10 = 0")
    (rows, average, data, index, free), shown = unchanged_around(
        server, lambda: server.sql("SELECT table_rows, avg_row_length, data_length, index_length, data_free FROM information_schema.tables "
                                   "WHERE table_name = 'sbtest'")[0],
        lambda: server.sql("SELECT stored_data_bytes, stored_index_bytes, free_bytes FROM information_schema.cheetah_tables "
                           "WHERE table_name = 'sbtest'")[0])
    expect(rows == ROWS - ROWS // 10, f"{rows} rows", server)
    expect(average == data // rows and 0 < index < data, f"{average} for {data} bytes", server)
    # What is free changes with what others write.
    expect(shown[:2] == (data, index) and abs(shown[2] - free) < 1 << 20, f"{shown}, and {data}, {index}, {free}", server)
    server.stop()


def unchanged_around(server, first, second) -> tuple:
    """What two functions give at a moment at which the first one's did not change: purge and what writes pages go on beside."""
    for _ in range(LOOKS_MAX):
        before, between, after = first(), second(), first()
        if before == after:
            return before, between
        time.sleep(0.05)
    return expect(False, f"it changed during each of {LOOKS_MAX} looks: {before}, {after}", server)


def test_V6_three_ways_to_count_rows_agree(context):
    """The quotient of the lengths, TABLE_ROWS and COUNT(*)."""
    server = started(context)
    quotient, shown = server.sql("SELECT data_length / avg_row_length, table_rows FROM information_schema.tables WHERE table_name = 'sbtest'")[0]
    counted = server.value("SELECT COUNT(*) FROM d.sbtest")
    expect(shown == counted == ROWS and abs(float(quotient) / ROWS - 1) < 0.02, f"{quotient}, {shown}, {counted}", server)
    server.stop()


def cardinality(server, table: str, index: str) -> int:
    """Of an index's first part."""
    return server.value(f"SELECT cardinality FROM information_schema.statistics WHERE table_name = '{table}' AND index_name = '{index}' AND seq_in_index = 1")


def images_read_by_analyze(server) -> int:
    """After a restart: images of the table of the first document that ANALYZE reads."""
    server.restart()
    server.sql("ANALYZE TABLE d.sbtest")
    return int(server.value("SELECT SUM(uncompress_ops) FROM information_schema.cheetah_cmp_per_index WHERE table_name = 'sbtest'"))


def test_V7_cardinalities_are_sampled_kept_and_taken_again(context):
    """The number of places to look at can be chosen, for all and for a table; the cost is that of the places; a tenth of new rows is noticed."""
    server = started(context)
    expect(server.value("SELECT @@cheetah_stats_persistent_sample_pages") == 20, "another default", server)
    # Without dictionaries: where a tree may have one, ANALYZE reads pages to try it on, whatever the number of places.
    server.sql("ALTER TABLE sbtest COMPRESSION='lz4'", "d")
    rest(server)
    few, many = [], []
    for places, found in ((4, few), (40, many)):
        server.options["cheetah_stats_persistent_sample_pages"] = places
        found.append(images_read_by_analyze(server))
    expect(few[0] * 2 < many[0], f"{few} images for 4 places, {many} for 40", server)
    server.sql(f"INSERT INTO sbtest SELECT id + {ROWS}, k, c, pad FROM sbtest", "d")
    rest(server)
    server.options["cheetah_stats_persistent_sample_pages"] = 4
    few.append(images_read_by_analyze(server))
    expect(few[1] < few[0] * 1.5 + 10, f"images that are read, before and after the table has become twice as large: {few}", server)
    server.sql("CREATE TABLE d.tens (id INT PRIMARY KEY, k INT, KEY k (k)) ENGINE=CHEETAH STATS_SAMPLE_PAGES=50")
    server.sql("INSERT INTO d.tens SELECT seq, seq % 10 FROM seq_1_to_1000", "d")
    expect(cardinality(server, "tens", "k") is None, "nobody has analyzed the table", server)
    server.sql("ANALYZE TABLE d.tens")
    server.restart()
    expect(cardinality(server, "tens", "k") == 10, "cardinalities are not kept", server)
    # Rows for each value are kept, so without a new look there would be 30 values in three times as many rows.
    server.sql("INSERT INTO d.tens SELECT seq, seq % 10 FROM seq_1001_to_3000", "d")
    expect(cardinality(server, "tens", "k") == 10, f"{cardinality(server, 'tens', 'k')} values after inserts", server)
    server.sql("CREATE TABLE d.left_alone (id INT PRIMARY KEY, k INT, KEY k (k)) ENGINE=CHEETAH STATS_AUTO_RECALC=0")
    server.sql("INSERT INTO d.left_alone SELECT * FROM d.tens")
    server.sql("ANALYZE TABLE d.left_alone")
    server.sql("INSERT INTO d.left_alone SELECT id + 3000, k FROM d.tens")
    expect(cardinality(server, "left_alone", "k") == 20, f"{cardinality(server, 'left_alone', 'k')} values, though nobody may look", server)
    server.stop()


def test_the_files_are_as_long_as_the_views_say_at_any_time(context):
    """While tables come, change and go, the file system has what the views have, but for bytes on their way to it; no table has more than there is."""
    server = started(context)
    stop, failures = threading.Event(), []

    def work(number: int):
        import pymysql
        connection = server.connect("d", autocommit=True)
        rng = random.Random(f"{context.name}/{number}")
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE TABLE w{number} LIKE sbtest")
                while not stop.is_set():
                    cursor.execute(rng.choice([
                        f"INSERT IGNORE INTO w{number} SELECT * FROM sbtest WHERE id BETWEEN {rng.randrange(ROWS)} AND {rng.randrange(ROWS)}",
                        f"DELETE FROM w{number} WHERE id % {rng.randrange(2, 5)} = 0", f"UPDATE w{number} SET pad = REVERSE(pad) WHERE id % 7 = 0",
                        f"TRUNCATE TABLE w{number}", CHECKPOINT]))
        except pymysql.MySQLError as failure:
            failures.append(failure)
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    began, looks, tight = time.monotonic(), 0, 0
    # A busy machine needs longer to have looked often enough, and when little was written.
    while not failures and (time.monotonic() < began + 6 or ((looks <= LOOKS_MIN or tight <= TIGHT_MIN) and time.monotonic() < began + WAIT_SECONDS_MAX)):
        written, before = written_bytes(server), server.status("Cheetah_segment_bytes")
        files = segment_bytes(server)
        after = server.status("Cheetah_segment_bytes")
        # Between the two looks the files may have grown and shrunk again, or the other way round; not by more than was written.
        allowed = EXTENT + written_bytes(server) - written
        expect(min(before, after) - allowed <= files <= max(before, after) + allowed,
               f"{before}, then {after}; the files have {files}, and {allowed - EXTENT} bytes were written meanwhile", server)
        is_tight = allowed < 2 * EXTENT
        for view in ("cheetah_tables", "cheetah_indexes"):
            with Watch(server) as watch:
                written = written_bytes(server)
                allocated = server.value(f"SELECT SUM(allocated_bytes) FROM information_schema.{view}")
                allowed = EXTENT + written_bytes(server) - written
            # A thread that is starved does not see how they shrink and grow again between two of its looks; as above.
            least, most = min(watch.seen), max(watch.seen)
            expect(least - allowed <= allocated <= most + allowed, f"{view} has {allocated} bytes, the files {watch.seen}, allowed {allowed}", server)
            is_tight = is_tight and allowed < 2 * EXTENT
        tight += is_tight
        looks += 1
    stop.set()
    for thread in threads:
        thread.join(60)
    expect(not failures and looks > LOOKS_MIN and tight > TIGHT_MIN, f"{looks} looks, {tight} at a moment when little was written, {failures}", server)
    server.stop()
