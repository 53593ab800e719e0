"""The server to back up, and the program mariadb-backup."""

import contextlib
import os
import time
from pathlib import Path

from cheetah_client.connection import Connection, ServerError, text
from cheetah_client.options import connect, connecting
from cheetah_client.say import Failure, line, span

from . import listening, snapshot

LOCK_NAME = "cheetah_backup"
# The engine lets mariadb-backup begin if a session holds this lock, once for each session.
STAGES_LOCK_NAME = "cheetah_backup_stages"
STAGES_LOCK_SECONDS = 10   # the time for the server to notice that the previous session is gone
LOG_LINES = 8
LOOK_SECONDS = 0.01
# Messages of mariadb-backup if it cannot advance in InnoDB's log, which also happens if the log is
# too small, and if it cannot apply the log that it copied.
MISREAD_WORDS = ("Was only able to copy log from", "Data structure corruption")


class MisreadLog(Failure):
    """mariadb-backup misread InnoDB's log (perhaps MDEV-39468)."""


class Server:
    """A session on the server. A lock ensures that only one cheetah-backup works at a time."""

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
        lost, self.connection = self.connection, self._connect()
        lost.close()

    @contextlib.contextmanager
    def announced(self):
        """During the block, the engine lets one backup begin that omits its tables."""
        with contextlib.closing(self._connect()) as session:
            session.run("SET SESSION wait_timeout = 604800")
            if session.value(f"SELECT GET_LOCK({text(STAGES_LOCK_NAME)}, "
                             f"{STAGES_LOCK_SECONDS})") != "1":
                raise Failure(f"somebody else holds the lock {STAGES_LOCK_NAME} (GET_LOCK): wait "
                              "for its end")
            yield

    def run(self, statement: str) -> None:
        """Runs a statement that may take long. If interrupted, ends the statement, waits for its
        end, and opens a new session for the cleanup."""
        try:
            self.connection.run(statement)
        except KeyboardInterrupt:
            ending, self.connection = self.connection, self._connect()
            ending.close()
            self._end(ending.id)
            raise

    def _end(self, session: int) -> None:
        with contextlib.suppress(ServerError):   # the session ended by itself
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
        return self.connection.value("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ')")

    def address(self) -> list:
        """Returns the host and port at which replicas reach the server, as far as known."""
        host, port = self.connection.run("SELECT COALESCE(@@report_host, @@hostname), @@port")[0]
        return [self.options.host or host, self.options.port or port]

    def write_snapshot(self, folder: Path) -> None:
        """Makes the server write the pinned snapshot. After an interruption it writes no more."""
        started = time.monotonic()
        try:
            self.run(f"SET GLOBAL cheetah_create_snapshot = {text(str(folder))}")
        except ServerError as failure:
            raise Failure(f"the server could not write a snapshot: {failure}") from failure
        line(f"  the engine's snapshot: {span(time.monotonic() - started)}")


def data_option(data: Path) -> str:
    """Returns mariadb-backup's option for the data folder. Without a trailing slash it puts undo
    tablespaces, which MariaDB 11.8 has by default, next to the folder."""
    return f"--datadir={data}/"


def mariadb_backup(options, what: str, *words) -> None:
    """Runs mariadb-backup to its end. If it fails, raises Failure with the end of its output, or
    `MisreadLog` if the output suggests that cause."""
    # Only --backup connects to the server. Other modes read just the option file or their own.
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
