"""Measures the peak of a server's anonymous memory, for tests of the pool's limit."""

import threading
import time

from servers import started

POOL_BYTES = 64 << 20
TOLERANCE = 1.05


def idle_bytes(new_server, options: dict) -> int:
    """Returns the memory of a warmed-up server without the engine, the base of measurements."""
    bare = started(new_server(options, plugin=False))
    warm_up(bare)
    base = bare.anonymous_bytes()
    bare.stop()
    return base


def warm_up(server):
    """Allocates the memory that any server needs for a connection and a statement."""
    server.sql("SELECT COUNT(*) FROM information_schema.tables")
    server.sql("SELECT COUNT(*) FROM seq_1_to_100000", "mysql")
    time.sleep(1)


class Peak(threading.Thread):
    """Measures from its creation until `stop`."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.bytes, self.stopping = server, 0, threading.Event()
        self.start()

    def run(self):
        while not self.stopping.wait(0.05):
            self.bytes = max(self.bytes, self.server.anonymous_bytes())

    def take(self) -> int:
        """Returns the peak since the last call."""
        taken, self.bytes = self.bytes, 0
        return taken

    def stop(self):
        self.stopping.set()
        self.join()
