"""Shows, verifies and restores a backup."""

import os
from pathlib import Path

from cheetah_client.connection import text
from cheetah_client.say import Failure, line, size

from . import copying, record, snapshot
from .make import check_empty, is_of_length, make_empty, tell_position
from .record import CHEETAH, NAME, SERVER
from .rest import put_into_place

SHOWN_MAX = 10


def show(options) -> None:
    folder = Path(options.target).resolve()
    made = record.read(folder)
    line(f"{made.kind} backup, made at {made.made} of MariaDB {made.server}")
    if made.base:
        line(f"made after {made.base}; it is complete without that one")
    if shared := sum(file.bytes for file in made.files if (place := folder / file.path).exists()
                     and place.stat().st_nlink > 1):
        line(f"{size(shared)} of its files are links that another backup has, too")
    for part in (CHEETAH, SERVER):
        files = [file for file in made.files if file.path.startswith(part + "/")]
        line(f"{part}: {len(files)} files, {size(sum(file.bytes for file in files))}")
    tell_position(made)


def verify(options) -> None:
    folder = Path(options.target).resolve()
    made = record.read(folder)
    pace = copying.Pace(options.rate, "reading", made.bytes())
    wrong = [f"{file.path}: {why}" for file in made.files if (why := defect(folder, file, pace))]
    wrong += [f"{path}: not a file of the backup" for path in unknown_files(folder, made)]
    pace.progress.end(size(made.bytes()))
    if wrong:
        more = f"\n  and {len(wrong) - SHOWN_MAX} more" if len(wrong) > SHOWN_MAX else ""
        raise Failure(f"{folder} is damaged: do not restore it.\n  "
                      + "\n  ".join(wrong[:SHOWN_MAX]) + more)
    line(f"{folder} is whole: {len(made.files)} files")


def unknown_files(folder: Path, made) -> list:
    known = {NAME, *(file.path for file in made.files)}
    found = [str(place.relative_to(folder)) for place in folder.rglob("*") if place.is_file()]
    return sorted(path for path in found if path not in known)


def defect(folder: Path, file, pace) -> str:
    """Returns what is wrong with a file of a backup, or ""."""
    place = folder / file.path
    if not place.exists():
        return "missing"
    if (count := place.stat().st_size) != file.bytes:
        return f"it has {count} bytes instead of {file.bytes}"
    return "" if copying.digest_of(place, pace) == file.digest else "its bytes have changed"


def restore(options) -> None:
    """Runs the command `restore`. The manifest comes first: as long as files that it names are
    missing, the engine refuses to start, so no server starts from an incomplete restore."""
    folder, data = Path(options.target).resolve(), Path(options.data_dir).resolve()
    made = record.read(folder)
    missing = [file.path for file in made.files if not is_of_length(folder / file.path, file.bytes)]
    if missing:
        raise Failure(f"{folder} is not whole: {missing[0]} is missing or has another length, and "
                      f"{len(missing) - 1} more. Nothing was restored")
    # In the engine's part, only files named in the record are restored.
    if unknown := [path for path in unknown_files(folder, made) if path.startswith(SERVER + "/")]:
        raise Failure(f"{folder} has files that are not of the backup: {unknown[0]}, and "
                      f"{len(unknown) - 1} more. The server would take them for its own. Unpack a "
                      "stream into an empty folder. Nothing was restored")
    snapshot.read(folder / CHEETAH)
    check_empty(data)
    check_rest(folder, made, options.rate)
    was_there = make_empty(data)
    ours = sorted((file for file in made.files if file.path.startswith(CHEETAH + "/")),
                  key=lambda file: not file.path.endswith("/" + snapshot.MANIFEST))
    pace = copying.Pace(options.rate, "Cheetah's files", sum(file.bytes for file in ours))
    put(folder, data, ours[0], pace)
    copying.sync_tree(data)
    put_into_place(options, "the other engines", data, "--copy-back",
                   f"--target-dir={folder / SERVER}")
    for file in ours[1:]:
        put(folder, data, file, pace)
    # The owner of a new folder is unknown.
    has_owner = was_there and copying.give_to(data.stat(), data)
    os.sync()   # for owners, and for files that an option file places elsewhere
    copying.sync_tree(data)
    pace.progress.end(size(pace.progress.total))
    line("restored; the server can be started" + ("" if has_owner else
         f" when its user owns all of that: chown -R mysql: {data}"))
    tell_next(made)


def check_rest(folder: Path, made, rate) -> None:
    """Compares the files that mariadb-backup will copy with the record."""
    files = [file for file in made.files if file.path.startswith(SERVER + "/")]
    pace = copying.Pace(rate, "checking the other engines' files",
                        sum(file.bytes for file in files))
    for file in files:
        if why := defect(folder, file, pace):
            raise Failure(f"{folder / file.path}: {why}. Nothing was restored")
    pace.progress.end(size(pace.progress.total))


def put(folder: Path, data: Path, file, pace) -> None:
    """Copies a file of the engine to its place. It is no link, as the server may write to it."""
    target = data / "#cheetah" / file.path.removeprefix(CHEETAH + "/")
    target.parent.mkdir(mode=copying.FOLDER_MODE, parents=True, exist_ok=True)
    if copying.copy(folder / file.path, target, pace) != file.digest:
        raise Failure(f"{folder / file.path}: its bytes have changed since the backup. Restore "
                      f"another one, into an empty folder; {data} is of no use")


def tell_next(made) -> None:
    if not (made.position and made.position[0]):
        return
    name, position = made.position
    line("then, to go on to a moment, with the binary logs of the server that was backed up:\n"
         f"  mariadb-binlog --start-position={position} --stop-datetime='YYYY-MM-DD hh:mm:ss' "
         f"{name} ... | mariadb")
    line("or, to make it a replica of that server:\n  "
         + (f"SET GLOBAL gtid_slave_pos = '{made.gtid}';\n  CHANGE MASTER TO MASTER_HOST = ..., "
            "MASTER_USE_GTID = slave_pos;" if made.gtid else
            f"CHANGE MASTER TO MASTER_HOST = ..., MASTER_LOG_FILE = {text(name)}, "
            f"MASTER_LOG_POS = {position};"))
