"""Damaged or missing files, a second server, and invalid options: clear errors; the rest works."""

import contextlib
import os
import shutil
import struct
import subprocess

import pytest
from cheetah_tools.say import Failure
from cheetah_tools.server import PrivateServer
from checksum import crc32c, damage
from servers import mounted, run, Session, started, wait_until

MIB = 1 << 20


@pytest.fixture
def prepared(server):
    """A stopped server with two Cheetah tables and one InnoDB table, and its engine folder."""
    for name in ("one", "two"):
        run(server, f"CREATE TABLE {name} (a INT PRIMARY KEY, b VARBINARY(200), KEY (b)) "
            f"ENGINE=CHEETAH", f"INSERT INTO {name} SELECT seq, "
            "CONCAT(MD5(seq), MD5(seq + 1), MD5(seq + 2)) FROM seq_1_to_30000")
    run(server, "CREATE TABLE other (a INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO other VALUES (1), (2)")
    server.stop()
    return server, server.data / "#cheetah"


def starts_without_engine(server, word: str) -> None:
    """Asserts that the server does not start with FORCE. Without FORCE, it starts, other engines
    work, Cheetah is disabled, and the log has the reason."""
    with pytest.raises(Failure, match="ended at start"):
        server.start()
    server.options["cheetah"] = "ON"
    server.start()
    assert server.value("SELECT COUNT(*) FROM d.other") == 2, "InnoDB's table cannot be read"
    assert not server.has_engine("CHEETAH"), "the engine started on a damaged directory"
    lines = [line for line in server.log.read_text(errors="replace").splitlines()
             if "CHEETAH" in line and "ERROR" in line]
    assert any(word.lower() in line.lower() for line in lines), \
        f"no line of the log names '{word}': {lines[-3:]}"
    server.stop()
    del server.options["cheetah"]


def test_damaged_control_is_named(prepared):
    server, folder = prepared
    keep = (folder / "CONTROL").read_bytes()
    damage(folder / "CONTROL", 0, len(keep))
    starts_without_engine(server, "CONTROL")
    (folder / "CONTROL").write_bytes(keep)
    server.start()
    assert server.value("SELECT COUNT(*) FROM d.one") == 30000


def test_damaged_map_is_named(prepared):
    """A damaged file of the map is read from its copy and rewritten. With both, nothing starts."""
    server, folder = prepared
    damaged = sorted(folder.glob("map-*.log"))
    assert damaged
    for place in damaged:
        damage(place, 40, 64)
    server.start()
    assert server.value("SELECT COUNT(*) FROM d.one") == 30000
    wait_until(lambda: not any(place.exists() for place in damaged), "no new base is written")
    text = server.log.read_text(errors="replace")
    named = [place for place in damaged if f"page map: corruption in {place.name}" in text]
    assert named, text[-2000:]
    server.stop()
    for place in folder.glob("map-*"):
        damage(place, 40, 64)
    starts_without_engine(server, "map")


def test_missing_segment_is_named_and_other_tables_stay_readable(prepared):
    """A segment is moved away and back. Startup or only reads of the tables may need it."""
    server, folder = prepared
    place, aside = min((folder / "seg").glob("*.seg")), server.folder / "aside.seg"
    shutil.move(place, aside)
    try:
        server.start()
    except Failure:
        # The segment has pages of the catalog, or of the undo log if purge did not finish.
        starts_without_engine(server, place.name)
    else:
        assert server.value("SELECT COUNT(*) FROM d.other") == 2, "InnoDB's table cannot be read"
        for name in ("one", "two"):
            with contextlib.suppress(Failure):
                server.sql(f"SELECT a, MD5(b) FROM d.{name}")
        text = server.log.read_text(errors="replace")
        assert place.stem in text or place.name in text, f"the log does not name {place.name}"
        server.stop()
    shutil.move(aside, place)
    server.start()
    counts = "SELECT (SELECT COUNT(*) FROM d.one) + (SELECT COUNT(*) FROM d.two)"
    assert server.value(counts) == 60000


def test_damaged_segment_gives_errors_not_wrong_rows(prepared, rng):
    server, folder = prepared
    server.start()
    wanted = {name: server.sql(f"SELECT a, MD5(b) FROM d.{name}") for name in ("one", "two")}
    server.stop()
    place = max((folder / "seg").glob("*.seg"), key=lambda p: p.stat().st_size)
    size = place.stat().st_size
    for _ in range(20):
        damage(place, rng.randrange(size - 8), 4)
    server.start()
    failures = 0
    for name, rows in wanted.items():
        for index in ("PRIMARY", "b"):
            try:
                found = server.sql(f"SELECT a, MD5(b) FROM d.{name} FORCE INDEX ({index}) "
                                   "WHERE b >= '' AND a > 0")
                assert sorted(found) == sorted(rows), f"wrong rows from {name} by {index}"
            except Failure:
                failures += 1
    assert failures > 0, "20 changed places were never noticed"
    assert server.value("SELECT COUNT(*) FROM d.other") == 2, "InnoDB's table cannot be read"
    verdicts = [row[3] for name in wanted for row in server.sql(f"CHECK TABLE d.{name} EXTENDED")]
    assert any("orrupt" in text for text in verdicts), f"CHECK TABLE finds nothing: {verdicts}"


