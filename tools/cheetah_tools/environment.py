"""The virtual environment `var/venv`: the libraries of the lab, and pytest for all tests in Python.

`lab/requirements.lock` and `tests/requirements.lock` pin its contents. It is created under another
name and renamed, again after an interrupted run, and with a new lock or interpreter."""

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import apt
from .paths import COMMON, PROJECT, show
from .say import Failure, note, step

PLACE = COMMON / "venv"
LOCK, TEST_LOCK = PROJECT / "lab/requirements.lock", PROJECT / "tests/requirements.lock"
APPS_LOCK = PROJECT / "tests/apps/requirements.lock"   # an environment of its own: tests/apps
BROWSER = {"chromium": "chromium", "chromedriver": "chromium-driver"}   # program -> package
PYTHON_LEAST = (3, 11)


def pytest(arguments: list) -> None:
    """Runs the command `pytest FOLDER ..`; tests/conftest.py lists the options. Does not return."""
    hand_over([str(ensure(tests=True)), "-m", "pytest", *arguments])


def lab(arguments: list, module: str = "cheetah_lab") -> None:
    """Runs `make lab`. Does not return: the lab's exit status and signals are its own."""
    hand_over([str(ensure()), "-m", module, *arguments])


def bench(arguments: list) -> None:
    """`make bench`: runs sets of the lab's experiments with a report as text. Does not return."""
    lab(arguments, "cheetah_lab.bench")


def hand_over(words: list) -> None:
    """Replaces this process with a program that finds the modules of the lab and the tools."""
    sys.stdout.flush()
    modules = os.pathsep.join([str(PROJECT / "lab"), str(PROJECT / "tools")])
    os.execve(words[0], [words[0], "-B", *words[1:]],
              {**os.environ, "PYTHONPATH": modules, "PYTHONDONTWRITEBYTECODE": "1"})


def ensure(tests: bool = False) -> Path:
    """Returns the environment's interpreter, with everything installed. May download, or wait for
    another program that does. Raises Failure if it cannot."""
    if sys.version_info < PYTHON_LEAST:
        raise Failure(f"needed: Python {PYTHON_LEAST[0]}.{PYTHON_LEAST[1]} or newer; "
                      f"this is {sys.version.split()[0]} ({sys.executable})")
    python = PLACE / "bin/python"
    with one_at_a_time():
        if not python.exists() or marked(LOCK, PLACE) != key(LOCK):
            make()
        if tests and marked(TEST_LOCK, PLACE) != key(TEST_LOCK):
            install(TEST_LOCK, PLACE)
    return python


@contextlib.contextmanager
def one_at_a_time():
    """Waits for other steps of `make test` that create the environment at the same time."""
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    with PLACE.with_name("venv.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make() -> None:
    have_venv()
    fresh = PLACE.with_name("venv.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.parent.mkdir(parents=True, exist_ok=True)
    step(f"making a virtual environment in {show(PLACE)}")
    try:
        call([sys.executable, "-m", "venv", str(fresh)], "cannot make a virtual environment")
        install(LOCK, fresh)
    except BaseException:   # also on Ctrl-C
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(PLACE, ignore_errors=True)
    fresh.rename(PLACE)


def install(lock: Path, place: Path) -> None:
    """Installs the packages of a lock file, each file checked against its hash."""
    note(f"from {show(lock)}: " + " ".join(pinned(lock)))
    call([str(place / "bin/python"), "-m", "pip", "install", "--require-hashes", "--no-deps",
          "--no-input",
          "--disable-pip-version-check", "--quiet", "--requirement", str(lock)],
         f"cannot install what {show(lock)} names")
    marker(lock, place).write_text(key(lock))


def pinned(lock: Path) -> list:
    return [line.split()[0] for line in lock.read_text().splitlines() if line[:1].isalnum()]


def key(lock: Path) -> str:
    """Returns a key that changes with the lock file and with the interpreter."""
    return hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()


def marked(lock: Path, place: Path) -> str:
    """Returns the key of what is installed, or ""."""
    file = marker(lock, place)
    return file.read_text() if file.exists() else ""


def marker(lock: Path, place: Path) -> Path:
    return place / f"{lock.parent.name}-{lock.name}"


def have_venv() -> None:
    """Makes sure that this Python, on Debian with one more package, can make environments."""
    if can_make():
        return
    install_packages(["python3-venv"])
    if not can_make():
        raise Failure(f"{sys.executable} has no ensurepip, so it cannot make virtual environments; "
                      "use Debian's /usr/bin/python3")


def can_make() -> bool:
    """Returns whether `python3 -m venv` can work, which a new process checks every time."""
    words = [sys.executable, "-c", "import ensurepip, venv"]
    return subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0


@functools.cache
def browser() -> None:
    """Installs a browser for the tests of pages; if this fails, those tests are skipped."""
    if missing := [package for program, package in BROWSER.items() if not shutil.which(program)]:
        try:
            install_packages(missing)
        except Failure as failure:
            note(f"going on without a browser: {failure}")


def install_packages(packages: list, may_sudo: bool = False) -> None:
    """Installs Debian packages as root or with sudo; otherwise raises Failure with the command."""
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    prefix = ["sudo"] if may_sudo and shutil.which("sudo") else []
    if (os.geteuid() != 0 and not prefix) or not shutil.which("apt-get"):
        raise Failure(f"missing on this machine: {', '.join(packages)}; as root: "
                      f"{' '.join(command)}")
    step("installing " + ", ".join(packages))
    prefix = [] if os.geteuid() == 0 else prefix
    settings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([*prefix, "apt-get", "update", "-q"], env=settings, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    call([*prefix, *command], "cannot install " + ", ".join(packages), settings)


def call(words: list, complaint: str, environment: dict = None) -> None:
    """Runs a command without showing its output; raises Failure with the end of the output."""
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise Failure(f"{complaint}:\n{apt.last_lines(done.stdout, 6)}")
