"""Node.js: Sequelize and Knex with schemas, relations, transactions with row locks, migrations."""

import json

import fetched


def test_sequelize_and_knex(beside):
    place = fetched.node_packages("node")
    versions = json.loads((fetched.HERE / "node/package.json").read_text())["dependencies"]

    def use(side) -> dict:
        said = side.call(fetched.node(), fetched.HERE / "node/use.js", side.server.socket,
                         env={"NODE_PATH": str(place / "node_modules")}, timed="use")
        found = json.loads(said.splitlines()[-1])
        assert found["twice"] == "SequelizeUniqueConstraintError 1062"
        assert found["orphan"] == "SequelizeForeignKeyConstraintError 1452"
        assert found["children"] == "SequelizeForeignKeyConstraintError 1451"
        assert found["sum"] == 10
        return {**found, "tables": side.has_only_its_engine(), "schema": side.schema()}
    beside(f"Sequelize {versions['sequelize']}, Knex {versions['knex']} (mysql2 "
           f"{versions['mysql2']})", use)
