"""MariaDB's own test suites: what passes on InnoDB must pass on Cheetah or be listed.

The suites run from a tree of symlinks under `var/mtr`; only the suites in `COPIED` are copied, so
that their results can be refreshed. The results of `storage_engine` that MariaDB 10.11 ships are
out of date, so InnoDB's own output on this server is recorded and Cheetah is compared with it; a
second InnoDB run must agree with it first. The other suites use the shipped results. Exceptions are
listed in tests/mtr/expected.tsv: test, reason."""

import argparse
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import setup
from .paths import FIRST_SERIES, PLUGIN, PROJECT, SERIES, SERVER, VAR, emptied, show
from .say import Failure, note, step
from .server import plugin_folder

HOME = VAR / "mtr"
TREE = HOME / "tree"
# The folder in the server's packages. Debian 13 renamed it, and the driver depends on its name.
PLACE = "share/mysql/mysql-test" if SERIES == FIRST_SERIES else "share/mariadb/mariadb-test"
SHIPPED, TEST_ROOT = SERVER / "usr" / PLACE, TREE / PLACE
SUITES = ["storage_engine", "storage_engine/trx", "storage_engine/parts", "engines/funcs",
          "engines/iuds", "handler"]
COPIED = ["storage_engine", "engines", "handler"]
# InnoDB's tests of foreign keys, full-text keys and vectors, from other suites. They run on another
# engine with its name substituted. Tests are left out if they need combinations or a default engine
# of their own, or if they test how InnoDB stores words.
FULLTEXT = """basic foreign_key_check foreign_key_update fts_kill_query fulltext fulltext2 fulltext3
    fulltext_cache fulltext_distinct fulltext_left_join fulltext_misc fulltext_multi
    fulltext_order_by fulltext_update fulltext_var innodb_fts_large_records innodb_fts_misc_1
    innodb_fts_multiple_index innodb_fts_plugin innodb_fts_proximity innodb_fts_stopword_charset
    innodb_fts_transaction misc misc_1 multiple_index phrase savepoint stopword subexpr"""
TRANSLATED = {
    "foreign_keys": """binlog.foreign_key innodb.add_constraint innodb.add_foreign_key
        innodb.fk_col_alter innodb.fk_drop_alter innodb.innodb-fk innodb.innodb-fk-virtual
        innodb.innodb-fk-warnings innodb.innodb-fkcheck innodb.innodb-get-fk innodb.stored_fk
        rpl.rpl_foreign_key_innodb vcol.innodb_virtual_fk""".split(),
    "fulltext": [*(f"innodb_fts.{name}" for name in FULLTEXT.split()), "main.fulltext_charsets"]}
if SERIES != FIRST_SERIES:
    TRANSLATED["vectors"] = ["main.vector_innodb"]
EXPECTED = PROJECT / "tests/mtr/expected.tsv"
# A part of every suite that takes a few minutes; `make suites` runs everything.
SUBSET = re.compile(r"^(storage_engine|handler\.|engines/iuds\.|engines/funcs\.(in|de|up|re|ix)_|"
                    r"innodb_fts\.|main\.(fulltext|vector))")
RESULT_LINE = re.compile(r"^(\S+?\.\S+?)(?: '([^']*)')?\s+(?:w\d+ )?"
                         r"\[ (pass|fail|skipped|disabled|retry-\w+|exp-fail) \]")


def main(arguments: list) -> int:
    """Runs the command: `suites [--quick] [--engine X] [--fresh]`."""
    parser = argparse.ArgumentParser(description="run MariaDB's suites on InnoDB and Cheetah")
    parser.add_argument("--quick", action="store_true", help="a subset for `make test`")
    parser.add_argument("--engine", default="CHEETAH")
    parser.add_argument("--fresh", action="store_true",
                        help="run InnoDB again although its results are at hand")
    parser.add_argument("--only", default="", help="regular expression: only these tests")
    choice = parser.parse_args(arguments)
    if choice.engine == "CHEETAH" and not PLUGIN.exists():
        raise Failure(f"{show(PLUGIN)} is missing: make build")
    # Quick runs leave out listed tests, some of which take long to fail.
    wanted = [name for name in baseline(choice.fresh)
              if (not choice.quick or SUBSET.match(name) and name not in expected())
              and (not choice.only or re.search(choice.only, name))]
    step(f"{len(wanted)} tests that pass on InnoDB, now on {choice.engine}")
    results = run_suites(choice.engine, names=wanted, label=choice.engine.lower())
    return compare(wanted, results, choice.engine)


