"""mariadb-backup would leave Cheetah's data out: the error log says so when a backup starts."""

from cheetah_tools.servertests import expect


def test_backup_stage_warns_in_the_error_log(context):
    """What mariadb-backup does first."""
    server = context.server()
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE d.t (a INT) ENGINE=CHEETAH")
    connection = server.connect("d")
    with connection.cursor() as cursor:
        for stage in ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT", "END"):
            cursor.execute(f"BACKUP STAGE {stage}")
    connection.close()
    lines = [line for line in server.log.read_text(errors="replace").splitlines() if "CHEETAH" in line and "backup" in line.lower()]
    expect(lines, "the error log does not warn", server)
    server.stop()
