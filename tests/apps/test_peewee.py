"""Peewee: models with relations, transactions, upserts and migrations."""

import json

import fetched


def test_peewee(beside):
    python = fetched.python()

    def use(side) -> dict:
        said = side.call(python, "-B", fetched.HERE / "python/peewee_use.py", side.server.socket,
                         env={"PYTHONPATH": ""}, timed="use")
        found = json.loads(said.splitlines()[-1])
        assert found["twice"] == "IntegrityError 1062" and found["no parent"].endswith("1452")
        assert found["has children"] == "IntegrityError 1451" and found["deleted"] == 1
        return {**found, "tables": side.has_only_its_engine(), "schema": side.schema(),
                "checksums": side.checksums()}
    beside(f"Peewee {fetched.pinned('peewee')}", use)