def test_damaged_log_is_named(prepared):
    server, folder = prepared
    server.start()
    server.sql("INSERT INTO one SELECT seq + 100000, 'after' FROM seq_1_to_2000", "d")
    server.kill()
    for place in (folder / "wal").glob("*.log"):
        damage(place, 0, 256)
    server.options["cheetah"] = "ON"
    server.start()
    assert server.value("SELECT COUNT(*) FROM d.other") == 2, "InnoDB's table cannot be read"
    assert not server.has_engine("CHEETAH"), "a damaged log was taken as empty"
    text = server.log.read_text(errors="replace")
    assert "wal" in text or ".log" in text


def test_second_server_on_the_directory_is_refused(prepared, new_server):
    server, folder = prepared
    server.start()
    second = started(new_server({"cheetah": "ON"}))
    second.stop()
    shutil.rmtree(second.data / "#cheetah")
    (second.data / "#cheetah").symlink_to(folder)
    second.start()
    assert not second.has_engine("CHEETAH"), "two servers opened one directory"
    text = second.log.read_text(errors="replace").lower()
    assert "lock" in text or "another process" in text or "in use" in text
    second.stop()
    assert server.value("SELECT COUNT(*) FROM d.one") == 30000, "the first server was disturbed"


def test_read_only_directory_is_refused(prepared):
    """Root may write anywhere, so the folder is bind-mounted read-only."""
    server, folder = prepared
    with mounted(folder, "--bind", folder):
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        starts_without_engine(server, "read-only")


@pytest.mark.parametrize("name, value, taken", [
    ("cheetah_buffer_pool_size", "1", 8 * MIB), ("cheetah_log_file_size", "100T", 8 * MIB),
    ("cheetah_log_size_max", "1", 8 * MIB), ("cheetah_io_capacity", "0", 10),
    ("cheetah_flush_log_at_trx_commit", "7", 2)])
def test_values_out_of_range_are_adjusted(new_server, name, value, taken):
    """Values that are too small or too large are adjusted. (The log's size is 32 MiB.)"""
    server = started(new_server({f"loose_{name}": value}))
    assert server.value(f"SELECT @@{name}") == taken
    assert name.replace("_", "-") in server.log.read_text(errors="replace").replace("_", "-")
    if "log" not in name:
        with Session(server, "") as session:
            warnings = session.run(f"SET GLOBAL {name} = {value}", "SHOW WARNINGS")
            assert [row[1] for row in warnings] == [1292]
        assert server.value(f"SELECT @@{name}") == taken


def test_a_word_that_is_none_is_the_default_or_keeps_the_server_from_starting(new_server):
    """The prefix `loose_` decides between the default and no start, never without the engine."""
    loose = started(new_server({"loose_cheetah_default_compression": "brotli"}))
    assert loose.value("SELECT @@cheetah_default_compression") == "zstd"
    assert "'brotli' to 'cheetah-default-compression'" in loose.log.read_text()
    strict = new_server({"cheetah_default_compression": "brotli"})
    with pytest.raises(Failure, match="Failed to initialize plugins"):
        strict.start()


@pytest.mark.parametrize("asked, taken, told", [
    ({"log_size_max": "64M"}, {"log_size_max": 64 * MIB, "log_file_size": 16 * MIB},
     f"cheetah_log_file_size is {16 * MIB}, not {64 * MIB}: at most a quarter of "
     f"cheetah_log_size_max, which is {64 * MIB}"),
    ({"log_file_size": "512M"}, {"log_size_max": 2048 * MIB, "log_file_size": 512 * MIB},
     f"cheetah_log_size_max is {2048 * MIB}, not {1024 * MIB}: at least four times "
     f"cheetah_log_file_size, which is {512 * MIB}"),
    ({"log_size_max": "256M", "log_file_size": "64M"},
     {"log_size_max": 256 * MIB, "log_file_size": 64 * MIB}, ""),
    ({"ft_min_token_size": "16", "ft_max_token_size": "12"},
     {"ft_min_token_size": 12, "ft_max_token_size": 12},
     "cheetah_ft_min_token_size is 12, not 16: at most cheetah_ft_max_token_size, which is 12"),
    ({}, {"log_size_max": 1024 * MIB, "log_file_size": 64 * MIB, "ft_min_token_size": 3,
          "ft_max_token_size": 84}, "")])
