"""Measures how long writers wait while `cheetah-backup` makes a backup."""

import subprocess
import sys
import tempfile
from pathlib import Path

from cheetah_lab import cells, show
from cheetah_lab.engines import CHEETAH
from cheetah_lab.model import LESS, Experiment, Measure, Value
from cheetah_tools import setup, sysbench
from cheetah_tools.paths import PROJECT, SERVER
from cheetah_tools.say import Failure

CONNECTIONS, WARM_SECONDS, MEMORY_BYTES = 4, 1, 1 << 30
OPTIONS = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": 1, "server_id": 1,
           "innodb_buffer_pool_size": 64 << 20}
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
PROGRAM = PROJECT / "tools/backup/cheetah-backup"


class Backups(Experiment):
    by_name = True
    options = {"rows": 1_000_000, "seconds": 8}
    measures = [Measure(kind, f"longest transaction of a run {kind} a backup", "ms", LESS)
                for kind in ("without", "with")]

    def engines(self, chosen, scale):
        return [CHEETAH]

    def run(self, trial):
        """Runs without and with a backup; the order alternates with the repeat."""
        of = cells.tables(trial.scale.of(self.option["rows"], 1000))
        if AUTOGROUP.exists() and AUTOGROUP.read_text().strip() != "0":
            trial.remarks.append("Linux shares its processors out by sessions, so a thread may "
                                 "wait long for one. To turn that off: sysctl "
                                 "kernel.sched_autogroup_enabled=0")
        with (trial.server(MEMORY_BYTES, **OPTIONS) as server,
              tempfile.TemporaryDirectory(dir=server.folder) as backups):
            sysbench.load(server, trial.engine, of)
            sysbench.warm(server, of)
            trial.did("cheetah-backup full TARGET")
            kinds = [("without", None), ("with", Path(backups) / "full")]
            for kind, target in kinds if trial.repeat % 2 == 0 else reversed(kinds):
                yield Value(kind, longest(server, of, self.option["seconds"], target))

    def tables(self, results):
        return [show.table(results, "Longest transactions", show.columns(self.measures))]


def longest(server, tables: sysbench.Tables, seconds: int, target) -> float:
    """Returns the longest transaction's milliseconds, with a backup to a `target`. Raises Failure
    if the backup fails or outlasts the run."""
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
    if not begun:
        raise Failure("the run ended before a backup could begin: --seconds must be more")
    if begun[0].poll() is None:
        raise Failure("the backup was not done when the run ended: --seconds must be more")
    if begun[0].returncode != 0:
        raise Failure(f"the backup failed: {begun[0].stdout.read()[-1500:]}")


def begin(server, target):
    if not target:
        return None
    words = [sys.executable, str(PROGRAM), "full", str(target),
             f"--defaults-file={server.folder / 'my.cnf'}",
             f"--mariadb-backup={SERVER / 'usr/bin/mariadb-backup'}",
             f"--client={SERVER / 'usr/bin/mariadb'}"]
    return subprocess.Popen(words, env=setup.library_environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
