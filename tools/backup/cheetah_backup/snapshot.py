"""The engine's part: a snapshot that the server writes among its own files, as links."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from cheetah_client.say import Failure, line

MANIFEST, TITLE, VERSION = "MANIFEST", "cheetah snapshot ", 1
CONTROL = "CONTROL"
# These files are taken and removed first. The server removes an incomplete snapshot when it starts.
FIRST = (MANIFEST, CONTROL)
PREFIX = "cheetah-backup-"   # the prefix of directories that only this program creates


@dataclass
class Manifest:
    """The contents of a snapshot according to its manifest (docs/developers/format.md)."""

    notes: dict
    paths: list
    withdrawn: int   # the number of prepared transactions that are rolled back in the snapshot


def parse(text: str, place) -> Manifest:
    """Parses a manifest. Raises Failure if the manifest has another version or is incomplete."""
    lines = text.rstrip("\n").split("\n")
    if not lines[0].startswith(TITLE):
        raise Failure(f"{place} is no manifest of a snapshot")
    if lines[0] != f"{TITLE}{VERSION}":
        raise Failure(f"{place} was written by another version of the engine ('{lines[0]}'): use "
                      "the cheetah-backup of that version")
    if not lines[-1].startswith("end "):
        raise Failure(f"{place} was not written to its end")
    notes = dict(one.split(" ", 2)[1:] for one in lines if one.startswith("note "))
    paths = [one.split(" ")[1] for one in lines if one.startswith("file ")]
    withdrawn = next(int(one.split(" ")[1]) for one in lines if one.startswith("withdrawn "))
    return Manifest(notes, paths, withdrawn)


def read(folder: Path) -> Manifest:
    place = folder / MANIFEST
    try:
        return parse(place.read_text(), place)
    except FileNotFoundError as failure:
        raise Failure(f"{place} is missing: the snapshot was not finished, or has been opened "
                      "since") from failure


def is_final(path: str) -> bool:
    """Returns whether a file is never written to again, not even when a server opens the snapshot:
    segments, change files and the base of the map, but not CONTROL and logs."""
    return path.startswith(("seg/", "chg/")) or path.endswith(".base")


def taking(folder: Path, manifest: Manifest):
    """Yields each path to copy, and removes the file afterwards, which may occupy freed space."""
    others = [path for path in manifest.paths if path not in FIRST]
    for path in (*FIRST, *others):
        yield path
        (folder / path).unlink(missing_ok=True)   # the caller may have moved the file


def size_of(folder: Path, manifest: Manifest) -> int:
    return sum((folder / path).stat().st_size for path in (MANIFEST, *manifest.paths))


def remove(folder: Path) -> None:
    for name in FIRST:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def remove_left(snapshots: Path) -> None:
    """Removes the snapshots of killed runs. Only one cheetah-backup runs at a time."""
    for folder in snapshots.glob(PREFIX + "*"):
        line(f"removing {folder}, which a run has left that was killed")
        remove(folder)
