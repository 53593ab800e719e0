"""sysbench's own tables and workloads, with sysbench 1.0 of the private server's packages.

`rows_file` writes rows once under `var/lab/inputs`, with sysbench's random numbers and a fixed
seed. Texts are random digits, as in sysbench 1.0; the constant texts of sysbench 0.4 (only `k`
differs between rows); or real ones, pieces of Wikipedia's articles or of the source of MariaDB.
`prepare` lets sysbench fill the tables itself.

Keys are uniform, or `zipfian` as in YCSB: few rows are read most of the time, and a hash scatters
them over the table (`scattered.lua`)."""

import hashlib
import os
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import dump, setup, texts
from .paths import SERVER, VAR
from .say import Failure

DATABASE = "sbtest"
ROWS_OF_INSERT = 1000
FOLDER = VAR / "lab/inputs"
TEXT_BYTES_OF_ROW = 119 + 59   # c and pad
PROGRAM = SERVER / "usr/bin/sysbench"
SCRIPTS = SERVER / "usr/share/sysbench"
ROWS_SCRIPT = Path(__file__).with_name("sysbench_rows.lua")
SCATTERED = Path(__file__).with_name("scattered.lua")
HANGING_SECONDS = 120      # a run that takes this much longer than planned is an error
COLUMNS = ("id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, "
           "c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id)")
SECOND = re.compile(r"^\[ (\d+)s \] thds: \d+ tps: ([\d.]+) .*? lat \(ms,\d+%\): ([\d.]+) ", re.M)
BUCKET = re.compile(r"^ +([\d.]+) \|\**\s+(\d+)$", re.M)
QUEUE = re.compile(r"^\[ (\d+)s \] queue length: (\d+), concurrency: \d+", re.M)


@dataclass(frozen=True)
class Tables:
    """`rows` per table. `texts`: digits, old (of sysbench 0.4), real. `batch`: rows per INSERT."""

    rows: int
    tables: int = 1
    texts: str = "digits"
    batch: int = ROWS_OF_INSERT


@dataclass(frozen=True)
class Second:
    """A second. `p99_ms`: time to a transaction's end since it was due (with a rate) or began."""

    second: int
    tps: float
    p99_ms: float
    queue: int = 0     # transactions that were due but had not begun


@dataclass(frozen=True)
class Result:
    """The result of a run, without its warm-up. `tps`: transactions per second, without failed
    ones. `errors`: deadlocks and lock wait timeouts per second."""

    tps: float
    p99_ms: float
    max_ms: float
    seconds: list = field(default_factory=list)
    queries: int = 0
    errors: float = 0.0
    total_seconds: float = 0.0
    p50_ms: float = 0.0   # with a histogram only


def rows_file(tables: Tables) -> Path:
    """Returns the file with the INSERT statements for all tables. The file is written if absent,
    and again if the programs that write it have changed."""
    options = ["--rand-seed=1", "--rand-type=uniform", f"--tables={tables.tables}",
               f"--table-size={tables.rows}", f"--batch={tables.batch}",
               f"--texts={tables.texts}"]
    stem = f"sysbench-{tables.texts}-{tables.tables}x{tables.rows}-{tables.batch}-"
    place = FOLDER / f"{stem}{made_of(options)}.sql"
    if place.exists():
        return place
    FOLDER.mkdir(parents=True, exist_ok=True)
    remove_others(stem)
    fresh = place.with_suffix(f".new.{os.getpid()}")
    source = fresh.with_suffix(f".{os.getpid()}.texts")
    try:
        if tables.texts == "real":
            texts.write_plain(source, tables.rows * tables.tables * TEXT_BYTES_OF_ROW)
        call([str(ROWS_SCRIPT), f"--target={fresh}", f"--source={source}", *options, "rows"])
        fresh.rename(place)
    finally:
        fresh.unlink(missing_ok=True)
        source.unlink(missing_ok=True)
    return place


