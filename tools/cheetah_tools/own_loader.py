"""Programs of another Debian release than this machine's, run here as they are.

A program starts with the loader that it names, and finds its C library where that looks. Set-up
puts both beside the private server, and writes their places into each of its programs. So they need
no container and no root, every tool starts them as it starts the machine's own, and what they start
in turn (shells, perl) gets the machine's libraries.
"""

import os
import re
import subprocess
from pathlib import Path

from .say import Failure, note

PATCHELF = "usr/bin/patchelf"
ELF = b"\x7fELF"


def library_folders(root: Path) -> list:
    """The folders of shared libraries below `root`."""
    places = [root / prefix / f"{machine}-linux-gnu" for prefix in ("usr/lib", "lib")
              for machine in ("x86_64", "aarch64")]
    return [str(place) for place in places if place.is_dir()]


def of(root: Path) -> Path | None:
    """The loader below `root`; None where programs use the machine's."""
    return next(root.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"), None)


def words(root: Path, *arguments) -> list:
    """A command line that runs a program with the loader below `root`, and with no other
    libraries than those there."""
    folders = ":".join(library_folders(root))
    return [str(of(root)), "--inhibit-cache", "--library-path", folders, *map(str, arguments)]


def linked(root: Path) -> list:
    """Words for the compiler of a program that is to use the loader and the libraries below `root`;
    none where programs use the machine's."""
    loader = of(root)
    if loader is None:
        return []
    # What its libraries need of a newer C library is there when it runs.
    return [f"-Wl,--dynamic-linker={loader}", "-Wl,--allow-shlib-undefined",
            "-Wl,--disable-new-dtags", "-Wl,-rpath," + ":".join(library_folders(root))]


def missing_libraries(root: Path, program: str) -> set:
    """Names of libraries that the program finds outside `root`, or not at all."""
    # Unlike --list, this does not end at the first that is nowhere.
    listed = subprocess.run(words(root, root / program),
                            env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
                            text=True, capture_output=True, check=False)
    found = re.findall(r"^\s*(\S+) => (not found|/\S+)", listed.stdout, re.M)
    return {name for name, place in found if not place.startswith(f"{root}/")}


def give(root: Path, place: Path) -> None:
    """Let every program below `root` use the loader and the libraries there, once `root` has been
    moved to `place`."""
    loader = place / of(root).relative_to(root)
    folders = ":".join(library_folders(root)).replace(f"{root}/", f"{place}/")
    count = 0
    for program in programs(root):
        # DT_RPATH, not DT_RUNPATH: that one does not count for the libraries of libraries.
        patch(root, "--set-interpreter", loader, "--force-rpath", "--set-rpath", folders, program)
        count += 1
    note(f"{count} programs use the loader of their own Debian release")


def programs(root: Path) -> list:
    """Programs below `root` that name a loader."""
    found = [file for file in sorted(root.rglob("*")) if is_program(file)]
    return [file for file in found if patch(root, "--print-interpreter", file, may_fail=True)]


def is_program(file: Path) -> bool:
    """Whether it may be one; libraries that can be started are none."""
    if file.is_symlink() or not file.is_file() or ".so" in file.name or file.name == "patchelf":
        return False
    with open(file, "rb") as content:
        return bool(file.stat().st_mode & 0o100) and content.read(len(ELF)) == ELF


def patch(root: Path, *arguments, may_fail: bool = False) -> bool:
    """Run patchelf, which is a program of that release, too; whether it succeeded."""
    done = subprocess.run(words(root, root / PATCHELF, *arguments), text=True, capture_output=True,
                          check=False)
    if done.returncode != 0 and not may_fail:
        raise Failure(f"patchelf: {done.stderr.strip()}")
    return done.returncode == 0
