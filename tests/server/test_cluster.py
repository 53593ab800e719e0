"""Two shards behind a front with Spider, each with a semi-synchronous replica. Any server is killed
at any moment, and no acknowledged transaction is lost.

Clients move amounts between accounts of one shard and keep a ledger. At the end, a single InnoDB
server executes the statements of all committed transactions, and its tables must equal those of the
shards. Meanwhile, TPC-C terminals each work on a warehouse of one shard, and sysbench on a table of
each shard. Transactions across shards are tested without replicas, by kills of the front
(docs/users/scaling.md explains why).

Long run: `make cluster KILLS=100 SEED=7`."""

import random
import re
import subprocess
import threading
import time
from collections import Counter

import pymysql
import pytest
import tpcc
from cheetah_tools import dump, setup, sysbench
from cheetah_tools.say import note
from cluster import SHARDS, Cluster, kill
from conftest import seed_of
from servers import begun, Client, check_table, kill_under, run, Session, started, wait_until
from test_replication import listening

ROUNDS = 3
SEED = 18   # for roles and pauses; the work interrupted by a kill differs from run to run
CLIENTS, TERMINALS, ACCOUNTS = 4, 4, 2000
# Some kills wait until the cluster is repaired and has worked. Others interrupt a repair.
REPAIR_IS_MET, TRANSACTIONS_BETWEEN, PAUSE_SECONDS_MAX = 0.3, 30, 1.5
ACCOUNT = """account (shard TINYINT, id INT, balance INT NOT NULL, changes INT NOT NULL,
             owner BINARY(16) NOT NULL, PRIMARY KEY (shard, id), KEY by_owner (owner))"""
JOURNAL = """journal (shard TINYINT, client INT, number INT, id INT, amount INT NOT NULL,
             PRIMARY KEY (shard, client, number, id), KEY (id))"""
FILL = """INSERT INTO {}.account SELECT {}, seq, 0, 0, UNHEX(MD5(seq))
          FROM mysql.seq_1_to_{}"""
BENCH_ROWS, BENCH_CONNECTIONS, BENCH_SECONDS_MAX = 2000, 2, 36000
BENCH_TABLE = sysbench.create_table(1, "ENGINE={}")
BENCH_FILL = """INSERT INTO d.sbtest1 SELECT seq, 1 + seq * 7919 % {0}, MD5(seq), MD5(-seq)
                FROM mysql.seq_1_to_{0}"""
# The column that determines a row's shard. Items are read in all shards, so the front stores them.
WAREHOUSE = {"warehouse": "w_id", "district": "d_w_id", "customer": "c_w_id", "history": "h_w_id",
             "orders": "o_w_id", "new_order": "no_w_id", "order_line": "ol_w_id", "stock": "s_w_id"}
CHANGE = """UPDATE account SET balance = balance + {amount}, changes = changes + 1,
            owner = UNHEX(MD5(CONCAT(id, '/', changes))) WHERE shard = {shard} AND id = {id}"""
TOUCH = """UPDATE account SET changes = changes + 1, owner = UNHEX(MD5(CONCAT(id, '/', changes)))
           WHERE shard = {shard} AND id BETWEEN {id} AND {id} + 9"""
ENTER = "INSERT INTO journal VALUES ({shard}, {client}, {number}, {id}, {amount})"
NOTED = "SELECT shard, client, number, COUNT(*), SUM(amount) FROM d.journal GROUP BY 1, 2, 3"
SUMS = ("SELECT shard, COUNT(*), SUM(balance), SUM(changes), BIT_XOR(CRC32(owner)) FROM {} "
        "GROUP BY 1")
FED_AT_ONCE = 500
FRONT_KILLS_MIN, ROUNDS_PER_FRONT_KILL = 2, 5   # for tests of transactions across shards

pytestmark = pytest.mark.skipif("Spider" in setup.absent(), reason="Spider could not be had")


