"""`make lab`: the lab in a virtual environment of its own, `var/lab/venv`, with the libraries that `lab/requirements.lock` pins.

The environment is made beside its place and renamed, so an interrupted run makes it again; it is remade when the lock or the
interpreter changes. What the tests need besides is added to it by `lab-tests`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import apt
from .paths import PROJECT, VAR, show
from .say import Failure, note, step

PLACE = VAR / "lab/venv"
LOCK, TEST_LOCK = PROJECT / "lab/requirements.lock", PROJECT / "lab/requirements-test.lock"
BROWSER = {"chromium": "chromium", "chromedriver": "chromium-driver"}   # program -> package; for the test of the page
PYTHON_LEAST = (3, 11)


def main(arguments: list) -> None:
    """The command `lab`: does not return; the lab takes the place of this process, so signals and its exit status are its own."""
    hand_over([str(ensure()), "-m", "cheetah_lab", *arguments])


def tests(arguments: list) -> None:
    """The command `lab-tests`: pytest on tests/lab; the arguments are pytest's. Does not return."""
    python = ensure(tests=True)
    browser()
    hand_over([str(python), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *(arguments or [str(PROJECT / "tests/lab")])])


def hand_over(words: list) -> None:
    """Become another program, which finds the lab's modules and the tools'."""
    sys.stdout.flush()
    modules = os.pathsep.join([str(PROJECT / "lab"), str(PROJECT / "tools")])
    os.execve(words[0], [words[0], "-B", *words[1:]], {**os.environ, "PYTHONPATH": modules, "PYTHONDONTWRITEBYTECODE": "1"})


def ensure(tests: bool = False) -> Path:
    """The environment's interpreter, with everything installed. Failure when something cannot be had. Downloads once."""
    if sys.version_info < PYTHON_LEAST:
        raise Failure(f"the lab needs Python {PYTHON_LEAST[0]}.{PYTHON_LEAST[1]} or newer; this is {sys.version.split()[0]} ({sys.executable})")
    python = PLACE / "bin/python"
    if not python.exists() or marked(LOCK, PLACE) != key(LOCK):
        make()
    if tests and marked(TEST_LOCK, PLACE) != key(TEST_LOCK):
        install(TEST_LOCK, PLACE)
    return python


def make() -> None:
    """Make the environment beside its place, and rename it. Nothing in it is run by a path that the renaming breaks."""
    have_venv()
    fresh = PLACE.with_name("venv.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.parent.mkdir(parents=True, exist_ok=True)
    step(f"making a virtual environment for the lab in {show(PLACE)}")
    try:
        call([sys.executable, "-m", "venv", str(fresh)], "cannot make a virtual environment")
        install(LOCK, fresh)
    except BaseException:   # Ctrl-C, too
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(PLACE, ignore_errors=True)
    fresh.rename(PLACE)


def install(lock: Path, place: Path) -> None:
    """Install what a lock file names, each file checked against its hash."""
    note(f"from {show(lock)}: " + " ".join(pinned(lock)))
    words = [str(place / "bin/python"), "-m", "pip", "install", "--require-hashes", "--no-deps", "--disable-pip-version-check",
             "--no-input", "--quiet", "--requirement", str(lock)]
    call(words, f"cannot install what {show(lock)} names")
    (place / lock.name).write_text(key(lock))


def pinned(lock: Path) -> list:
    """name==version of each line of a lock file."""
    return [line.split()[0] for line in lock.read_text().splitlines() if line[:1].isalnum()]


def key(lock: Path) -> str:
    """Changes with the lock file and with the interpreter."""
    return hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()


def marked(lock: Path, place: Path) -> str:
    """The key of what is installed; empty when it is not."""
    marker = place / lock.name
    return marker.read_text() if marker.exists() else ""


def have_venv() -> None:
    """See to it that this Python can make virtual environments; Debian has that in a package of its own."""
    if can_make():
        return
    install_packages(["python3-venv"])
    if not can_make():
        raise Failure(f"{sys.executable} has no ensurepip, so it cannot make virtual environments; use Debian's /usr/bin/python3")


def can_make() -> bool:
    """Whether `python3 -m venv` can work; asked in a new process, for the answer changes."""
    return subprocess.run([sys.executable, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def browser() -> None:
    """See to it that the test of the page has a browser; where none can be had, that test says so and is skipped."""
    missing = [package for program, package in BROWSER.items() if not shutil.which(program)]
    if missing:
        try:
            install_packages(missing)
        except Failure as failure:
            note(f"going on without a browser: {failure}")


def install_packages(packages: list) -> None:
    """Install Debian packages as root; Failure that tells the command otherwise."""
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Failure(f"missing on this machine: {', '.join(packages)}; as root: {' '.join(command)}")
    step("installing " + ", ".join(packages))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    call(command, "cannot install " + ", ".join(packages), environment)


def call(words: list, complaint: str, environment: dict = None) -> None:
    """Run a command without its chatter; Failure with the end of what it said."""
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    if done.returncode != 0:
        raise Failure(f"{complaint}:\n{apt.last_lines(done.stdout, 6)}")
