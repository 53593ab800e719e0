"""Percona Toolkit: table changes while writers run, checksums, archiving and reports."""

import re

import fetched
import pytest
import servers
import shop
import sides
from cheetah_tools.paths import SERVER

PACKAGES = ["percona-toolkit", "libdbd-mysql-perl", "libdbi-perl", "libterm-readkey-perl"]
DRIVER = "usr/lib/x86_64-linux-gnu/perl5/5.36/auto/DBD/mysql/mysql.so"
# Some of the tools need a binary log.
OPTIONS = {"log_bin": "binlog", "server_id": 5, "binlog_format": "ROW", "sync_binlog": 0}


@pytest.fixture
def toolkit():
    return fetched.debian("percona-toolkit", PACKAGES, [DRIVER])


def run(side, root, name: str, *words, **more) -> str:
    library = root / DRIVER
    perl = [root / "usr/share/perl5", library.parents[3], library.parents[4]]
    environment = {**fetched.libraries(root), "HOME": str(side.folder),
                   "PERL5LIB": ":".join(map(str, perl)),
                   "PATH": f"{SERVER / 'usr/bin'}:/usr/local/bin:/usr/bin:/bin"}
    return side.call("perl", root / "usr/bin" / name, *words, env=environment, **more)


def source(side, **more) -> str:
    """Returns the DSN of the side's server."""
    given = {"S": side.server.socket, "u": sides.USER, "p": sides.PASSWORD, **more}
    return ",".join(f"{key}={value}" for key, value in given.items())


@pytest.mark.options(OPTIONS)
def test_online_schema_change(beside, toolkit):
    def use(side) -> dict:
        shop.make(side)
        with shop.writing(side):
            run(side, toolkit, "pt-online-schema-change", "--execute", "--alter",
                "ADD COLUMN seen INT NOT NULL DEFAULT 3, ADD KEY (seen, balance)",
                "--chunk-size", 20, "--no-check-replication-filters",
                source(side, D=sides.DATABASE, t="account"), timed="accounts")
            shop.check(side)
        # A parent table, whose child's constraint is rebuilt; then a child with a trigger.
        said = run(side, toolkit, "pt-online-schema-change", "--execute", "--alter",
                   "MODIFY name VARCHAR(120) NOT NULL, ADD KEY (country)", "--chunk-size", 500,
                   "--alter-foreign-keys-method", "rebuild_constraints",
                   source(side, D=sides.DATABASE, t="customer"), timed="customers")
        run(side, toolkit, "pt-online-schema-change", "--execute", "--alter", "ENGINE=InnoDB",
            "--preserve-triggers", "--chunk-size", 5000,
            source(side, D=sides.DATABASE, t="item"), timed="items")
        shop.check(side)
        assert "Successfully altered" in said
        checksums = side.checksums()
        assert checksums.pop("account")
        return {"tables": side.has_only_its_engine(), "schema": side.schema(), **checksums}
    beside(f"pt-online-schema-change {fetched.version(toolkit, 'percona-toolkit')}", use)


