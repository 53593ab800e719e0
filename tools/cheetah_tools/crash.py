"""`make crash ROUNDS=n`: kill -9 a server under load, start it again, and compare with the clients' journals."""

import argparse
import random
import time

from . import ledger
from .paths import show
from .say import Failure, note, step
from .server import PrivateServer, scratch

WRITERS = 4
DATABASE = "crash"
# Names are tried with `loose_`, so that another engine can be put to the same test.
CONFIGURATIONS = [
    ("ordinary", {"loose_cheetah_buffer_pool_size": "64M"}),
    ("tiny pool", {"loose_cheetah_buffer_pool_size": "8M"}),
    ("tiny log", {"loose_cheetah_buffer_pool_size": "16M", "loose_cheetah_log_file_size": "1M", "loose_cheetah_log_size_max": "8M"}),
    ("late flush", {"loose_cheetah_flush_log_at_trx_commit": "2"}),
]


def main(arguments: list) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="kill a loaded server again and again")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--engine", default="CHEETAH")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    choice = parser.parse_args(arguments)
    step(f"{choice.rounds} kills of a server with {WRITERS} writers, ENGINE={choice.engine}; "
         f"again with: make crash ROUNDS={choice.rounds} SEED={choice.seed}")
    rng = random.Random(choice.seed)
    done = commits = 0
    for number, (label, options) in enumerate(CONFIGURATIONS):
        rounds = choice.rounds // len(CONFIGURATIONS) + (number < choice.rounds % len(CONFIGURATIONS))
        if rounds:
            commits += campaign(label, options, rounds, choice, rng)
            done += rounds
    print(f"crash: {done} kill{'s' * (done != 1)}, {commits} acknowledged transactions, nothing lost, nothing added")
    return 0


def campaign(label: str, options: dict, rounds: int, choice, rng) -> int:
    """Several kills on one data folder; the number of acknowledged transactions."""
    folder = scratch("crash")
    server = PrivateServer(folder, {"innodb_buffer_pool_size": "32M", "innodb_lock_wait_timeout": 2,
                                    "loose_cheetah_lock_wait_timeout": 2, **options})
    states, commits, rows = {}, 0, 0
    with server:
        if not server.has_engine(choice.engine):
            raise Failure(f"engine {choice.engine} is not in this server; make build")
        ledger.create_tables(server, DATABASE, f"ENGINE={choice.engine}")
        for _ in range(rounds):
            writers = [ledger.Writer(server, DATABASE, n, rng.getrandbits(32), states.get(n)) for n in range(WRITERS)]
            try:
                commits += one_kill(server, writers, NameChanger(server, choice.engine, rng.getrandbits(32)), rng.uniform(0.3, 2.5))
                server.start()
                rows, _ = ledger.verify(writers, ledger.read_back(server, DATABASE))
                check_names(server, choice.engine)
            except Failure as failure:
                raise Failure(f"{label}: {failure}\nthe data is left in {show(folder)}") from failure
            states = {w.number: w.committed for w in writers}
    server.remove()
    note(f"{label}: {rounds} kills, {rows} rows at the end")
    return commits


def one_kill(server, writers: list, names: "NameChanger", seconds: float) -> int:
    """Let the writers run, then SIGKILL; the number of acknowledged transactions."""
    for writer in [*writers, names]:
        writer.start()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.died():
            raise Failure(f"the server ended by itself:\n{server.log_tail(25)}")
        time.sleep(0.02)
    server.kill()
    for writer in [*writers, names]:
        writer.stopping.set()
        writer.join(30)
    failures = [w.failure for w in [*writers, names] if w.failure]
    if failures:
        raise Failure("; ".join(failures))
    return sum(w.transactions for w in writers)


class NameChanger(ledger.Writer):
    """Creates, fills, renames, truncates and drops tables while the kill comes."""

    def __init__(self, server, engine: str, seed: int):
        super().__init__(server, DATABASE, 99, seed)
        self.engine = engine

    def _transaction(self, connection) -> None:
        name = f"ddl_{self.rng.randint(1, 3)}"
        with connection.cursor() as cursor:
            for text in (f"CREATE TABLE IF NOT EXISTS {name} (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(50), KEY (b)) ENGINE={self.engine}",
                         f"INSERT INTO {name} (b) VALUES ('x'), ('y'), ('z')", "COMMIT",
                         self.rng.choice([f"TRUNCATE TABLE {name}", f"RENAME TABLE {name} TO {name}_new, {name}_new TO {name}",
                                          f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 7"]),
                         f"DROP TABLE IF EXISTS {name}, {name}_new"):
                cursor.execute(text)


def check_names(server, engine: str) -> None:
    """After a crash every table that is listed can be read and checked, and every name can be used again."""
    for (name,) in server.sql("SHOW TABLES", DATABASE):
        if name in ledger.TABLES:
            continue
        verdict = server.sql(f"CHECK TABLE `{name}`", DATABASE)[-1]
        if verdict[-1] != "OK":
            raise Failure(f"after the crash, CHECK TABLE {name}: {verdict[-1]}")
        server.sql(f"DROP TABLE `{name}`", DATABASE)
    for number in (1, 2, 3):
        for name in (f"ddl_{number}", f"ddl_{number}_new"):
            server.sql(f"CREATE TABLE {name} (a INT PRIMARY KEY) ENGINE={engine}", DATABASE)
            server.sql(f"DROP TABLE {name}", DATABASE)
