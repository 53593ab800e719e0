"""`make up`, `make sql`, `make down`: one persistent private server, in `var/run`."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import build, setup
from .paths import PROJECT, RUN, SERVER, make, show
from .say import Failure
from .server import STOP_SECONDS, PrivateServer, client_words

DATABASE = "test"
OWN_SETTINGS = RUN / "own.cnf"   # the user's settings; my.cnf is rewritten at each start


def up(_arguments=()) -> int:
    """Starts the server, with Cheetah if it can be built; returns 1 if Cheetah does not start."""
    if any((PROJECT / "plugin").rglob("*.cc")):
        build.build()
    if pid := running_pid():
        print(f"running already (pid {pid}); next: {make('sql')}")
        return 0
    server = PrivateServer(RUN)
    server.included = OWN_SETTINGS if OWN_SETTINGS.exists() else None
    log_bytes_before = server.log.stat().st_size if server.log.exists() else 0
    server.start(detached=True)
    server.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    has_engine = server.has_engine("CHEETAH")
    engine = "with ENGINE=CHEETAH" if has_engine else "without Cheetah"
    print(f"MariaDB {setup.ensure()['version']} is up, {engine} (pid {server.process.pid})")
    print(f"  data {show(server.data)}, log {show(server.log)}, settings {show(RUN / 'my.cnf')}; "
          f"yours go into {show(OWN_SETTINGS)}")
    if not has_engine:
        print("\n".join(why_without(server, log_bytes_before)))
        return 1
    print(f"next: {make('sql')}")
    return 0


def why_without(server, log_bytes_before: int) -> list:
    """Returns why the server runs without the engine, from its log after that many bytes."""
    if not server.plugin:
        return [f"  the plugin is not built: {make('build')}"]
    said = server.log.read_bytes()[log_bytes_before:].decode(errors="replace").splitlines()
    reasons = [line for line in said if "[ERROR]" in line and "cheetah" in line.lower()]
    return ["  the engine did not start:", *(f"  {line}" for line in reasons or said[-5:])]


def sql(_arguments=()) -> int:
    """Runs a client: interactive, or with statements from standard input."""
    if not running_pid():
        raise Failure(f"no server is running: {make('up')}")
    arguments = ["--show-warnings", *(["--table"] if sys.stdin.isatty() else [])]
    try:
        return subprocess.call(client_words(socket_in_use(), *arguments, DATABASE),
                               env=setup.library_environment())
    except KeyboardInterrupt:
        return 130


def with_server(arguments) -> int:
    """Runs a program that finds the private server's programs and libraries."""
    if not arguments:
        raise Failure("name the program to run, and its words")
    environment = setup.library_environment()
    environment["PATH"] = f"{SERVER / 'usr/bin'}:{environment.get('PATH', os.defpath)}"
    program = shutil.which(arguments[0], path=environment["PATH"])
    if not program:
        raise Failure(f"there is no program {arguments[0]}")
    return subprocess.call([program, *arguments[1:]], env=environment)


def down(_arguments=()) -> None:
    """Stops the server; its data stays."""
    pid = running_pid()
    if not pid:
        print("no server is running")
        return
    folder = socket_in_use().parent
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    # The server deletes the pid file before its process ends, and uses the data until then.
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            raise Failure(f"pid {pid} has not stopped after {STOP_SECONDS} s; "
                          f"see {show(RUN / 'error.log')}")
        time.sleep(0.1)
    if folder != RUN:   # a short folder under /tmp, made because this path is long
        shutil.rmtree(folder, ignore_errors=True)
    print(f"stopped; the data stays in {show(RUN / 'data')}")


def running_pid() -> int:
    """Returns the pid of our server, or 0. A pid of another program does not count."""
    try:
        pid = int((RUN / "pid").read_text())
        program = os.readlink(f"/proc/{pid}/exe")
        arguments = Path(f"/proc/{pid}/cmdline").read_text()
    except (OSError, ValueError):
        return 0
    mine = Path(program).name.startswith("mariadbd") and str(RUN / "my.cnf") in arguments
    return pid if mine else 0


def socket_in_use() -> Path:
    for line in (RUN / "my.cnf").read_text().splitlines():
        if line.startswith("socket ="):
            return Path(line.split("=", 1)[1].strip())
    raise Failure(f"{show(RUN / 'my.cnf')} names no socket")