def compare(wanted: list, results: dict, engine: str) -> int:
    """Prints the differences from InnoDB; returns 1 if a difference has no listed reason."""
    reasons = expected()
    passed = [name for name in wanted if results.get(translated(name, engine)) == "pass"]
    failed = [name for name in wanted if name not in set(passed)]
    unlisted = [name for name in failed if name not in reasons]
    for name in unlisted:
        note(f"FAILED on {engine} only: {name} "
             f"({results.get(translated(name, engine), 'did not run')})")
    for name in passed:
        if name in reasons:
            note(f"passes now, take it out of {show(EXPECTED)}: {name}")
    print(f"suites: {len(passed)} of {len(wanted)} pass on {engine} as on InnoDB, "
          f"{len(failed) - len(unlisted)} differ with a listed reason, {len(unlisted)} without; "
          f"logs in {show(HOME)}")
    return 1 if unlisted else 0


def expected() -> dict:
    """Returns the listed exceptions, including those of this server series only: test -> reason."""
    files = [EXPECTED, EXPECTED.with_name(f"expected-{SERIES}.tsv")]
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    pairs = [line.split("\t", 1) for line in lines if line.strip() and not line.startswith("#")]
    return {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}


def baseline(fresh: bool) -> list:
    """Returns the tests that InnoDB passes: known for releases with a file in tests/mtr, otherwise
    or with `fresh` by running every suite. Records InnoDB's output of storage_engine if missing."""
    state = setup.ensure()
    marker, known = TREE / "recorded", EXPECTED.with_name(f"innodb-{state['version']}.txt")
    if fresh or not marker.exists() or marker.read_text() != state["package_version"]:
        build_tree()
        step("recording InnoDB's output of suite storage_engine")
        tests = [f"{suite}.{file.stem}" for suite in SUITES[:3]
                 for file in sorted((TEST_ROOT / "suite" / suite).glob("*.test"))]
        run_suites("InnoDB", names=tests, label="record", more=["--record"])
        marker.write_text(state["package_version"])
    if fresh or not known.exists():
        step("running every suite on InnoDB")
        others = [name for names in TRANSLATED.values() for name in names]
        results = {**run_suites("InnoDB", suites=SUITES, label="innodb"),
                   **run_suites("InnoDB", names=others, label="keys")}
        passed = sorted(name for name, result in results.items() if result == "pass")
        if len(passed) < 50:
            raise Failure(f"InnoDB passes hardly any test: see {show(HOME / 'innodb.log')}")
        head = ("# Tests that InnoDB passes in this release; written by "
                "`make suites ARGS=--fresh`.\n")
        setup.replace_text(known, head + "".join(name + "\n" for name in passed))
    return [line for line in known.read_text().splitlines() if not line.startswith("#")]


def build_tree() -> None:
    """Creates the tree for the driver: symlinks, and private copies of suites that change."""
    step("laying out MariaDB's test suite under " + show(TREE))
    shutil.rmtree(TREE, ignore_errors=True)
    (TEST_ROOT / "suite").mkdir(parents=True)
    # The driver requires a folder of plugin suites. The real one would add other engines' overlays.
    (TEST_ROOT / "plugin/cheetah").mkdir(parents=True)
    (TREE / "lib/mysql").mkdir(parents=True)
    (TREE / "bin").symlink_to(SERVER / "usr/bin")
    (TREE / "sbin").symlink_to(SERVER / "usr/sbin")
    (TREE / "lib/mysql/plugin").symlink_to(plugin_folder())
    link_all(SHIPPED.parent, TEST_ROOT.parent, but=[SHIPPED.name])
    link_all(SHIPPED, TEST_ROOT, but=["suite", "plugin"])
    link_all(SHIPPED / "suite", TEST_ROOT / "suite", but=COPIED)
    for name in COPIED:
        shutil.copytree(SHIPPED / "suite" / name, TEST_ROOT / "suite" / name)
    # These tests were disabled because of an outdated result, which is refreshed here.
    (TEST_ROOT / "suite/storage_engine/disabled.def").unlink(missing_ok=True)


def link_all(source: Path, target: Path, but: list) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.name not in but:
            (target / entry.name).symlink_to(entry)


def select_engine(engine: str) -> None:
    suites = TEST_ROOT / "suite"
    original = SHIPPED / "suite"
    text = (original / "storage_engine/define_engine.inc").read_text()
    (suites / "storage_engine/define_engine.inc").write_text(f"let $ENGINE = {engine};\n{text}")
    # The driver's own combinations would add engines; ours is on the command line.
    for name in ("engines/funcs", "engines/iuds"):
        (suites / name / "combinations").unlink(missing_ok=True)
    if engine != "InnoDB":
        for suffix in ("test", "result"):
            text = (original / f"handler/innodb.{suffix}").read_text()
            text = re.sub(r"(?i)(--source include/have_innodb\.inc\n)", "", text)
            (suites / f"handler/{engine.lower()}.{suffix}").write_text(
                re.sub(r"\bInnoDB\b|\binnodb\b", engine, text))
        for own_suite, names in TRANSLATED.items():
            translate(own_suite, names, engine)


