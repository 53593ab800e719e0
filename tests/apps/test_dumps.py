"""Dumps and loads while writers run: mariadb-dump, mariadb-import, mariadb-check and mydumper."""

import fetched
import pytest
import shop
import sides

NAME = "copied"


def copy(side, database: str = NAME) -> dict:
    """Checks that a copy equals the original except for the accounts, and describes it."""
    found = side.checksums(database)
    first = side.checksums()
    assert found.pop("account") and first.pop("account")
    assert found == first
    schema = side.schema(database)
    assert [[row[1:] for row in part] for part in schema] == \
        [[row[1:] for row in part] for part in side.schema()]
    assert side.value("SELECT SUM(balance) FROM account", database) == shop.TOTAL
    views = side.rows("SELECT COUNT(*), SUM(total) FROM open_purchases", database)
    words = side.rows("SELECT COUNT(*) FROM customer WHERE MATCH (note) AGAINST ('customer')",
                      database)
    return {"tables": side.has_only_its_engine(database), "checksums": found, "views": views,
            "words": words, "schema": schema}


def test_tools_of_the_server(beside):
    def use(side) -> dict:
        shop.make(side)
        with shop.writing(side):
            dump = side.tool("mariadb-dump", "--single-transaction", "--routines",
                             "--result-file=dump.sql", sides.DATABASE, timed="dump")
        side.server.sql(f"CREATE DATABASE {NAME}")
        side.tool("mariadb", NAME, "--execute=source dump.sql", timed="load")
        found = {"dump": dump, **copy(side),
                 "triggers": [row[:4] for row in side.rows("SHOW TRIGGERS", NAME)]}
        # mariadb-dump --tab writes one data file per table.
        side.tool("mariadb-dump", f"--tab={side.folder}", "--single-transaction", sides.DATABASE,
                  "purchase", "customer")
        side.server.sql("CREATE DATABASE imported")
        for table in ("customer", "purchase"):
            side.tool("mariadb", "imported", text=(side.folder / f"{table}.sql").read_text())
            found[f"import of {table}"] = side.tool(
                "mariadb-import", "--local", "imported", side.folder / f"{table}.txt",
                timed="import").replace(str(side.folder), "")
        found["imported"] = side.checksums("imported")
        for words in (["--check", "--extended"], ["--analyze"], ["--optimize"],
                      ["--check", "--auto-repair"]):
            said = side.tool("mariadb-check", *words, sides.DATABASE, timed="check")
            lines = [line for line in said.splitlines() if "recreate + analyze" not in line]
            found[words[0]] = sorted(set(line.split()[-1] for line in lines))
        found["after"] = copy(side)
        found["show"] = [line.split()[1] for line in
                         side.tool("mariadb-show", sides.DATABASE).splitlines() if "|" in line]
        return found
    beside("mariadb-dump, -import, -check, -show", use)


@pytest.mark.parametrize("words", [[], ["--trx-consistency-only"]], ids=["plain", "transactions"])
def test_mydumper(beside, words):
    root = fetched.debian("mydumper", ["mydumper"], ["usr/bin/mydumper", "usr/bin/myloader"])

    def use(side) -> dict:
        shop.make(side)
        given = ["--user", sides.USER, "--password", sides.PASSWORD, "--socket",
                 side.server.socket, "--threads", 4]
        environment = fetched.libraries(root)
        with shop.writing(side):
            side.call(root / "usr/bin/mydumper", *given, "--database", sides.DATABASE,
                      "--outputdir", side.folder / "dump", "--rows", 5000, *words,
                      env=environment, timed="dump")
        side.call(root / "usr/bin/myloader", *given, "--database", NAME, "--directory",
                  side.folder / "dump", env=environment, timed="load")
        return copy(side)
    beside(" ".join(["mydumper", fetched.version(root, "mydumper"), *words]), use)
