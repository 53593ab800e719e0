"""`make sql-tests`: every script of tests/sql runs on InnoDB and on Cheetah in one private server; both must show the same.

The language of the scripts is described in `sqlscript.py`. Rows, affected rows, info texts, errors and warnings with
their numbers and wording are compared; the name of the engine counts as equal.
"""

import argparse
import difflib
import shutil
import time

from . import sqlscript, sqlside
from .paths import PROJECT
from .say import Failure, note
from .server import PrivateServer, scratch

SCRIPTS = PROJECT / "tests" / "sql"
REFERENCE = "InnoDB"
OPTIONS = {"innodb_buffer_pool_size": "96M", "innodb_flush_log_at_trx_commit": 2, "innodb_stats_persistent": 0,
           "innodb_autoinc_lock_mode": 1, "event_scheduler": "off", "query_cache_type": 1, "query_cache_size": "4M",
           "loose_cheetah_flush_log_at_trx_commit": 2}
DIFFERENCES_SHOWN = 6
LINES_SHOWN = 24


def main(arguments: list) -> int:
    """The command; exit status 1 when a script shows a difference."""
    parser = argparse.ArgumentParser(description="SQL scripts on InnoDB and Cheetah, compared")
    parser.add_argument("names", nargs="*", help="scripts (default: all)")
    parser.add_argument("--engine", default="CHEETAH", help="the engine to compare with InnoDB")
    parser.add_argument("--all", action="store_true", help="every collation, not a sample")
    parser.add_argument("--record", action="store_true", help="write the .expected files anew")
    parser.add_argument("--show", action="store_true", help="print the whole record of the engine")
    choice = parser.parse_args(arguments)
    names = [name.removesuffix(".sql") for name in choice.names] or sorted(p.stem for p in SCRIPTS.glob("*.sql"))
    folder = scratch("sqltests")
    bad, started = [], time.monotonic()
    server = PrivateServer(folder, OPTIONS)
    with server:
        if not server.has_engine(choice.engine):
            raise Failure(f"engine {choice.engine} is not in this server; make build")
        for name in names:
            began = time.monotonic()
            problems = run_script(server, name, choice)
            print(f"{'FAIL' if problems else 'ok  '} {name} ({time.monotonic() - began:.1f} s)", flush=True)
            for problem in problems[:DIFFERENCES_SHOWN]:
                note(problem)
            if len(problems) > DIFFERENCES_SHOWN:
                note(f".. and {len(problems) - DIFFERENCES_SHOWN} more")
            if problems:
                bad.append(name)
            revive(server)
    server.remove()
    if bad:
        print("different: " + " ".join(bad))
    print(f"{REFERENCE} and {choice.engine} compared in {time.monotonic() - started:.0f} s")
    print(f"sql: {len(names) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


def run_script(server, name: str, choice) -> list:
    """Run one script on both engines; what is wrong, as texts."""
    place = SCRIPTS / f"{name}.sql"
    if not place.exists():
        raise Failure(f"there is no tests/sql/{name}.sql")
    steps = sqlscript.expand(sqlscript.parse(place.read_text(), place.name), lambda query: rows_of(server, query), choice.all)
    sides = []
    for engine in (REFERENCE, choice.engine):
        skipped = sqlscript.INNODB_ONLY if engine == "CHEETAH" else sqlscript.CHEETAH_ONLY
        files = scratch("sqlfiles")
        side = sqlside.Side(server, engine, files)
        try:
            side.prepare()
            side.run([step for step in steps if step.where != skipped])
        except sqlside.Lost as failure:
            return [f"the server was lost on {engine} ({failure}) after line {last_line(side)}; end of its log:\n{server.log_tail(40)}"]
        except Failure as failure:
            return [f"{failure}"]
        finally:
            shutil.rmtree(files, ignore_errors=True)
        sides.append(side)
    sqlside.drop_databases(server)
    if choice.show:
        print("\n".join(text_of(record) for record in sides[1].records))
    return (slips(sides[0], name) + differences(name, *(common(side) for side in sides))
            + expectations(name, sides[1], choice))


def rows_of(server, query: str) -> list:
    """The rows of a loop's query, as texts."""
    return [[str(value) for value in row] for row in server.sql(query, "mysql")]


def last_line(side) -> int:
    """The line of the last step that gave an answer."""
    return side.records[-1].step.line if side.records else 0


def common(side) -> list:
    """The records that both sides have."""
    return [record for record in side.records if record.step.where == sqlscript.BOTH]


def slips(side, name: str) -> list:
    """Errors on the reference that the script did not announce, or announced otherwise."""
    found = []
    for record in side.records:
        announced = record.step.options.get("error")
        if announced is not None and record.error != int(announced):
            found.append(f"{name}.sql:{record.step.line}: error {announced} was announced, but {REFERENCE} gave {record.lines[:2]}")
        elif announced is None and record.error in sqlscript.SLIPS:
            found.append(f"{name}.sql:{record.step.line}: not announced: {record.lines[0]}\n    {record.step.text[:300]}")
    return found


def differences(name: str, left: list, right: list) -> list:
    """Statements that showed something else on the two engines."""
    found = []
    for one, two in zip(left, right):
        if one.lines != two.lines:
            delta = list(difflib.unified_diff(one.lines, two.lines, "InnoDB", "engine under test", lineterm="", n=1))[2:]
            shown = "\n".join("      " + line[:300] for line in delta[:LINES_SHOWN])
            found.append(f"{name}.sql:{one.step.line}: {one.step.text[:400]}\n{shown}")
    if len(left) != len(right):
        found.append(f"{name}: {len(left)} records on InnoDB, {len(right)} on the engine under test")
    return found


def expectations(name: str, side, choice) -> list:
    """The blocks that only Cheetah runs, against the .expected file."""
    records = [record for record in side.records if record.step.where == sqlscript.CHEETAH_ONLY]
    if not records:
        return []
    place = SCRIPTS / f"{name}.expected"
    text = "\n".join(text_of(record) for record in records) + "\n"
    if choice.record:
        place.write_text(text)
        return []
    wanted = place.read_text() if place.exists() else ""
    if text == wanted:
        return []
    delta = difflib.unified_diff(wanted.splitlines(), text.splitlines(), "expected", "got", lineterm="", n=2)
    return [f"{name}.expected:\n" + "\n".join("      " + line[:300] for line in list(delta)[2:2 + LINES_SHOWN])]


def text_of(record) -> str:
    """A record as it stands in .expected files."""
    return f"> {record.step.text}" + "".join("\n" + line for line in record.lines)


def revive(server) -> None:
    """Start the server again after it died in a script."""
    if server.process is None or server.died():
        server.process = None
        server.start()
