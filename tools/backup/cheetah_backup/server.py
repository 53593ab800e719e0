"""The server that is backed up, and the program mariadb-backup."""

import contextlib
import os
import secrets
import time
from pathlib import Path

from cheetah_client.connection import Connection, ServerError, text
from cheetah_client.options import connect, connecting
from cheetah_client.say import Failure, line, span

from . import listening, snapshot

LOCK_NAME = "cheetah_backup"
# Whoever holds it when mariadb-backup begins has the engine let it, once for each session.
STAGES_LOCK_NAME = "cheetah_backup_stages"
STAGES_LOCK_SECONDS = 10   # for the server to notice that a session before is gone
LOG_LINES = 8
LOOK_SECONDS = 0.01
# What mariadb-backup says when it does not get on in InnoDB's log, as it does of a log that is too
# small; and when it cannot repeat what it has copied of it.
MISREAD_WORDS = ("Was only able to copy log from", "Data structure corruption")


class MisreadLog(Failure):
    """mariadb-backup has misread InnoDB's log (perhaps MDEV-39468)."""


class Server:
    """A session, in which only one of us works at a time."""

    def __init__(self, options):
        self.options = options
        self.connection = self._connect()
        try:
            self._check()
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def _connect(self) -> Connection:
        return connect(self.options, self.options.secret)

    def connect_again(self) -> None:
        """Begin another session, without the lock of the one that is lost."""
        lost, self.connection = self.connection, self._connect()
        lost.close()

    @contextlib.contextmanager
    def announced(self):
        """Meanwhile the engine lets one backup begin that leaves its tables out."""
        with contextlib.closing(self._connect()) as session:
            session.run("SET SESSION wait_timeout = 604800")
            if session.value(f"SELECT GET_LOCK({text(STAGES_LOCK_NAME)}, "
                             f"{STAGES_LOCK_SECONDS})") != "1":
                raise Failure(f"somebody else holds the lock {STAGES_LOCK_NAME} (GET_LOCK): wait "
                              "for its end")
            yield

    def run(self, statement: str) -> None:
        """Run a statement that may take long. When that is interrupted, it is at its end, and a new
        session is there for what is to be undone."""
        try:
            self.connection.run(statement)
        except KeyboardInterrupt:
            ending, self.connection = self.connection, self._connect()
            ending.close()
            self._end(ending.id)
            raise

    def _end(self, session: int) -> None:
        """End another session and what it executes, and wait for that."""
        with contextlib.suppress(ServerError):   # it has ended by itself
            self.connection.run(f"KILL {session}")
        while self.connection.run("SELECT 1 FROM information_schema.PROCESSLIST "
                                  f"WHERE ID = {session}"):
            time.sleep(LOOK_SECONDS)

    def _check(self) -> None:
        value = self.connection.value
        self.connection.run("SET SESSION wait_timeout = 604800, max_statement_time = 0")
        self.version = value("SELECT VERSION()")
        if not self.connection.run("SHOW VARIABLES LIKE 'cheetah\\_create\\_snapshot'"):
            raise Failure("the server has no engine CHEETAH that can write snapshots: load the "
                          "plugin, or use mariadb-backup alone")
        if value("SELECT @@cheetah_snapshot_max_age") == "0":
            raise Failure("cheetah_snapshot_max_age is 0, so a backup pins nothing: SET GLOBAL "
                          "cheetah_snapshot_max_age = 3600")
        self.engine_folder = Path(value("SELECT @@datadir")) / "#cheetah"
        try:
            is_here = (self.engine_folder / "CONTROL").is_file()
        except PermissionError:
            is_here = False
        if not is_here:
            raise Failure(f"{self.engine_folder} cannot be read: run this on the server's machine, "
                          "as a user who may read its data, such as root or mysql")
        if value(f"SELECT GET_LOCK({text(LOCK_NAME)}, 0)") != "1":
            raise Failure("another cheetah-backup is at work on this server: wait for its end")
        snapshot.remove_left(self.engine_folder / "snapshots")

    def time(self) -> str:
        """Now, by the server's clock, as in manifests."""
        return self.connection.value("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ')")

    def writes_binlog(self) -> bool:
        """Whether there is a binary log, from which a replica could go on."""
        return self.connection.value("SELECT @@log_bin") == "1"

    def keeps_changes_from_its_log(self) -> bool:
        """Whether it executes another server's log and does not write that to its own."""
        return self.connection.value("SELECT @@gtid_slave_pos <> '' "
                                     "AND NOT @@log_slave_updates") == "1"

    def address(self) -> list:
        """Host and port at which replicas find it, as far as it knows."""
        host, port = self.connection.run("SELECT COALESCE(@@report_host, @@hostname), @@port")[0]
        return [self.options.host or host, self.options.port or port]

    def place_of_snapshot(self) -> Path:
        """A folder among the server's files that is not there yet, and this program's alone."""
        name = f"{snapshot.PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        return self.engine_folder / "snapshots" / name

    def write_snapshot(self, folder: Path) -> None:
        """Have the snapshot written that is pinned. When that is interrupted, nobody writes to the
        folder any more."""
        started = time.monotonic()
        try:
            self.run(f"SET GLOBAL cheetah_create_snapshot = {text(str(folder))}")
        except ServerError as failure:
            raise Failure(f"the server could not write a snapshot: {failure}") from failure
        line(f"  the engine's snapshot: {span(time.monotonic() - started)}")


def data_option(data: Path) -> str:
    """The option by which mariadb-backup knows a data folder. It puts undo tablespaces beside the
    folder unless the name ends with a slash: MariaDB 11.8 has such files by default."""
    return f"--datadir={data}/"


def mariadb_backup(options, what: str, *words) -> None:
    """Run mariadb-backup to its end. Failure with the end of what it says when it does not
    succeed, `MisreadLog` when that may be why."""
    # How to connect is for its backup; the others read the option file alone, or one of their own.
    connection = connecting(options)
    if "--backup" not in words:
        connection = [word for word in connection if word.startswith("--defaults")]
    if words[0].startswith("--defaults"):
        connection = []
    command = [options.mariadb_backup, *connection, *words]
    environment = dict(os.environ)
    if options.secret is not None and "--backup" in words:
        environment["MYSQL_PWD"] = options.secret
    started = time.monotonic()
    try:
        status, said = listening.run(command, environment)
    except OSError as failure:
        raise Failure(f"cannot run {command[0]}: {failure.strerror}. Install the package "
                      "mariadb-backup, or say where it is: --mariadb-backup") from failure
    if status != 0:
        end = "\n".join("  " + one for one in said.splitlines()[-LOG_LINES:])
        kind = MisreadLog if any(words in said for words in MISREAD_WORDS) else Failure
        raise kind(f"{' '.join(command)} failed, with status {status}:\n{end}")
    line(f"  {what}: {span(time.monotonic() - started)}")