def over_shards(database: str, definition: str, column: str, first: int) -> str:
    """Returns a front table whose rows go to the shards by a column that counts from `first`."""
    name = definition.split()[0]
    parts = ", ".join(f"PARTITION p{n} VALUES IN ({n + first}) COMMENT 'srv \"shard{n}\"'"
                      for n in range(SHARDS))
    return (f"CREATE TABLE {database}.{definition} ENGINE=SPIDER COMMENT='wrapper \"mysql\", table "
            f"\"{name}\"' PARTITION BY LIST ({column}) ({parts})")


class Returning(Client):
    """A client that reconnects after each error, while the cluster is repaired."""

    autocommit, returned = False, 0

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.connection = self.server.connect(self.database, autocommit=False)
                with self.connection.cursor() as cursor:
                    self.begin(cursor)
                    while not self.stopping.is_set():
                        self.work_once(cursor)
                self.connection.close()
            except (pymysql.MySQLError, OSError):
                self.returned += 1
                time.sleep(0.02)
            except Exception as failure:  # errors of the test itself
                self.failure = repr(failure)
                raise


class Terminal(Returning, tpcc.Client):
    """A TPC-C terminal whose transactions use one warehouse and therefore one shard."""

    database = tpcc.DATABASE

    def _place(self) -> tuple:
        return self.number % SHARDS + 1, *super()._place()[1:]

    def _supplier(self, w: int) -> int:
        return w


