"""Private servers for tests: functions that create, crash and wait for servers."""

import contextlib
import itertools
import os
import random
import socket
import subprocess
import threading
import time

import pymysql
import pytest
from cheetah_tools.paths import PROJECT, TARGET
from cheetah_tools.server import PrivateServer, scratch

OPTIONS = {"innodb_buffer_pool_size": "16M", "innodb_log_file_size": "8M",
           "loose_cheetah_buffer_pool_size": "16M", "loose_cheetah_log_file_size": "4M",
           "loose_cheetah_log_size_max": "32M"}
# Ends tests that would otherwise never end. Long waits are normal on a busy machine.
WAIT_SECONDS_MAX = 60
CLIENT_SECONDS_MAX = 120   # the maximum time for a client to finish its current work

# Each process starts at a different port.
PORTS = iter(range(10_000 + os.getpid() % 500 * 30, 32_000))

made = []   # the servers of running tests; a failure report shows their logs
numbers = itertools.count()


def make(options: dict = None, plugin: bool = True, folder=None) -> PrivateServer:
    """Returns a server, not started yet, with small pools and logs unless `options` differ."""
    server = PrivateServer(folder or scratch(f"server-{next(numbers)}"),
                           {**OPTIONS, **(options or {})}, plugin)
    made.append(server)
    return server


def begun(server: PrivateServer) -> PrivateServer:
    return started(server, "CREATE DATABASE d")


def started(server: PrivateServer, *statements: str) -> PrivateServer:
    server.start()
    run(server, *statements, database="")
    return server


def run(server, *statements: str, database: str = "d") -> None:
    for statement in statements:
        server.sql(statement, database)


def end(count: int, passed: bool) -> None:
    """Stops all servers except the first `count`. If the test passed, each server must shut down
    cleanly and its data is deleted. Otherwise the servers are killed."""
    ending, made[count:] = made[count:], []
    try:
        for server in ending[::-1] if passed else []:
            server.stop()
    finally:
        for server in ending:
            server.kill()
    for server in ending if passed else []:
        server.remove()


class Client(threading.Thread):
    """A connection that calls `work` until `stopping` is set or the server is gone. Any other
    problem is stored in `failure`. An error in `refusals` is expected: the transaction is rolled
    back and the work continues."""

    database, autocommit, refusals = "d", True, ()

    def __init__(self, server, number: int = 0, seed=None):
        super().__init__(daemon=True)
        self.server, self.number, self.failure = server, number, ""
        self.rng = random.Random(number if seed is None else seed)
        self.done, self.refused = 0, 0   # calls of `work`
        self.stopping, self.connection = threading.Event(), None

    def run(self) -> None:
        try:
            self.connection = self.server.connect(self.database, autocommit=self.autocommit)
            with self.connection.cursor() as cursor:
                self.begin(cursor)
                while not self.stopping.is_set():
                    self.work_once(cursor)
            self.connection.close()
        except (pymysql.MySQLError, OSError, AssertionError) as failure:
            if not is_gone(failure):
                self.failure = " ".join([repr(failure), *getattr(failure, "__notes__", ())])

    def begin(self, cursor) -> None:
        """Runs once before the first call of `work`."""

    def work_once(self, cursor) -> None:
        try:
            self.work(cursor)
            self.done += 1
        except pymysql.MySQLError as failure:
            if failure.args[0] not in self.refusals:
                raise
            self.refused += 1
            self.connection.rollback()

    def attempt(self, cursor, statement: str) -> bool:
        """Returns whether a statement succeeded. A refusal does not end the transaction."""
        try:
            cursor.execute(statement)
        except pymysql.MySQLError as failure:
            if failure.args[0] not in self.refusals:
                failure.add_note(statement)
                raise
            return False
        return True


class Sent(threading.Thread):
    """Statements that a connection executes in a thread, one after another. When the thread ends,
    `error` is the number of the error that ended it or 0, and `failure` the message. Before that,
    `error` is None."""

    def __init__(self, connection, *statements: str):
        super().__init__(daemon=True)
        self.connection, self.statements = connection, statements
        self.error, self.failure = None, ""
        self.start()

    def run(self) -> None:
        try:
            with self.connection.cursor() as cursor:
                for statement in self.statements:
                    cursor.execute(statement)
            self.error = 0
        except (pymysql.MySQLError, OSError) as failure:
            self.failure, self.error = str(failure), failure.args[0]

    def ends(self, seconds: float = 120) -> int:
        """Waits for the statements and returns the error number."""
        self.join(seconds)
        assert not self.is_alive(), f"{self.statements} do not end"
        return self.error


