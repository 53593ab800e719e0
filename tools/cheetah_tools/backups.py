"""`make bench ARGS="--sets backups"`: what writers wait for while `cheetah-backup` makes a backup.

One server with the binary log, commits durable, and sysbench's write-only transactions on its
tables by four connections. Runs without a backup and with one take turns; told is the longest
transaction of each. A run without one says what the machine does by itself. Where Linux
shares processors out by sessions, threads wait longer; the bench says so.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from . import setup, sysbench
from .engines import CHEETAH
from .oltp import fill, sysbench_tables
from .paths import PROJECT, SERVER, VAR, show
from .say import Failure, note, step, table
from .server import PrivateServer, scratch

CONNECTIONS = 4
WARM_SECONDS = 1
OPTIONS = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": 1, "server_id": 1,
           "innodb_flush_log_at_trx_commit": 1, "cheetah_buffer_pool_size": 1 << 30,
           "innodb_buffer_pool_size": 64 << 20}
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
PROGRAM = PROJECT / "tools/backup/cheetah-backup"


def run(choice) -> int:
    """The part of the bench."""
    step(f"backups: {choice.repeats} runs of {choice.seconds} s without a backup and as many with "
         f"one, after loading {choice.rows:,} rows")
    if AUTOGROUP.exists() and AUTOGROUP.read_text().strip() != "0":
        note("Linux shares its processors out by sessions, so a thread may wait long for one. To "
             "turn that off: sysctl kernel.sched_autogroup_enabled=0")
    found = measure(choice)
    report(found)
    place = VAR / "bench-backups.json"
    place.write_text(json.dumps(found, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    return 0


def measure(choice) -> dict:
    """Milliseconds of the longest transaction of each run, "without" and "with" a backup."""
    found = {"without": [], "with": []}
    tables = sysbench_tables(choice.rows)
    server = PrivateServer(scratch("backups"), OPTIONS)
    try:
        with server, tempfile.TemporaryDirectory(dir=server.folder) as backups:
            fill(server, CHEETAH, choice.rows)
            for repeat in range(choice.repeats):
                for kind, target in (("without", None), ("with", Path(backups) / str(repeat))):
                    longest_ms = longest(server, tables, choice.seconds, target)
                    found[kind].append(longest_ms)
                note(f"repeat {repeat + 1}: the longest transaction took {found['without'][-1]:.0f}"
                     f" ms, with a backup {found['with'][-1]:.0f}")
    finally:
        server.remove()
    return found


def longest(server, tables: sysbench.Tables, seconds: int, target) -> float:
    """Milliseconds of the longest transaction of a run in which a backup to `target` is made, if
    there is one. Failure when that fails or outlasts the run."""
    begun = []
    try:
        result = sysbench.run(server, "oltp_write_only", tables, CONNECTIONS, seconds,
                              WARM_SECONDS, seed=0,
                              on_report=lambda: begun or begun.append(begin(server, target)))
        if target:
            check_backup(begun)
        return result.max_ms
    finally:
        for backup in filter(None, begun):
            backup.kill()
            backup.wait()


def check_backup(begun: list) -> None:
    """Failure unless one was begun and has been made."""
    if not begun:
        raise Failure("the run ended before a backup could begin: --seconds must be more")
    if begun[0].poll() is None:
        raise Failure("the backup was not done when the run ended: --seconds must be more")
    if begun[0].returncode != 0:
        raise Failure(f"the backup failed: {begun[0].stdout.read()[-1500:]}")


def begin(server, target):
    """Begin a full backup to `target`, if there is one; its process."""
    if not target:
        return None
    words = [sys.executable, str(PROGRAM), "full", str(target),
             f"--defaults-file={server.folder / 'my.cnf'}",
             f"--mariadb-backup={SERVER / 'usr/bin/mariadb-backup'}",
             f"--client={SERVER / 'usr/bin/mariadb'}"]
    return subprocess.Popen(words, env=setup.library_environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def report(found: dict) -> None:
    """The longest transactions of both kinds of runs."""
    print()
    table(["longest transaction of a run, ms", "median", "least", "most"],
          [[f"{kind} a backup", f"{median(each):.0f}", f"{min(each):.0f}", f"{max(each):.0f}"]
           for kind, each in found.items()])
