"""Fixtures and options for all Python tests: `cheetah.py pytest FOLDER [NAME ..] [OPTION ..]`.

A word that is not a path selects tests by part of their names (`tpcc`, `space.files_stay`). A path
inside FOLDER replaces FOLDER. All other arguments are passed to pytest."""

import random
import re
import signal
from pathlib import Path

import pytest
import servers

ROUNDS = 12
ENDED = pytest.StashKey[bool]()   # true if the test passed


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, help="of random tests")
    parser.addoption("--rounds", type=int, help="kills and the like")
    parser.addoption("--large", action="store_true", help="the full size of large tests")


def pytest_configure(config):
    """Interprets words as test names, and handles a termination signal like Ctrl-C so that servers
    are stopped. Tests started in a shell's background inherit an ignored Ctrl-C. With the handler,
    the tests and the programs they start no longer ignore it."""
    for end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(end, signal.default_int_handler)
    words = [word for word in config.args if not place(word).exists()]
    if words and re.fullmatch(r"[\w.]+", "".join(words)):
        config.option.keyword = " or ".join(f"({word.replace('.', ' and ')})" for word in words)
        config.args[:] = [word for word in config.args if word not in words]
    inner = [place(word) for word in config.args]
    config.args[:] = [word for word in config.args
                      if not any(place(word) in path.parents for path in inner)]


def place(word: str) -> Path:
    """Returns the path in an argument."""
    return Path(word.split("::")[0]).resolve()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds to a failure report the command that repeats the test and the ends of servers' logs."""
    report = yield
    if call.when == "call":
        item.stash[ENDED] = not report.failed
    if report.failed:
        again = f"cheetah.py pytest 'tests/{item.nodeid}' --seed {seed_of(item)}"
        report.sections += [("again with", again)]
        report.sections += [(f"end of {server.log}", server.log_tail(25))
                            for server in servers.made]
    return report


@pytest.fixture
def new_server(request):
    """Creates servers from options, whether to load the plugin, and a folder. When a test passes,
    they must shut down cleanly. Otherwise they are killed and their folders are kept."""
    count = len(servers.made)
    yield servers.make
    servers.end(count, request.node.stash.get(ENDED, False))


@pytest.fixture
def server(new_server, request):
    """A started server with an empty database `d`, stopped at the end of the test. Its options are
    the module's OPTIONS and those of `@pytest.mark.options({..}, large={..})`."""
    options = dict(getattr(request.module, "OPTIONS", {}))
    for mark in request.node.iter_markers("options"):
        options |= mark.args[0] | (mark.kwargs.get("large", {})
                                   if request.config.option.large else {})
    return servers.begun(new_server(options))


@pytest.fixture(scope="module")
def module_server(request):
    """One started server for all tests of a module, with the module's OPTIONS. Tests use `pair`."""
    count = len(servers.made)
    made = servers.make(getattr(request.module, "OPTIONS", None))
    made.start()
    yield made
    servers.end(count, True)


@pytest.fixture
def pair(module_server):
    """A server with InnoDB and CHEETAH, restarted if an earlier test stopped it."""
    if module_server.process is None or module_server.died():
        module_server.process = None
        module_server.start()
    assert module_server.has_engine("CHEETAH"), "the engine is not in this server: make build"
    return module_server


@pytest.fixture
def rng(request):
    """The test's random number generator, seeded from --seed or the module's SEED."""
    return random.Random(f"{seed_of(request.node)}/{request.node.name}")


def seed_of(item) -> int:
    return item.config.option.seed or getattr(item.module, "SEED", 1)


@pytest.fixture
def rounds(request):
    """The value of --rounds, or the module's ROUNDS."""
    return request.config.option.rounds or getattr(request.module, "ROUNDS", ROUNDS)


@pytest.fixture
def large(request):
    return request.config.option.large
