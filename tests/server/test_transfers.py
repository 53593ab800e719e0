"""Transfers between random rows of a table that is larger than the cache, interrupted by kills.

Each transaction changes the balance and the owner of two accounts and writes both changes to a
journal. After a restart the journal must have all acknowledged changes, and the accounts, read
through each of their indexes, must match the journal.

`make crash ROUNDS=500 LARGE=1` uses data of twenty times the cache. Without LARGE the data are only
slightly larger than the cache."""

import time

import pymysql
from cheetah_tools.say import note
from servers import Client, check_table, kill_under, run

CLIENTS = 8
ROUNDS, SEED = 8, int(time.time())
# The rounds are divided by this number, as each configuration of test_crash.py runs a part.
KILLS_PER_ROUNDS = 4
# The number of kills after which all rows are compared, not only changed ones.
WHOLE_EVERY = 25
ROWS, LARGE_ROWS = 80_000, 1_600_000
CACHE_BYTES, FILL_CACHE_BYTES, LARGE_TIMES_MIN = 8 << 20, 256 << 20, 20
OPTIONS = {"loose_cheetah_buffer_pool_size": CACHE_BYTES, "loose_cheetah_lock_wait_timeout": 5,
           "loose_cheetah_log_file_size": "4M", "loose_cheetah_log_size_max": "64M"}
RETRIED = (1205, 1213)          # lock wait timeout, deadlock
ACCOUNT = """CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL,
             owner BINARY(16) NOT NULL, changes INT NOT NULL, note VARCHAR(200) NOT NULL,
             KEY by_owner (owner), KEY by_balance (balance)) ENGINE=CHEETAH"""
FILL = """INSERT INTO account SELECT seq, 0, UNHEX(MD5(seq)), 0,
          CONCAT(SHA2(seq, 256), SHA2(seq + 0.5, 256)) FROM mysql.seq_1_to_{}"""
JOURNAL = """CREATE TABLE journal (client INT, number INT, id INT, amount INT NOT NULL,
             PRIMARY KEY (client, number, id), KEY (id)) ENGINE=CHEETAH"""
CHECKPOINT = "SET GLOBAL cheetah_checkpoint_now = ON"
CHANGE = """UPDATE account SET balance = balance + %s, changes = changes + 1,
            owner = UNHEX(MD5(CONCAT(id, '/', changes))) WHERE id = %s"""
# Accounts that do not match the journal.
WRONG = """SELECT COUNT(*) FROM account WHERE (balance <>
           COALESCE((SELECT SUM(amount) FROM journal WHERE journal.id = account.id), 0)
           OR changes <> (SELECT COUNT(*) FROM journal WHERE journal.id = account.id)
           OR owner <> UNHEX(MD5(IF(changes = 0, id, CONCAT(id, '/', changes)))))"""
BY_INDEX = """SELECT COUNT(*), BIT_XOR(CRC32(CONCAT(id, '/', {0})))
              FROM account FORCE INDEX ({1})"""


class Mover(Client):
    autocommit = False

    def __init__(self, server, number: int, rng, rows: int, numbers: set):
        super().__init__(server, number)
        self.rng, self.rows = rng, rows
        self.acknowledged, self.open = numbers, None
        self.checked = max(numbers, default=0)

    def work(self, cursor) -> None:
        number = max(self.acknowledged, default=0) + 1
        amount, accounts = self.rng.randint(1, 100), self.rng.sample(range(1, self.rows + 1), 2)
        try:
            for account, part in zip(accounts, (amount, -amount)):
                assert cursor.execute(CHANGE, (part, account)) == 1
                cursor.execute("INSERT INTO journal VALUES (%s, %s, %s, %s)",
                               (self.number, number, account, part))
        except pymysql.MySQLError as failure:
            if failure.args[0] not in RETRIED:
                raise
            self.connection.rollback()
            return
        self.open = number
        self.connection.commit()
        self.open = None
        self.acknowledged.add(number)


def test_transfers_survive_kills_where_data_are_larger_than_the_cache(server, rng, rounds, large):
    rows, known = LARGE_ROWS if large else ROWS, [set() for _ in range(CLIENTS)]
    fill(server, rows)
    bytes_ = server.status("Cheetah_segment_live_bytes")
    assert not large or bytes_ >= LARGE_TIMES_MIN * CACHE_BYTES, f"only {bytes_} bytes"
    kills = rounds if large else -(-rounds // KILLS_PER_ROUNDS)
    for kill in range(kills):
        movers = [Mover(server, number, rng, rows, known[number]) for number in range(CLIENTS)]
        kill_under(server, movers, rng.uniform(0.3, 2.5))
        server.start()
        touched = [account for mover in movers for account in check_journal(server, mover)]
        ids = ", ".join(map(str, touched or [0]))
        assert server.sql(f"{WRONG} AND id IN ({ids})", "d") == [(0,)], "an account is wrong"
        if kill % WHOLE_EVERY == 0 or kill == kills - 1:
            check_whole(server)
    note(f"{kills} kills, {sum(map(len, known))} transfers, "
         f"{bytes_ / CACHE_BYTES:.1f} times the cache")


def fill(server, rows: int) -> None:
    """Creates the tables with enough memory for indexes. A restart restores the small cache."""
    server.sql(f"SET GLOBAL cheetah_buffer_pool_size = {FILL_CACHE_BYTES}")
    run(server, ACCOUNT, JOURNAL, FILL.format(rows), CHECKPOINT)
    server.restart()


def check_journal(server, mover: Mover) -> list:
    """Checks that all acknowledged transfers exist and are complete, and that at most one other
    exists: the transfer without an answer. Returns the accounts changed since the last check."""
    found = server.sql("SELECT number, COUNT(*), SUM(amount) FROM journal "
                       f"WHERE client = {mover.number} GROUP BY number", "d")
    assert all(row[1:] == (2, 0) for row in found), "a transfer is there in part"
    numbers = {row[0] for row in found}
    assert mover.acknowledged <= numbers, f"lost: {sorted(mover.acknowledged - numbers)[:5]}"
    assert numbers - mover.acknowledged <= {mover.open}, "a transfer that nobody committed"
    mover.acknowledged |= numbers
    new = server.sql(f"SELECT id FROM journal WHERE client = {mover.number} "
                     f"AND number > {mover.checked}", "d")
    return [account for account, in new]


def check_whole(server) -> None:
    assert server.sql(WRONG, "d") == [(0,)], "accounts differ from the journal"
    for column in ("owner", "balance"):
        by_key, by_index = (server.sql(BY_INDEX.format(column, index), "d")
                            for index in ("PRIMARY", f"by_{column}"))
        assert by_key == by_index, f"by_{column} has other rows than the table"
    check_table(server, "account", "journal")
