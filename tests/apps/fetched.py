"""Packages that applications need from registries, unpacked privately in `var/apps`.

Each package folder is built under a temporary name, then renamed, and reused by later runs. A test
whose packages cannot be fetched is skipped with the reason."""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cheetah_tools import apt, environment, setup
from cheetah_tools.paths import COMMON, SERVER
from cheetah_tools.say import Failure, step

PLACE = COMMON / "apps"
HERE = Path(__file__).resolve().parent
LOCK, SOURCES_LOCK = HERE / "requirements.lock", HERE / "sources.lock"


def debian(name: str, packages: list, programs: list) -> Path:
    """Returns the folder with these Debian packages and the libraries that its `programs` lack."""
    return made(name, repr((packages, programs)), lambda fresh: unpack(packages, programs, fresh))


def unpack(packages: list, programs: list, root: Path) -> None:
    step("downloading " + " ".join(packages))
    debs = root.with_suffix(".debs")
    shutil.rmtree(debs, ignore_errors=True)
    archive().download(packages, debs)
    root.mkdir(parents=True)
    setup.unpack_debs(sorted(debs.glob("*.deb")), root)
    setup.complete(archive(), programs, root)
    relink(root)
    (root / "versions").write_text("\n".join(sorted(deb.stem for deb in debs.iterdir())))
    shutil.rmtree(debs)


def libraries(root: Path) -> dict:
    """Returns environment variables with which the folder's programs find their libraries."""
    places = [setup.library_environment(place)["LD_LIBRARY_PATH"] for place in (root, SERVER)]
    return {"LD_LIBRARY_PATH": ":".join(filter(None, places))}


def version(root: Path, package: str) -> str:
    """Returns the upstream version of a package in a folder that `debian` made."""
    for line in (root / "versions").read_text().splitlines():
        if line.startswith(package + "_"):
            return line.split("_")[1].replace("%3a", ":").split(":")[-1].split("+")[0].split("-")[0]
    raise AssertionError(f"no {package} in {root}")


def relink(root: Path) -> None:
    """Changes links to absolute paths so that they point to the same path inside the folder."""
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            link = Path(folder, name)
            if link.is_symlink() and os.readlink(link).startswith("/"):
                inner = root / os.readlink(link).lstrip("/")
                link.unlink()
                link.symlink_to(os.path.relpath(inner, folder))


def python() -> Path:
    """Returns the interpreter of a virtual environment with the packages of `requirements.lock`."""
    def make(fresh: Path) -> None:
        environment.call([sys.executable, "-m", "venv", str(fresh)], "cannot make an environment")
        environment.install(LOCK, fresh)
    return made("python", environment.key(LOCK), make) / "bin/python"


def pinned(package: str) -> str:
    """Returns the version of a Python package from the lock file."""
    return next(pin for pin in environment.pinned(LOCK)
                if pin.startswith(package + "==")).split("==")[1]


def python_source(package: str) -> Path:
    """Returns the source, with tests, of a Python package in the environment."""
    pin = next(line for line in SOURCES_LOCK.read_text().splitlines()
               if line.startswith(package + "=="))
    name = pin.split()[0]
    assert name in environment.pinned(LOCK), f"{SOURCES_LOCK} and {LOCK} differ in {name}"

    def make(fresh: Path) -> None:
        step(f"downloading the source of {name}")
        fresh.mkdir(parents=True)
        (fresh / "pin").write_text(pin)
        environment.call([str(python()), "-m", "pip", "download", "--no-deps", "--no-input",
                          "--disable-pip-version-check", "--quiet", "--no-binary", package,
                          "--require-hashes", "--dest", str(fresh), "--requirement",
                          str(fresh / "pin")], f"cannot download the source of {name}")
        subprocess.run(["tar", "-xzf", next(fresh.glob("*.tar.gz")), "-C", fresh,
                        "--strip-components=1"], check=True)
    return made(package + "-source", pin, make)


def node() -> str:
    """Returns the path of `node`. Skips the test if node or npm is missing."""
    found = shutil.which("node")
    if not found or not shutil.which("npm"):
        pytest.skip("Node's applications need node and npm, which this machine lacks")
    return found


def node_packages(folder: str) -> Path:
    """Returns a folder with the packages of `folder`'s lock file. No install scripts run."""
    node()
    sources = HERE / folder

    def make(fresh: Path) -> None:
        step(f"downloading the packages of {folder}")
        fresh.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(sources / name, fresh / name)
        environment.call(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix",
                          str(fresh)], f"cannot download the packages of {folder}")
    return made(folder, (sources / "package-lock.json").read_text(), make)


def go_program(folder: str, module: str, package: str, patch: dict) -> Path:
    """Builds the program `package` from the Go module that `folder` (next to this file) pins, and
    returns its path. Requires Go. `patch` maps a file of the module to (old text, new text)."""
    go = shutil.which("go")
    if not go:
        pytest.skip(f"{folder} is built with Go, which this machine lacks (package golang-go)")
    sources = HERE / folder
    settings = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}

    def make(fresh: Path) -> None:
        step(f"building {package}")
        fresh.mkdir(parents=True)
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(sources / name, fresh / name)

        def call(*words) -> str:
            done = subprocess.run([go, *words], cwd=fresh, env=settings, text=True,
                                  capture_output=True, check=False)
            if done.returncode != 0:
                raise Failure(f"go {' '.join(words)}:\n" + apt.last_lines(done.stderr, 4))
            return done.stdout
        call("mod", "download", module)
        place = fresh / "module"
        shutil.copytree(call("list", "-m", "-f", "{{.Dir}}", module).strip(), place)
        subprocess.run(["chmod", "-R", "u+w", place], check=True)
        for name, (old, new) in patch.items():
            text = (place / name).read_text()
            assert old in text, f"{name} of {module}"
            (place / name).write_text(text.replace(old, new))
        call("mod", "edit", f"-replace={module}=./module")
        call("build", "-o", folder, package)
    pins = "".join((sources / name).read_text() for name in ("go.mod", "go.sum"))
    return made(folder, pins + package + repr(patch), make) / folder


def made(name: str, recipe: str, make) -> Path:
    """Returns the folder `name`, made if its recipe is new. Skips the test if the build fails."""
    place, key = PLACE / name, hashlib.sha256(recipe.encode()).hexdigest()
    marker = place / "cheetah-recipe"
    if marker.exists() and marker.read_text() == key:
        return place
    fresh = place.with_name(name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    PLACE.mkdir(parents=True, exist_ok=True)
    try:
        make(fresh)
    except Failure as failure:
        shutil.rmtree(fresh, ignore_errors=True)
        pytest.skip(f"{name} cannot be had: {failure}")
    (fresh / "cheetah-recipe").write_text(key)
    setup.swap(fresh, place)
    return place


@functools.cache
def archive() -> apt.Archive:
    """Returns the list of available packages, fetched once."""
    found = apt.Archive()
    found.update()
    return found
