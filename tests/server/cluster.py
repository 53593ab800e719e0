"""A cluster on this machine: a front with Spider, and two shards, each of which has a primary and a
semi-synchronous replica. The cluster repairs itself according to docs/users/scaling.md.

  - The front stores no rows. It reaches a shard through an address that leads to the shard's
    primary or nowhere. Here the address is a symlink to a socket. In production it is a floating IP
    or a proxy.
  - A commit is acknowledged once the replica has received it (AFTER_SYNC). Until then it waits
    without limit.
  - A replica is *in sync* once it has had all transactions of the primary while its
    acknowledgements counted. It stays in sync until its process ends. Only a replica in sync may
    replace the primary.
  - If a primary dies without a replica in sync, it is restarted, because it has all acknowledged
    transactions.
  - A dead primary that was replaced may have transactions that were not acknowledged. When it is
    started as a replica, the server rolls back transactions that the engines had not committed
    (`init_rpl_role`). If its position is still not in the new primary's log, the new primary
    refuses it, and it is cloned again.
  - An address leads to a primary only while the replica is in sync, or is being restarted with its
    data. While the replica is cloned, the address leads nowhere, because commits that wait for the
    replica would delay the clone."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pymysql
import servers
from cheetah_tools.say import Failure
from cheetah_tools.server import scratch
from test_backup_tool import SECONDS_MAX, start
from test_replication import ACCOUNT, follow, listening

SHARDS = 2
FOR_EVER_MS = 10 ** 9
NODE = {"log_bin": "bin", "binlog_format": "ROW", "sync_binlog": 1, "log_slave_updates": "ON",
        "gtid_strict_mode": "ON", "gtid_pos_auto_engines": "CHEETAH", "relay_log": "relay",
        "slave_parallel_threads": 4, "slave_parallel_mode": "optimistic",
        "skip_slave_start": None, "slave_net_timeout": 10,
        "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
        "rpl_semi_sync_master_wait_no_slave": "ON", "rpl_semi_sync_master_timeout": FOR_EVER_MS,
        "loose_cheetah_lock_wait_timeout": 5}
AS_PRIMARY = {"rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_slave_enabled": "OFF",
              "init_rpl_role": "MASTER", "read_only": "OFF"}
AS_REPLICA = {"rpl_semi_sync_master_enabled": "OFF", "rpl_semi_sync_slave_enabled": "ON",
              "init_rpl_role": "SLAVE", "read_only": "ON"}
# Neither account may write to a read-only server.
ACCOUNTS = [*ACCOUNT, "CREATE USER front@localhost IDENTIFIED BY 'front'", "CREATE DATABASE d",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON d.* TO front@localhost"]
LINK = ("CREATE SERVER shard{0} FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'localhost', "
        "SOCKET '{1}', USER 'front', PASSWORD 'front', DATABASE 'd')")
TAKEN_BACK = b"Successfully truncated binlog"   # a line of the error log
# Errors of a replica whose data differ from the primary's data at its position.
DIVERGED = (1236, 1062, 1032, 1950)
# On a busy machine a start may take half a minute.
JOIN_SECONDS_MAX = 60
WHOLE_SECONDS_MAX = 300


class Refused(Exception):
    """A server cannot become a replica with its current data."""


class Shard:
    def __init__(self, number: int, folder: Path, rng):
        self.number, self.rng, self.address = number, rng, folder / f"shard{number}"
        self.primary, self.replica = (self.make(number * 2 + place + 1) for place in (0, 1))
        self.in_sync = self.is_lost = False
        self.closed_at, self.closed_s = time.monotonic(), []
        self.failovers = self.clones = self.restarts = self.taken_back = self.refused = 0

    def make(self, server_id: int):
        return servers.make({**NODE, **listening(), "server_id": server_id,
                             "gtid_domain_id": self.number + 1})

    def create(self, statements: list) -> None:
        self.primary.start()
        self.start(self.replica, AS_REPLICA)
        servers.run(self.primary, *ACCOUNTS, *statements, database="")
        self.be_primary(self.primary)
        self.attach()

    def is_whole(self) -> bool:
        return (self.in_sync and is_up(self.primary) and is_up(self.replica)
                and self.address.is_symlink())

    def tend(self) -> None:
        """Makes repair steps. Raises Failure if a server dies, which the next call repairs."""
        if not is_up(self.primary):
            self.close()
            if self.in_sync and is_up(self.replica):
                self.fail_over()
            else:
                self.in_sync = False
                self.start(self.primary, AS_PRIMARY)
                self.primary.sql("RESET SLAVE ALL")
        elif not is_up(self.replica):
            self.in_sync = False
            self.bring_replica_back()
        elif not self.in_sync:
            self.join()
        elif not self.address.is_symlink():
            self.open()

    def start(self, server, role: dict) -> None:
        server.kill()
        server.options.update(role)
        server.start()

    def close(self) -> None:
        if self.address.is_symlink():
            self.address.unlink()
            self.closed_at = time.monotonic()

    def open(self) -> None:
        self.address.symlink_to(self.primary.socket)
        self.closed_s.append(time.monotonic() - self.closed_at)

    def fail_over(self) -> None:
        """Waits until the replica has executed all received events, then makes it the primary."""
        new = self.replica
        new.sql("STOP SLAVE IO_THREAD")
        received = slave_status(new)["Gtid_IO_Pos"]
        if received and new.value(f"SELECT MASTER_GTID_WAIT('{received}', 60)") != 0:
            raise Failure(f"server {new.options['server_id']} does not come to {received}: "
                          f"{slave_status(new)['Last_SQL_Error']}")
        new.sql("STOP SLAVE")
        self.primary, self.replica, self.in_sync = new, self.primary, False
        self.failovers += 1
        new.sql("RESET SLAVE ALL")
        self.be_primary(new)

    @staticmethod
    def be_primary(server) -> None:
        """Gives a running server the role of the primary, also for later starts."""
        server.options.update(AS_PRIMARY)
        for name in ("rpl_semi_sync_slave_enabled", "rpl_semi_sync_master_enabled", "read_only"):
            server.sql(f"SET GLOBAL {name} = {AS_PRIMARY[name]}")

    def bring_replica_back(self) -> None:
        """Restarts the replica with its data, or at random loses its disk and clones it."""
        if not self.is_lost and self.rng.random() < 0.6:
            self.restart_replica()
        else:
            self.is_lost = True
            self.clone()
        self.attach()
        self.join()

    def restart_replica(self) -> None:
        before = self.replica.log.stat().st_size
        self.start(self.replica, AS_REPLICA)
        self.replica.sql("SET GLOBAL gtid_slave_pos = @@gtid_current_pos")
        self.taken_back += TAKEN_BACK in self.replica.log.read_bytes()[before:]
        self.restarts += 1

    def clone(self) -> None:
        """Clones the replica again. Commits that wait for the replica would delay the clone, so the
        primary is restarted without an address first."""
        if self.address.is_symlink():
            self.close()
            self.start(self.primary, AS_PRIMARY)
        self.replica.kill()
        shutil.rmtree(self.replica.data, ignore_errors=True)
        program = start(self.primary, "clone", "--data-dir", self.replica.data)
        try:
            said = program.communicate(timeout=SECONDS_MAX)[0].decode()
        except subprocess.TimeoutExpired as failure:
            program.kill()
            program.communicate()
            raise Failure(f"the clone did not end within {SECONDS_MAX} s") from failure
        if program.returncode != 0:
            raise Failure(said)
        self.start(self.replica, AS_REPLICA)
        position = re.search(r"GTID (\S*)", said)[1]
        self.replica.sql(f"SET GLOBAL gtid_slave_pos = '{position}'")
        self.is_lost = False
        self.clones += 1

    def attach(self) -> None:
        self.replica.sql("STOP SLAVE")
        follow(self.replica, self.primary)

    def join(self) -> None:
        """Waits until the replica is in sync. If it is refused, marks its data as lost."""
        try:
            self.wait_until_in_sync()
        except Refused:
            self.is_lost = True
            self.refused += 1
            self.replica.kill()
            return
        self.in_sync = True

    def wait_until_in_sync(self) -> None:
        """Waits until acknowledgements count and the replica has all earlier transactions."""
        deadline = time.monotonic() + JOIN_SECONDS_MAX
        while not self.primary.status("Rpl_semi_sync_master_clients"):
            self.expect_no_error(deadline)
        position = self.primary.value("SELECT @@gtid_binlog_pos")
        while self.replica.value(f"SELECT MASTER_GTID_WAIT('{position}', 0.05)") != 0:
            self.expect_no_error(deadline)

    def expect_no_error(self, deadline: float) -> None:
        """Raises Refused if the replica's data have diverged."""
        state = slave_status(self.replica)
        if not state:   # the replica is not attached yet
            self.attach()
            return
        for kind in ("IO", "SQL"):
            if state[f"Last_{kind}_Errno"] in DIVERGED:
                raise Refused(state[f"Last_{kind}_Error"])
        if not is_up(self.primary) or time.monotonic() > deadline:
            raise Failure(f"the replica did not join: {state['Last_IO_Error']}, "
                          f"{state['Last_SQL_Error']}")
        time.sleep(0.02)


