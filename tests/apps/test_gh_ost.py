"""gh-ost: table changes while writers run."""

import fetched
import pytest
import shop
import sides

MODULE = "github.com/github/gh-ost"
PROGRAM = MODULE + "/go/cmd/gh-ost"
# This version reads the variable `transaction_isolation`, a name that MariaDB has only since 11.1.
PATCH = {"go/mysql/connection.go": ("transaction_isolation=", "tx_isolation=")}
VERSION = "v1.1.6"   # the version in gh-ost/go.mod


@pytest.mark.options({"log_bin": "binlog", "server_id": 5, "binlog_format": "ROW",
                      "binlog_row_image": "FULL", "sync_binlog": 0, "log_slave_updates": "ON"})
@pytest.mark.parametrize("words", [[], ["--storage-engine=rocksdb"]],
                         ids=["repeatable-read", "read-committed"])
def test_gh_ost(beside, words):
    program = fetched.go_program("gh-ost", MODULE, PROGRAM, PATCH)

    def use(side) -> dict:
        shop.make(side)
        with shop.writing(side):
            side.call(program, "--host=127.0.0.1", f"--port={side.port}",
                      f"--user={sides.USER}", f"--password={sides.PASSWORD}",
                      f"--database={sides.DATABASE}", "--table=account",
                      "--alter=ADD COLUMN seen INT NOT NULL DEFAULT 3, ADD KEY (seen)",
                      "--allow-on-master", "--assume-rbr", "--chunk-size=50", "--execute",
                      "--initially-drop-old-table", "--ok-to-drop-table",
                      "--default-retries=10", *words, timed="change")
            shop.check(side)
        shop.check(side)
        return {"tables": side.has_only_its_engine(), "schema": side.schema(),
                "seen": side.rows("SELECT DISTINCT seen FROM account")}
    beside(" ".join([f"gh-ost {VERSION[1:]}", *words]), use)
