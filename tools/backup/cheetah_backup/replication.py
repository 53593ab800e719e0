"""Stops the SQL threads of a replica with parallel workers while mariadb-backup runs.

A worker prepares its transaction and then waits for its turn to commit. If commits are blocked
meanwhile, the transaction remains prepared in InnoDB's part of the backup (MDEV-36025). There is no
binary log to decide its outcome, so a server does not start from this backup. Committing the
transaction would be wrong, because the engine's part has it rolled back. Therefore the SQL threads
are stopped first. The threads that read from primaries continue.

mariadb-backup has the option --safe-slave-backup for this purpose. But the option handles only the
unnamed connection, and does not restart the SQL thread after a failure or a kill."""

import contextlib
import time

from cheetah_client.connection import Lost, ServerError, text
from cheetah_client.say import Failure, line, span

# Column numbers of SHOW ALL SLAVES STATUS.
NAME, SQL_RUNNING, UNTIL = 0, 13, 25


@contextlib.contextmanager
def paused(server):
    """Stops the SQL threads during the block, and restarts those that ran before, whatever happens.
    Raises Failure if another session started a SQL thread meanwhile."""
    names = running(server.connection)
    started = time.monotonic()
    try:
        for name in names:
            tell(server, "STOP", name)
        yield
        if running(server.connection):
            raise Failure("somebody has started a SQL thread of this replica while mariadb-backup "
                          "ran, so a server might not start from the backup. Begin again")
    finally:
        go_on(server, names)
    if names:
        line(f"  the replica's SQL threads stood still: {span(time.monotonic() - started)}")


def running(connection) -> list:
    """Returns the names of the connections whose SQL thread runs, if there are parallel workers."""
    if connection.value("SELECT @@slave_parallel_threads") == "0":
        return []
    rows = [row for row in connection.run("SHOW ALL SLAVES STATUS") if row[SQL_RUNNING] == "Yes"]
    if any(row[UNTIL] != "None" for row in rows):
        raise Failure("a SQL thread of this replica was started with UNTIL, which it would forget: "
                      "wait for its end, or stop it")
    return [row[NAME] for row in rows]


def tell(server, word: str, name: str) -> None:
    """Starts or stops the SQL thread of a connection, whose name may contain any characters."""
    server.run(f"SET SESSION default_master_connection = {text(name)}")
    server.run(f"{word} SLAVE SQL_THREAD")


def start(server, name: str) -> bool:
    """Starts the SQL thread of a connection, in a new session if the old one was lost: it is idle
    while mariadb-backup runs, so somebody may have ended it. Returns whether it was lost."""
    try:
        tell(server, "START", name)
        return False
    except Lost:
        server.connect_again()
        tell(server, "START", name)
        return True


def go_on(server, names: list) -> None:
    """Starts the SQL threads. After all were tried, raises Failure if a thread did not start,
    Ctrl-C interrupted the wait, or the backup's session was lost."""
    left, was_lost = [], False
    for name in names:
        try:
            was_lost |= start(server, name)
        except (Lost, ServerError, KeyboardInterrupt) as failure:
            left.append(f"START SLAVE '{name}' SQL_THREAD: {str(failure) or 'interrupted'}")
    if left:
        raise Failure("SQL threads of this replica may stand still. Start them:\n  "
                      + "\n  ".join(left))
    if was_lost:
        raise Failure("somebody has ended the session of this backup. Begin again")
