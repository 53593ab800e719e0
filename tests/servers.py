"""Private servers in tests: how they are made, crashed and waited for."""

import os
import time

from cheetah_tools.server import PrivateServer, scratch

OPTIONS = {"innodb_buffer_pool_size": "16M", "innodb_log_file_size": "8M",
           "loose_cheetah_buffer_pool_size": "16M", "loose_cheetah_log_file_size": "4M",
           "loose_cheetah_log_size_max": "32M"}
# Ends only a test that would never end: a wait this long on a busy machine is right.
WAIT_SECONDS_MAX = 60

made = []   # the servers of running tests, whose logs are shown beside a failure


def make(options: dict = None, plugin: bool = True, folder=None) -> PrivateServer:
    """A server that is not started yet, with small pools and logs unless `options` say otherwise."""
    server = PrivateServer(folder or scratch(f"server-{len(made)}"), {**OPTIONS, **(options or {})}, plugin)
    made.append(server)
    return server


def end(count: int, orderly: bool) -> None:
    """End and remove all servers but the first `count`. `orderly`: with a shutdown that succeeds."""
    while len(made) > count:
        server = made.pop()
        try:
            if orderly:
                server.stop()
        finally:
            server.kill()
            server.remove()


def crash(server) -> None:
    """kill -9, then startup recovery."""
    server.kill()
    server.start()


def wait_until(condition, what: str):
    """What the condition gives, as soon as it is true; fails after a minute."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {WAIT_SECONDS_MAX} s"
        time.sleep(0.02)
    return found


def is_root() -> bool:
    """Whether mounts and other users are to be had."""
    return os.geteuid() == 0
