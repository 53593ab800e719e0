"""Detects another backup that ran between the end of mariadb-backup and the snapshot.

The engine pins its state when a backup that blocked commits ends. If another backup does so before
our snapshot is written, the snapshot has the later state. The position of the binary log reveals
this only if it has changed. Therefore this module compares the server's count of BACKUP STAGE
statements, which includes statements of ended sessions."""

from cheetah_client.say import Failure

# The statements of mariadb-backup 10.11 and 11.8: START, FLUSH, BLOCK_DDL, BLOCK_COMMIT and END.
OUR_COUNT = 5
# The minimum number of BACKUP STAGE statements in another backup that pins a state: BLOCK_COMMIT
# and END. Its START may have been waiting since before our backup.
OTHER_COUNT_MIN = 2


def count(server) -> int:
    """Returns the BACKUP STAGE statements since the start, or since FLUSH GLOBAL STATUS (11.8)."""
    return int(server.connection.run("SHOW GLOBAL STATUS LIKE 'Com\\_backup'")[0][1])


def check_alone(server, count_before: int) -> None:
    """Raises Failure if another backup may have ended since then, or the count was reset."""
    counted = count(server) - count_before
    if not 0 <= counted - OUR_COUNT < OTHER_COUNT_MIN:
        raise Failure("another backup ran meanwhile, so the engine's part might be of its moment, "
                      "or somebody has executed FLUSH GLOBAL STATUS, so nobody can tell (of "
                      f"{OUR_COUNT} statements BACKUP STAGE the server counts {counted}). "
                      "Begin again")
