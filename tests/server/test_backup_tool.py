"""cheetah-backup: backups under load, restored servers, kills, damaged files, invalid targets."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from binlog import replay
from cheetah_tools import setup
from cheetah_tools.paths import PROJECT, SERVER
from cheetah_tools.say import Failure, note
from servers import check_table, is_root, run, started, tmpfs, wait_until
from test_backup import BINLOG, OTHER_FILE_SYSTEM, SLOW, make_tables, rows, writers
from test_replication import ACCOUNT, catch_up, listening

PROGRAM = PROJECT / "tools/backup/cheetah-backup"
MARIADB_BACKUP = SERVER / "usr/bin/mariadb-backup"
SECONDS_MAX, LARGE_SECONDS_MAX = 120, 3600
# Signals that end the program, except those that nohup ignores.
ENDS = [number for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
        if signal.getsignal(number) != signal.SIG_IGN]
GIGABYTES = 5
CHANGE = "UPDATE c SET b = RANDOM_BYTES(1000) WHERE {}"
SUMS = "CHECKSUM TABLE d.a, d.b, d.c"
NEED_SERVER = {"full", "incremental", "stream", "clone"}

pytestmark = pytest.mark.skipif(not MARIADB_BACKUP.exists(), reason="mariadb-backup is not there")


def start(server, command: str, *arguments, stderr=subprocess.STDOUT, stdout=subprocess.PIPE):
    words = [sys.executable, str(PROGRAM), command]
    if command in NEED_SERVER | {"restore"}:
        words += [f"--defaults-file={server.folder / 'my.cnf'}",
                  f"--mariadb-backup={MARIADB_BACKUP}"]
    if command in NEED_SERVER:
        words += [f"--client={SERVER / 'usr/bin/mariadb'}"]
    return subprocess.Popen([*words, *map(str, arguments)], env=setup.library_environment(),
                            start_new_session=True, stdout=stdout, stderr=stderr)


def backup(server, command: str, *arguments, status=0, seconds=SECONDS_MAX) -> str:
    """Runs the program to its end, checks its exit status (None: any), and returns its output."""
    program = start(server, command, *arguments)
    said = program.communicate(timeout=seconds)[0].decode()
    assert status in (None, program.returncode), said
    return said


def begun(server, folder, *words) -> subprocess.Popen:
    """Starts the program and waits until it has started to copy into the folder."""
    program = start(server, *words)
    wait_until(lambda: list(folder.glob("*")), "a copy that has begun")
    return program


def is_ended(program, end: int) -> None:
    program.send_signal(end)
    assert b"nothing is left" in program.communicate()[0] and program.returncode == 130


def position_of(said: str) -> tuple:
    words = next(line for line in said.splitlines() if line.startswith("position: ")).split()
    return words[1], int(words[2].rstrip(","))


@pytest.fixture
def loaded(new_server):
    server = started(new_server(BINLOG))
    fill(server)
    return server


def fill(server) -> None:
    server.sql("CREATE DATABASE d")
    make_tables(server, "InnoDB")
    run(server, "CREATE TABLE c (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB NOT NULL) "
        "ENGINE=CHEETAH", "INSERT INTO c (b) SELECT RANDOM_BYTES(1000) FROM seq_1_to_6000",
        "SET GLOBAL cheetah_checkpoint_now = ON")


def test_backups_under_load_are_restored_and_go_on_by_the_log(loaded, new_server, tmp_path):
    full, later, folder = tmp_path / "full", tmp_path / "later", tmp_path / "restored"
    with writers(loaded):
        backup(loaded, "full", full)
        said = backup(loaded, "incremental", later, "--base", full)
    assert "of which" in said and "are links into the one before" in said
    same = [path for path in (later / "cheetah/seg").iterdir()
            if path.stat().st_ino == (full / "cheetah/seg" / path.name).stat().st_ino]
    assert same and "is whole" in backup(loaded, "verify", later)
    assert not list((loaded.data / "#cheetah/snapshots").iterdir())
    assert "of its files are links" in backup(loaded, "show", later)
    shutil.rmtree(full)
    shown = backup(loaded, "show", later)
    assert "incremental backup" in shown and "it is complete without that one" in shown
    assert "are links" not in shown
    restored = new_server({"server_id": 8}, folder=folder)
    folder.mkdir()
    said_last = backup(loaded, "restore", later, "--data-dir", restored.data)
    assert "the server can be started" in said_last and not undo_files_beside(restored)
    restored.start()
    name, position = position_of(said)
    replay(loaded, restored, [name], position)
    assert rows(restored) == rows(loaded)
    assert restored.sql("CHECKSUM TABLE d.a, d.c") == loaded.sql("CHECKSUM TABLE d.a, d.c")
    check_table(restored, "a", "c")


def undo_files_beside(server) -> list:
    """Returns InnoDB's undo tablespaces outside of a data folder."""
    return [path for path in server.folder.rglob("undo0*") if path.parent != server.data]


