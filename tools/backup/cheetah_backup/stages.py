"""Whether another backup went through its stages between mariadb-backup's end and the snapshot.

The engine pins its state when a backup ends that has blocked commits. If another one does so before
the snapshot of ours is written, the snapshot is of that later moment. The position of the binary
log shows that only if it has moved. The server counts the statements BACKUP STAGE, also those of
sessions that have ended.
"""

from cheetah_migrate.say import Failure

# Those of mariadb-backup 10.11 and 11.8: START, FLUSH, BLOCK_DDL, BLOCK_COMMIT, END.
OURS = 5
# The least of another backup that pins: BLOCK_COMMIT and END. Its START may wait since before ours.
OTHER_MIN = 2


def count(server) -> int:
    """How many such statements have begun since the server started."""
    return int(server.connection.run("SHOW GLOBAL STATUS LIKE 'Com\\_backup'")[0][1])


def check_alone(server, count_before: int) -> None:
    """Failure when another backup may have ended since then. FLUSH GLOBAL STATUS of 11.8 hides it,
    as the count begins anew."""
    others = count(server) - count_before - OURS
    if others >= OTHER_MIN:
        raise Failure(f"another backup ran meanwhile ({others} statements BACKUP STAGE that are not "
                      "of this one), so the engine's part might be of its moment. Begin again")