class Session:
    def __init__(self, server, database: str = "d", **more):
        self.connection = server.connect(database, **more)
        self.cursor, self.id = self.connection.cursor(), self.connection.thread_id()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def run(self, *statements: str) -> list:
        """Executes the statements in order and returns the rows of the last one."""
        for statement in statements:
            self.cursor.execute(statement)
        return list(self.cursor.fetchall())

    def send(self, *statements: str) -> Sent:
        return Sent(self.connection, *statements)

    def error(self, statement: str) -> int:
        """Executes a statement and returns the number of its error, or 0."""
        try:
            self.cursor.execute(statement)
        except pymysql.MySQLError as failure:
            return failure.args[0]
        return 0


def is_gone(failure: Exception) -> bool:
    """Returns whether an error only means that the server is gone."""
    return isinstance(failure, OSError) or failure.args[:1] in {
        (number,) for number in (0, 2003, 2006, 2013, 1053)}


def kill_under(server, clients: list, seconds: float) -> None:
    """Starts the clients and kills the server after `seconds`. Other failures fail the test."""
    for client in clients:
        client.start()
    time.sleep(seconds)
    kill_beside(server, clients)


def kill_beside(server, clients: list) -> None:
    assert not server.died(), "the server ended by itself"
    server.kill()
    await_end(clients)


@contextlib.contextmanager
def working(clients: list):
    """Runs the clients during the block. Fails if a client fails."""
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.stopping.set()
    await_end(clients)


@contextlib.contextmanager
def looking(look, pause: float = 0):
    """Calls `look` repeatedly during the block, and once before and after it."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(pause):
            look()
    thread = threading.Thread(target=work, daemon=True)
    look()
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        look()


def await_end(clients: list) -> None:
    """Waits until all clients have ended, and fails if a client failed."""
    for client in clients:
        client.join(CLIENT_SECONDS_MAX)
        assert not client.is_alive() and not client.failure, f"{client.number}: {client.failure}"


def crash(server) -> None:
    server.kill()
    server.start()


def check_table(server, *tables: str, database: str = "d") -> None:
    """Asserts that CHECK TABLE .. EXTENDED reports OK and nothing else."""
    for row in server.sql(f"CHECK TABLE {', '.join(tables)} EXTENDED", database):
        assert row[2:] == ("status", "OK"), f"CHECK TABLE {row[0]}: {row}"


def expect_nothing_without_process(server, *views: str) -> None:
    """Asserts that a user without the PROCESS privilege cannot read these views of the engine."""
    server.sql("CREATE USER IF NOT EXISTS nobody@localhost")
    with Session(server, "", user="nobody") as nobody:
        for view in views:
            assert nobody.error(f"SELECT * FROM information_schema.cheetah_{view}") == 1227, view


def wait_until(condition, what: str, seconds: float = WAIT_SECONDS_MAX):
    """Waits until the condition is true and returns its value. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return found


def left_by_innodb(server, database: str) -> list:
    """Returns files of tables that InnoDB does not know. A kill during DROP can leave such a file
    (MDEV-25506), after which InnoDB cannot create a table with the same name."""
    # Listed first, because a table may be created meanwhile.
    files = list((server.data / database).glob("[!#]*.ibd"))
    known = {row[0] for row in server.sql("SELECT NAME FROM information_schema.INNODB_SYS_TABLES")}
    return [path for path in files if f"{database}/{path.stem}" not in known]


def is_root() -> bool:
    """Returns whether tests can mount file systems and switch users."""
    return os.geteuid() == 0


@contextlib.contextmanager
def mounted(place, *words):
    """Mounts on a folder with these arguments of `mount` during the block, or skips the test."""
    if not is_root() or subprocess.run(["mount", *words, place], capture_output=True,
                                       check=False).returncode:
        pytest.skip(f"nothing can be mounted here: {words}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def tmpfs(place, mib: int):
    """Mounts a small file system in memory on an existing folder."""
    return mounted(place, "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs")


def free_port() -> int:
    """Returns a free port of this machine, a different one for each call. Outgoing connections,
    which could take the port while its server is down, use higher ports."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def cli(*words) -> subprocess.CompletedProcess:
    """Runs cheetah-cli as users run it, and builds it first if the engine is newer."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "cheetah-cli"], cwd=PROJECT,
                   env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)}, check=True)
    return subprocess.run([TARGET / "release" / "cheetah-cli", *words], capture_output=True,
                          text=True, check=False)