@pytest.mark.options(OPTIONS)
def test_checksums_and_archive(beside, toolkit):
    def use(side) -> dict:
        shop.make(side)
        found = {}
        with shop.writing(side):
            said = run(side, toolkit, "pt-table-checksum", "--no-check-binlog-format",
                       "--databases", sides.DATABASE, "--replicate", "percona.checksums",
                       "--chunk-size", 3000, "--recursion-method", "none", source(side),
                       timed="checksums")
        # TIME, ERRORS, DIFFS, ROWS, DIFF_ROWS, CHUNKS, SKIPPED, SECONDS, TABLE
        lines = [line.split() for line in said.splitlines()
                 if line.split()[-1:] and line.split()[-1].startswith(f"{sides.DATABASE}.")]
        found["checksums"] = [(line[-1], line[1], line[2], line[3]) for line in lines
                              if "account" not in line[-1]]
        assert len(lines) == 4
        side.server.sql("CREATE DATABASE old")
        side.rows("CREATE TABLE item LIKE app.item", "old")
        # Archives rows into another table in bulk, as a purge job does.
        run(side, toolkit, "pt-archiver", "--source", source(side, D=sides.DATABASE, t="item"),
            "--dest", source(side, D="old", t="item"), "--where", "purchase < 3000", "--limit",
            500, "--commit-each", "--bulk-delete", "--bulk-insert", "--no-check-charset",
            timed="archive")
        run(side, toolkit, "pt-archiver", "--source",
            source(side, D=sides.DATABASE, t="purchase"), "--purge", "--where", "id < 2000",
            "--limit", 200, "--txn-size", 200, "--no-check-charset", timed="purge")
        found |= {"old": side.checksums("old")["item"], "item": side.checksums()["item"],
                  "purchase": side.checksums()["purchase"]}
        # Makes two different tables equal, in transactions.
        servers.run(side.server, "CREATE TABLE twin LIKE customer",
                    "INSERT INTO twin SELECT * FROM customer WHERE id % 50",
                    "UPDATE twin SET name = CONCAT(name, '!') WHERE id % 77 = 0",
                    database=sides.DATABASE)
        run(side, toolkit, "pt-table-sync", "--execute", "--no-check-slave", "--transaction",
            source(side, D=sides.DATABASE, t="customer"),
            source(side, D=sides.DATABASE, t="twin"), timed="sync", ok=(0, 2))
        found["twin"] = side.checksums()["twin"] == side.checksums()["customer"]
        assert found["twin"]
        return found
    beside("pt-table-checksum, pt-archiver, pt-table-sync", use)


def test_reports(beside, toolkit):
    def use(side) -> dict:
        shop.make(side)
        side.rows("CREATE TABLE twice (a INT PRIMARY KEY, b INT, KEY one (b), KEY two (b, a))")
        found = {}
        said = run(side, toolkit, "pt-duplicate-key-checker", "--databases", sides.DATABASE,
                   source(side))
        found["duplicates"] = re.findall(r"^# (\w+ is a .*)$", said, re.M)
        assert any("one" in line for line in found["duplicates"])
        found["found"] = sorted(run(side, toolkit, "pt-find", "--socket", side.server.socket,
                                    "--user", sides.USER, "--password", sides.PASSWORD,
                                    "--engine", side.engine.name, sides.DATABASE).split())
        assert "`app`.`item`" in found["found"]
        with pytest.raises(Exception, match="1452"):
            side.rows("INSERT INTO item VALUES (99999999, 1, 'x', 1, NULL)")
        summary = run(side, toolkit, "pt-mysql-summary", "--socket", side.server.socket, "--user",
                      sides.USER, "--password", sides.PASSWORD, "--", "--user", sides.USER,
                      f"--password={sides.PASSWORD}", "--socket", side.server.socket,
                      timed="summary")
        assert "Status Counters" in summary
        run(side, toolkit, "pt-variable-advisor", source(side), ok=(0, 1, 2))
        run(side, toolkit, "pt-heartbeat", "--update", "--database", sides.DATABASE,
            "--create-table", "--run-time", "1s", "--interval", "0.2", source(side))
        found["heartbeat"] = side.value("SELECT COUNT(*) FROM heartbeat")
        run(side, toolkit, "pt-deadlock-logger", "--iterations", 1, "--run-time", "1s",
            "--create-dest-table", "--dest", source(side, D=sides.DATABASE, t="deadlocks"),
            source(side))
        found["grants"] = "GRANT" in run(side, toolkit, "pt-show-grants", "--socket",
                                         side.server.socket, "--user", "root")
        found["tables"] = side.has_only_its_engine()
        return found
    beside("pt-duplicate-key-checker, -find, -mysql-summary, -heartbeat, ..", use)