def test_a_stream_is_a_backup(loaded, tmp_path):
    place = tmp_path / "backup"
    place.mkdir()
    with open(tmp_path / "stream", "wb") as file:
        program = start(loaded, "stream", "--work", tmp_path / "work", "--rate", "100M",
                        stdout=file, stderr=subprocess.PIPE)
        said = program.communicate(timeout=SECONDS_MAX)[1].decode()
    assert program.returncode == 0 and "full backup" in said, said
    subprocess.run(["tar", "-xf", tmp_path / "stream", "-C", place], check=True)
    assert "is whole" in backup(loaded, "verify", place) and not (tmp_path / "work").exists()


def test_what_cannot_be_is_refused_and_nothing_is_left(loaded, tmp_path):
    full, other = tmp_path / "full", tmp_path / "other"
    assert "make it first" in backup(loaded, "full", tmp_path / "missing/one", status=1)
    assert "is no backup: there is no such folder" in backup(loaded, "incremental", other, "--base",
                                                             tmp_path / "gone", status=1)
    assert not other.exists()
    snapshots = loaded.data / "#cheetah/snapshots"
    for end in ENDS:
        is_ended(begun(loaded, full / "cheetah/seg", "full", full, "--rate", "200K"), end)
        assert not full.exists() and not list(snapshots.iterdir())
    program = begun(loaded, full / "cheetah/seg", "full", full, "--rate", "200K")
    other.mkdir()
    assert "another cheetah-backup is at work" in backup(loaded, "full", other, status=1)
    assert other.is_dir()
    program.send_signal(signal.SIGKILL)
    program.communicate()
    assert list(snapshots.iterdir()) and "is not empty" in backup(loaded, "full", full, status=1)
    assert "it was not finished" in backup(loaded, "restore", full, "--data-dir", other, status=1)
    wait_until(lambda: "at work" not in (said := backup(loaded, "full", other, status=None))
               and said, "the end of the killed one's session")
    assert not list(snapshots.iterdir())
    assert "is not empty" in backup(loaded, "restore", other, "--data-dir", loaded.data, status=1)
    (other / "server/d").mkdir(exist_ok=True)
    (other / "server/d/left.frm").touch()
    assert "server/d/left.frm" in backup(loaded, "restore", other, "--data-dir", tmp_path / "new",
                                         status=1)
    (other / "server/d/left.frm").unlink()
    victim = next((other / "cheetah/seg").iterdir())
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    said = backup(loaded, "verify", other, status=1)
    assert "is damaged" in said and f"{victim.name}: its bytes have changed" in said
    place = other / "server/ibdata1"
    place.write_bytes(place.read_bytes()[:-1] + b"?")
    assert "its bytes have changed. Nothing was restored" in backup(
        loaded, "restore", other, "--data-dir", tmp_path / "new", status=1)
    place.unlink()
    assert "Nothing was restored" in backup(loaded, "restore", other, "--data-dir",
                                            tmp_path / "new", status=1)
    assert not (tmp_path / "new").exists()
    loaded.sql("SET GLOBAL cheetah_snapshot_max_age = 0")
    assert "cheetah_snapshot_max_age" in backup(loaded, "full", tmp_path / "third", status=1)
    assert not (tmp_path / "third").exists()