def slave_status(server) -> dict:
    with servers.Session(server, "", cursorclass=pymysql.cursors.DictCursor) as session:
        return next(iter(session.run("SHOW SLAVE STATUS")), {})


def is_up(server) -> bool:
    return server.process is not None and not server.died()


class Cluster:
    """The front and the shards. All servers are started in one thread."""

    def __init__(self, rng):
        self.folder = scratch("cluster")
        self.shards = [Shard(number, self.folder, rng) for number in range(SHARDS)]
        self.front = servers.make({"plugin_load_add": "ha_spider"}, plugin=None)
        self.trouble, self.whole_at = "", time.monotonic()

    def create(self, of_shards: list, of_front: list) -> None:
        for shard in self.shards:
            shard.create(of_shards)
        self.front.start()
        links = [LINK.format(shard.number, shard.address) for shard in self.shards]
        servers.run(self.front, *links, "CREATE DATABASE d", *of_front, database="")
        self.tend_until(self.is_whole)

    def is_whole(self) -> bool:
        return is_up(self.front) and all(shard.is_whole() for shard in self.shards)

    def tend_until(self, condition) -> None:
        self.whole_at = time.monotonic()
        while not condition():
            self.tend()
            time.sleep(0.01)

    def tend(self) -> None:
        for repair in (self.tend_front, *(shard.tend for shard in self.shards)):
            try:
                repair()
            except (Failure, pymysql.MySQLError, OSError, subprocess.SubprocessError) as failure:
                self.trouble = str(failure)
        if self.is_whole():
            self.whole_at = time.monotonic()
        assert time.monotonic() < self.whole_at + WHOLE_SECONDS_MAX, \
            f"not whole for {WHOLE_SECONDS_MAX} s: {self.trouble}"

    def tend_front(self) -> None:
        """Restarts the front if it was killed. The front has no data to lose."""
        if not is_up(self.front):
            self.front.kill()
            self.front.start()

    def roles(self) -> dict:
        found = {("front", 0): self.front}
        for shard in self.shards:
            found["primary", shard.number] = shard.primary
            found["replica", shard.number] = shard.replica
        return found

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def kill(server) -> bool:
    """Kills the server from any thread and waits for its end. Returns whether it was running."""
    process = server.process
    if process is None or process.poll() is not None:
        return False
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return True
