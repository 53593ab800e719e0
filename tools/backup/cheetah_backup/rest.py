"""The other engines' files, which mariadb-backup puts in place.

mariadb-backup does not sync the files it copies or moves, so this module syncs them. Otherwise a
power cut could empty files of a server that has acknowledged commits meanwhile."""

from pathlib import Path

from . import copying
from .server import data_option, mariadb_backup

OUR_PREFIX = "#cheetah"   # names with this prefix in a data folder are already durable


def put_into_place(options, what: str, data: Path, *words) -> None:
    """Copies or moves the files into the data folder with mariadb-backup, according to `words`.
    Their content is durable then; their names are once their folders are synced."""
    mariadb_backup(options, what, *words, data_option(data), "--force-non-empty-directories")
    for place in data.iterdir():
        if not place.name.startswith(OUR_PREFIX):
            for file in filter(Path.is_file, [place, *place.rglob("*")]):
                copying.sync_file(file)