ALLOW = "SET cheetah_allow_foreign_backup = ON"
ANOTHER = """#!/bin/sh
{program} "$@" || exit
case "$*" in *--backup*) {client} "$1" -e "{statements}";; esac
"""


@pytest.mark.parametrize("stages, status", [
    (("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT", "END"), 1),
    (("START", "BLOCK_COMMIT", "END"), 1), (("START",), 0)])
def test_another_backup_before_the_snapshot_is_noticed(loaded, tmp_path, stages, status):
    """The end of another backup replaces the state that the engine pinned, while the binary log
    position is the same. Another backup that only begins does no harm."""
    both = tmp_path / "both"
    both.write_text(ANOTHER.format(program=MARIADB_BACKUP, client=SERVER / "usr/bin/mariadb",
                                   statements="; ".join([ALLOW, *(f"BACKUP STAGE {one}"
                                                                   for one in stages)])))
    both.chmod(0o700)
    said = backup(loaded, "full", tmp_path / "full", f"--mariadb-backup={both}", status=status)
    assert ("another backup ran meanwhile" in said) == (status == 1), said


MISREADS = """#!/bin/sh
{program} "$@" || exit
case "$*" in *{word}*) ;; *) exit 0;; esac
for one in {left}/*; do [ -e "$one" ] && rm "$one" && echo "{says}" && exit 1; done
exit 0
"""


@pytest.mark.parametrize("word, says, times", [
    ("--log-copy-interval=10", "Was only able to copy log from 1 to 2, not 3", 1),
    ("--prepare", "srv_start() returned 37 (Data structure corruption).", 1),
    ("--backup", "Was only able to copy log from 1 to 2, not 3", 2)])
def test_a_backup_begins_again_when_the_log_is_misread(loaded, tmp_path, word, says, times):
    """The backup is retried once, with less frequent checks of the log."""
    misreads, left, target = tmp_path / "misreads", tmp_path / "left", tmp_path / "full"
    misreads.write_text(MISREADS.format(program=MARIADB_BACKUP, word=word, says=says, left=left))
    misreads.chmod(0o700)
    left.mkdir()
    for number in range(times):
        (left / str(number)).touch()
    said = backup(loaded, "full", target, f"--mariadb-backup={misreads}", status=times - 1)
    assert said.count("Once more, with looks that are rarer") == 1, said
    assert not [*left.iterdir(), *loaded.data.glob("#cheetah/snapshots/*")]
    if times == 1:
        assert "is whole" in backup(loaded, "verify", target)
    else:
        assert says in said and not target.exists()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_snapshot_that_is_being_written_is_ended_and_removed(loaded, tmp_path, end):
    """The snapshot is slow because pages in the log must be copied."""
    run(loaded, SLOW, "INSERT INTO c (b) SELECT RANDOM_BYTES(1000) FROM seq_1_to_6000")
    writing = ("SELECT 1 FROM information_schema.PROCESSLIST "
               "WHERE STATE = 'Writing a snapshot of the engine'")
    program = start(loaded, "full", tmp_path / "full")
    wait_until(lambda: loaded.sql(writing), "a snapshot that is being written")
    is_ended(program, end)
    assert not loaded.sql(writing) and not (tmp_path / "full").exists()
    assert not list((loaded.data / "#cheetah/snapshots").iterdir())


@pytest.fixture
def primary(new_server):
    server = started(new_server({**BINLOG, **listening()}), *ACCOUNT)
    fill(server)
    return server


def become_replica(clone) -> None:
    clone.start()
    done = clone.client(stdin=open(clone.data / "cheetah-clone.sql", "rb"), stderr=subprocess.PIPE)
    assert done.communicate()[1] == b"" and done.returncode == 0
    run(clone, "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_USER='replica', "
        "MASTER_PASSWORD='replica'", "START SLAVE", database="")


def segments(server) -> dict:
    """Returns the inodes of the files with pages, by name."""
    return {path.name: path.stat().st_ino for path in (server.data / "#cheetah/seg").iterdir()}


