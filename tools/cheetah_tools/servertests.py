"""`make servertests`: what needs a server of its own: kills in DDL, damaged files, full disks, memory, missing plugins.

Every function `test_*` of tests/server/*.py gets a `Context`; it raises Failure when something is wrong and Skip, with
the reason, when this machine cannot run it.
"""

import argparse
import importlib.util
import os
import random
import time

from .paths import PROJECT
from .say import Failure, note
from .server import PrivateServer, scratch

TESTS = PROJECT / "tests" / "server"
ROUNDS = 12
# How long a test waits for what comes by itself. It only ends a test that would never end: whoever waits so long on a busy machine is right to.
WAIT_SECONDS_MAX = 60


class Skip(Exception):
    """The test cannot run here; says why."""


class Context:
    """What a test may use."""

    def __init__(self, name: str, choice):
        self.name, self.large = name, choice.large
        self.rounds_asked, self.rounds = choice.rounds, choice.rounds or ROUNDS
        self.rng = random.Random(f"{choice.seed}/{name}")
        self.servers = []

    def rounds_or(self, usual: int) -> int:
        """The rounds that were asked for, or those that are usual for the test."""
        return self.rounds_asked or usual

    def server(self, options: dict = None, plugin: bool = True, folder=None) -> PrivateServer:
        """A server that is not started yet; it is killed and removed after the test."""
        made = PrivateServer(folder or scratch(f"server-{len(self.servers)}"),
                             {"innodb_buffer_pool_size": "16M", "innodb_log_file_size": "8M", "loose_cheetah_buffer_pool_size": "16M",
                              "loose_cheetah_log_file_size": "4M", "loose_cheetah_log_size_max": "32M", **(options or {})}, plugin)
        self.servers.append(made)
        return made

    def clean(self) -> None:
        """End and remove all servers."""
        for server in self.servers:
            server.kill()
            server.remove()


def main(arguments: list) -> int:
    """The command; 1 when a test failed."""
    parser = argparse.ArgumentParser(description="tests that need servers of their own")
    parser.add_argument("names", nargs="*", help="only tests whose name contains one of these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, help=f"kills in DDL ({ROUNDS} if not given), under TPC-C and the like")
    parser.add_argument("--large", action="store_true", help="the full size of tests of memory and of large transactions")
    choice = parser.parse_args(arguments)
    passed, failed, skipped = 0, 0, 0
    for name, function in tests():
        if choice.names and not any(word in name for word in choice.names):
            continue
        outcome, why, seconds = run(name, function, choice)
        print(f"{outcome:<7} {name} ({seconds:.0f} s)", flush=True)
        if why:
            note(why)
        passed, failed, skipped = passed + (outcome == "ok"), failed + (outcome == "FAIL"), skipped + (outcome == "skipped")
    print(f"server: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def run(name: str, function, choice) -> tuple:
    """Run one test: outcome, what to say, seconds."""
    context, started = Context(name, choice), time.monotonic()
    try:
        function(context)
        outcome, why = "ok", ""
    except Skip as reason:
        outcome, why = "skipped", str(reason)
    except (Failure, OSError) as failure:
        outcome, why = "FAIL", f"{failure}\n  again with: python3 tools/cheetah.py server-tests {name} --seed {choice.seed}"
    except Exception as failure:  # the driver's errors, too, are findings
        outcome, why = "FAIL", f"{type(failure).__name__}: {failure}"
    finally:
        context.clean()
    return outcome, why, time.monotonic() - started


def tests() -> list:
    """(name, function) of every test."""
    found = []
    for place in sorted(TESTS.glob("[!t][!e]*.py")):
        spec = importlib.util.spec_from_file_location(place.stem, place)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += [(f"{place.stem}.{name[5:]}", thing) for name, thing in vars(module).items() if name.startswith("test_")]
    return found


def expect(condition, text: str, server=None) -> None:
    """Failure, with the end of the server's log, unless the condition holds."""
    if not condition:
        raise Failure(text + (f"\nend of the log:\n{server.log_tail(12)}" if server else ""))


def wait_until(condition, what: str, server=None):
    """What the condition gives, as soon as it is true; Failure after a minute."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (found := condition()):
        expect(time.monotonic() < deadline, f"{what}: not within {WAIT_SECONDS_MAX} s", server)
        time.sleep(0.02)
    return found


def is_root() -> bool:
    """Whether mounts and other users are to be had."""
    return os.geteuid() == 0
