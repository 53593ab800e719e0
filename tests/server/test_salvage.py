"""A damaged database is salvaged, and a server then serves the salvaged rows."""

import shutil

from checksum import damage
from servers import cli, run

ROWS = 20000
TRIES_MAX = 10
TEXT = "CONCAT(MD5(a), MD5(a + 1), MD5(a + 2))"


def test_rows_beside_damage_come_back(server, rng):
    run(server, "CREATE TABLE big (a INT AUTO_INCREMENT PRIMARY KEY, b VARBINARY(200), c INT, "
        "KEY (b), UNIQUE (c)) ENGINE=CHEETAH",
        f"INSERT INTO big SELECT a, {TEXT}, -a FROM (SELECT seq AS a FROM seq_1_to_{ROWS}) AS s",
        "CREATE TABLE texts (a INT PRIMARY KEY, t TEXT, FULLTEXT (t)) ENGINE=CHEETAH",
        "INSERT INTO texts VALUES (1, 'an old river'), (2, 'a new bridge')",
        "CREATE TABLE parts (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=CHEETAH "
        "PARTITION BY HASH (a) PARTITIONS 3", "INSERT INTO parts SELECT seq, -seq FROM seq_1_to_90",
        "CREATE TABLE child (a INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES big (c) "
        "ON DELETE CASCADE) ENGINE=CHEETAH", "INSERT INTO child VALUES (1, -1), (2, -2)")
    server.stop()
    folder, new = server.data / "#cheetah", server.data / "salvaged"
    place = max((folder / "seg").glob("*.seg"), key=lambda path: path.stat().st_size)
    size = place.stat().st_size
    for _ in range(TRIES_MAX):
        for _ in range(6):
            damage(place, rng.randrange(size // 8, size - 64))
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        done = cli("salvage", folder, new)
        if done.returncode != 0:
            break
        # All changes hit secondary indexes or unused bytes.
        shutil.rmtree(new)
    assert done.returncode == 1, f"it tells of no loss: {done.stdout} {done.stderr}"
    assert {path: path.read_bytes() for path in before} == before, "the damaged folder has changed"
    assert not list(server.data.glob("*.scratch")), "files of the tool are left"
    refused = cli("salvage", folder, new)
    assert refused.returncode == 2 and "exists" in refused.stderr, refused.stderr
    folder.rename(server.folder / "damaged")
    new.rename(folder)
    server.start()
    assert not server.sql("SHOW WARNINGS")
    for name in ("big", "child", "texts", "parts"):
        how = "FORCE, ALGORITHM=COPY" if name == "parts" else "ENABLE KEYS"
        server.sql(f"ALTER TABLE d.{name} {how}")
        verdict = server.sql(f"CHECK TABLE d.{name} EXTENDED")[-1]
        # A parent row may have been lost.
        assert verdict[3] == "OK" or name == "child", verdict
    saved = server.value("SELECT COUNT(*) FROM d.big")
    assert 0 < saved <= ROWS, f"{saved} rows are saved"
    assert f"d/big: {saved} rows saved" in done.stdout.replace("./", ""), done.stdout
    wrong = server.value(f"SELECT COUNT(*) FROM d.big WHERE b <> {TEXT} OR c <> -a")
    assert wrong == 0, f"{wrong} rows are wrong"
    assert server.value("SELECT COUNT(*) FROM d.big FORCE INDEX (b) WHERE b >= ''") == saved
    assert server.value("SELECT COUNT(*) FROM d.big FORCE INDEX (c) WHERE c < 0") == saved
    server.sql("INSERT INTO d.big (b, c) VALUES ('new', 1)")
    assert server.value("SELECT a FROM d.big WHERE c = 1") > ROWS, "the counter has gone back"
    assert server.value("SELECT COUNT(*) FROM d.parts FORCE INDEX (b) WHERE b < 0") == \
        server.value("SELECT COUNT(*) FROM d.parts")
    run(server, "INSERT INTO child VALUES (9, 1)", "DELETE FROM big WHERE c = 1")
    assert server.value("SELECT COUNT(*) FROM d.child WHERE a = 9") == 0, "no cascade"
    assert server.sql("SELECT a FROM d.texts WHERE MATCH(t) AGAINST('river')") == [(1,)] or \
        "texts" in done.stdout.split("lost", 1)[-1]