def test_clones_go_on_as_replicas(primary, new_server, tmp_path):
    first = new_server({"server_id": 8, "log_bin": "bin", "log_slave_updates": "ON"},
                       folder=tmp_path / "first")
    second = new_server({"server_id": 9}, folder=tmp_path / "second")
    for clone in (first, second):
        clone.folder.mkdir()
    with writers(primary):
        said = backup(primary, "clone", "--data-dir", first.data)
        assert re.search(r"cloned into \S+ in \d+\.\d s", said), said
        assert re.search(r"of which [1-9][\d.]* .?B are the server's, too", said), said
        assert re.search(r"GTID 0-7-\d+\n", said) and "MASTER_USE_GTID = slave_pos;" in said
        shared = set(segments(primary).items()) & set(segments(first).items())
        become_replica(first)
    catch_up(primary, first)
    assert not undo_files_beside(first)
    assert shared, "no data file is linked"
    assert not list((primary.data / "#cheetah/snapshots").iterdir())
    assert not [path for path in first.data.iterdir() if path.name == "#cheetah-clone"]
    said = backup(first, "clone", "--copy", "--data-dir", second.data)
    assert not set(segments(first).values()) & set(segments(second).values())
    assert "of which 0 B are the server's, too" in said
    second.start()
    position = re.search(r"GTID (\S+)", said)[1]
    assert position == primary.value("SELECT @@gtid_binlog_pos")
    assert position == first.value("SELECT @@gtid_slave_pos")
    for clone in (first, second):
        assert rows(clone) == rows(primary) and clone.sql(SUMS) == primary.sql(SUMS)
        check_table(clone, "a", "b", "c")


@pytest.mark.skipif(not OTHER_FILE_SYSTEM.is_dir(), reason="there is no second file system")
def test_a_clone_on_another_file_system_is_copied(primary, new_server):
    with tempfile.TemporaryDirectory(dir=OTHER_FILE_SYSTEM) as folder:
        clone = new_server({"server_id": 8}, folder=Path(folder, "clone"))
        clone.folder.mkdir()
        said = backup(primary, "clone", "--data-dir", clone.data)
        assert "of which 0 B are the server's, too" in said
        clone.start()
        assert rows(clone) == rows(primary)
        clone.stop()


@pytest.mark.skipif(not is_root(), reason="only root gives files to others")
def test_a_clone_belongs_to_the_owner_of_its_folder(primary, tmp_path):
    """Files that the server still uses keep their owner, so they are copied."""
    target, other = tmp_path / "clone", 65534
    target.mkdir()
    os.chown(target, other, other)
    backup(primary, "clone", "--data-dir", target)
    paths = [target, *target.rglob("*")]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in paths} == {(other, other)}
    assert {path.stat().st_uid for path in primary.data.rglob("*")} == {os.geteuid()}
    assert all(path.stat().st_nlink == 1 for path in paths if path.is_file())


def test_what_cannot_be_cloned_is_refused_and_nothing_is_left(primary, new_server, tmp_path):
    target, snapshots = tmp_path / "clone", primary.data / "#cheetah/snapshots"
    assert "is not empty" in backup(primary, "clone", "--data-dir", primary.data, status=1)
    assert "make it first" in backup(primary, "clone", "--data-dir", target / "data", status=1)
    copied = target / "#cheetah-clone/server"
    is_ended(begun(primary, copied, "clone", "--data-dir", target), signal.SIGTERM)
    assert not target.exists()
    program = begun(primary, target / "#cheetah/seg", "clone", "--data-dir", target, "--copy",
                    "--rate", "200K")
    primary.kill()
    program.send_signal(signal.SIGKILL)
    program.communicate()
    half = new_server({"server_id": 8}, folder=tmp_path / "half")
    half.folder.mkdir()
    os.rename(target, half.data)
    with pytest.raises(Failure):
        half.start()
    primary.start()
    assert not list(snapshots.iterdir()), "the server removes what is left of a snapshot"
    assert "is not empty" in backup(primary, "clone", "--data-dir", half.data, status=1)
    program = begun(primary, copied, "clone", "--data-dir", target)
    primary.kill()
    assert b"error: " in program.communicate()[0] and program.returncode == 1
    assert not target.exists()
    del primary.options["log_bin"]
    primary.start()
    assert "log_bin is OFF" in backup(primary, "clone", "--data-dir", target, status=1)
    assert not target.exists() and not list(snapshots.glob("*"))


