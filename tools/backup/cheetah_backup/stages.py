"""Whether another backup went through its stages between mariadb-backup's end and the snapshot.

The engine pins its state when a backup ends that has blocked commits. If another one does so before
the snapshot of ours is written, the snapshot is of that later moment. The position of the binary
log shows that only if it has moved. The server counts the statements BACKUP STAGE, also those of
sessions that have ended.
"""

from cheetah_client.say import Failure

# Those of mariadb-backup 10.11 and 11.8: START, FLUSH, BLOCK_DDL, BLOCK_COMMIT, END.
OUR_COUNT = 5
# The least of another backup that pins: BLOCK_COMMIT and END. Its START may wait since before ours.
OTHER_COUNT_MIN = 2


def count(server) -> int:
    """How many such statements have begun since the server started, or FLUSH GLOBAL STATUS (11.8)
    made the count begin anew."""
    return int(server.connection.run("SHOW GLOBAL STATUS LIKE 'Com\\_backup'")[0][1])


def check_alone(server, count_before: int) -> None:
    """Failure when another backup may have ended since then, also where the count begins anew."""
    counted = count(server) - count_before
    if not 0 <= counted - OUR_COUNT < OTHER_COUNT_MIN:
        raise Failure("another backup ran meanwhile, so the engine's part might be of its moment, "
                      "or somebody has executed FLUSH GLOBAL STATUS, so nobody can tell (of "
                      f"{OUR_COUNT} statements BACKUP STAGE the server counts {counted}). "
                      "Begin again")
