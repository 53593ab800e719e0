"""SQLAlchemy: its dialect test suite and its own tests of the MariaDB dialect."""

import xml.etree.ElementTree as xml

import fetched

TESTS = ["test/dialect/test_suite.py", "test/dialect/mysql"]
TESTS_LARGE = ["test/orm/test_cascade.py", "test/orm/test_transaction.py", "test/orm/test_query.py",
               "test/orm/test_naturalpks.py", "test/sql/test_query.py", "test/engine"]
# These tests create a table with a named engine and compare the name that they read back.
NAMES_ENGINES = ["test_reflection_with_subpartition_options",
                 "test_reflection_with_subpartition_options_two",
                 "test_reflection_with_table_options"]
FAILURES_MAX = 40


def test_sqlalchemy(beside, large):
    source = fetched.python_source("sqlalchemy")
    tests = TESTS + (TESTS_LARGE if large else [])

    def use(side) -> dict:
        for name in ("test", "test_schema"):
            side.server.sql(f"CREATE DATABASE {name}")
        report = side.folder / "report.xml"
        address = f"mariadb+pymysql://app:app@127.0.0.1:{side.port}/test"
        side.call(fetched.python(), "-B", "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider",
                  "-p", "no:logging", "--maxfail=1000", "--dburi", address,
                  f"--junitxml={report}", cwd=source, timed="tests", ok=(0, 1),
                  env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""})
        found = {name: outcome for name, outcome in outcomes(report).items()
                 if name.split(".")[-1] not in NAMES_ENGINES}
        bad = [name for name, outcome in found.items() if outcome in ("failure", "error")]
        side.notes.append(f"{len(found)} tests")
        assert len(bad) <= FAILURES_MAX and len(found) > 500, (len(found), bad)
        return found
    beside(f"SQLAlchemy {fetched.pinned('sqlalchemy')}, its dialect suite", use)


def outcomes(report) -> dict:
    """Returns a map from a test to passed, failure, error or skipped."""
    found = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found[f"{case.get('classname')}.{case.get('name')}"] = (kinds or ["passed"])[0]
    return found
