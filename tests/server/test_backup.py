"""What backups of the server meet: a warning that mariadb-backup leaves Cheetah's data out, what
FLUSH ENGINE LOGS does, and a start without the engine."""

import pytest
from cheetah_tools.say import Failure


def test_backup_stage_warns_in_the_error_log(server):
    """What mariadb-backup does first."""
    server.sql("CREATE TABLE d.t (a INT) ENGINE=CHEETAH")
    with server.connect("d") as connection, connection.cursor() as cursor:
        for stage in ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT", "END"):
            cursor.execute(f"BACKUP STAGE {stage}")
    lines = server.log.read_text(errors="replace").splitlines()
    assert [line for line in lines if "CHEETAH" in line and "backup" in line.lower()]


def test_flush_engine_logs_makes_no_checkpoint_and_checkpoint_now_does(server):
    """mariadb-backup flushes the logs while commits are blocked: whoever commits waits for it."""
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY, b CHAR(200)) ENGINE=CHEETAH")
    server.sql("INSERT INTO t SELECT seq, MD5(seq) FROM seq_1_to_1000", "d")
    server.sql("UPDATE d.t SET b = REVERSE(b)")
    checkpoints = server.status("Cheetah_pool_checkpoints")
    with server.connect("d") as connection, connection.cursor() as cursor:
        for stage in ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"):
            cursor.execute(f"BACKUP STAGE {stage}")
        cursor.execute("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")
        cursor.execute("BACKUP STAGE END")
    server.sql("FLUSH LOGS")
    assert server.status("Cheetah_pool_checkpoints") == checkpoints
    for asked, made in (("OFF", 0), ("ON", 1), ("1", 1), ("0", 0), ("'on'", 1)):
        before = server.status("Cheetah_pool_checkpoints")
        server.sql(f"SET GLOBAL cheetah_checkpoint_now = {asked}")
        assert server.status("Cheetah_pool_checkpoints") == before + made, asked
        assert server.value("SELECT @@cheetah_checkpoint_now") == 0
    for nonsense in ("2", "'perhaps'", "-1"):
        with pytest.raises(Failure, match="1231"):
            server.sql(f"SET GLOBAL cheetah_checkpoint_now = {nonsense}")


def test_a_server_with_force_does_not_start_without_the_engine(new_server):
    """What the Debian package sets. Without FORCE, `loose_` settings are no obstacle."""
    settings = {"loose_cheetah_buffer_pool_size": "16M"}
    plain = new_server(settings, plugin=False)
    plain.start()
    plain.stop()
    forced = new_server({**settings, "cheetah": "FORCE"}, plugin=False)
    with pytest.raises(Failure):
        forced.start()
    assert "cheetah=FORCE" in forced.log.read_text(errors="replace")
    with_engine = new_server({**settings, "cheetah": "FORCE"})
    with_engine.start()
    assert with_engine.has_engine("CHEETAH")
