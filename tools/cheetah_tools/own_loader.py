"""Runs programs of another Debian release than this machine's.

A program starts with the loader that it names, and finds its C library where that loader searches.
Set-up puts both next to the private server, and writes their paths into each of its programs. So
these programs need no container and no root, every tool starts them like the machine's own
programs, and their child processes (shells, perl) use the machine's libraries."""

import os
import re
import subprocess
from pathlib import Path

from .say import Failure, note

PATCHELF = "usr/bin/patchelf"
ELF = b"\x7fELF"


def library_folders(root: Path) -> list:
    places = [root / prefix / f"{machine}-linux-gnu" for prefix in ("usr/lib", "lib")
              for machine in ("x86_64", "aarch64")]
    return [str(place) for place in places if place.is_dir()]


def of(root: Path) -> Path | None:
    """Returns the loader below `root`; None if the programs use the machine's."""
    return next(root.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"), None)


def words(root: Path, *arguments) -> list:
    """Returns a command line of a program with only the loader and libraries below `root`."""
    folders = ":".join(library_folders(root))
    return [str(of(root)), "--inhibit-cache", "--library-path", folders, *map(str, arguments)]


def linked(root: Path) -> list:
    """Returns compiler options for the loader and libraries below `root`, if there is one."""
    loader = of(root)
    if loader is None:
        return []
    # At run time a newer C library provides the symbols that the libraries need.
    return [f"-Wl,--dynamic-linker={loader}", "-Wl,--allow-shlib-undefined",
            "-Wl,--disable-new-dtags", "-Wl,-rpath," + ":".join(library_folders(root))]


def missing_libraries(root: Path, program: str) -> set:
    """Returns the names of libraries that the program finds outside `root` or not at all."""
    # Unlike --list, this does not end at the first missing library.
    listed = subprocess.run(words(root, root / program),
                            env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
                            text=True, capture_output=True, check=False)
    found = re.findall(r"^\s*(\S+) => (not found|/\S+)", listed.stdout, re.M)
    return {name for name, place in found if not place.startswith(f"{root}/")}


def give(root: Path, place: Path) -> None:
    """Makes all programs use the loader and libraries there, once `root` is moved to `place`."""
    loader = place / of(root).relative_to(root)
    folders = ":".join(library_folders(root)).replace(f"{root}/", f"{place}/")
    found = [file for file in sorted(root.rglob("*"))
             if is_program(file) and patch(root, "--print-interpreter", file, may_fail=True)]
    for program in found:
        # DT_RPATH, because DT_RUNPATH does not apply to the libraries of libraries.
        patch(root, "--set-interpreter", loader, "--force-rpath", "--set-rpath", folders, program)
    note(f"{len(found)} programs use the loader of their own Debian release")


def is_program(file: Path) -> bool:
    """Returns whether a file may be a program; executable libraries do not count."""
    if file.is_symlink() or not file.is_file() or ".so" in file.name or file.name == "patchelf":
        return False
    with open(file, "rb") as content:
        return bool(file.stat().st_mode & 0o100) and content.read(len(ELF)) == ELF


def patch(root: Path, *arguments, may_fail: bool = False) -> bool:
    """Runs patchelf, itself a program of that release; returns whether it succeeded."""
    done = subprocess.run(words(root, root / PATCHELF, *arguments), text=True, capture_output=True,
                          check=False)
    if done.returncode != 0 and not may_fail:
        raise Failure(f"patchelf: {done.stderr.strip()}")
    return done.returncode == 0