def test_values_that_do_not_fit_each_other_are_adjusted(tmp_path, asked, taken, told):
    options = {f"cheetah_{name}": value for name, value in asked.items()}
    with PrivateServer(tmp_path / "server", options) as server:
        assert {name: server.value(f"SELECT @@cheetah_{name}") for name in taken} == taken
        said = [line for line in server.log.read_text().splitlines() if "CHEETAH:" in line]
        assert [line.partition("[Warning] CHEETAH: ")[2] for line in said] == [told] * bool(told)
        server.sql("CREATE TABLE mysql.t (a INT PRIMARY KEY) ENGINE=CHEETAH")


def test_plugin_missing_at_drop_leaves_a_named_orphan(prepared):
    server, _ = prepared
    bare = PrivateServer(server.folder, server.options, plugin=False)
    bare.start()
    try:
        bare.sql("DROP TABLE d.one")
    except Failure:
        os.unlink(server.data / "d" / "one.frm")
    bare.stop()
    server.start()
    texts = [row[3] for row in server.sql("CHECK TABLE d.two")]
    assert any("d/one" in text for text in texts), f"CHECK does not name the orphan: {texts}"
    server.sql("DROP TABLE IF EXISTS d.one")
    texts = [row[3] for row in server.sql("CHECK TABLE d.two")]
    assert not any("d/one" in text for text in texts), f"the orphan is still there: {texts}"
    server.sql("CREATE TABLE d.one (z INT) ENGINE=CHEETAH")


def test_old_frm_file_is_refused(server):
    """The layout of a .frm file from before a change of columns matches, but not its names."""
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT) ENGINE=CHEETAH",
        "INSERT INTO t VALUES (1, 10, 100), (2, 20, 200)")
    place, old, new = server.data / "d/t.frm", server.folder / "old.frm", server.folder / "new.frm"

    def refused():
        try:
            return not server.sql("SELECT a, b, c FROM d.t ORDER BY a")
        except Failure:
            return True

    def put(frm):
        server.stop()
        shutil.copy2(frm, place)
        server.start()

    for change_of_columns, rows in (("MODIFY b INT AFTER c", [(1, 10, 100), (2, 20, 200)]),
                                    ("RENAME COLUMN b TO c, RENAME COLUMN c TO b",
                                     [(1, 100, 10), (2, 200, 20)])):
        shutil.copy2(place, old)
        server.sql(f"ALTER TABLE d.t {change_of_columns}, ALGORITHM=INSTANT")
        assert sorted(server.sql("SELECT a, b, c FROM d.t")) == rows
        shutil.copy2(place, new)
        put(old)
        assert refused(), f"the .frm file from before {change_of_columns} is taken for the table's"
        put(new)
        assert sorted(server.sql("SELECT a, b, c FROM d.t")) == rows
    # A change of only the case in a name does not matter, and TRUNCATE keeps names.
    run(server, "ALTER TABLE t CHANGE b B INT", "TRUNCATE TABLE t",
        "ALTER TABLE t ADD INDEX b (b), ALGORITHM=NOCOPY")
    server.restart()
    server.sql("INSERT INTO d.t (a, b, c) VALUES (3, 30, 300)")
    assert server.sql("SELECT c FROM d.t WHERE b = 30") == [(300,)], "the row is not found"


def test_newer_format_is_refused_with_both_versions(prepared):
    server, folder = prepared
    control = bytearray((folder / "CONTROL").read_bytes())
    version = struct.unpack_from("<I", control, 8)[0]
    for copy in (0, 4096):
        struct.pack_into("<I", control, copy + 8, version + 1)
        struct.pack_into("<I", control, copy + 4092, crc32c(control[copy:copy + 4092]))
    (folder / "CONTROL").write_bytes(control)
    starts_without_engine(server, f"format version {version + 1}")


def test_foreign_folder_is_not_touched(server):
    server.stop()
    notes = server.data / "#cheetah/notes.txt"
    notes.write_text("mine")
    server.start()
    server.stop()
    assert notes.read_text() == "mine"


def test_scrubbing_finds_damage_before_a_query_does(prepared):
    server, folder = prepared
    server.start()
    server.sql("SET GLOBAL cheetah_scrub_rate = 1000")
    wait_until(lambda: server.status("Cheetah_pool_scrubbed_images") > 100, "images are read")
    assert server.status("Cheetah_pool_damaged_images") == 0
    server.stop()
    place = max((folder / "seg").glob("*.seg"), key=lambda p: p.stat().st_size)
    damage(place, place.stat().st_size // 2, 4)
    server.start()
    server.sql("SET GLOBAL cheetah_scrub_rate = 1000")
    wait_until(lambda: server.status("Cheetah_pool_damaged_images") == 1, "damage is found")
    assert "scrubbing: corruption in table 'd/" in server.log.read_text(errors="replace")
