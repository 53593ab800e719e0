"""Backups during TPC-C, changes of definitions, and kills of the server or the program. Each
complete one restores the state at its binary log position, from which replay goes on.

A second server, the witness, executes the binary log from its beginning up to each position.

`make servertests ARGS="backup_rounds --rounds 200"` runs 200 rounds."""

import shutil
import signal
import time

import binlog
import pytest
import servers
import tpcc
from cheetah_tools import dump
from cheetah_tools.say import note
from servers import wait_until
from test_backup_tool import MARIADB_BACKUP, SECONDS_MAX, backup, position_of, start
from test_tpcc import check_conditions

ROUNDS = 2
CLIENTS = 4
SECONDS_BEFORE = 0.4
# Errors for tables and indexes that another session has just created or dropped, and for locks.
EXPECTED = (1050, 1051, 1061, 1091, 1146, 1205, 1213, 1020)
DEFINITIONS = [
    "ALTER TABLE history ADD INDEX by_day (h_date)", "ALTER TABLE history DROP INDEX by_day",
    "ALTER TABLE history ADD COLUMN IF NOT EXISTS h_more INT NOT NULL DEFAULT 7 INVISIBLE",
    "ALTER TABLE history DROP COLUMN IF EXISTS h_more", "ALTER TABLE item FORCE",
    "CREATE TABLE some AS SELECT * FROM customer WHERE c_d_id < 4", "TRUNCATE some",
    "INSERT INTO some SELECT * FROM customer WHERE c_d_id = 7", "DROP TABLE some",
    "RENAME TABLE some TO others", "DROP TABLE others", "OPTIMIZE TABLE stock"]

pytestmark = pytest.mark.skipif(not MARIADB_BACKUP.exists(), reason="mariadb-backup is not there")


class Definer(servers.Client):
    database, refusals = tpcc.DATABASE, EXPECTED

    def begin(self, cursor) -> None:
        cursor.execute("SET SESSION lock_wait_timeout = 1")

    def work(self, cursor) -> None:
        time.sleep(0.05)
        cursor.execute(self.rng.choice(DEFINITIONS))
        cursor.fetchall()


class Round:
    def __init__(self, server, rng, place, base):
        self.server, self.rng, self.place = server, rng, place
        self.killed = rng.choice(["", "", "", "server", "program"])
        self.words = ["incremental", place, "--base", base] if base else ["full", place]
        self.said, self.status = "", None

    def run(self) -> int:
        """Returns the number of transactions and changes of definitions made meanwhile."""
        clients = [tpcc.Client(self.server, number, self.rng.random()) for number in range(CLIENTS)]
        clients.append(Definer(self.server, CLIENTS, self.rng.random()))
        with servers.working(clients):
            time.sleep(SECONDS_BEFORE)
            # The session of a program killed earlier ends soon.
            wait_until(lambda: not self.is_refused(), "the end of the backup before")
        if self.killed == "server":
            self.server.start()
        return sum(client.done for client in clients)

    def is_refused(self) -> bool:
        """Runs and kills the program or server. Returns whether another program was running."""
        program = start(self.server, *self.words)
        if self.killed:
            time.sleep(self.rng.uniform(0.1, 1.5))
            if self.killed == "server":
                self.server.kill()
            else:
                program.send_signal(self.rng.choice([signal.SIGKILL, signal.SIGTERM]))
        self.said = program.communicate(timeout=SECONDS_MAX)[0].decode()
        self.status = program.returncode
        return "another cheetah-backup is at work" in self.said

    def was_whole(self) -> bool:
        """Returns whether a killed program's backup is complete. If so, reads its position."""
        said = backup(self.server, "verify", self.place, status=None) if self.place.exists() else ""
        if "is whole" in said:
            self.said = backup(self.server, "show", self.place)
        return "is whole" in said


class Witness:
    """Executes the binary log up to increasing positions."""

    def __init__(self, server, target):
        self.server, self.target = server, target
        self.file, self.position = self.files()[0], 4

    def files(self) -> list:
        return [row[0] for row in self.server.sql("SHOW BINARY LOGS")]

    def go_to(self, file: str, position: int, also=None) -> None:
        """Executes all events up to this position, on `also` too."""
        files = self.files()
        files = files[files.index(self.file):files.index(file) + 1]
        for target in (self.target, also) if also else (self.target,):
            binlog.replay(self.server, target, files, self.position, position)
        self.file, self.position = file, position

    def a_later_transaction(self, rng):
        """Returns the file and position of a later transaction, in the current or last file."""
        for file in rng.sample([self.file, self.files()[-1]], 2):
            begins = [event[1] for event in binlog.events(self.server, file) if event[2] == "Gtid"
                      and (file != self.file or event[1] > self.position)]
            if begins:
                return file, rng.choice(begins)
        return None


def test_each_backup_is_the_state_at_its_position(new_server, rng, rounds, tmp_path):
    server, other = servers.started(new_server(binlog.OPTIONS)), servers.started(new_server())
    tpcc.create(server, "CHEETAH")
    witness, base, whole, killed, done = Witness(server, other), None, 0, 0, 0
    for number in range(rounds):
        tried = Round(server, rng, tmp_path / f"backup-{number}", base)
        done += tried.run()
        if tried.status != 0 and not tried.was_whole():
            assert tried.killed, tried.said
            killed += 1
            assert not tried.place.exists() or "not finished" in backup(
                server, "restore", tried.place, "--data-dir", tmp_path / "none", status=1)
            shutil.rmtree(tried.place, ignore_errors=True)
            continue
        whole += 1
        restored = new_server({"server_id": 8}, folder=tmp_path / "restored")
        judge(server, tried, witness, restored, rng)
        if base:
            shutil.rmtree(base)
        base = tried.place if rng.random() < 0.8 else None
        if base is None:
            shutil.rmtree(tried.place)
    note(f"{whole} backups restored, {killed} killed; {done} transactions and changes meanwhile")
    assert whole + killed == rounds and done > 10 * rounds


def judge(server, tried: Round, witness: Witness, restored, rng) -> None:
    restored.folder.mkdir()
    backup(server, "restore", tried.place, "--data-dir", restored.data)
    restored.start()
    witness.go_to(*position_of(tried.said))
    same(restored, witness.target, "restored")
    check_conditions(restored)
    later = witness.a_later_transaction(rng)
    if later:
        witness.go_to(*later, also=restored)
        same(restored, witness.target, f"after the log up to {later}")
    restored.stop()
    restored.remove()


def same(restored, other, when: str) -> None:
    sums = [dump.checksums(each, tpcc.DATABASE) for each in (restored, other)]
    assert sums[0] == sums[1], f"{when}: {sums[0]} and {sums[1]}"
    for name in sums[0]:
        mine, others = (each.sql(f"SHOW CREATE TABLE {name}", tpcc.DATABASE)
                        for each in (restored, other))
        assert mine == others, f"{when}: {mine} and {others}"
