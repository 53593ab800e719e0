"""The engine's part: a snapshot that the server writes among its own files, by links."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from cheetah_client.say import Failure, line

MANIFEST, TITLE, VERSION = "MANIFEST", "cheetah snapshot ", 1
CONTROL = "CONTROL"
# They go first: what is left then, a start of the server removes.
FIRST = (MANIFEST, CONTROL)
PREFIX = "cheetah-backup-"   # of directories that are this program's alone


@dataclass
class Manifest:
    """What a snapshot has, as its manifest says (docs/developers/format.md)."""

    notes: dict
    paths: list
    withdrawn: int   # transactions that the server had prepared, and that are rolled back in it


def parse(text: str, place) -> Manifest:
    """Read a manifest. Failure when it is of another version, or not whole."""
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
    """The manifest in a folder."""
    place = folder / MANIFEST
    try:
        return parse(place.read_text(), place)
    except FileNotFoundError as failure:
        raise Failure(f"{place} is missing: the snapshot was not finished, or has been opened "
                      "since") from failure


def is_final(path: str) -> bool:
    """Whether nobody writes to that file again, not even a server that opens the snapshot. CONTROL
    and logs are written to; segments, change files and the base of the map are not."""
    return path.startswith(("seg/", "chg/")) or path.endswith(".base")


def taking(folder: Path, manifest: Manifest):
    """Gives the path of each file that is to be taken, and removes the file afterwards: it may keep
    what the server has let go of."""
    others = [path for path in manifest.paths if path not in FIRST]
    for path in (*FIRST, *others):
        yield path
        (folder / path).unlink(missing_ok=True)   # it may have been moved


def size_of(folder: Path, manifest: Manifest) -> int:
    """Bytes of all its files."""
    return sum((folder / path).stat().st_size for path in (MANIFEST, *manifest.paths))


def remove(folder: Path) -> None:
    """Remove a snapshot."""
    for name in FIRST:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def remove_left(snapshots: Path) -> None:
    """Remove what runs have left that were killed. Only one of us runs at a time."""
    for folder in snapshots.glob(PREFIX + "*"):
        line(f"removing {folder}, which a run has left that was killed")
        remove(folder)
