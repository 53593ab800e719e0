"""Runs Django's own tests of models, queries, transactions, locks, constraints and migrations."""

import json

import fetched

APPS = ["basic", "transactions", "transaction_hooks", "select_for_update", "constraints",
        "backends", "delete", "many_to_one", "many_to_many", "one_to_one", "m2m_through",
        "bulk_create", "get_or_create", "aggregation", "expressions", "lookup", "ordering",
        "update", "defer", "introspection", "inspectdb", "indexes", "model_indexes",
        "mutually_referential", "schema", "migrations", "prefetch_related", "raw_query",
        "fixtures", "composite_pk"]
APPS_LARGE = ["queries", "annotations", "model_fields", "custom_pk", "generic_relations",
              "model_inheritance", "expressions_window", "db_functions", "auth_tests",
              "sessions_tests", "contenttypes_tests", "multiple_database", "select_related",
              "serializers", "timezones", "dates", "datetimes", "foreign_object"]
# This test expects the engines it names, so it fails where another engine is enforced.
NAMES_ENGINES = ["StorageEngineTests.test_get_storage_engine"]
# Django skips these tests unless the default engine is called InnoDB. They check index order and
# the index that InnoDB creates for a constraint.
SKIPPED_BY_NAME = ["test_get_constraints_indexes_orders", "test_no_index_for_foreignkey",
                   "test_descending_columns_list_sql"]
# The maximum of tests that fail with both engines under PyMySQL. More: the setup is wrong.
FAILURES_MAX = 40


def test_django(beside, large):
    source = fetched.python_source("django")
    apps = APPS + (APPS_LARGE if large else [])
    version = fetched.pinned("django")

    def use(side) -> dict:
        outcome = side.folder / "outcome.json"
        side.call(fetched.python(), "-B", "runtests.py", "--settings=django_settings",
                  "--parallel=1", "--noinput", "-v0", *apps, cwd=source / "tests", timed="tests",
                  env={"APP_SOCKET": str(side.server.socket), "APP_OUTCOME": str(outcome),
                       "PYTHONPATH": str(fetched.HERE / "python"),
                       "PYTHONDONTWRITEBYTECODE": "1"}, ok=(0, 1))
        found = json.loads(outcome.read_text())
        side.notes.append(f"{found['run']} tests")
        by_name = NAMES_ENGINES + SKIPPED_BY_NAME
        for kind in ("failures", "errors", "skipped"):
            found[kind] = [name for name in found[kind] if not any(map(name.count, by_name))]
        assert len(found["failures"] + found["errors"]) <= FAILURES_MAX, found
        return found
    beside(f"Django {version}, its own tests of {len(apps)} apps", use)
