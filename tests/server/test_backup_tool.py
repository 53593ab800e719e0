"""cheetah-backup: backups under load, restored into a server that goes on with the binary log;
kills, damage and bad targets."""

import shutil
import signal
import subprocess
import sys

import pytest
from binlog import replay
from cheetah_tools import setup
from cheetah_tools.paths import PROJECT, SERVER
from servers import check_table, wait_until
from test_backup import BINLOG, make_tables, rows, writers

PROGRAM = PROJECT / "tools/backup/cheetah-backup"
MARIADB_BACKUP = SERVER / "usr/bin/mariadb-backup"
SECONDS_MAX = 120
NEED_SERVER = {"full", "incremental", "stream"}

pytestmark = pytest.mark.skipif(not MARIADB_BACKUP.exists(), reason="mariadb-backup is not there")


def start(server, command: str, *arguments, **popen):
    """The program, started."""
    words = [sys.executable, str(PROGRAM), command, *map(str, arguments)]
    if command in NEED_SERVER | {"restore"}:
        words += [f"--defaults-file={server.folder / 'my.cnf'}",
                  f"--mariadb-backup={MARIADB_BACKUP}"]
    if command in NEED_SERVER:
        words += [f"--client={SERVER / 'usr/bin/mariadb'}"]
    return subprocess.Popen(words, env=setup.library_environment(), start_new_session=True,
                            **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **popen})


def backup(server, command: str, *arguments, status=0) -> str:
    """Run the program to its end, which must be this status (None: any); what it says."""
    program = start(server, command, *arguments)
    said = program.communicate(timeout=SECONDS_MAX)[0].decode()
    assert status in (None, program.returncode), said
    return said


def position_of(said: str) -> tuple:
    """File and position that the program has told."""
    words = next(line for line in said.splitlines() if line.startswith("position: ")).split()
    return words[1], int(words[2].rstrip(","))


@pytest.fixture
def loaded(new_server):
    """A server with a binary log, a table of each engine, and rows that nobody changes."""
    server = new_server(BINLOG)
    server.start()
    server.sql("CREATE DATABASE d")
    make_tables(server, "InnoDB")
    server.sql("CREATE TABLE d.c (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB NOT NULL) "
               "ENGINE=CHEETAH")
    server.sql("INSERT INTO c (b) SELECT RANDOM_BYTES(1000) FROM seq_1_to_6000", "d")
    server.sql("SET GLOBAL cheetah_checkpoint_now = ON")
    return server


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
    shutil.rmtree(full)
    assert "incremental backup" in backup(loaded, "show", later)
    restored = new_server({"server_id": 8}, folder=folder)
    folder.mkdir()
    said_last = backup(loaded, "restore", later, "--data-dir", restored.data)
    assert "the server can be started" in said_last
    restored.start()
    name, position = position_of(said)
    replay(loaded, restored, [name], position)
    assert rows(restored) == rows(loaded)
    for table in ("a", "c"):
        assert restored.sql(f"CHECKSUM TABLE d.{table}") == loaded.sql(f"CHECKSUM TABLE d.{table}")
        check_table(restored, table, "d")


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
    for end in (signal.SIGTERM, signal.SIGINT):
        program = start(loaded, "full", full, "--rate", "200K")
        wait_until(lambda: list((full / "cheetah/seg").glob("*")), "a copy that has begun")
        program.send_signal(end)
        assert b"nothing is left" in program.communicate()[0] and program.returncode == 130
        assert not full.exists() and not list(snapshots.iterdir())
    program = start(loaded, "full", full, "--rate", "200K")
    wait_until(lambda: list((full / "cheetah/seg").glob("*")), "a copy that has begun")
    assert "another cheetah-backup is at work" in backup(loaded, "full", other, status=1)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    assert list(snapshots.iterdir()) and "is not empty" in backup(loaded, "full", full, status=1)
    assert "it was not finished" in backup(loaded, "restore", full, "--data-dir", other, status=1)
    wait_until(lambda: "at work" not in (said := backup(loaded, "full", other, status=None))
               and said, "the end of the killed one's session")
    assert not list(snapshots.iterdir())
    assert "is not empty" in backup(loaded, "restore", other, "--data-dir", loaded.data, status=1)
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
    loaded.sql("SET GLOBAL cheetah_snapshot_max_age = 0")
    assert "cheetah_snapshot_max_age" in backup(loaded, "full", tmp_path / "third", status=1)
    assert not (tmp_path / "third").exists()
