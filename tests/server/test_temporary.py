"""Temporary tables wait for no sync of the log (case 03), InnoDB beside them."""

import pytest
from cheetah_tools.say import note

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
