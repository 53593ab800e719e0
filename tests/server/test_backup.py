"""mariadb-backup would leave Cheetah's data out: the error log says so when a backup starts."""


def test_backup_stage_warns_in_the_error_log(server):
    """What mariadb-backup does first."""
    server.sql("CREATE TABLE d.t (a INT) ENGINE=CHEETAH")
    with server.connect("d") as connection, connection.cursor() as cursor:
        for stage in ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT", "END"):
            cursor.execute(f"BACKUP STAGE {stage}")
    lines = server.log.read_text(errors="replace").splitlines()
    assert [line for line in lines if "CHEETAH" in line and "backup" in line.lower()]
