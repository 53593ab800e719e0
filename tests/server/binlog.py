"""Reads a server's binary log and replays it on another server."""

import subprocess

import pymysql
from cheetah_tools import setup
from cheetah_tools.paths import SERVER

WRONG_OFFSET = 1220   # the error after the last complete event
OPTIONS = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": 1, "server_id": 7}


def closed_files(server) -> list:
    """Starts a new binary log file and returns the names of all previous files, oldest first."""
    server.sql("FLUSH BINARY LOGS")
    return [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]


def replay_new(server, target, replayed: set) -> None:
    """Replays all closed binary logs that are not in `replayed`, and adds them to it."""
    files = closed_files(server)
    replay(server, target, [name for name in files if name not in replayed])
    replayed.update(files)


def events(server, file: str) -> list:
    """Returns the events of a file from SHOW BINLOG EVENTS. A kill may leave an incomplete event at
    the end of the file. In this case the events before it are returned."""
    found = []
    try:
        with server.cursor(cursorclass=pymysql.cursors.SSCursor) as cursor:
            cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
            found.extend(cursor)
    except pymysql.MySQLError as failure:
        if failure.args[0] != WRONG_OFFSET:
            raise
    return found


def replay(server, target, files: list, position: int = 4, stop: int = 0) -> None:
    """Replays binary logs on another server, starting at `position` in the first file and ending at
    `stop` in the last one (0: its end). A crash may leave an incomplete event at the end of a file.
    The events before it are executed, but an incomplete transaction is not."""
    for name in files:
        words = [f"--start-position={position if name == files[0] else 4}"]
        words += [f"--stop-position={stop}"] if stop and name == files[-1] else []
        reader = subprocess.Popen([SERVER / "usr/bin/mariadb-binlog", "--no-defaults", *words,
                                   server.data / name],
                                  env=setup.library_environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        with reader:
            done = target.client(stdin=reader.stdout, stderr=subprocess.PIPE)
            message = done.communicate()[1].decode(errors="replace")
        assert done.returncode == 0, f"replaying {name}: {message[:500]}"
