"""The binary log of a server, and its replay into another one."""

import subprocess

import pymysql
from cheetah_tools import setup
from cheetah_tools.paths import SERVER

WRONG_OFFSET = 1220   # the error after the last whole event
OPTIONS = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": 1, "server_id": 7}


def closed_files(server) -> list:
    """Begin a new file; the names of all before it, oldest first."""
    server.sql("FLUSH BINARY LOGS")
    return [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]


def events(server, file: str) -> list:
    """What SHOW BINLOG EVENTS says of a file. A kill may leave an event without its end at the end
    of the file: then those before it."""
    connection, found = server.connect(), []
    try:
        with connection.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
            while (event := cursor.fetchone()):
                found.append(event)
    except pymysql.MySQLError as failure:
        if failure.args[0] != WRONG_OFFSET:
            raise
    finally:
        connection.close()
    return found


def replay(server, target, files: list, position: int = 4, stop: int = 0) -> None:
    """Execute binary logs on another server, the first one from a position on, the last one up to
    `stop` (0: its end). A crash may leave an event without its end at the end of a file: what is
    before it is executed, and a transaction without its end is not."""
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