def environment() -> dict:
    """Returns an environment with the private libraries and sysbench's scripts."""
    return {**setup.library_environment(), "LUA_PATH": f"{SCRIPTS}/?.lua"}


def call(words: list) -> None:
    """Runs sysbench to its end; raises Failure with its output if it fails."""
    done = subprocess.run([str(PROGRAM), *words], env=environment(), text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise Failure(f"sysbench {words[-1]}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def script_of(workload: str) -> Path:
    """Returns the script of a workload: our own, or sysbench's."""
    own = Path(__file__).with_name(f"{workload}.lua")
    return own if own.exists() else SCRIPTS / own.name


def prepare(server, database: str, tables: Tables, *options,
            script: str = "oltp_read_write") -> None:
    """Lets sysbench create and fill the tables of a workload."""
    server.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    call([f"--mysql-socket={server.socket}", "--mysql-user=root", f"--mysql-db={database}",
          f"--tables={tables.tables}", f"--table-size={tables.rows}", "--rand-seed=1", *options,
          str(script_of(script)), "prepare"])


def made_of(options: list) -> str:
    """Returns a short hash of everything that determines the rows: program, scripts, options."""
    found = hashlib.sha256(repr([*options, texts.from_wikipedia()]).encode())
    for file in (PROGRAM, SCRIPTS / "oltp_common.lua", ROWS_SCRIPT):
        found.update(file.read_bytes())
    return found.hexdigest()[:12]


def remove_others(stem: str) -> None:
    """Removes other files of the same tables, and remaining files of killed processes."""
    for file in FOLDER.glob(f"{stem}*"):
        pid = file.suffix.removeprefix(".")
        if not (pid.isdigit() and Path(f"/proc/{pid}").exists()):
            file.unlink(missing_ok=True)


def create_table(number: int, clause: str, key: bool = True) -> str:
    """Returns the statement for one table; `clause` follows the closing parenthesis."""
    index = f", KEY k_{number} (k)" if key else ""
    return f"CREATE TABLE sbtest{number} ({COLUMNS}{index}) {clause}"


def load(server, engine, tables: Tables, key_last: bool = False, key: bool = True) -> float:
    """Creates and fills the tables in `sbtest`; returns the seconds until all is flushed.
    `key_last`: the key on `k` comes after the rows; without `key` there is none."""
    source_file = rows_file(tables)
    server.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    for number in range(1, tables.tables + 1):
        server.sql(create_table(number, engine.clause(), key and not key_last), DATABASE)
    started = time.monotonic()
    dump.feed(server, DATABASE, source_file, f"sysbench's rows into {engine.label}")
    if key and key_last:
        for number in range(1, tables.tables + 1):
            server.sql(f"ALTER TABLE sbtest{number} ADD KEY k_{number} (k)", DATABASE)
    engine.write_out(server, DATABASE)
    return time.monotonic() - started


def warm(server, tables: Tables) -> None:
    for number in range(1, tables.tables + 1):
        server.sql(f"ANALYZE TABLE sbtest{number}", DATABASE)
        for index in ("PRIMARY", f"k_{number}"):
            server.sql(f"SELECT COUNT(*), MAX(k + id) FROM sbtest{number} FORCE INDEX ({index}) "
                       "WHERE k > 0", DATABASE)


def server_options(connections: int, tables: int = 1) -> dict:
    """Returns server options for this many connections, with lock wait timeouts of ten seconds."""
    most = connections + 50
    return {"max_connections": most, "thread_cache_size": most, "back_log": most,
            "max_prepared_stmt_count": 1_000_000, "table_open_cache": most * tables + 400,
            "innodb_lock_wait_timeout": 10, "loose_cheetah_lock_wait_timeout": 10,
            "loose_rocksdb_lock_wait_timeout": 10}


def words(workload: str, tables: Tables, connections: int, seconds: int, warm_seconds: int = 0,
          rate: int = 0, each_second: bool = False, seed: int = 1, histogram: bool = False) -> list:
    """Returns the options of a run, without the server's address; for `trial.did`, put `sysbench`
    before them. With `seed` 0 each run has other random numbers."""
    found = [workload, f"--tables={tables.tables}", f"--table-size={tables.rows}",
             "--rand-type=uniform", f"--rand-seed={seed}", "--percentile=99",
             f"--threads={connections}", f"--time={warm_seconds + seconds}"]
    found += [f"--rate={rate}"] if rate else []
    found += ["--report-interval=1"] if each_second else []
    found += [f"--report-checkpoints={warm_seconds}"] if warm_seconds else []
    found += ["--histogram=on"] if histogram else []
    return [*found, "run"]


def run(server, workload: str, tables: Tables, connections: int, seconds: int,
        warm_seconds: int = 0, rate: int = 0, each_second: bool = False, seed: int = 1,
        histogram: bool = False, on_report=lambda: None, keys: str = "uniform") -> Result:
    """Runs a workload (`oltp_read_write`, ..) and blocks for its time; the first `warm_seconds` do
    not count. `rate`: transactions due per second; 0: as many as possible. `on_report` is called
    after the warm-up and at the end. `histogram`: also the median, of the whole run. `keys`:
    uniform or zipfian. Raises Failure if sysbench fails or hangs."""
    script, *options = words(workload, tables, connections, seconds, warm_seconds, rate,
                             each_second, seed, histogram)
    lines = []
    file = SCATTERED if keys == "zipfian" else script_of(script)
    command = [str(PROGRAM), str(file), f"--mysql-socket={server.socket}",
               "--mysql-user=root", f"--mysql-db={DATABASE}", *options]
    surroundings = {**environment(), "CHEETAH_WORKLOAD": workload}
    with subprocess.Popen(command, env=surroundings, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        watch = threading.Timer(warm_seconds + seconds + HANGING_SECONDS, process.kill)
        watch.start()
        try:
            for line in process.stdout:
                if line.startswith("SQL statistics:"):
                    on_report()
                lines.append(line)
        except BaseException:
            process.kill()
            raise
        finally:
            watch.cancel()
    text = "".join(lines)
    if "event queue is full" in text:
        raise Failure(f"sysbench {workload}: {rate} transactions a second are far more than this "
                      "server does")
    if process.returncode != 0:
        raise Failure(f"sysbench {workload} ended with status {process.returncode}: "
                      f"{text[-1500:].strip()}")
    return parse(text, warm_seconds)


def parse(text: str, warm_seconds: int = 0) -> Result:
    """Parses sysbench's output: the last report, and the lines of the seconds after the warm-up."""
    last, queues = text.rpartition("SQL statistics:")[2], dict(QUEUE.findall(text))

    def number(pattern: str) -> float:
        found = re.search(pattern, last)
        if not found:
            raise Failure(f"sysbench's report is not as expected: {last[-500:]}")
        return float(found.group(1))

    return Result(number(r"transactions: .*\(([\d.]+) per sec"),
                  number(r"99th percentile: +([\d.]+)"), number(r"max: +([\d.]+)"),
                  [Second(int(second), float(tps), float(p99_ms), int(queues.get(second, 0)))
                   for second, tps, p99_ms in SECOND.findall(text) if int(second) > warm_seconds],
                  int(number(r"queries: +(\d+) ")), number(r"ignored errors: .*\(([\d.]+) per sec"),
                  number(r"total time: +([\d.]+)s"), median_of(text))


def median_of(text: str) -> float:
    """Returns the median of the last histogram in milliseconds; 0 without a histogram."""
    counts = [(float(bound), int(count))
              for bound, count in BUCKET.findall(text.rpartition("Latency histogram")[2])]
    half = sum(count for _, count in counts) / 2
    for bound, count in counts:
        half -= count
        if half <= 0:
            return bound
    return 0.0
