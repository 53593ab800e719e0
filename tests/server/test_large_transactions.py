"""Transactions that are much larger than the pool: single statements change all rows of a table.

`make servertests ARGS="large_transactions --large"` uses 20,000,000 rows instead of 200,000."""

from cheetah_tools.say import note
from peak import POOL_BYTES, TOLERANCE, Peak, idle_bytes, warm_up
from servers import check_table, Session

OPTIONS = {"loose_cheetah_buffer_pool_size": POOL_BYTES, "loose_cheetah_log_file_size": "64M",
           "loose_cheetah_log_size_max": "1G", "performance_schema": "OFF"}


def test_all_rows_of_a_table_change_in_one_transaction(server, new_server, large):
    count = 20000000 if large else 200000
    total = count * (count + 1) // 2
    base = idle_bytes(new_server, OPTIONS)
    warm_up(server)
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY, b INT, c CHAR(20), KEY (b)) ENGINE=CHEETAH")
    peak, told, most = Peak(server), [], 0
    for statement, before, after in (
            (f"INSERT INTO t SELECT seq, seq, LEFT(MD5(seq), 20) FROM seq_1_to_{count}",
             (0, None), (count, total)),
            ("UPDATE t SET b = b + 1", (count, total), (count, total + count)),
            ("DELETE FROM t WHERE a > 0", (count, total + count), (0, None))):
        for ending, afterwards in (("ROLLBACK", before), ("COMMIT", after)):
            change(server, statement, ending, before, after)
            assert contents(server) == afterwards, f"wrong rows after {statement} and {ending}"
            bytes_ = peak.take() - base
            most = max(most, bytes_)
            told.append(f"{statement.split()[0]}, {ending} {bytes_ / 2**20:.1f} MiB")
    peak.stop()
    check_table(server, "t")
    note(f"{count} rows: " + "; ".join(told))
    assert most <= POOL_BYTES * TOLERANCE, (
        f"the engine took {most / 2**20:.1f} MiB of anonymous memory, the limit is "
        f"{POOL_BYTES / 2**20:.0f} MiB: " + "; ".join(told))


def contents(server) -> tuple:
    """Returns the row count and the sum of the rows, as another connection sees them."""
    return server.sql("SELECT COUNT(*), SUM(b) FROM d.t")[0]


def change(server, statement: str, ending: str, before: tuple, after: tuple) -> None:
    with Session(server, autocommit=False) as session:
        found = session.run(statement, "SELECT COUNT(*), SUM(b) FROM t")
        assert found == [after], f"the transaction does not see its own {statement}"
        assert contents(server) == before, f"another one sees {statement} before its end"
        session.run(ending)
