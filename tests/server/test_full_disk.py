"""A disk fills up during a load: an error, no loss; with space again the server goes on."""

import subprocess

import pymysql
import pytest
from cheetah_tools.say import Failure
from servers import check_table, crash, is_root

BALLAST_BYTES = 40 << 20


def test_load_into_a_full_disk(new_server):
    """The engine's folder lies on a small tmpfs; ballast is deleted to make room again."""
    if not is_root():
        pytest.skip("needs root to mount a small tmpfs")
    server = new_server({"loose_cheetah_log_size_max": "16M", "loose_cheetah_log_file_size": "2M"})
    server.start()
    server.stop()
    place = server.data / "#cheetah"
    subprocess.run(["rm", "-rf", str(place)], check=True)
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(place)],
                      capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        ballast = place / "ballast"
        ballast.write_bytes(b"b" * BALLAST_BYTES)
        server.start()
        server.sql("CREATE DATABASE d")
        server.sql("CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB NOT NULL) "
                   "ENGINE=CHEETAH")
        acknowledged, text = 0, ""
        for number in range(400):
            try:
                server.sql("INSERT INTO t (b) SELECT CONCAT(seq, RANDOM_BYTES(1000), "
                           f"RANDOM_BYTES(1000)) FROM seq_1_to_500 /* {number} */", "d")
                acknowledged += 500
            except (pymysql.MySQLError, Failure) as failure:
                text = str(failure)
                break
        assert text, "160 MB took 400 MB"
        assert not server.died(), "the server ended"
        assert "full" in text.lower() or "1114" in text or "1021" in text or "28" in text
        assert server.value("SELECT COUNT(*) FROM d.t") == acknowledged
        ballast.unlink()
        server.sql("INSERT INTO t (b) VALUES ('room again')", "d")
        assert server.value("SELECT COUNT(*) FROM d.t") == acknowledged + 1
        crash(server)
        assert server.value("SELECT COUNT(*) FROM d.t") == acknowledged + 1
        check_table(server, "d.t")
        server.sql("DROP TABLE d.t")
        server.stop()
    finally:
        server.kill()
        subprocess.run(["umount", str(place)], check=False)
