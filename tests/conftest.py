"""What all tests in Python share: `python3 tools/cheetah.py pytest FOLDER [NAME ..] [OPTION ..]`.

A word that is no path chooses tests by a part of their names; all else is pytest's own.
"""

import random
import signal
from pathlib import Path

import pytest
import servers

ROUNDS = 12
FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser):
    """The options of our tests."""
    parser.addoption("--seed", type=int, default=1, help="of random tests")
    parser.addoption("--rounds", type=int, help="kills and the like")
    parser.addoption("--large", action="store_true", help="the full size of large tests")


def pytest_configure(config):
    """Take words as names of tests, and a request to end as Ctrl-C, so that servers are stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    words = [word for word in config.args if not place(word).exists()]
    if words and all(word.replace("_", "").isalnum() for word in words):
        config.option.keyword = " or ".join(words)
        config.args[:] = [word for word in config.args if word not in words]
    config.args[:] = [word for word in config.args if not any(
        place(word) in place(other).parents for other in config.args)] or config.args


def place(word: str) -> Path:
    """The path in an argument."""
    return Path(word.split("::")[0]).resolve()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Beside a failure: how to repeat it, and the ends of the servers' logs."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
        again = f"python3 tools/cheetah.py pytest 'tests/{item.nodeid}' --seed {item.config.option.seed}"
        report.sections += [("again with", again)]
        report.sections += [(f"end of {server.log}", server.log_tail(25)) for server in servers.made]
    return report


@pytest.fixture
def new_server(request):
    """Makes servers: options, whether with the plugin, a folder. They end with the test: if it has
    passed, by a shutdown that must succeed."""
    count = len(servers.made)
    yield servers.make
    servers.end(count, FAILED not in request.node.stash)


@pytest.fixture
def server(new_server, request):
    """A started server, with the module's OPTIONS if it has some; it ends with the test."""
    made = new_server(getattr(request.module, "OPTIONS", None))
    made.start()
    return made


@pytest.fixture(scope="module")
def module_server(request):
    """One started server for all tests of a module, with its OPTIONS. Tests use `pair`."""
    count = len(servers.made)
    made = servers.make(getattr(request.module, "OPTIONS", None))
    made.start()
    yield made
    servers.end(count, True)


@pytest.fixture
def pair(module_server):
    """A server with both engines, InnoDB and CHEETAH; started again if a test before has ended it."""
    if module_server.process is None or module_server.died():
        module_server.process = None
        module_server.start()
    assert module_server.has_engine("CHEETAH"), "the engine is not in this server: make build"
    return module_server


@pytest.fixture
def crash():
    """Ends a server by kill -9 and starts it again."""
    return servers.crash


@pytest.fixture
def rng(request):
    """Random numbers of this test, from --seed."""
    return random.Random(f"{request.config.option.seed}/{request.node.name}")


@pytest.fixture
def rounds(request):
    """--rounds, or the module's ROUNDS."""
    return request.config.option.rounds or getattr(request.module, "ROUNDS", ROUNDS)


@pytest.fixture
def large(request):
    """Whether --large was given."""
    return request.config.option.large
