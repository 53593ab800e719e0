"""Simulated stalls for tests: a disk that hangs and connections that wait."""

import contextlib
import subprocess
import threading
from pathlib import Path

import pymysql

SOURCE = Path(__file__).with_name("stalled_disk.c")


class StalledDisk:
    """A disk that can stall, for a server that has not been started yet."""

    def __init__(self, server):
        library, self.switch = server.folder / "stalled_disk.so", server.folder / "stalled"
        server.folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        server.environment = {"LD_PRELOAD": str(library), "CHEETAH_STALLED_DISK": str(self.switch)}

    def stall(self, part: str) -> None:
        """Makes syncs of files whose path contains `part` hang from now on."""
        written = self.switch.with_suffix(".new")
        written.write_text(part)
        written.rename(self.switch)

    def go_on(self) -> None:
        self.switch.unlink()


@contextlib.contextmanager
def busy(server, count: int, statement: str):
    """Executes the statement on `count` connections. At the block's end all must succeed."""
    connections, failures = [server.connect("d") for _ in range(count)], []

    def work(connection) -> None:
        try:
            with contextlib.closing(connection), connection.cursor() as cursor:
                cursor.execute(statement)
        except pymysql.MySQLError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(connection,), daemon=True)
               for connection in connections]
    for thread in threads:
        thread.start()
    yield [connection.thread_id() for connection in connections]
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), f"{statement} does not end"
    assert not failures, f"{statement}: {failures}"
