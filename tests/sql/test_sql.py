"""Runs every script on InnoDB and on Cheetah in one private server and compares the results.

`sqlscript.py` describes the script language. The tests compare rows, affected rows, info texts, and
errors and warnings with their numbers and wording. The engine's name is ignored.
`differences-SERIES.tsv` lists statements whose results differ with one series of the server:
script, statement and reason."""

import difflib
import shutil
from pathlib import Path

import pytest
import sqlscript
import sqlside
from cheetah_tools.paths import SERIES
from cheetah_tools.server import scratch

SCRIPTS = Path(__file__).parent
REFERENCE = "InnoDB"
OPTIONS = {
    "innodb_buffer_pool_size": "96M", "innodb_log_file_size": "96M", "innodb_stats_persistent": 0,
    "innodb_flush_log_at_trx_commit": 2, "innodb_autoinc_lock_mode": 1, "event_scheduler": "off",
    "query_cache_type": 1, "query_cache_size": "4M", "loose_cheetah_flush_log_at_trx_commit": 2,
    "loose_cheetah_buffer_pool_size": "128M", "loose_cheetah_log_file_size": "64M",
    "loose_cheetah_log_size_max": "1024M",
    # The name with dashes is used because the engine's own plugin has the name with underscores.
    "plugin-load-add": "file_key_management",
    "file_key_management_filename": SCRIPTS / "encryption.keys"}
DIFFERENCES_SHOWN = 6
LINES_SHOWN = 24


@pytest.mark.parametrize("name", sorted(place.stem for place in SCRIPTS.glob("*.sql")))
def test_same_as_innodb(name, pair, request):
    choice = request.config.option
    place = SCRIPTS / f"{name}.sql"
    script = sqlscript.Parser(place.read_text(), place.name).parse()
    steps = sqlscript.expand(
        script, lambda query: [list(map(str, row)) for row in pair.sql(query, "mysql")], choice.all)
    sides = [run(pair, engine, steps) for engine in (REFERENCE, choice.engine)]
    sqlside.drop_databases(pair)
    print("\n".join(text_of(record) for record in sides[1].records) if choice.show else "")
    problems = slips(sides[0], name) + differences(name, *(
        [record for record in side.records if record.step.where == sqlscript.BOTH]
        for side in sides))
    problems += expectations(name, sides[1], choice)
    assert not problems, "\n".join([f"{len(problems)} differences", *problems[:DIFFERENCES_SHOWN]])


def run(server, engine: str, steps: list):
    skipped = sqlscript.INNODB_ONLY if engine == "CHEETAH" else sqlscript.CHEETAH_ONLY
    files = scratch("sqlfiles")
    side = sqlside.Side(server, engine, files)
    try:
        side.prepare()
        side.run([step for step in steps if step.where != skipped])
    except sqlside.Lost as failure:
        last = side.records[-1].step.line if side.records else 0
        pytest.fail(f"the server was lost on {engine} ({failure}) after line {last}")
    finally:
        shutil.rmtree(files, ignore_errors=True)
    return side


def slips(side, name: str) -> list:
    """Returns errors on the reference engine that the script did not announce correctly."""
    found = []
    for record in side.records:
        announced = record.step.options.get("error")
        if announced is not None and record.error != int(announced):
            found.append(f"{name}.sql:{record.step.line}: error {announced} was announced, but "
                         f"{REFERENCE} gave {record.lines[:2]}")
        elif announced is None and record.error in sqlscript.SLIPS:
            found.append(f"{name}.sql:{record.step.line}: not announced: {record.lines[0]}\n"
                         f"    {record.step.text[:300]}")
    return found


def differences(name: str, left: list, right: list) -> list:
    found, listed = [], listed_differences(name)
    for one, two in zip(left, right):
        if one.lines != two.lines and one.step.text not in listed:
            delta = list(difflib.unified_diff(one.lines, two.lines, lineterm="", n=1))[2:]
            shown = "\n".join("      " + line[:300] for line in delta[:LINES_SHOWN])
            found.append(f"{name}.sql:{one.step.line}: {one.step.text[:400]}\n{shown}")
    if len(left) != len(right):
        found.append(f"{name}: {len(left)} records on InnoDB, {len(right)} on the other engine")
    return found


def listed_differences(name: str) -> set:
    """Returns the statements of a script that may differ with this series of the server."""
    place = SCRIPTS / f"differences-{SERIES}.tsv"
    lines = place.read_text().splitlines() if place.exists() else []
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {statement for script, statement, _reason in rows if script == name}


def expectations(name: str, side, choice) -> list:
    """Compares the blocks that run only on Cheetah with the .expected file."""
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
    delta = list(difflib.unified_diff(wanted.splitlines(), text.splitlines(), lineterm="", n=2))
    shown = "\n".join("      " + line[:300] for line in delta[2:2 + LINES_SHOWN])
    return [f"{name}.expected:\n{shown}"]


def text_of(record) -> str:
    return f"> {record.step.text}" + "".join("\n" + line for line in record.lines)
