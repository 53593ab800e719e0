"""The rest of the server: what mariadb-backup makes ready, and puts into its place.

It syncs nothing that it copies or moves, so that is done here. Otherwise a power cut leaves empty
files under a server that has acknowledged commits since.
"""

from pathlib import Path

from . import copying
from .server import data_option, mariadb_backup

OUR_PREFIX = "#cheetah"   # names in a data folder that begin so are durable already


def prepare(options, rest: Path) -> None:
    """Have mariadb-backup make ready what it has copied."""
    mariadb_backup(options, "made ready to start from", "--prepare", f"--target-dir={rest}")


def put_into_place(options, what: str, data: Path, *words) -> None:
    """Have mariadb-backup copy or move its files into the data folder, as `words` say. Their bytes
    are durable then; their names are with their folders."""
    mariadb_backup(options, what, *words, data_option(data), "--force-non-empty-directories")
    for place in data.iterdir():
        if not place.name.startswith(OUR_PREFIX):
            copying.sync_files(place)
