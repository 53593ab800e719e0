"""Script steps that SQL cannot express: `--! shell NAME`. Each step returns lines to compare."""

import subprocess

from cheetah_tools import setup
from cheetah_tools.paths import SERVER
from cheetah_tools.say import Failure


def run(side, name: str) -> list:
    if name not in STEPS:
        raise Failure(f"unknown shell step {name}")
    return STEPS[name](side)


def dump(side) -> list:
    place = side.folder / "dump.sql"
    words = [str(SERVER / "usr/bin/mariadb-dump"), "--no-defaults",
             f"--socket={side.server.socket}", "--user=root", "--default-character-set=utf8mb4",
             "--hex-blob", "--routines", "--triggers", "--skip-dump-date",
             "--max-allowed-packet=256M",
             f"--character-sets-dir={SERVER / 'usr/share/mysql/charsets'}", "sqltest"]
    with open(place, "wb") as out:
        done = subprocess.run(words, env=setup.library_environment(), stdout=out,
                              stderr=subprocess.PIPE, check=False)
    return [f"dump: status {done.returncode} {done.stderr.decode(errors='replace').strip()}"]


def restore(side) -> list:
    return [f"restore: {feed(side, (side.folder / 'dump.sql').read_bytes())}"]


def restore_cut(side) -> list:
    """Restores the first two thirds of the dump, like an interrupted download."""
    whole = (side.folder / "dump.sql").read_bytes()
    return [f"cut dump: {feed(side, whole[:whole.rindex(b'INSERT INTO') + 300])}"]


def feed(side, text: bytes) -> str:
    """Runs a client with this text on an empty database. Returns its status and output."""
    side.server.sql("DROP DATABASE sqltest")
    side.server.sql("CREATE DATABASE sqltest CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    client = side.server.client("sqltest", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
    said, _ = client.communicate(text)
    return f"status {client.returncode} {said.decode(errors='replace').strip()[:300]}"


STEPS = {"dump": dump, "restore": restore, "restore-cut": restore_cut}
