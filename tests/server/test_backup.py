"""Backups in the server: BACKUP STAGE, snapshots, FLUSH ENGINE LOGS, starts without the engine."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pymysql
import pytest
from binlog import replay
from cheetah_tools.paths import SERVER
from cheetah_tools.say import Failure
from cheetah_tools.setup import library_environment
from servers import (begun, Client, check_table, mounted, run, Session, started, wait_until,
                     working)

COUNTERS = 50
WRITERS = 4
BINLOG = {"log_bin": "binlog", "binlog_format": "STATEMENT", "sync_binlog": 1, "server_id": 7}
SLOW = "SET GLOBAL cheetah_io_capacity = 100"
OTHER_FILE_SYSTEM = Path("/dev/shm")
MARIADB_BACKUP = SERVER / "usr/bin/mariadb-backup"
ALLOW = "SET {} cheetah_allow_foreign_backup = {}"
# mariadb-backup's statements up to BLOCK_COMMIT, without END.
BLOCK_COMMITS = [ALLOW.format("SESSION", "ON"), *(
    f"BACKUP STAGE {stage}" for stage in ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"))]


class Writer(Client):
    autocommit = False

    def work(self, cursor):
        key = (self.done * 7 + self.number) % COUNTERS
        cursor.execute(f"UPDATE a SET n = n + 1 WHERE id = {key}")
        cursor.execute(f"INSERT INTO b (writer, n) VALUES ({self.number}, {self.done})")
        if self.done % 5 == 0:
            cursor.execute(f"DELETE FROM b WHERE writer = {self.number} AND n = {self.done - 3}")
        self.connection.commit()


def make_tables(server, engine_of_b: str = "CHEETAH") -> None:
    run(server, "CREATE TABLE a (id INT PRIMARY KEY, n INT NOT NULL, KEY (n)) ENGINE=CHEETAH",
        "CREATE TABLE b (id INT AUTO_INCREMENT PRIMARY KEY, writer INT NOT NULL, "
        f"n INT NOT NULL, KEY (writer, n)) ENGINE={engine_of_b}",
        f"INSERT INTO a SELECT seq, 0 FROM seq_0_to_{COUNTERS - 1}")


def rows(server) -> list:
    return [server.sql(f"SELECT * FROM d.{table} ORDER BY id") for table in ("a", "b")]


@contextlib.contextmanager
def writers(server):
    with working([Writer(server, number) for number in range(WRITERS)]) as writing:
        wait_until(lambda: all(writer.done > 20 for writer in writing), "writes")
        yield writing
        time.sleep(0.3)


def snapshot(server, place: Path) -> dict:
    """Writes a snapshot and returns the notes of its manifest."""
    server.sql(f"SET GLOBAL cheetah_create_snapshot = '{place}'")
    lines = (place / "MANIFEST").read_text().splitlines()
    return dict(line.split(" ", 2)[1:] for line in lines if line.startswith("note "))


def refused(server, place, *words) -> None:
    with pytest.raises(Failure) as told:
        server.sql(f"SET GLOBAL cheetah_create_snapshot = '{place}'")
    assert all(word in str(told.value) for word in words), told.value


def test_a_snapshot_has_what_was_committed_at_its_binary_log_position(new_server, tmp_path):
    server = begun(new_server(BINLOG))
    make_tables(server)
    with Session(server) as of_prepared:
        of_prepared.run("XA START 'x'", "INSERT INTO b (writer, n) VALUES (99, 99)", "XA END 'x'",
                        "XA PREPARE 'x'")
        place = tmp_path / "snapshot"
        with writers(server), Session(server) as session:
            name, position = session.run(*BLOCK_COMMITS, "SHOW MASTER STATUS")[0][:2]
            session.run("BACKUP STAGE END")
            assert server.status("Cheetah_backup_pins") == 1
            time.sleep(0.3)
            notes = snapshot(server, place)
            assert notes["by"] == "backup" and notes["binlog"] == f"{name} {position}"
            assert server.status("Cheetah_backup_pins") == 0
        of_prepared.run("XA ROLLBACK 'x'")
    other = begun(new_server({"server_id": 8}))
    other.stop()
    for file in (server.data / "d").glob("*.frm"):
        shutil.copy(file, other.data / "d")
    shutil.rmtree(other.data / "#cheetah")
    shutil.copytree(place, other.data / "#cheetah")
    other.start()
    assert [row[3] for row in other.sql("XA RECOVER")] == [b"x"]
    replay(server, other, [name], position)
    assert rows(other) == rows(server)
    check_table(other, "a", "b")


def test_a_backup_pins_only_while_it_blocks_commits_and_not_for_ever(server, tmp_path):
    make_tables(server)
    with Session(server) as session:
        session.run(*BLOCK_COMMITS[:2], "BACKUP STAGE END")
        assert server.status("Cheetah_backup_pins") == 0
        for age in (0, 1):
            server.sql(f"SET GLOBAL cheetah_snapshot_max_age = {age}")
            session.run(*BLOCK_COMMITS, "BACKUP STAGE END")
            assert server.status("Cheetah_backup_pins") == age
    wait_until(lambda: server.status("Cheetah_backup_pins") == 0, "the pin's end")
    refused(server, tmp_path / "late", "was abandoned", "within 1 s", "begin the backup again")
    assert snapshot(server, tmp_path / "of-now")["by"] == "statement"
    assert server.value("SELECT @@cheetah_create_snapshot") == ""
    said = server.log.read_text(errors="replace")
    assert "a backup starts, as cheetah_allow_foreign_backup is ON" in said
    assert "is pinned for 1 s" in said and "a snapshot is in" in said


def begins_backup(server, *before) -> str:
    """Returns the error of BACKUP STAGE START in a session after other statements, or ""."""
    with Session(server) as session:
        try:
            session.run(*before, "BACKUP STAGE START")
        except pymysql.MySQLError as failure:
            return str(failure)
        finally:
            session.run("BACKUP STAGE END")
    return ""


def test_a_backup_that_would_lack_tables_is_refused(server):
    assert not begins_backup(server), "there are no tables"
    assert not begins_backup(server, "CREATE TEMPORARY TABLE t (a INT) ENGINE=CHEETAH")
    server.sql("CREATE TABLE d.t (a INT) ENGINE=CHEETAH")
    refusal = begins_backup(server)
    assert "cheetah-backup" in refusal and "BACKUP STAGE END" in refusal, refusal
    assert "[ERROR] CHEETAH: mariadb-backup" in server.log_tail(3)
    assert not begins_backup(server, ALLOW.format("SESSION", "ON"))
    assert begins_backup(server) == refusal
    server.sql(ALLOW.format("GLOBAL", "ON"))
    assert not begins_backup(server)
    assert begins_backup(server, ALLOW.format("SESSION", "OFF")) == refusal
    run(server, ALLOW.format("GLOBAL", "OFF"), "DROP TABLE t")
    assert not begins_backup(server)
    server.sql("CREATE SEQUENCE d.s ENGINE=CHEETAH")
    assert begins_backup(server) == refusal


def test_one_backup_is_let_begin_for_each_session_that_announces_one(server):
    """The lock announces one backup, even that of another program that was waiting."""
    server.sql("CREATE TABLE d.t (a INT) ENGINE=CHEETAH")
    for announcing in [Session(server), Session(server)]:
        announcing.run("SELECT GET_LOCK('cheetah_backup_stages', 10)")
        assert not begins_backup(server)
        assert "cheetah-backup" in begins_backup(server)
        announcing.run("SELECT RELEASE_LOCK('cheetah_backup_stages')")
    assert "cheetah-backup" in begins_backup(server)


@pytest.mark.skipif(not MARIADB_BACKUP.exists(), reason="mariadb-backup is not there")
@pytest.mark.parametrize("more", [[], ["--stream=xbstream"], ["--databases=other"]],
                         ids=["folder", "stream", "other databases"])
def test_mariadb_backup_alone_fails_and_says_what_to_do(server, tmp_path, more):
    """mariadb-backup, also used by clusters' state transfer, used to print "completed OK!" here."""
    def attempt(target) -> subprocess.CompletedProcess:
        words = [f"--defaults-file={server.folder / 'my.cnf'}", "--backup",
                 f"--target-dir={target}", *more]
        return subprocess.run([MARIADB_BACKUP, *words], env=library_environment(), check=False,
                              capture_output=True)

    run(server, "CREATE DATABASE other", "CREATE TABLE t (a INT) ENGINE=CHEETAH")
    done = attempt(tmp_path / "refused")
    assert done.returncode != 0 and b"cheetah-backup" in done.stderr, done.stderr[-2000:]
    server.sql(ALLOW.format("GLOBAL", "ON"))
    done = attempt(tmp_path / "allowed")
    assert done.returncode == 0 and b"completed OK!" in done.stderr, done.stderr[-2000:]


