"""How much anonymous memory a server takes at most while it is worked with, for tests of the pool's limit."""

import threading
import time

POOL_BYTES = 64 << 20
TOLERANCE = 1.05


def idle_bytes(context, options: dict) -> int:
    """What a server without the engine takes when it has just been warmed up: the base to subtract."""
    bare = context.server(options, plugin=False)
    bare.start()
    warm_up(bare)
    base = bare.anonymous_bytes()
    bare.stop()
    return base


def warm_up(server):
    """What any server takes for a connection and a statement."""
    server.sql("SELECT COUNT(*) FROM information_schema.tables")
    server.sql("SELECT COUNT(*) FROM seq_1_to_100000", "mysql")
    time.sleep(1)


class Peak(threading.Thread):
    """Samples anonymous memory."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.bytes, self.stopping = server, 0, threading.Event()

    def run(self):
        while not self.stopping.wait(0.05):
            self.bytes = max(self.bytes, self.server.anonymous_bytes())

    def take(self) -> int:
        """The peak since the last call."""
        taken, self.bytes = self.bytes, 0
        return taken

    def stop(self):
        """End sampling."""
        self.stopping.set()
        self.join()
