"""The other engines' files, which mariadb-backup prepares and puts in place.

mariadb-backup does not sync the files it copies or moves, so this module syncs them. Otherwise a
power cut could empty files of a server that has acknowledged commits meanwhile.
"""

from pathlib import Path

from . import copying
from .server import data_option, mariadb_backup

OUR_PREFIX = "#cheetah"   # names with this prefix in a data folder are already durable


def prepare(options, rest: Path) -> None:
    """Prepares the copied files with mariadb-backup."""
    mariadb_backup(options, "made ready to start from", "--prepare", f"--target-dir={rest}")


def put_into_place(options, what: str, data: Path, *words) -> None:
    """Copies or moves the files into the data folder with mariadb-backup, according to `words`.
    Afterwards their content is durable. Their names become durable when their folders are
    synced."""
    mariadb_backup(options, what, *words, data_option(data), "--force-non-empty-directories")
    for place in data.iterdir():
        if not place.name.startswith(OUR_PREFIX):
            copying.sync_files(place)
