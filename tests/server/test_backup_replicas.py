"""cheetah-backup of a replica with parallel workers: a restored server starts and continues from
its position, and the replica's SQL threads run again after the backup."""

import contextlib
import re
import signal

import pytest
from servers import Session, wait_until
from test_backup_tool import ENDS, MARIADB_BACKUP, SECONDS_MAX, backup, start
from test_replication import apply_some, catch_up, follow, load, options, replicated, same_rows

ROUNDS = 2
NAME, SQL_RUNNING = 0, 13   # columns of SHOW ALL SLAVES STATUS
IS_AT_WORK = "SELECT IS_USED_LOCK('cheetah_backup')"
WAITS = "SELECT 1 FROM information_schema.PROCESSLIST WHERE "

pytestmark = pytest.mark.skipif(not MARIADB_BACKUP.exists(), reason="mariadb-backup is not there")


@pytest.fixture
def restored(new_server, tmp_path):
    """The server into which backups are restored. It becomes another replica."""
    server = new_server(options(3, skip_slave_start=None), folder=tmp_path / "restored")
    server.folder.mkdir()
    return server


@pytest.mark.parametrize("engine", ["InnoDB", "CHEETAH"])
def test_backups_of_a_parallel_replica_start_and_go_on(new_server, restored, rng, rounds, tmp_path,
                                                       engine):
    """`engine`: the engine of the table that stores the replica's position."""
    primary, replica = replicated(new_server, "optimistic",
                                  of_replica={"gtid_pos_auto_engines": engine})
    for number in range(rounds):
        with load(rng, primary) as writers:
            apply_some(replica)
            said = backup(replica, "full", tmp_path / str(number))
            assert all(writer.is_alive() for writer in writers)
        assert "the replica's SQL threads stood still" in said, said
        backup(replica, "restore", tmp_path / str(number), "--data-dir", restored.data)
        restored.start()
        assert restored.value("SELECT @@gtid_slave_pos") == re.search(r"GTID (\S+)", said)[1]
        follow(restored, primary)
        for each in (replica, restored):
            catch_up(primary, each)
            same_rows(primary, each)
        restored.stop()
        restored.remove()
        restored.folder.mkdir()


@contextlib.contextmanager
def a_worker_waits(primary, replica):
    """Makes one worker wait for a row lock, and a prepared one for its turn after that worker."""
    catch_up(primary, replica)
    with Session(replica) as holder:
        holder.run("BEGIN", "SELECT * FROM hot WHERE a = 1 FOR UPDATE")
        primary.sql("UPDATE d.hot SET b = b + 1 WHERE a = 1")
        primary.sql("UPDATE d.hot SET b = b + 1 WHERE a = 2")
        wait_until(lambda: replica.sql(WAITS + "STATE LIKE '%prior transaction to commit%'"),
                   "a worker that waits for its turn")
        yield
        holder.run("ROLLBACK")


def is_being_stopped(replica) -> bool:
    return bool(replica.sql(WAITS + "INFO LIKE 'STOP SLAVE%'"))


def test_what_a_worker_has_prepared_is_in_no_backup(new_server, restored, tmp_path):
    """A server refuses to start with a prepared transaction that no binary log decides."""
    primary, replica = replicated(new_server, "optimistic",
                                  of_replica={"gtid_pos_auto_engines": "InnoDB"})
    with a_worker_waits(primary, replica):
        program = start(replica, "full", tmp_path / "full")
        wait_until(lambda: is_being_stopped(replica) or program.poll() is not None, "the program")
    said = program.communicate(timeout=SECONDS_MAX)[0].decode()
    assert program.returncode == 0, said
    backup(replica, "restore", tmp_path / "full", "--data-dir", restored.data)
    restored.start()
    follow(restored, primary)
    catch_up(primary, restored)
    same_rows(primary, restored)


def sql_threads(replica) -> dict:
    return {row[NAME]: row[SQL_RUNNING] == "Yes" for row in replica.sql("SHOW ALL SLAVES STATUS")}


def test_a_replica_applies_again_after_a_backup_whatever_happens(new_server, tmp_path):
    primary, replica = replicated(new_server, "optimistic")
    for port, name in enumerate(("it''s", "stopped"), 1):
        replica.sql(f"CHANGE MASTER '{name}' TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}")
    replica.sql("START SLAVE 'it''s' SQL_THREAD")
    before = {"": True, "it's": True, "stopped": False}
    assert sql_threads(replica) == before
    backup(replica, "full", tmp_path / "good")
    assert sql_threads(replica) == before
    backup(replica, "full", tmp_path / "safe", "--more=--safe-slave-backup")
    assert sql_threads(replica) == before
    assert "unknown option" in backup(replica, "full", tmp_path / "bad", "--more=--bad", status=1)
    assert sql_threads(replica) == before

    def meddled(meddle) -> tuple:
        program = start(replica, "full", tmp_path / "meddled")
        wait_until(lambda: not any(sql_threads(replica).values()), "threads that are stopped")
        meddle(program)
        return program.communicate(timeout=SECONDS_MAX)[0], program.returncode
    for end in ENDS:
        said, _ = meddled(lambda program, end=end: program.send_signal(end))
        assert b"nothing is left" in said and sql_threads(replica) == before, said
    said, status = meddled(lambda _: replica.sql(f"KILL {replica.value(IS_AT_WORK)}"))
    assert status == 1 and sql_threads(replica) == before, said
    with a_worker_waits(primary, replica):
        program = start(replica, "full", tmp_path / "ended")
        wait_until(lambda: is_being_stopped(replica), "a thread that is being stopped")
        program.send_signal(signal.SIGINT)
    said = program.communicate(timeout=SECONDS_MAX)[0]
    assert b"nothing is left" in said and sql_threads(replica) == before, said
    said, status = meddled(lambda _: replica.sql("START SLAVE 'it''s' SQL_THREAD"))
    assert b"somebody has started a SQL thread" in said and status == 1, said
    replica.sql("STOP SLAVE 'it''s'")
    replica.sql("START SLAVE 'it''s' UNTIL MASTER_LOG_FILE='bin.000009', MASTER_LOG_POS=4")
    assert "with UNTIL" in backup(replica, "full", tmp_path / "until", status=1)
    assert sql_threads(replica) == before


def test_a_sql_thread_that_is_started_while_none_ran_is_noticed(new_server, tmp_path):
    """A worker of the started thread may have prepared a transaction while commits were blocked."""
    _, replica = replicated(new_server, "optimistic")
    replica.sql("STOP ALL SLAVES")
    program = start(replica, "full", tmp_path / "meddled")
    wait_until(lambda: (tmp_path / "meddled/server").exists(), "mariadb-backup")
    replica.sql("START ALL SLAVES")
    said = program.communicate(timeout=SECONDS_MAX)[0]
    assert program.returncode == 1 and b"somebody has started a SQL thread" in said, said
    assert sql_threads(replica) == {"": True} and not (tmp_path / "meddled").exists()
