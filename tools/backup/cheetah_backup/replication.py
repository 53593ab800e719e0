"""A replica with parallel workers applies nothing while mariadb-backup runs.

A worker prepares its transaction and then waits for its turn. If commits are blocked meanwhile, the
transaction stays prepared in InnoDB's part of the backup (MDEV-36025). No binary log decides there,
so a server does not start on it; and to commit it would be wrong, as the engine's part has it
rolled back. So the SQL threads are stopped before. The threads that read from primaries go on.

mariadb-backup has --safe-slave-backup for that. But it knows one connection only, the one without
a name, and does not start the thread again when it fails or is killed.
"""

import contextlib
import time

from cheetah_client.connection import Lost, ServerError, text
from cheetah_client.say import Failure, line, span

# Columns of SHOW ALL SLAVES STATUS.
NAME, SQL_RUNNING, UNTIL = 0, 13, 25


@contextlib.contextmanager
def paused(server):
    """Apply nothing while the block runs. What was applied before goes on afterwards, whatever
    happens. Failure when somebody else has begun to apply meanwhile."""
    names = running(server.connection)
    started = time.monotonic()
    try:
        for name in names:
            tell(server, "STOP", name)
        yield
        check_stopped(server.connection)
    finally:
        go_on(server, names)
    if names:
        line(f"  the replica's SQL threads stood still: {span(time.monotonic() - started)}")


def running(connection) -> list:
    """The names of the connections to primaries that are applied from, if there are workers."""
    if connection.value("SELECT @@slave_parallel_threads") == "0":
        return []
    rows = [row for row in connection.run("SHOW ALL SLAVES STATUS") if row[SQL_RUNNING] == "Yes"]
    if any(row[UNTIL] != "None" for row in rows):
        raise Failure("a SQL thread of this replica was started with UNTIL, which it would forget: "
                      "wait for its end, or stop it")
    return [row[NAME] for row in rows]


def check_stopped(connection) -> None:
    """Failure when somebody else has started what stood still."""
    if running(connection):
        raise Failure("somebody has started a SQL thread of this replica while mariadb-backup ran, "
                      "so a server might not start from the backup. Begin again")


def tell(server, word: str, name: str) -> None:
    """Start or stop the SQL thread of a connection, whatever its name holds."""
    server.run(f"SET SESSION default_master_connection = {text(name)}")
    server.run(f"{word} SLAVE SQL_THREAD")


def start(server, name: str) -> bool:
    """Start the SQL thread of a connection, in a new session where the one that stopped it is lost:
    somebody may have ended it, as it idles while mariadb-backup runs. Whether it was lost."""
    try:
        tell(server, "START", name)
        return False
    except Lost:
        server.connect_again()
        tell(server, "START", name)
        return True


def go_on(server, names: list) -> None:
    """Start the SQL threads. Failure when one does not start, Ctrl-C ends the wait for it, or the
    backup's session is lost, after all were tried."""
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
