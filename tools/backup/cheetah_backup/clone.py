"""Clones the running server into a data folder on its machine, in which a replica can start.

The clone is a backup and a restore in one pass. Data files are written once and never changed, so
the clone holds them as links. Files that a server writes to again belong to the clone alone.

The engine's manifest is placed first. Its file CONTROL is placed last, after all other files. While
the manifest exists without CONTROL, the engine refuses to start."""

import datetime
import errno
import os
import shutil
import time
from pathlib import Path

from cheetah_client.connection import text
from cheetah_client.say import Failure, line, size

from . import copying, snapshot
from .make import emptied_after_failure, pinned
from .rest import put_into_place
from .server import Server

WORK = "#cheetah-clone"            # in the data folder, until all files are in place
STATEMENTS = "cheetah-clone.sql"   # in the data folder: statements that start replication


def clone(options) -> None:
    started, made = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
    data = Path(options.data_dir).resolve()
    with emptied_after_failure(data) as was_there:
        work = data / WORK
        work.mkdir(mode=copying.FOLDER_MODE)
        with Server(options) as server:
            check(server)
            owner = (data if was_there else server.engine_folder).stat()
            head = f"-- A clone of MariaDB {server.version}, made at {made:%Y-%m-%dT%H:%M:%SZ}.\n"
            address = server.address()
            with pinned(options, server, work / "server") as (folder, manifest, position):
                take_engine(options, folder, manifest, Data(data, owner, options.copy))
        put_into_place(options, "put into their place", data,
                       f"--defaults-file={work / 'server/backup-my.cnf'}", "--move-back",
                       f"--target-dir={work / 'server'}")
        statements = how_to_go_on(address, position[2])
        write_durably(data / STATEMENTS, head + statements)
        copying.give_to(owner, data)   # files shared with the server have this owner already
        os.sync()   # for owners, and for files that an option file places elsewhere
        copying.sync_tree(data)
        (work / snapshot.CONTROL).rename(data / "#cheetah" / snapshot.CONTROL)
        shutil.rmtree(work)
        copying.sync_folder(data / "#cheetah")
        copying.sync_folder(data)
    line(f"cloned into {data} in {time.monotonic() - started:.1f} s")
    line(f"position: {' '.join(position[:2])}, GTID {position[2]}")
    line(f"next: start a server there, with a server_id of its own, and execute {STATEMENTS}:\n"
         f"{statements}")


def write_durably(path: Path, words: str) -> None:
    """Creates a file and syncs its content. Its name becomes durable when its folder is synced."""
    with open(path, "x", encoding="utf-8") as file:
        file.write(words)
        file.flush()
        os.fsync(file.fileno())


def check(server: Server) -> None:
    """Raises Failure if the server cannot have replicas."""
    if server.connection.value("SELECT @@log_bin") != "1":
        raise Failure("the server writes no binary log (log_bin is OFF), so no replica could go on "
                      "from a clone: start it with log_bin, or take a backup with `full`")
    if server.connection.value("SELECT @@gtid_slave_pos <> '' AND NOT @@log_slave_updates") == "1":
        raise Failure("the server is a replica and does not log what it executes "
                      "(log_slave_updates is OFF), so a replica of it would miss that: "
                      "start it with log_slave_updates, or clone its primary")


class Data:
    """The data folder to which a snapshot's files are moved. Only the clone uses the snapshot."""

    def __init__(self, folder: Path, owner, copies: bool):
        self.folder, self.owner, self.copies = folder, owner, copies
        self.shared_bytes = 0

    def take(self, source: Path, target: Path, pace: copying.Pace) -> None:
        """Creates the file at `target` by a move, a clone or a copy."""
        target.parent.mkdir(mode=copying.FOLDER_MODE, parents=True, exist_ok=True)
        there = source.stat()
        if self.may_move(there) and move(source, target):
            is_shared = there.st_nlink > 1
        elif not self.copies and copying.clone(source, target):
            is_shared = True
        else:
            copying.copy(source, target, pace)
            return
        pace.skipped(there.st_size)
        self.shared_bytes += there.st_size if is_shared else 0

    def may_move(self, there) -> bool:
        """Returns whether the file itself can be moved to the clone. A file with a second name is
        shared with the server, so its owner cannot be changed."""
        of_owner = (there.st_uid, there.st_gid) == (self.owner.st_uid, self.owner.st_gid)
        return there.st_nlink == 1 or (of_owner and not self.copies)


def move(source: Path, target: Path) -> bool:
    """Renames a file. Returns False if the target is on another file system."""
    try:
        source.rename(target)
    except OSError as failure:
        if failure.errno != errno.EXDEV:
            raise
        return False
    return True


def take_engine(options, folder: Path, manifest, data: Data) -> None:
    """Moves the engine's files to the data folder, manifest first. `WORK` keeps CONTROL."""
    total = snapshot.size_of(folder, manifest)
    pace = copying.Pace(options.rate, "Cheetah's files", total)
    for path in snapshot.taking(folder, manifest):
        place = WORK if path == snapshot.CONTROL else "#cheetah"
        data.take(folder / path, data.folder / place / path, pace)
    pace.progress.end(f"{size(total)}, of which {size(data.shared_bytes)} are the server's, too")


def how_to_go_on(address: list, gtid: str) -> str:
    host, port = address
    at = f"MASTER_PORT = {port}, " if port != "0" else ""   # 0: networking is disabled now
    return (f"SET GLOBAL gtid_slave_pos = {quoted(gtid)};\n"
            f"CHANGE MASTER TO MASTER_HOST = {quoted(host)}, {at}MASTER_USE_GTID = slave_pos;\n"
            "-- The account follows: CHANGE MASTER TO MASTER_USER = .., MASTER_PASSWORD = ..;\n"
            "-- and then: START SLAVE;\n")


def quoted(word: str) -> str:
    """Returns a string as SQL. Host names and GTIDs need no escaping."""
    return f"'{word}'" if word.isascii() and "'" not in word and "\\" not in word else text(word)
