"""TPC-C's consistency conditions after kill -9 under load, with and without binary log, and the log replayed.

`make servertests ARGS="tpcc --rounds 50"` kills fifty times with and fifty times without.
"""

import time

from cheetah_tools import binlog, dump, tpcc
from cheetah_tools.say import note
from cheetah_tools.servertests import expect

CLIENTS = 8
KILLS = 4
# Condition -> a change of one row that violates it. Some violate others too: a district's turnover is compared twice.
PLANTED = {
    "3.3.2.1": "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 1",
    "3.3.2.2": "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 2 AND d_id = 3",
    "3.3.2.3": "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 25",
    "3.3.2.4": "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 10 AND ol_o_id = 30 AND ol_number = 1",
    "3.3.2.5": "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
    "3.3.2.6": "UPDATE order_line SET ol_o_id = 29, ol_number = 99 WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 30 AND ol_number = 1",
    "3.3.2.7": "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 2",
    "3.3.2.8": "UPDATE history SET h_w_id = 1 WHERE h_w_id = 2 AND h_d_id = 1 AND h_c_id = 1",
    "3.3.2.9": "UPDATE history SET h_d_id = 2 WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 1",
    "3.3.2.10": "UPDATE history SET h_c_id = 2 WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 1",
    "3.3.2.12": "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_w_id = 1 AND c_d_id = 4 AND c_id = 7",
}


def test_the_checker_finds_planted_violations(context):
    """One for each condition, in a transaction that is rolled back."""
    server = context.server()
    server.start()
    tpcc.create(server, "CHEETAH")
    expect({name.split(":")[0] for name in tpcc.CONDITIONS} == set(PLANTED), "not every condition has its violation")
    connection = server.connect(tpcc.DATABASE, autocommit=False)
    with connection.cursor() as cursor:
        for clause, change in PLANTED.items():
            expect(not tpcc.violations(cursor), f"{tpcc.violations(cursor)} before anything was planted", server)
            expect(cursor.execute(change) == 1, f"{change}: no such row")
            found = {name.split(":")[0] for name in tpcc.violations(cursor)}
            expect(clause in found, f"{change}: violates {clause}, and {found} was found", server)
            connection.rollback()
    connection.close()
    server.stop()


def test_conditions_hold_after_kills(context):
    """Without binary log."""
    server = context.server({"loose_cheetah_lock_wait_timeout": 5})
    server.start()
    tpcc.create(server, "CHEETAH")
    totals = [0, 0]
    for _ in range(context.rounds_or(KILLS)):
        kill_and_check(context, server, totals)
    note(f"{totals[0]} transactions, {totals[1]} tried again")
    server.stop()


def test_conditions_hold_after_kills_with_binlog(context):
    """The binary log is replayed into a second server, which must have the same tables then."""
    server, replica = context.server({**binlog.OPTIONS, "loose_cheetah_lock_wait_timeout": 5}), context.server()
    server.start()
    replica.start()
    tpcc.create(server, "CHEETAH")
    replayed, totals = set(), [0, 0]
    for _ in range(context.rounds_or(KILLS)):
        kill_and_check(context, server, totals)
        files = binlog.closed_files(server)
        binlog.replay(server, replica, [name for name in files if name not in replayed])
        replayed.update(files)
        mine, other = dump.checksums(server, tpcc.DATABASE), dump.checksums(replica, tpcc.DATABASE)
        expect(mine == other, f"the replayed binary log gives other tables: {mine} and {other}", server)
    note(f"{totals[0]} transactions, {totals[1]} tried again")
    server.stop()
    replica.stop()


def kill_and_check(context, server, totals: list) -> None:
    """Load, kill -9, start: the conditions hold, every index agrees, and what was acknowledged is there."""
    before = payments(server)
    clients = [tpcc.Client(server, number, context.rng.random()) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    time.sleep(context.rng.uniform(0.5, 1.5))
    expect(not server.died(), "the server ended by itself", server)
    server.kill()
    for client in clients:
        client.join(60)
        expect(not client.is_alive() and not client.failure, f"client {client.number}: {client.failure or 'hangs'}", server)
    server.start()
    check_conditions(server)
    there = set(server.sql("SELECT o_w_id, o_d_id, o_id FROM orders", tpcc.DATABASE))
    after = payments(server)
    for client in clients:
        expect(client.orders <= there, f"acknowledged orders are lost: {sorted(client.orders - there)[:5]}", server)
        gained = after.get(f"client {client.number}", 0) - before.get(f"client {client.number}", 0)
        expect(client.payments <= gained <= client.payments + 1,
               f"client {client.number}: {client.payments} payments were acknowledged, {gained} are there", server)
    totals[0] += sum(client.done for client in clients)
    totals[1] += sum(client.retries for client in clients)


def payments(server) -> dict:
    """Client -> how many payments are in the history."""
    return dict(server.sql("SELECT h_data, COUNT(*) FROM history GROUP BY h_data", tpcc.DATABASE))


def check_conditions(server) -> None:
    """TPC-C's, and that every index of a table tells the same."""
    connection = server.connect(tpcc.DATABASE)
    with connection.cursor() as cursor:
        found = tpcc.violations(cursor)
    connection.close()
    expect(not found, f"violated after the kill: {found}", server)
    for name in tpcc.TABLES:
        verdict = server.sql(f"CHECK TABLE {name} EXTENDED", tpcc.DATABASE)[-1][3]
        expect(verdict == "OK", f"CHECK TABLE {name}: {verdict}", server)