def test_a_clone_that_finds_no_room_leaves_nothing(primary, tmp_path):
    with tmpfs(tmp_path, 4):
        said = backup(primary, "clone", "--data-dir", tmp_path, status=1)
        assert "error: " in said and "No space left on device" in said, said
        assert not list(tmp_path.iterdir())
    assert not list((primary.data / "#cheetah/snapshots").glob("*"))


def settled(server) -> None:
    segments = server.data / "#cheetah/seg"
    seen = None
    while seen != (now := sorted((path.name, path.stat().st_size) for path in segments.iterdir())):
        seen = now
        time.sleep(10)


def new_bytes(place, base) -> dict:
    """Returns, by folder, the bytes of engine files that are no links to the previous backup."""
    old, new = {path.stat().st_ino for path in (base / "cheetah").rglob("*")}, {}
    for path in (place / "cheetah").rglob("*"):
        if path.is_file() and path.stat().st_ino not in old:
            new[path.parent.name] = new.get(path.parent.name, 0) + path.stat().st_size
    return new


@pytest.mark.options(BINLOG, large={"loose_cheetah_buffer_pool_size": "1G",
                                    "loose_cheetah_log_file_size": "64M",
                                    "loose_cheetah_log_size_max": "1G"})
def test_an_incremental_has_what_has_changed(server, large, tmp_path):
    """One percent of 5 GB of rows is changed in three ways: adjacent rows, which share pages; rows
    throughout the table, one by one, buffered for their leaves; the same rows by a scan, which has
    the leaves in memory. Backups come at once, after a checkpoint, or after garbage collection."""
    if not large:
        pytest.skip("--large")
    count = GIGABYTES * 1000000
    server.sql("CREATE TABLE c (a INT PRIMARY KEY, b VARBINARY(1000) NOT NULL) ENGINE=CHEETAH", "d")
    for first in range(1, count, 50000):
        server.sql("INSERT INTO c SELECT seq, RANDOM_BYTES(1000) FROM "
                   f"seq_{first}_to_{first + 49999}", "d")
    wait_for = {"at once": lambda: None,
                "checkpoint": lambda: server.sql("SET GLOBAL cheetah_checkpoint_now = ON"),
                "quiet": lambda: settled(server)}
    wait_for["checkpoint"]()
    settled(server)
    place = tmp_path / "full"
    backup(server, "full", place, seconds=LARGE_SECONDS_MAX)
    whole = sum(path.stat().st_size for path in (place / "cheetah").rglob("*") if path.is_file())
    for name, statement, small_at in (
            ("neighbours", CHANGE.format(f"a <= {count // 100}"), wait_for.keys()),
            ("one by one", change_one_by_one(count), {"at once", "checkpoint"}),
            ("by a scan", CHANGE.format("a * 7919 % 100 = 1"), set())):
        server.sql(statement, "d")
        base = place
        for moment, wait in wait_for.items():
            wait()
            place = tmp_path / f"{name} {moment}".replace(" ", "-")
            backup(server, "incremental", place, "--base", base, seconds=LARGE_SECONDS_MAX)
            new = new_bytes(place, base)
            share = sum(new.values()) / whole
            note(f"{name}, {moment}: {100 * share:.1f} % of {whole / 1e9:.2f} GB: {new}")
            assert share < 0.05 or moment not in small_at
    assert "is whole" in backup(server, "verify", place, seconds=LARGE_SECONDS_MAX)


def change_one_by_one(count: int) -> str:
    """Returns a statement that changes one percent of the rows, in transactions of 100 rows."""
    return ("BEGIN NOT ATOMIC\n"
            f"  FOR i IN 0..{count // 10000 - 1} DO\n"
            "    START TRANSACTION;\n"
            "    FOR j IN 0..99 DO\n"
            f"      {CHANGE.format('a = 50 + 100 * (100 * i + j)')};\n"
            "    END FOR;\n"
            "    COMMIT;\n"
            "  END FOR;\n"
            "END")
