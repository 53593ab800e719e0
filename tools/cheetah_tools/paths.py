"""Paths. The tools write to `var/` (or `$CHEETAH_VAR`) and `build/`.

`$CHEETAH_SERVER` chooses the server's series (`make .. SERVER=11.8`). Files of a series other than
the first are in subfolders named after the series."""

import os
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FIRST_SERIES = "10.11"
SERIES = os.environ.get("CHEETAH_SERVER") or FIRST_SERIES


def of_series(folder: Path) -> Path:
    return folder if SERIES == FIRST_SERIES else folder / SERIES


COMMON = Path(os.environ.get("CHEETAH_VAR") or PROJECT / "var").resolve()   # shared by all series
VAR = of_series(COMMON)
BUILD = of_series(PROJECT / "build")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or PROJECT / "target").resolve()

SERVER = VAR / "server"        # unpacked packages: usr/sbin/mariadbd, usr/bin/mariadb ...
HEADERS = VAR / "headers"      # private headers of the server's source
SOURCE = VAR / "source"        # the source package itself (data of the demonstration)
APT = COMMON / "apt"           # private package lists and download cache
RUN = VAR / "run"              # `make up`: data, socket, my.cnf
STAMP = VAR / "setup.json"     # what set-up installed, written last

PLUGIN = BUILD / "ha_cheetah.so"


def shared_data() -> Path:
    """Returns the folder of data sets next to the project (it may be absent)."""
    given = os.environ.get("CHEETAH_DATA")
    return Path(given) if given else PROJECT.parent / "shared" / "data"


def show(path: Path) -> str:
    """Returns a readable path, relative to the project where possible."""
    try:
        return str(Path(path).relative_to(PROJECT))
    except ValueError:
        return str(path)


def emptied(folder: Path) -> Path:
    """Deletes a folder with all that it contains, creates it again, and returns its path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def make(target: str) -> str:
    """Returns the command for the user's next step, for the chosen series."""
    return f"make {target}" if SERIES == FIRST_SERIES else f"make {target} SERVER={SERIES}"
