"""AUTO_INCREMENT beside statements that bring their own numbers, with InnoDB's results: an INSERT
that asks for a number waits for the statement, and gets none that it brings."""

import pytest
from cheetah_tools.say import note
from servers import Sent, wait_until

ROWS = 40
# Each row takes a while, so that the other session comes in the middle.
FILLS = {
    "INSERT .. SELECT": "INSERT INTO t (id, k) SELECT seq, SLEEP(0.05) FROM seq_{0}_to_{1}",
    "REPLACE .. SELECT": "REPLACE INTO t (id, k) SELECT seq, SLEEP(0.05) FROM seq_{0}_to_{1}",
    "INSERT IGNORE .. SELECT": "INSERT IGNORE INTO t (id, k) SELECT seq, SLEEP(0.05) "
                               "FROM seq_{0}_to_{1}",
    "LOAD DATA": "LOAD DATA INFILE '{2}' INTO TABLE t (id) SET k = SLEEP(0.05)",
}


def fill_beside(server, engine: str, statement: str, rows_before: int) -> list:
    """Inserts a row without a number while a statement inserts others with theirs; the number that
    it has got, and how many rows there are then."""
    first = rows_before + 1
    numbers = server.folder / f"numbers-{first}"
    numbers.write_text("".join(f"{number}\n" for number in range(first, first + ROWS)))
    server.sql(f"CREATE OR REPLACE TABLE {engine}.t (id INT AUTO_INCREMENT PRIMARY KEY, k INT) "
               f"ENGINE={engine}")
    if rows_before:
        server.sql(f"INSERT INTO t (k) SELECT seq FROM seq_1_to_{rows_before}", engine)
        server.sql(f"ALTER TABLE {engine}.t AUTO_INCREMENT = {first}")
    filling = Sent(server.connect(engine), statement.format(first, first + ROWS - 1, numbers))
    wait_until(lambda: server.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                    "WHERE STATE = 'User sleep'"), "the statement runs")
    with server.connect(engine.lower(), autocommit=True).cursor() as cursor:
        cursor.execute("DO SLEEP(0.2)")
        cursor.execute("INSERT INTO t (k) VALUES (7)")
        number = cursor.lastrowid
    assert filling.ends() == 0, filling.failure
    return [number, server.value(f"SELECT COUNT(*) FROM {engine}.t")]


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.options({"secure_file_priv": ""})
def test_nobody_gets_a_number_that_a_running_statement_brings(server, name):
    """Into an empty table, and into one with rows; InnoDB beside it."""
    for engine in ("cheetah", "innodb"):
        server.sql(f"CREATE DATABASE {engine}")
    for rows_before in (0, 10):
        found = {engine: fill_beside(server, engine, FILLS[name], rows_before)
                 for engine in ("innodb", "cheetah")}
        note(f"{name} behind {rows_before} rows: {found}")
        assert found["cheetah"] == found["innodb"], found
        assert found["cheetah"] == [rows_before + ROWS + 1] * 2
