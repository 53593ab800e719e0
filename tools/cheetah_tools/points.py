"""Point selects by primary key: the load program of tools/load/point_select.cc."""

import subprocess

from . import own_loader, setup
from .paths import BUILD, PROJECT, SERVER
from .say import Failure

SECONDS = 4
# enough to keep all threads awake; the connections share two processors with the server
CONNECTIONS = 8


def rate(server, program, database: str, key_table: str, key: str) -> float:
    """Returns the point selects per second after everything was read once."""
    server.sql(f"SELECT COUNT(*), MAX(LENGTH(CONCAT_WS('', `{key}`))) "
               f"FROM {key_table} FORCE INDEX (PRIMARY)", database)
    once(server, program, database, key_table, key, 1)   # warms up
    return once(server, program, database, key_table, key)


def once(server, program, database: str, key_table: str, key: str, seconds: int = SECONDS) -> float:
    """Returns the point selects per second of one run, without a warm-up."""
    top = server.value(f"SELECT MAX(`{key}`) FROM {key_table}", database)
    words = [str(program), str(server.socket), database, key_table, key, str(top), str(seconds),
             str(CONNECTIONS)]
    done = subprocess.run(words, env=setup.library_environment(), text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        raise Failure(done.stderr.strip())
    return float(done.stdout)


def build():
    source, target = PROJECT / "tools/load/point_select.cc", BUILD / "point_select"
    BUILD.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        library = next(SERVER.glob("usr/lib/*/libmariadb.so.3"))
        words = ["g++", "-O2", "-std=c++17", "-pthread", f"-I{SERVER / 'usr/include/mariadb'}",
                 str(source), str(library), *own_loader.linked(SERVER), "-o", str(target)]
        if subprocess.run(words, check=False).returncode != 0:
            raise Failure("tools/load/point_select.cc does not compile")
    return target
