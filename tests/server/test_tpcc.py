"""TPC-C's consistency conditions after kills under load, without the binary log and with replay.

`make servertests ARGS="tpcc --rounds 50"` kills fifty times in each test."""

import binlog
import pytest
import tpcc
from cheetah_tools import dump
from cheetah_tools.say import note
from servers import check_table, kill_under, started

CLIENTS = 8
ROUNDS = 4
OPTIONS = {"loose_cheetah_lock_wait_timeout": 5}
# Condition -> a change of one row that violates it. Some changes also violate other conditions,
# because a district's year-to-date total is compared twice.
PLANTED = tpcc.named("planted")


def test_the_checker_finds_planted_violations(server):
    tpcc.create(server, "CHEETAH")
    assert {name.split(":")[0] for name in tpcc.CONDITIONS} == set(PLANTED)
    with server.cursor(tpcc.DATABASE, autocommit=False) as cursor:
        for clause, change in PLANTED.items():
            assert not tpcc.violations(cursor)
            assert cursor.execute(change) == 1, f"{change}: no such row"
            found = {name.split(":")[0] for name in tpcc.violations(cursor)}
            assert clause in found, f"{change}: violates {clause}, and {found} was found"
            cursor.execute("ROLLBACK")


def test_conditions_hold_after_kills(server, rng, rounds):
    tpcc.create(server, "CHEETAH")
    totals = [0, 0]
    for _ in range(rounds):
        kill_and_check(rng, server, totals)
    note(f"{totals[0]} transactions, {totals[1]} rolled back")


@pytest.mark.options(binlog.OPTIONS)
def test_conditions_hold_after_kills_with_binlog(server, new_server, rng, rounds):
    replica = started(new_server())
    tpcc.create(server, "CHEETAH")
    replayed, totals = set(), [0, 0]
    for _ in range(rounds):
        kill_and_check(rng, server, totals)
        binlog.replay_new(server, replica, replayed)
        mine, other = dump.checksums(server, tpcc.DATABASE), dump.checksums(replica, tpcc.DATABASE)
        assert mine == other, f"the replayed binary log gives other tables: {mine} and {other}"
    note(f"{totals[0]} transactions, {totals[1]} rolled back")


def kill_and_check(rng, server, totals: list) -> None:
    before = payments(server)
    clients = [tpcc.Client(server, number, rng.random()) for number in range(CLIENTS)]
    kill_under(server, clients, rng.uniform(0.5, 1.5))
    server.start()
    check_conditions(server)
    there = set(server.sql("SELECT o_w_id, o_d_id, o_id FROM orders", tpcc.DATABASE))
    after = payments(server)
    for client in clients:
        assert client.orders <= there
        gained = after.get(f"client {client.number}", 0) - before.get(f"client {client.number}", 0)
        assert client.payments <= gained <= client.payments + 1
    totals[0] += sum(client.done for client in clients)
    totals[1] += sum(client.refused for client in clients)


def payments(server) -> dict:
    return dict(server.sql("SELECT h_data, COUNT(*) FROM history GROUP BY h_data", tpcc.DATABASE))


def check_conditions(server) -> None:
    with server.cursor(tpcc.DATABASE) as cursor:
        found = tpcc.violations(cursor)
    assert not found, f"violated after the kill: {found}"
    check_table(server, *tpcc.TABLES, database=tpcc.DATABASE)
