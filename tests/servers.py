"""Private servers in tests: how they are made, crashed and waited for."""

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
# Ends only a test that would never end: a wait this long on a busy machine is right.
WAIT_SECONDS_MAX = 60
CLIENT_SECONDS_MAX = 120   # for the work that a client is at

# Each process begins somewhere else.
PORTS = iter(range(10_000 + os.getpid() % 500 * 30, 32_000))

made = []   # the servers of running tests, whose logs are shown beside a failure
numbers = itertools.count()


def make(options: dict = None, plugin: bool = True, folder=None) -> PrivateServer:
    """A server, not started yet, with small pools and logs unless `options` say otherwise."""
    server = PrivateServer(folder or scratch(f"server-{next(numbers)}"),
                           {**OPTIONS, **(options or {})}, plugin)
    made.append(server)
    return server


def begun(server: PrivateServer) -> PrivateServer:
    """Started, with an empty database `d`."""
    server.start()
    server.sql("CREATE DATABASE d")
    return server


def end(count: int, passed: bool) -> None:
    """End all servers but the first `count`: with a shutdown that succeeds if the test has
    `passed`, whose data is removed then; otherwise at once."""
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
    """A connection that calls `work` until `stopping` is set or the server is gone; afterwards
    `failure` says what else went wrong. An error among `refusals` is part of the game: the
    transaction is rolled back, and the work goes on."""

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
        """What comes once, before the work."""

    def work_once(self, cursor) -> None:
        """Work that may be refused."""
        try:
            self.work(cursor)
            self.done += 1
        except pymysql.MySQLError as failure:
            if failure.args[0] not in self.refusals:
                raise
            self.refused += 1
            self.connection.rollback()

    def attempt(self, cursor, statement: str) -> bool:
        """Whether a statement was executed; one that is refused ends no transaction."""
        try:
            cursor.execute(statement)
        except pymysql.MySQLError as failure:
            if failure.args[0] not in self.refusals:
                failure.add_note(statement)
                raise
            return False
        return True


class Sent(threading.Thread):
    """Statements that a connection executes from now on, one after the other. Then `error` is the
    number of the error that ended them, or 0, and `failure` its text; before, it is None."""

    def __init__(self, connection, *statements: str):
        super().__init__(daemon=True)
        self.connection, self.statements, self.error, self.failure = (connection, statements, None,
                                                                      "")
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
        """Wait for it; its error."""
        self.join(seconds)
        assert not self.is_alive(), f"{self.statements} do not end"
        return self.error


class Session:
    """A connection whose statements may wait."""

    def __init__(self, server, database: str = "d", **more):
        self.connection = server.connect(database, **more)
        self.cursor, self.id = self.connection.cursor(), self.connection.thread_id()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def run(self, *statements: str) -> list:
        """Execute them, one after the other; the rows of the last one."""
        for statement in statements:
            self.cursor.execute(statement)
        return list(self.cursor.fetchall())

    def send(self, *statements: str) -> Sent:
        """Execute them while the test goes on."""
        return Sent(self.connection, *statements)

    def error(self, statement: str) -> int:
        """The number of its error, or 0."""
        try:
            self.cursor.execute(statement)
        except pymysql.MySQLError as failure:
            return failure.args[0]
        return 0


def is_gone(failure: Exception) -> bool:
    """Whether an error only says that there is no server any more."""
    return isinstance(failure, OSError) or failure.args[:1] in ((0,), (2003,), (2006,),
                                                                (2013,), (1053,))


def kill_under(server, clients: list, seconds: float) -> None:
    """kill -9, when the clients have worked for so long, without anything else going wrong."""
    for client in clients:
        client.start()
    time.sleep(seconds)
    kill_beside(server, clients)


def kill_beside(server, clients: list) -> None:
    """kill -9 while the clients work."""
    assert not server.died(), "the server ended by itself"
    server.kill()
    await_end(clients)


@contextlib.contextmanager
def working(clients: list):
    """They work during the block, without anything going wrong."""
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
    """Calls `look` again and again during the block, and once before and after it."""
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
    """All have ended, as they should."""
    for client in clients:
        client.join(CLIENT_SECONDS_MAX)
        assert not client.is_alive() and not client.failure, f"{client.number}: {client.failure}"


def crash(server) -> None:
    """kill -9, then startup recovery."""
    server.kill()
    server.start()


def check_table(server, table: str, database: str = "") -> None:
    """CHECK TABLE .. EXTENDED says OK, and nothing else."""
    for row in server.sql(f"CHECK TABLE {table} EXTENDED", database):
        assert row[2:] == ("status", "OK"), f"CHECK TABLE {table}: {row}"


def expect_nothing_without_process(server, *views: str) -> None:
    """Who may not see other connections is refused these views of the engine."""
    server.sql("CREATE USER IF NOT EXISTS nobody@localhost")
    with Session(server, "", user="nobody") as nobody:
        for view in views:
            assert nobody.error(f"SELECT * FROM information_schema.cheetah_{view}") == 1227, view


def wait_until(condition, what: str, seconds: float = WAIT_SECONDS_MAX):
    """What the condition gives, as soon as it is true; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return found


def left_by_innodb(server, database: str) -> list:
    """Files of tables that InnoDB does not know: a kill in the middle of a DROP can leave one
    (MDEV-25506), and then InnoDB makes no table of that name."""
    files = list((server.data / database).glob("[!#]*.ibd"))   # first: a table may come meanwhile
    known = {row[0] for row in server.sql("SELECT NAME FROM information_schema.INNODB_SYS_TABLES")}
    return [path for path in files if f"{database}/{path.stem}" not in known]


def is_root() -> bool:
    """Whether mounts and other users are to be had."""
    return os.geteuid() == 0


@contextlib.contextmanager
def mounted(place, *words):
    """A file system on a folder, by these words of `mount`, while the block lasts. Skips the test
    where there can be none."""
    if not is_root() or subprocess.run(["mount", *words, place], capture_output=True,
                                       check=False).returncode:
        pytest.skip(f"nothing can be mounted here: {words}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def tmpfs(place, mib: int):
    """A small file system in memory, on a folder that is there."""
    return mounted(place, "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs")


def free_port() -> int:
    """A port of this machine that nobody has, another one at each call. Outgoing connections, which
    could take it while its server is down, have higher ones."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def cli(*words) -> subprocess.CompletedProcess:
    """cheetah-cli as users run it; built when the engine is newer."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "cheetah-cli"], cwd=PROJECT,
                   env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)}, check=True)
    return subprocess.run([TARGET / "release" / "cheetah-cli", *words], capture_output=True,
                          text=True, check=False)
