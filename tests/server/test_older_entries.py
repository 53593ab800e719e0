"""Secondary entries of an older build, which repeat a key's FLOAT and DOUBLE in their payloads."""

import tarfile
from pathlib import Path

from servers import Session, check_table

OLDER = Path(__file__).parent / "older" / "entries.tar.xz"
COVERED = {"t": [("d", "id, d"), ("f", "id, f"), ("df", "id, d, f"), ("du", "id, d, u"),
                 ("dc", "id, d, c")],
           "p": [("n", "n, d, e"), ("ne", "n, e, d")]}
CHANGES = ["UPDATE t SET d = d / 2, u = u + 1 WHERE id % 3 = 0", "UPDATE t SET f = -f WHERE id % 5",
           "DELETE FROM t WHERE id % 7 = 0", "UPDATE p SET n = n + 1 WHERE n < 3",
           "INSERT INTO t VALUES (10000, 5.5, -5.5, 5, 'k'), (10001, -0e0, -0e0, 0, 'k')"]


def test_entries_that_repeat_their_keys_are_read_changed_and_checked(new_server):
    server = new_server()
    server.start()
    server.stop()
    with tarfile.open(OLDER) as archive:
        archive.extractall(server.data, filter="data")
    server.start()
    check_indexes(server)
    assert server.sql("SELECT id FROM d.t FORCE INDEX (d) WHERE d = 0 AND f = 0 ORDER BY id") \
        == [(1,), (2,)]
    with Session(server, autocommit=False) as session:
        for statement in CHANGES:
            session.run(statement)
        session.run("ROLLBACK")
    check_indexes(server)
    for statement in CHANGES:
        server.sql(statement, "d")
    check_indexes(server)
    server.kill()
    server.start()
    check_indexes(server)


def check_indexes(server) -> None:
    for table, indexes in COVERED.items():
        for index, columns in indexes:
            statement = f"SELECT {columns} FROM {table} {{}} INDEX ({{}}) ORDER BY {columns}"
            others = ", ".join(other for other, _ in indexes)
            covered, rows = (server.sql(statement.format(*how), "d")
                             for how in (("FORCE", index), ("IGNORE", others)))
            assert str(covered) == str(rows), f"{index} of {table}"   # 0 and -0 differ as texts
        check_table(server, f"d.{table}")