class Sysbench(threading.Thread):
    """Runs sysbench on a shard's table, again whenever a server's death ends it."""

    def __init__(self, front, shard: int):
        super().__init__(daemon=True)
        self.front, self.database = front, f"bench{shard}"
        self.stopping, self.failure, self.transactions = threading.Event(), "", 0

    def run(self) -> None:
        script, *options = sysbench.words("oltp_read_write", sysbench.Tables(BENCH_ROWS),
                                          BENCH_CONNECTIONS, BENCH_SECONDS_MAX, each_second=True,
                                          seed=0)
        command = [str(sysbench.PROGRAM), str(sysbench.script_of(script)), "--mysql-user=root",
                   f"--mysql-socket={self.front.socket}", f"--mysql-db={self.database}", *options]
        while not self.stopping.is_set():
            with subprocess.Popen(command, env=sysbench.environment(), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
                for line in process.stdout:
                    self.hear(line)
                    if self.stopping.is_set():
                        process.kill()
            self.stopping.wait(0.1)

    def hear(self, line: str) -> None:
        """Counts the transactions of a second. A server's death must not cause duplicate keys."""
        second = re.match(r"\[ \d+s \] .* tps: ([\d.]+) ", line)
        self.transactions += round(float(second[1])) if second else 0
        if "Duplicate entry" in line:
            self.failure = line


class Mover(Returning):
    def __init__(self, front, number: int, seed: float):
        super().__init__(front, number, seed)
        self.tried = 0
        self.statements = {}     # statements of transactions whose COMMIT was sent
        self.acknowledged = set()

    def work(self, cursor) -> None:
        self.tried += 1
        key = self.rng.randrange(SHARDS), self.number, self.tried
        statements = self.transaction(*key)
        for statement in statements:
            cursor.execute(statement)
        self.statements[key] = statements
        self.connection.commit()
        self.acknowledged.add(key)

    def transaction(self, shard: int, client: int, number: int) -> list:
        """Returns the statements of a transaction. Their order does not change the result."""
        amount, found = self.rng.randint(1, 100), []
        ids = self.rng.sample(range(1, ACCOUNTS - 9), 2)
        for id_, part in zip(ids, (amount, -amount)):
            values = {"shard": shard, "client": client, "number": number, "id": id_, "amount": part}
            found += [CHANGE.format(**values), ENTER.format(**values)]
        if self.rng.random() < 0.1:
            found.append(TOUCH.format(shard=shard, id=self.rng.choice(ids)))
        return found


class Killer(threading.Thread):
    def __init__(self, cluster, movers: list, rng, count: int):
        super().__init__(daemon=True)
        self.cluster, self.movers, self.rng, self.left = cluster, movers, rng, count
        self.killed = Counter()

    def run(self) -> None:
        while self.left:
            if self.rng.random() < REPAIR_IS_MET:
                time.sleep(self.rng.uniform(0, PAUSE_SECONDS_MAX))
            else:
                self.wait_for_work()
                time.sleep(self.rng.uniform(0, 0.3))
            role, server = self.choose()
            if kill(server):
                self.killed[role] += 1
                self.left = max(0, self.left - 1)

    def choose(self) -> tuple:
        """Returns a random role and its current server. The first three kills include each role."""
        found = self.cluster.roles()
        missing = {role for role, _ in found} - set(self.killed)
        keys = sorted(key for key in found if key[0] in missing or not missing)
        key = self.rng.choice(keys)
        return key[0], found[key]

    def wait_for_work(self) -> None:
        target = self.acknowledged() + TRANSACTIONS_BETWEEN
        while self.left and not (self.cluster.is_whole() and self.acknowledged() >= target):
            time.sleep(0.02)

    def acknowledged(self) -> int:
        return sum(len(mover.acknowledged) for mover in self.movers)


@pytest.fixture
def cluster(new_server, rng):
    """A cluster with all tables. Its servers end like those of `new_server`."""
    made = Cluster(rng)
    of_tpcc = {name: f"{name} ({tpcc.TABLES[name]})" for name in tpcc.TABLES}
    made.create([f"CREATE TABLE d.{table} ENGINE=CHEETAH"
                 for table in (ACCOUNT, JOURNAL, *(of_tpcc[name] for name in WAREHOUSE))]
                + [BENCH_TABLE.format("CHEETAH").replace("sbtest1", "d.sbtest1", 1)],
                [over_shards("d", ACCOUNT, "shard", 0), over_shards("d", JOURNAL, "shard", 0),
                 f"CREATE DATABASE {tpcc.DATABASE}",
                 f"CREATE TABLE {tpcc.DATABASE}.{of_tpcc['item']} ENGINE=InnoDB",
                 *(over_shards(tpcc.DATABASE, of_tpcc[name], WAREHOUSE[name], 1)
                   for name in WAREHOUSE)])
    tpcc.fill_all(made.front)
    for shard in range(SHARDS):
        made.front.sql(FILL.format("d", shard, ACCOUNTS))
        made.shards[shard].primary.sql(BENCH_FILL.format(BENCH_ROWS))
        made.front.sql(f"CREATE DATABASE bench{shard}")
        link = f"SPIDER COMMENT='wrapper \"mysql\", srv \"shard{shard}\", table \"sbtest1\"'"
        made.front.sql(BENCH_TABLE.format(link), f"bench{shard}")
    yield made
    made.remove()


def test_nothing_acknowledged_is_lost(cluster, new_server, rng, rounds, request):
    movers = [Mover(cluster.front, number, rng.random()) for number in range(CLIENTS)]
    terminals = [Terminal(cluster.front, number, rng.random()) for number in range(TERMINALS)]
    benches = [Sysbench(cluster.front, shard) for shard in range(SHARDS)]
    killer = Killer(cluster, movers, random.Random(rng.random()), rounds)
    clients, started = [*movers, *terminals, *benches], time.monotonic()
    for thread in (*clients, killer):
        thread.start()
    try:
        cluster.tend_until(lambda: not killer.is_alive() and cluster.is_whole())
        wait_until(lambda: killer.acknowledged() and all(each.transactions for each in benches),
                   "work")
    finally:
        killer.left = 0
        for client in clients:
            client.stopping.set()
    cluster.tend_until(lambda: not any(client.is_alive() for client in clients))
    cluster.tend_until(cluster.is_whole)
    seconds = time.monotonic() - started
    assert not any(client.failure for client in clients), [client.failure for client in clients]
    for shard in cluster.shards:
        shard.wait_until_in_sync()
    committed = check_ledger(cluster, movers)
    check_sums(cluster, feed(new_server(), committed))
    check_tpcc(cluster, terminals)
    note(f"seed {seed_of(request.node)}: " + result(cluster, killer, movers, committed, seconds)
         + f"; {sum(each.done for each in terminals)} transactions of TPC-C and about "
         f"{sum(each.transactions for each in benches)} of sysbench beside them")


def check_ledger(cluster, movers: list) -> list:
    """Checks that all acknowledged transactions exist, that each is complete, and that no others
    exist. Returns the statements of the existing transactions."""
    acknowledged = set().union(*(mover.acknowledged for mover in movers))
    asked = {key: mover.statements[key] for mover in movers for key in mover.statements}
    rows = [row for shard in cluster.shards for row in shard.primary.sql(NOTED)]
    found = {row[:3] for row in rows}
    assert all(row[3:] == (2, 0) for row in rows), "a transaction is there in part"
    lost = sorted(acknowledged - found)
    assert not lost, f"{len(lost)} lost: {lost[:5]}"
    assert found <= set(asked), f"nobody committed {sorted(found - set(asked))[:5]}"
    return [asked[key] for key in sorted(found)]


def feed(single, transactions: list):
    begun(single)
    run(single, *(f"CREATE TABLE {table} ENGINE=InnoDB" for table in (ACCOUNT, JOURNAL)),
        *(FILL.format("d", shard, ACCOUNTS) for shard in range(SHARDS)))
    with Session(single, autocommit=False) as session:
        for number, statements in enumerate(transactions):
            session.run(*statements, *["COMMIT"] * (number % FED_AT_ONCE == 0))
        session.run("COMMIT")
    return single


def check_sums(cluster, single) -> None:
    for shard in cluster.shards:
        single.sql(f"CREATE DATABASE s{shard.number}")
        mine, others = (dump.checksums(server, "d") for server in (shard.primary, shard.replica))
        assert mine == others, f"shard {shard.number}: primary {mine}, replica {others}"
        check_table(shard.primary, *WAREHOUSE, "sbtest1")
        # Each sysbench transaction deletes a row and inserts it again.
        assert shard.primary.value("SELECT COUNT(*) FROM d.sbtest1") == BENCH_ROWS
        for table in ("account", "journal"):
            part = f"s{shard.number}.{table}"
            single.sql(f"CREATE TABLE {part} LIKE d.{table}")
            single.sql(f"INSERT INTO {part} SELECT * FROM d.{table} WHERE shard = {shard.number}")
            sums = [single.sql(f"CHECKSUM TABLE {part}")[0][1]]
            for server in (shard.primary, shard.replica):
                sums.append(server.sql(f"CHECKSUM TABLE d.{table}")[0][1])
                check_table(server, table)
            assert sums == sums[:1] * 3, f"shard {shard.number}, {table}: single, primary, " \
                                         f"replica have {sums}"
        assert shard.primary.status("Rpl_semi_sync_master_no_tx") == 0, "not all waited"
    assert cluster.front.sql(SUMS.format("d.account")) == single.sql(SUMS.format("d.account"))


def check_tpcc(cluster, terminals: list) -> None:
    orders, payments = set(), Counter()
    for shard in cluster.shards:
        with shard.primary.cursor("d") as cursor:
            found = tpcc.violations(cursor)
        assert not found, f"shard {shard.number}: violated: {found}"
        orders.update(shard.primary.sql("SELECT o_w_id, o_d_id, o_id FROM d.orders"))
        payments.update(dict(shard.primary.sql(
            "SELECT h_data, COUNT(*) FROM d.history GROUP BY 1")))
    for terminal in terminals:
        assert terminal.orders <= orders, f"lost: {sorted(terminal.orders - orders)[:5]}"
        there = payments[f"client {terminal.number}"]
        assert terminal.payments <= there <= terminal.payments + terminal.returned


def result(cluster, killer, movers: list, committed: list, seconds: float) -> str:
    shards, acknowledged = cluster.shards, killer.acknowledged()
    totals = {name: sum(getattr(shard, name) for shard in shards)
              for name in ("failovers", "restarts", "clones", "taken_back", "refused")}
    closed = sorted(pause for shard in shards for pause in shard.closed_s[1:])
    open_ = sum(len(mover.statements) for mover in movers) - acknowledged
    return (f"kills {dict(killer.killed)} in {seconds:.0f} s; {totals}; a shard was closed for s: "
            f"{[round(pause, 1) for pause in closed]}; {acknowledged} transactions acknowledged, 0 "
            f"lost; {open_} without an answer, {len(committed) - acknowledged} of them committed")


PAIR = "pair (shard TINYINT, client INT, number INT, PRIMARY KEY (shard, client, number))"
# Spider's log of XA transactions distinguishes shards by their hosts.
LINK = ("CREATE SERVER shard{0} FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.{1}', PORT {2}, "
        "USER 'front', PASSWORD 'front', DATABASE 'd')")


class Pairer(Client):
    autocommit = False

    def __init__(self, front, number: int, first: int):
        super().__init__(front, number)
        self.count, self.acknowledged = first, set()

    def work(self, cursor) -> None:
        self.count += 1
        for shard in range(SHARDS):
            cursor.execute(f"INSERT INTO pair VALUES ({shard}, {self.number}, {self.count})")
        self.connection.commit()
        self.acknowledged.add((self.number, self.count))


@pytest.fixture
def front_of_two(new_server):
    shards = [new_server({"server_id": number + 1, "log_bin": "bin",
                          **listening(f"127.0.0.{number + 1}")}) for number in range(SHARDS)]
    front = new_server({"plugin_load_add": "ha_spider", "spider_internal_xa": "ON"}, plugin=None)
    front.start()
    for number, shard in enumerate(shards):
        started(shard, "CREATE USER front IDENTIFIED BY 'front'", "CREATE DATABASE d",
                "GRANT ALL ON d.* TO front", f"CREATE TABLE d.{PAIR} ENGINE=CHEETAH")
        front.sql(LINK.format(number, number + 1, shard.options["port"]))
    run(front, "CREATE DATABASE d", over_shards("d", PAIR, "shard", 0), database="")
    return front, shards


def test_what_a_front_has_left_prepared_is_decided_by_its_notes(front_of_two, rng, rounds):
    front, shards = front_of_two
    acknowledged, decided = set(), 0
    kills = max(FRONT_KILLS_MIN, rounds // ROUNDS_PER_FRONT_KILL)
    for kill_ in range(kills):
        pairers = [Pairer(front, number, kill_ * 1_000_000) for number in range(CLIENTS)]
        kill_under(front, pairers, rng.uniform(0.3, 0.8))
        for shard in shards:
            wait_until(lambda at=shard: not at.sql("SELECT 1 FROM information_schema.processlist "
                                                   "WHERE user = 'front'"), "the front's sessions")
        front.start()
        decided += decide(front, shards)
        # The front remembers XIDs that it found prepared, and refuses to reuse them.
        front.restart()
        acknowledged.update(*(pairer.acknowledged for pairer in pairers))
        found = [set(shard.sql("SELECT client, number FROM d.pair")) for shard in shards]
        assert found[0] == found[1], f"in half: {sorted(found[0] ^ found[1])[:5]}"
        assert acknowledged <= found[0], f"lost: {sorted(acknowledged - found[0])[:5]}"
    assert acknowledged
    note(f"{kills} kills of a front, {len(acknowledged)} transactions on two shards acknowledged, "
         f"{decided} left prepared on a shard: none lost, none in half")


def decide(front, shards: list) -> int:
    """Commits or rolls back prepared transactions as the front decided; returns their number."""
    rows = front.sql("SELECT data FROM mysql.spider_xa WHERE status = 'COMMIT'")
    committed, count = {data.rstrip(b"\0") for data, in rows}, 0
    for shard in shards:
        for form, length, more, data in shard.sql("XA RECOVER"):
            word = "COMMIT" if data in committed else "ROLLBACK"
            shard.sql(f"XA {word} X'{data[:length].hex()}', X'{data[length:length + more].hex()}', "
                      f"{form}")
            count += 1
    run(front, "DELETE FROM mysql.spider_xa", "DELETE FROM mysql.spider_xa_member")
    return count
