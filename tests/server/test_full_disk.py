"""Fills a file system. Each way to free space works, and the space is available within seconds.

The file system holds the full data folder, as on most servers, including the binary log, the
definitions and the server's own tables. The file system reserves no space for root, because the
server in these tests may run as root."""

import os
import shutil
import subprocess

import pytest
from cheetah_tools.say import Failure
from servers import begun, check_table, crash, mounted, tmpfs, wait_until

MIB = 1 << 20
BALLAST_BYTES = 40 << 20
SECONDS_UNTIL_BACK = 20
ROWS = 3000
PIECE = 500
# The size in MiB with a short log, and with --large, where the log has its usual size.
DISKS = {"tmpfs": (260, 600), "ext4": (320, 600), "xfs": (400, 700), "btrfs": (500, 700)}
MAKE = {"ext4": ["mkfs.ext4", "-q", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"],
        "btrfs": ["mkfs.btrfs", "-q", "-f"]}


class FullDisk:
    def __init__(self, server):
        self.server, self.place, self.rows = server, server.data, {}

    def free(self) -> int:
        """Returns the free bytes available to users, as reported by the file system."""
        stat = os.statvfs(self.place)
        return stat.f_bavail * stat.f_frsize

    def try_sql(self, statement: str) -> str:
        try:
            self.server.sql(statement, "d")
        except Failure as failure:
            assert not self.server.died(), f"{statement}: the server has ended\n{failure}"
            return str(failure)
        return ""

    def create(self, table: str) -> None:
        self.server.sql(f"CREATE TABLE d.{table} (id INT PRIMARY KEY AUTO_INCREMENT, "
                        "s VARCHAR(200), b MEDIUMBLOB, KEY(s)) ENGINE=CHEETAH")
        self.rows[table] = 0

    def insert(self, table: str, count: int) -> bool:
        """Inserts rows that hardly compress. Returns whether there was enough space."""
        error = self.try_sql(
            f"INSERT INTO {table} (s, b) SELECT MD5(RAND()), CONCAT(RANDOM_BYTES(1000), "
            f"RANDOM_BYTES(1000), RANDOM_BYTES(1000)) FROM seq_1_to_{count}")
        self.rows[table] += 0 if error else count
        assert not error or is_full(error), error
        return not error

    def fill(self, table: str) -> None:
        for count in (ROWS, ROWS, ROWS // 10, 10):
            for _ in range(200):
                if not self.insert(table, count):
                    break
        self.check()

    def delete(self, table: str, count: int) -> None:
        """Deletes rows, a few at a time. Each DELETE must succeed soon."""
        for done in range(0, count, PIECE):
            piece = min(PIECE, count - done)

            def is_deleted(piece=piece) -> bool:
                error = self.try_sql(f"DELETE FROM {table} ORDER BY id LIMIT {piece}")
                assert not error or is_full(error), error
                return not error
            wait_until(is_deleted, f"DELETE of {piece}", SECONDS_UNTIL_BACK)
            self.rows[table] -= min(piece, self.rows[table])

    def wait_for(self, bytes_free: int, after: str) -> None:
        wait_until(lambda: self.free() >= bytes_free, f"{after}: {bytes_free >> 10} KiB free",
                   SECONDS_UNTIL_BACK)

    def check(self) -> None:
        for table, count in self.rows.items():
            assert self.server.value(f"SELECT COUNT(*) FROM d.{table}") == count, table


def is_full(error: str) -> bool:
    return "1114" in error or "1021" in error or "No space" in error


def small_disk(place, kind: str, mib: int, image):
    if kind == "tmpfs":
        return tmpfs(place, mib)
    if not shutil.which(MAKE[kind][0]):
        pytest.skip(f"{MAKE[kind][0]} is not on this machine")
    image.touch()
    os.truncate(image, mib * MIB)
    subprocess.run([*MAKE[kind], image], check=True, capture_output=True)
    return mounted(place, "-o", "loop", image)


@pytest.fixture(params=DISKS)
def disk(request, new_server, large):
    kind, mib = request.param, DISKS[request.param][large]
    options = {"innodb_log_file_size": "4M", "innodb_buffer_pool_size": "8M",
               "loose_cheetah_buffer_pool_size": "32M",
               "loose_cheetah_log_size_max": "1G" if large else "64M",
               "loose_cheetah_log_file_size": "64M" if large else "4M"}
    server = new_server(options)
    server._prepare()
    aside, image = server.data.rename(server.folder / "aside"), server.folder / "image"
    server.data.mkdir()
    with small_disk(server.data, kind, mib, image):
        shutil.copytree(aside, server.data, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(aside)
        made = FullDisk(begun(server))
        for table in "kept", "grows":
            made.create(table)
        made.insert("kept", ROWS)
        yield made
        server.kill()
    image.unlink(missing_ok=True)


def test_each_way_out_of_a_full_disk(disk):
    server = disk.server
    disk.fill("grows")
    print(f"full: {disk.rows}, {disk.free() >> 10} KiB free")
    disk.delete("grows", 10)
    crash(server)
    disk.check()
    server.restart()
    disk.check()
    whole = disk.rows["grows"] * 3000
    disk.delete("grows", disk.rows["grows"] // 2)
    disk.wait_for(whole // 4, "DELETE of the half")
    disk.fill("grows")
    server.sql("TRUNCATE d.grows")
    disk.rows["grows"] = 0
    disk.wait_for(whole * 3 // 4, "TRUNCATE")
    disk.fill("grows")
    server.sql("DROP TABLE d.grows")
    del disk.rows["grows"]
    disk.wait_for(whole * 3 // 4, "DROP")
    crash(server)
    disk.create("again")
    assert disk.insert("again", ROWS)
    disk.check()
    check_table(server, *disk.rows)
    server.stop()


def test_load_into_a_full_disk(new_server):
    server = new_server({"loose_cheetah_log_size_max": "16M", "loose_cheetah_log_file_size": "2M"})
    server._prepare()
    place = server.data / "#cheetah"
    place.mkdir()
    with tmpfs(place, 160):
        ballast = place / "ballast"
        ballast.write_bytes(b"b" * BALLAST_BYTES)
        begun(server)
        server.sql("CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB NOT NULL) "
                   "ENGINE=CHEETAH")
        acknowledged, text = 0, ""
        for number in range(400):
            try:
                server.sql("INSERT INTO t (b) SELECT CONCAT(seq, RANDOM_BYTES(1000), "
                           f"RANDOM_BYTES(1000)) FROM seq_1_to_500 /* {number} */", "d")
                acknowledged += 500
            except Failure as failure:
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