def test_targets_that_cannot_be(server, tmp_path):
    make_tables(server)
    (tmp_path / "there").mkdir()
    refused(server, tmp_path / "there", "exists already", "name a directory that does not")
    refused(server, tmp_path / "missing/one", "the directory above it does not exist")
    refused(server, "relative", "not the absolute path", "give the absolute path")
    refused(server, server.data / "d/inside", "is inside the data directory")
    refused(server, server.data / "#cheetah/inside", "is inside the data directory")
    with pytest.raises(Failure, match="1231"):
        server.sql("SET GLOBAL cheetah_create_snapshot = NULL")
    server.sql("CREATE USER plain@localhost")
    with Session(server, "", user="plain") as plain:
        assert plain.error(f"SET GLOBAL cheetah_create_snapshot = '{tmp_path / 'new'}'") == 1227
    snapshot(server, server.data / "#cheetah/snapshots/one")
    server.sql("INSERT INTO b (writer, n) SELECT seq, seq FROM seq_1_to_5000", "d")
    assert server.status("Cheetah_backup_pins") == 0
    (tmp_path / "full").mkdir()
    with mounted(tmp_path / "full", "-t", "tmpfs", "-o", "size=64k", "tmpfs") as full:
        refused(server, full / "new", "disk full", str(full / "new"))
        assert not list(full.iterdir())
    assert server.status("Cheetah_backup_pins") == 0
    assert rows(server)[0], "the server goes on"


