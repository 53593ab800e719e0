"""A disk that fills up in the middle of a load: an error, no loss; with space again the same server goes on."""

import subprocess

from cheetah_tools.say import Failure
from cheetah_tools.servertests import Skip, expect, is_root

BALLAST_BYTES = 40 << 20


def test_load_into_a_full_disk(context):
    """The engine's folder lies on a small tmpfs; ballast is deleted to make room again."""
    import pymysql
    if not is_root():
        raise Skip("needs root to mount a small tmpfs")
    server = context.server({"loose_cheetah_log_size_max": "16M", "loose_cheetah_log_file_size": "2M"})
    server.start()
    server.stop()
    place = server.data / "#cheetah"
    subprocess.run(["rm", "-rf", str(place)], check=True)
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(place)], capture_output=True, check=False).returncode:
        raise Skip("no tmpfs can be mounted here")
    try:
        ballast = place / "ballast"
        ballast.write_bytes(b"b" * BALLAST_BYTES)
        server.start()
        server.sql("CREATE DATABASE d")
        server.sql("CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB NOT NULL) ENGINE=CHEETAH")
        acknowledged, text = 0, ""
        for number in range(400):
            try:
                server.sql(f"INSERT INTO t (b) SELECT CONCAT(seq, RANDOM_BYTES(1000), RANDOM_BYTES(1000)) FROM seq_1_to_500 /* {number} */", "d")
                acknowledged += 500
            except (pymysql.MySQLError, Failure) as failure:
                text = str(failure)
                break
        expect(text, "160 MB took 400 MB")
        expect(not server.died(), "the server ended", server)
        expect("full" in text.lower() or "1114" in text or "1021" in text or "28" in text, f"the error does not speak of a full disk: {text}")
        expect(server.value("SELECT COUNT(*) FROM d.t") == acknowledged, "rows are missing, or half a statement is there")
        ballast.unlink()
        server.sql("INSERT INTO t (b) VALUES ('room again')", "d")
        expect(server.value("SELECT COUNT(*) FROM d.t") == acknowledged + 1, "the row after the full disk is missing")
        server.kill()
        server.start()
        expect(server.value("SELECT COUNT(*) FROM d.t") == acknowledged + 1, "rows are missing after a kill")
        expect(server.sql("CHECK TABLE d.t EXTENDED")[-1][3] == "OK", "CHECK TABLE finds damage")
        server.sql("DROP TABLE d.t")
        server.stop()
    finally:
        server.kill()
        subprocess.run(["umount", str(place)], check=False)
