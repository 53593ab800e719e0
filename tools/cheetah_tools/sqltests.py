"""SQL tests: scripts in tests/sql, run through the ordinary client on Cheetah.

A script with a file of the same name ending in `.expected` must print that; any other must print what it prints on
InnoDB in the same server, the engine's name masked. A line `-- restart` or `-- kill` stops or kills the server there.
`--accept` rewrites the expected files from what Cheetah prints.
"""

import argparse
import difflib
import re
import subprocess
from pathlib import Path

from .paths import PROJECT
from .say import Failure
from .server import PrivateServer, scratch

SCRIPTS = PROJECT / "tests/sql"
TURNS = re.compile(r"^-- (restart|kill)\s*$", re.M)


def main(arguments: list) -> int:
    """The command; 1 when a script prints something else."""
    parser = argparse.ArgumentParser(description="run the scripts of tests/sql")
    parser.add_argument("--engine", default="CHEETAH")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("names", nargs="*", help="only scripts whose name contains one of these")
    choice = parser.parse_args(arguments)
    scripts = [s for s in sorted(SCRIPTS.glob("*.sql")) if not choice.names or any(n in s.name for n in choice.names)]
    server = PrivateServer(scratch("sql"), {"innodb_lock_wait_timeout": 2, "loose_cheetah_lock_wait_timeout": 2})
    failed = []
    with server:
        if not server.has_engine(choice.engine):
            raise Failure(f"engine {choice.engine} is not in this server; make build")
        for script in scripts:
            difference = check(server, script, choice)
            if difference:
                failed.append(script.name)
                print(f"FAILED {script.name}\n{difference}", flush=True)
    server.remove()
    print(f"sql: {len(scripts) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def check(server, script: Path, choice) -> str:
    """What differs, as a text; empty when nothing does."""
    expected = script.with_suffix(".expected")
    printed = run(server, script, choice.engine)
    if expected.exists() and choice.accept:
        expected.write_text(printed)
        return ""
    wanted = expected.read_text() if expected.exists() else run(server, script, "InnoDB")
    lines = difflib.unified_diff(wanted.splitlines(), printed.splitlines(), "expected", choice.engine, lineterm="", n=2)
    return "\n".join(list(lines)[:40])


def run(server, script: Path, engine: str) -> str:
    """Everything the client prints for a script."""
    database = "sql_test"
    server.sql(f"DROP DATABASE IF EXISTS {database}")
    server.sql(f"CREATE DATABASE {database}")
    parts = TURNS.split(script.read_text())
    printed = []
    for position in range(0, len(parts), 2):
        head = f"SET default_storage_engine = {engine};SET timestamp = 1700000000;SET time_zone = '+00:00';"
        client = server.client("--force", "--unbuffered", "--show-warnings", "--table", database, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        # One line before the script, so that line numbers in errors are the same in every part.
        out, _ = client.communicate((head + "\n" + parts[position]).encode())
        printed.append(masked(out.decode(errors="replace"), engine))
        if server.died():
            tail = server.log_tail(30)
            server.process = None
            server.start()
            return "".join(printed) + f"\nthe server died:\n{tail}\n"
        if position + 1 < len(parts):
            server.stop() if parts[position + 1] == "restart" else server.kill()
            server.start()
    return "".join(printed)


def masked(text: str, engine: str) -> str:
    """Without the engine's name, and without the widths of columns that follow from it."""
    text = re.sub(rf"\b{engine}\b", "<ENGINE>", text, flags=re.I)
    return re.sub(r"-{3,}", "---", re.sub(r" {2,}", " ", text))
