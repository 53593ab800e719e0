"""go-tpc: TPC-C with killed servers, checked by go-tpc's own consistency check."""

import subprocess
import time

import fetched
import pytest
import servers
import sides

MODULE = "github.com/pingcap/go-tpc"
PROGRAM = MODULE + "/cmd/go-tpc"
VERSION = "1.0.7"   # the version in go-tpc/go.mod
WAREHOUSES, CONNECTIONS, KILLS = 1, 8, 3
SECONDS_BETWEEN_KILLS = 5


@pytest.fixture
def words():
    program = fetched.go_program("go-tpc", MODULE, PROGRAM, {})

    def of(side, *more) -> list:
        return [program, *more, "-H", "127.0.0.1", "-P", side.port, "-U", sides.USER,
                "-p", sides.PASSWORD, "-D", sides.DATABASE]
    return of


def test_tpcc_is_consistent_after_kills(beside, words):
    tpcc = ["tpcc", "--warehouses", WAREHOUSES]

    def use(side) -> dict:
        side.call(*words(side, *tpcc, "prepare", "-T", 4), "--no-check", timed="prepare")
        # Without this index the check scans the history table for each customer.
        side.rows("ALTER TABLE history ADD INDEX (h_c_w_id, h_c_d_id, h_c_id)")
        for _ in range(KILLS):
            run = [*words(side, *tpcc, "run", "-T", CONNECTIONS), "--ignore-error", "--silence"]
            with subprocess.Popen(list(map(str, run)), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as running:
                try:
                    time.sleep(SECONDS_BETWEEN_KILLS)
                    assert running.poll() is None, "the load has ended by itself"
                    servers.crash(side.server)
                finally:
                    running.kill()
            side.call(*words(side, *tpcc, "check"), timed="check")
        new_orders = side.value("SELECT SUM(d_next_o_id) - 3001 * COUNT(*) FROM district")
        assert new_orders > 0, "no transaction has been done"
        side.notes.append(f"{new_orders} new orders, {KILLS} kills")
        return {"tables": side.has_only_its_engine(), "schema": side.schema()}
    beside(f"go-tpc {VERSION} tpcc", use)