def translate(own_suite: str, names: list, engine: str) -> None:
    home = TEST_ROOT / "suite" / own_suite
    shutil.rmtree(home, ignore_errors=True)
    (home / "t").mkdir(parents=True)
    (home / "r").mkdir()
    for name in names:
        suite, test = name.split(".", 1)
        folder = SHIPPED / ("main" if suite == "main" else f"suite/{suite}")
        tests, results = (folder, folder) if suite == "main" else (folder / "t", folder / "r")
        to = translated(name, engine).split(".", 1)[1]
        for source in [*tests.glob(f"{test}.*"), *tests.glob(f"{test}-*.opt"),
                       *results.glob(f"{test}.result")]:
            target = (home / ("r" if source.suffix == ".result" else "t")
                      / (to + source.name[len(test):]))
            text = source.read_text(errors="surrogateescape")
            words = text if source.suffix == ".opt" else in_words_of(engine, text)
            target.write_text(words, errors="surrogateescape")
        if (folder / "my.cnf").exists() and not (tests / f"{test}.cnf").exists():
            (home / "t" / f"{to}.cnf").write_text(f"!include ../../{suite}/my.cnf\n")
    for folder in ("innodb", "innodb_fts"):
        for source in (SHIPPED / f"suite/{folder}/t").glob("*.inc"):
            text = in_words_of(engine, source.read_text(errors="surrogateescape"))
            (home / "t" / source.name).write_text(text, errors="surrogateescape")


def in_words_of(engine: str, text: str) -> str:
    """Returns a test or its result with another engine's name, except in other names."""
    text = re.sub(r"(?im)^(-- *)?source include/have_innodb\.inc;?\n", "", text)
    text = re.sub(r"(Warnings:\n)?Warning\t124\tInnoDB rebuilding table to add column FTS_DOC_ID\n",
                  "", text)
    # Other engines ignore this option with a warning.
    text = re.sub(r" *\bSTATS_PERSISTENT *= *[01]", "", text)
    return re.sub(r"(?i)\binnodb\b(?!\.inc)", engine, text)


def translated(name: str, engine: str) -> str:
    """Returns the name of this engine's counterpart of InnoDB's test `name`."""
    for own_suite, names in TRANSLATED.items():
        if engine != "InnoDB" and name in names:
            return f"{own_suite}." + name.replace(".", "_")
    return f"handler.{engine.lower()}" if name == "handler.innodb" else name


def run_suites(engine: str, suites=(), names=(), label="run", more=()) -> dict:
    """Runs whole suites or single tests; returns test -> result."""
    select_engine(engine)
    names = [translated(name, engine) for name in names]
    log = HOME / f"{label}.log"
    # A neutral name, because the tests mask the engine's name everywhere, even in paths.
    work = emptied(HOME / "work")
    short = tempfile.mkdtemp(prefix="mtr-")
    words = ["perl", "./mariadb-test-run.pl", f"--vardir={work}/var", f"--tmpdir={short}/t",
             "--force", "--max-test-fail=0", "--retry=0", "--parallel=2", "--nowarnings",
             "--testcase-timeout=2", "--suite-timeout=60", "--mysqld=--loose-innodb",
             f"--mysqld=--default-storage-engine={engine}",
             f"--combination=--default-storage-engine={engine}",
             "--mysqld=--plugin-maturity=unknown", "--mysqld=--partition",
             "--mysqld=--innodb-lock-wait-timeout=3",
             "--mysqld=--loose-cheetah-lock-wait-timeout=3",
             "--mysqld=--loose-cheetah-allow-foreign-backup=ON", *more]
    if engine == "CHEETAH":
        words.append(f"--mysqld=--plugin-load-add={PLUGIN.name}")
    if suites:
        words.append("--suite=" + ",".join(suites))
    words += names
    try:
        with open(log, "wb") as output:
            unprivileged(words, [work, Path(short), TEST_ROOT / "suite"], output)
    finally:
        shutil.rmtree(short, ignore_errors=True)
    return parse(log.read_text(errors="replace"))


def unprivileged(words: list, folders: list, output) -> None:
    """Runs the driver as `nobody` if we are root, who bypasses permissions that tests need."""
    environment = {**setup.library_environment(), "HOME": str(folders[0])}
    options = {}
    can_reach = all(parent.stat().st_mode & 0o005 == 0o005
                    for parent in [TEST_ROOT, *TEST_ROOT.parents])
    if os.geteuid() == 0 and can_reach:
        for folder in folders:
            subprocess.run(["chown", "-R", "nobody", str(folder)], check=True)
        options = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
    process = subprocess.Popen(words, cwd=TEST_ROOT, env=environment, stdin=subprocess.DEVNULL,
                               stdout=output, stderr=output, start_new_session=True, **options)
    try:
        process.wait()
    except BaseException:
        os.killpg(process.pid, 15)   # makes the driver stop its servers
        process.wait()
        raise


def parse(text: str) -> dict:
    """Returns the results in the driver's output; of several combinations, all have to pass."""
    results = {}
    for found in filter(None, map(RESULT_LINE.match, text.splitlines())):
        if results.get(found[1]) != "fail":
            results[found[1]] = found[3]
    return results
