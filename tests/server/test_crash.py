"""Kills a server under load, restarts it, and compares its rows with the clients' journals.

`make crash ROUNDS=n SEED=m` runs this test and `test_transfers.py`, with about n kills. Without
SEED each run uses a different seed."""

import time

import pytest
from cheetah_tools import ledger
from cheetah_tools.say import note
from servers import kill_under, run

WRITERS = 4
DATABASE = "crash"
ROUNDS, SEED = 8, int(time.time())
OPTIONS = {"innodb_buffer_pool_size": "32M", "innodb_lock_wait_timeout": 2,
           "loose_cheetah_lock_wait_timeout": 2, "loose_cheetah_log_file_size": "64M",
           "loose_cheetah_log_size_max": "1G"}
CONFIGURATIONS = {
    "ordinary": {"loose_cheetah_buffer_pool_size": "64M"},
    "tiny_pool": {"loose_cheetah_buffer_pool_size": "8M"},
    "tiny_log": {"loose_cheetah_buffer_pool_size": "16M", "loose_cheetah_log_file_size": "1M",
                 "loose_cheetah_log_size_max": "8M"},
    "late_flush": {"loose_cheetah_flush_log_at_trx_commit": "2"},
}


@pytest.mark.parametrize("configuration", [pytest.param(name, marks=pytest.mark.options(options))
                                   for name, options in CONFIGURATIONS.items()])
def test_what_was_acknowledged_survives_kills(configuration, server, rng, rounds):
    assert server.has_engine("CHEETAH"), "make build"
    ledger.create_tables(server, DATABASE, "ENGINE=CHEETAH")
    states, commits, rows, kills = {}, 0, 0, -(-rounds // len(CONFIGURATIONS))
    for _ in range(kills):
        writers = [ledger.Writer(server, DATABASE, number, rng.getrandbits(32), states.get(number))
                   for number in range(WRITERS)]
        names = NameChanger(server, rng.getrandbits(32))
        kill_under(server, [*writers, names], rng.uniform(0.3, 2.5))
        commits += sum(writer.transactions for writer in writers)
        server.start()
        rows, _ = ledger.verify(writers, ledger.read_back(server, DATABASE))
        check_names(server)
        states = {writer.number: writer.committed for writer in writers}
    note(f"{kills} kills, {commits} acknowledged transactions, {rows} rows at the end")


class NameChanger(ledger.Writer):
    def __init__(self, server, seed: int):
        super().__init__(server, DATABASE, 99, seed)

    def _transaction(self, connection) -> None:
        name = f"ddl_{self.rng.randint(1, 3)}"
        with connection.cursor() as cursor:
            for text in (f"CREATE TABLE IF NOT EXISTS {name} (a INT AUTO_INCREMENT PRIMARY KEY, b "
                         "VARCHAR(50), KEY (b)) ENGINE=CHEETAH",
                         f"INSERT INTO {name} (b) VALUES ('x'), ('y'), ('z')", "COMMIT",
                         self.rng.choice([f"TRUNCATE TABLE {name}", f"RENAME TABLE {name} "
                                          f"TO {name}_new, {name}_new TO {name}",
                                          f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 7"]),
                         f"DROP TABLE IF EXISTS {name}, {name}_new"):
                cursor.execute(text)


def check_names(server) -> None:
    for (name,) in server.sql("SHOW TABLES", DATABASE):
        if name in ledger.TABLES:
            continue
        verdict = server.sql(f"CHECK TABLE `{name}`", DATABASE)[-1]
        assert verdict[-1] == "OK", f"after the crash, CHECK TABLE {name}: {verdict[-1]}"
        server.sql(f"DROP TABLE `{name}`", DATABASE)
    for number in (1, 2, 3):
        for name in (f"ddl_{number}", f"ddl_{number}_new"):
            run(server, f"CREATE TABLE {name} (a INT PRIMARY KEY) ENGINE=CHEETAH",
                f"DROP TABLE {name}", database=DATABASE)