@pytest.fixture
def far():
    """A folder on another file system, so that files must be copied."""
    place = OTHER_FILE_SYSTEM / f"cheetah-{os.getpid()}"
    if not OTHER_FILE_SYSTEM.is_dir():
        pytest.skip("there is no other file system")
    place.mkdir()
    yield place
    shutil.rmtree(place)


def test_slow_copies_are_killed_removed_and_survived(server, far):
    """Files are copied to another file system at the rate of cheetah_io_capacity."""
    make_tables(server)
    run(server, "CREATE TABLE c (a LONGBLOB NOT NULL) ENGINE=CHEETAH",
        "INSERT INTO c SELECT RANDOM_BYTES(1000) FROM seq_1_to_4000",
        "SET GLOBAL cheetah_checkpoint_now = ON")
    assert snapshot(server, far / "whole")["by"] == "statement"
    made = [line.split()[-1] for line in (far / "whole/MANIFEST").read_text().splitlines()
            if line.startswith("file ")]
    assert made and set(made) == {"copied"}
    server.sql(SLOW)
    for end in ("kill", "remove", "crash"):
        session = Session(server)
        writing = session.send(f"SET GLOBAL cheetah_create_snapshot = '{far / end}'")
        wait_until(lambda number=session.id: server.sql(
            "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE = "
            f"'Writing a snapshot of the engine' AND ID = {number}"), "the statement's state")
        wait_until(lambda end=end: list((far / end).rglob("*.seg")), "a file")
        if end == "kill":
            server.sql(f"KILL QUERY {session.id}")
            assert writing.ends() == 1317 and not (far / end).exists()
        elif end == "remove":
            shutil.rmtree(far / end)
            assert writing.ends() == 1004 and str(far / end) in writing.failure, writing.failure
        else:
            server.kill()
            writing.ends()
            assert not (far / end / "MANIFEST").exists()
            server.start()
    check_table(server, "c")


def test_a_copy_of_a_snapshot_that_is_not_whole_is_refused(server, new_server, tmp_path):
    make_tables(server)
    snapshot(server, tmp_path / "snapshot")
    other = new_server({"cheetah": "FORCE"})
    other._prepare()
    shutil.copytree(tmp_path / "snapshot", other.data / "#cheetah")
    next((other.data / "#cheetah/wal").iterdir()).unlink()
    with pytest.raises(Failure):
        other.start()
    said = other.log.read_text(errors="replace")
    assert "this copy of a snapshot is incomplete or damaged: copy it again" in said


def test_flush_engine_logs_makes_no_checkpoint_and_checkpoint_now_does(server):
    """mariadb-backup flushes the logs while commits are blocked, so each commit waits for it."""
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b CHAR(200)) ENGINE=CHEETAH",
        "INSERT INTO t SELECT seq, MD5(seq) FROM seq_1_to_1000", "UPDATE t SET b = REVERSE(b)")
    checkpoints = server.status("Cheetah_pool_checkpoints")
    with Session(server) as session:
        session.run(*BLOCK_COMMITS, "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS", "BACKUP STAGE END")
    server.sql("FLUSH LOGS")
    assert server.status("Cheetah_pool_checkpoints") == checkpoints
    for asked, made in (("OFF", 0), ("ON", 1), ("1", 1), ("0", 0), ("'on'", 1)):
        before = server.status("Cheetah_pool_checkpoints")
        server.sql(f"SET GLOBAL cheetah_checkpoint_now = {asked}")
        assert server.status("Cheetah_pool_checkpoints") == before + made, asked
        assert server.value("SELECT @@cheetah_checkpoint_now") == 0
    for nonsense in ("2", "'perhaps'", "-1"):
        with pytest.raises(Failure, match="1231"):
            server.sql(f"SET GLOBAL cheetah_checkpoint_now = {nonsense}")


def test_a_server_with_force_does_not_start_without_the_engine(new_server):
    """The Debian package sets FORCE, as does `make up`. Without FORCE, `loose_` settings do not
    prevent a start. INSTALL SONAME is sufficient for the next start, also with FORCE."""
    settings = {"loose_cheetah_buffer_pool_size": "16M"}
    plain = started(new_server(settings, plugin=False))
    plain.stop()
    forced = new_server({**settings, "cheetah": "FORCE"}, plugin=False)
    with pytest.raises(Failure):
        forced.start()
    assert "cheetah=FORCE" in forced.log.read_text(errors="replace")
    with_engine = new_server(settings)
    assert "cheetah = FORCE" in with_engine.write_configuration().read_text()
    with_engine.start()
    assert with_engine.has_engine("CHEETAH")
    plain.start()
    plain.sql("INSTALL SONAME 'ha_cheetah'")
    plain.stop()
    plain.options["cheetah"] = "FORCE"
    plain.start()
    assert plain.has_engine("CHEETAH")
    plain.stop()
    (plain.data / "#cheetah/CONTROL").write_bytes(b"damaged")
    with pytest.raises(Failure, match="CHEETAH"):
        plain.start()
