"""Temporary tables wait for no sync of the log (case 03), InnoDB beside them, and a server that is
killed leaves nothing of them."""

import pytest
from cheetah_tools.say import note
from servers import wait_until

TIMES = 3   # the background may sync meanwhile: the least counts
SYNCS = {"CHEETAH": "Cheetah_log_syncs", "InnoDB": "Innodb_data_fsyncs"}
STATEMENTS = [
    "CREATE TEMPORARY TABLE x (id INT AUTO_INCREMENT PRIMARY KEY, v INT, b LONGTEXT, KEY (v))",
    "INSERT INTO x (v, b) VALUES (1, 'a'), (2, REPEAT('b', 50000))",
    "UPDATE x SET v = v + 1",
    "DELETE FROM x WHERE v = 2",
    "ALTER TABLE x ADD COLUMN c INT DEFAULT 5, ADD KEY c (c)",
    "ALTER TABLE x ADD FULLTEXT KEY f (b)",
    "INSERT INTO x (v, b) VALUES (7, 'some words')",
    "ALTER TABLE x AUTO_INCREMENT = 100",
    "BEGIN", "INSERT INTO x (v) VALUES (8)", "SAVEPOINT s", "UPDATE x SET v = 9", "ROLLBACK TO s",
    "COMMIT",
    "TRUNCATE TABLE x",
    "INSERT INTO x (v) SELECT seq FROM seq_1_to_100",
    "CREATE TEMPORARY TABLE y (KEY (seq)) SELECT seq FROM seq_1_to_200",
    "RENAME TABLE y TO z",
    "DROP TEMPORARY TABLE x, z",
]
# InnoDB refuses this for temporary tables.
OF_CHEETAH_ALONE = "ADD FULLTEXT"


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_no_statement_on_them_syncs_the_log(server, mode):
    """Each statement of a table's life."""
    server.sql(f"SET GLOBAL cheetah_flush_log_at_trx_commit = {mode}")
    least = {}
    for engine, counter in SYNCS.items():
        def count(counter=counter) -> int:
            return int(server.sql(f"SHOW GLOBAL STATUS LIKE '{counter}'")[0][1])
        with server.connect("d", autocommit=True).cursor() as cursor:
            cursor.execute(f"SET default_storage_engine = {engine}")
            for _ in range(TIMES):
                for number, statement in enumerate(STATEMENTS):
                    if engine == "InnoDB" and OF_CHEETAH_ALONE in statement:
                        continue
                    before = count()
                    cursor.execute(statement)
                    key = engine, number
                    least[key] = min(least.get(key, 1 << 30), count() - before)
    for number, statement in enumerate(STATEMENTS):
        of_innodb = least.get(("InnoDB", number), "-")
        note(f"{least['CHEETAH', number]} syncs of Cheetah, {of_innodb} of InnoDB: {statement}")
    assert not [statement for number, statement in enumerate(STATEMENTS)
                if least["CHEETAH", number] > 0]


def test_a_kill_leaves_nothing_of_them(server, crash):
    """Tables in the middle of transactions, beside others, with and without a checkpoint."""
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=CHEETAH")
    for number in range(3):
        with server.connect("d", autocommit=False).cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE x (a INT PRIMARY KEY, b LONGTEXT, KEY (b(9))) "
                           "ENGINE=CHEETAH")
            cursor.execute("INSERT INTO x SELECT seq, REPEAT(seq, 5000) FROM seq_1_to_100")
            cursor.execute(f"INSERT INTO t VALUES ({number})")
            cursor.execute("COMMIT")
            cursor.execute("UPDATE x SET b = 'b'")
            if number > 0:
                server.sql("SET GLOBAL cheetah_checkpoint_now = ON")
            cursor.execute("INSERT INTO t VALUES (100)")
            crash(server)
        assert server.sql("SELECT COUNT(*), MAX(a) FROM d.t") == [(number + 1, number)]
        wait_until(lambda: server.sql("SHOW GLOBAL STATUS LIKE 'Cheetah_dropped_trees'")
                   == [("Cheetah_dropped_trees", "0")], "trees of temporary tables are left")
    assert server.sql("CHECK TABLE d.t EXTENDED")[-1][-1] == "OK"
