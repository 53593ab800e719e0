"""No transaction commits a row without its parent, with many connections, changes of definitions,
and kills. Also tests constraints in the status, CHECK TABLE and loads."""

import re
import time

import pytest
from cheetah_tools.say import Failure, note
from servers import Client, check_table, crash, kill_under, run, Session

WRITERS = 6
KEYS = 30
OPTIONS = {"innodb_buffer_pool_size": "32M", "loose_cheetah_buffer_pool_size": "16M",
           "loose_cheetah_lock_wait_timeout": 2, "innodb_lock_wait_timeout": 2,
           "lock_wait_timeout": 2}
TABLES = ["CREATE TABLE p (id INT PRIMARY KEY, v INT) ENGINE=CHEETAH",
          "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT NOT NULL, st INT, "
          "KEY (pid, st), CONSTRAINT stays FOREIGN KEY (pid) REFERENCES p (id)) ENGINE=CHEETAH",
          "CREATE TABLE d (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, up INT, KEY (pid), "
          "CONSTRAINT follows FOREIGN KEY (pid) REFERENCES p (id) "
          "ON DELETE CASCADE ON UPDATE CASCADE, "
          "CONSTRAINT tree FOREIGN KEY (up) REFERENCES d (id) ON DELETE SET NULL) ENGINE=CHEETAH"]
ORPHANS = ["SELECT COUNT(*) FROM c LEFT JOIN {p} q ON c.pid = q.id WHERE q.id IS NULL",
           "SELECT COUNT(*) FROM d LEFT JOIN {p} q ON d.pid = q.id "
           "WHERE d.pid IS NOT NULL AND q.id IS NULL",
           "SELECT COUNT(*) FROM d LEFT JOIN d u ON d.up = u.id "
           "WHERE d.up IS NOT NULL AND u.id IS NULL"]
# Errors of constraints, keys and locks, and of tables that changed or are temporarily missing.
EXPECTED = {1062, 1146, 1205, 1213, 1412, 1451, 1452, 1020, 1927, 1933}
# Errors of definitions: keys and columns added or dropped twice, and a renamed parent.
EXPECTED |= {1051, 1061, 1091, 1060, 1050, 1005, 1701, 1553, 1033, 1054, 1025}


class Player(Client):
    database, refusals = "fk", EXPECTED

    def __init__(self, server, number: int, seed: int, statements, level: str):
        super().__init__(server, number, seed)
        self.statements, self.level, self.executed = statements, level, 0

    def begin(self, cursor) -> None:
        cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {self.level}")

    def work(self, cursor) -> None:
        for text in self.statements(self.rng):
            self.executed += self.attempt(cursor, text)


def rows(rng) -> list:
    key, other = rng.randint(1, KEYS), rng.randint(1, KEYS)
    parent = rng.choice(["p", "q"])
    one = lambda: rng.choice([  # noqa: E731
        f"INSERT IGNORE INTO {parent} VALUES ({key}, 0)",
        f"INSERT INTO c (pid, st) VALUES ({key}, {other})",
        f"INSERT INTO d (pid) VALUES ({key})",
        f"INSERT INTO d (pid, up) SELECT {key}, MAX(id) FROM d",
        f"DELETE FROM {parent} WHERE id = {key}",
        f"UPDATE {parent} SET id = {other} WHERE id = {key}",
        f"UPDATE c SET st = {rng.randint(1, 50)} WHERE pid = {key}",
        f"UPDATE c SET pid = {other} WHERE pid = {key}",
        f"DELETE FROM c WHERE pid = {key}",
        f"DELETE FROM d WHERE pid = {key} LIMIT 1"])
    if rng.random() < 0.5:
        return [one()]
    return ["BEGIN", one(), one(), one(), rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])]


def definitions(rng) -> list:
    """Returns a change of definitions that keeps all constraints."""
    return [rng.choice(["RENAME TABLE p TO q", "RENAME TABLE q TO p",
                        *(f"ALTER TABLE {name} FORCE, ALGORITHM = COPY" for name in "cdpq"),
                        "ALTER TABLE c ADD KEY more (st)", "ALTER TABLE c DROP KEY more",
                        "ALTER TABLE d ADD COLUMN x INT, ALGORITHM = INSTANT",
                        "ALTER TABLE d DROP COLUMN x", "TRUNCATE p", "DROP TABLE q",
                        "ALTER TABLE c DROP FOREIGN KEY stays, "
                        "ADD CONSTRAINT stays FOREIGN KEY (pid) REFERENCES "
                        + rng.choice("pq") + " (id)"]),
            f"DO SLEEP({rng.uniform(0, 0.03)})"]


@pytest.mark.options(OPTIONS)
def test_no_row_is_without_its_parent_after_kills(server, rng, rounds):
    server.sql("CREATE DATABASE fk")
    run(server, *TABLES, database="fk")
    done = 0
    for _ in range(-(-rounds // 2)):
        levels = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
        clients = [Player(server, number, rng.getrandbits(32), rows, levels[number % 3])
                   for number in range(WRITERS)]
        clients.append(Player(server, WRITERS, rng.getrandbits(32), definitions, levels[1]))
        kill_under(server, clients, rng.uniform(0.5, 1.5))
        done += sum(client.executed for client in clients)
        server.start()
        check(server)
    note(f"{done} statements")
    assert done > 500


def check(server) -> None:
    names = {row[0] for row in server.sql("SHOW TABLES FROM fk")}
    parent = "p" if "p" in names else "q"
    for query in ORPHANS:
        assert server.value(query.format(p=parent), "fk") == 0, query
    check_table(server, parent, "c", "d", database="fk")
    listed = server.sql("SELECT id, for_name, ref_name, on_delete, on_update, ref_index FROM "
                        "information_schema.cheetah_foreign_keys ORDER BY id")
    assert list(listed) == [
        ("fk/follows", "fk/d", f"fk/{parent}", "CASCADE", "CASCADE", "PRIMARY"),
        ("fk/stays", "fk/c", f"fk/{parent}", "RESTRICT", "RESTRICT", "PRIMARY"),
        ("fk/tree", "fk/d", "fk/d", "SET NULL", "RESTRICT", "PRIMARY")]


STATUS = "SHOW ENGINE CHEETAH STATUS"


def refused(server, statement: str, number: int) -> str:
    """Asserts a refusal. Returns the status's section on the latest foreign key error."""
    with pytest.raises(Failure, match=rf"\({number}, "):
        server.sql(statement, "fk")
    text = server.sql(STATUS)[0][2]
    heading = "LATEST FOREIGN KEY ERROR\n------------------------\n"
    assert heading in text, text
    told = text.split(heading)[1].split("\n---")[0]
    assert statement[:200] in told and re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n", told), told
    return told


def test_the_latest_foreign_key_error_is_in_the_status(server):
    server.sql("CREATE DATABASE fk")
    server.sql("CREATE TABLE p (id INT, t VARCHAR(300) CHARACTER SET utf8mb4, b BINARY(2), d DATE, "
               "PRIMARY KEY (id), KEY (t), KEY (b, d)) ENGINE=CHEETAH", "fk")
    server.sql("CREATE TABLE c (id INT PRIMARY KEY, pid INT, t VARCHAR(300) CHARACTER SET utf8mb4, "
               "b BINARY(2), d DATE, CONSTRAINT num FOREIGN KEY (pid) REFERENCES p (id), "
               "CONSTRAINT words FOREIGN KEY (t) REFERENCES p (t), "
               "CONSTRAINT both_of FOREIGN KEY (b, d) REFERENCES p (b, d)) ENGINE=CHEETAH", "fk")
    assert "LATEST FOREIGN KEY ERROR" not in server.sql(STATUS)[0][2]
    server.sql("INSERT INTO p VALUES (1, 'one', X'00FF', '2026-01-02')", "fk")
    server.sql("INSERT INTO c VALUES (1, 1, NULL, NULL, NULL)", "fk")
    told = refused(server, "INSERT INTO c VALUES (2, 5, NULL, NULL, NULL)", 1452)
    assert ("fails for table `fk`.`c`, CONSTRAINT `num` FOREIGN KEY (`pid`) "
            "REFERENCES `p` (`id`)") in told, told
    assert ("A row of the child table with (`pid`) = (5): "
            "the parent table has no row with that key") in told, told
    told = refused(server, "DELETE FROM p", 1451)
    assert ("A row of the parent table with (`id`) = (1): "
            "a row of the child table refers to it") in told, told
    told = refused(server, f"INSERT INTO c VALUES (2, NULL, '{'ä' * 200}''', NULL, NULL)", 1452)
    assert f"(`t`) = ('{'ä' * 100}'..):" in told, told
    told = refused(server, "UPDATE c SET b = X'0102', d = '2026-02-03'", 1452)
    assert ("(`b`, `d`) = (0x0102, 2026-02-03)" in told
            or "(`b`, `d`) = (0x0102, '2026-02-03')" in told), told
    told = refused(server, "CREATE TABLE n (id INT, FOREIGN KEY (id) REFERENCES none_such (id)) "
                           "ENGINE=CHEETAH", 1005)
    assert "no table 'fk/none_such' to refer to" in told, told
    told = refused(server, "DROP TABLE p", 1451)
    assert "table 'fk/p' is referenced by table 'fk/c'" in told, told
    long = "x" * 5000
    told = refused(server, "INSERT INTO c VALUES (3, 6, NULL, NULL, NULL), "
                           f"(4, 1, '{long}', NULL, NULL)", 1452)
    assert len(told) < 3000, told


def told_by_check(server, table: str, how: str = "") -> list:
    """Returns the warnings of CHECK TABLE, which must find no errors."""
    rows = server.sql(f"CHECK TABLE {table} {how}", "fk")
    assert rows[-1][2:] == ("status", "OK"), rows
    assert all(row[2] == "warning" for row in rows[:-1]), rows
    return [row[3] for row in rows[:-1]]


def test_check_table_tells_rows_without_a_parent(server):
    server.sql("CREATE DATABASE fk")
    text = "VARCHAR(20) CHARACTER SET utf8mb4"
    server.sql(f"CREATE TABLE p (id INT PRIMARY KEY, a INT, t {text} NOT NULL, d DATE, "
               "KEY (t DESC), KEY (d, a DESC)) ENGINE=CHEETAH", "fk")
    server.sql(f"CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, t {text}, d DATE, a "
               "INT NOT NULL, w TEXT, up INT, KEY (pid DESC), KEY (t), KEY (d DESC, a), CONSTRAINT "
               "one FOREIGN KEY (pid) REFERENCES p (id), CONSTRAINT three FOREIGN KEY (d, a) "
               "REFERENCES p (d, a), CONSTRAINT two FOREIGN KEY (t) REFERENCES p (t), CONSTRAINT "
               "zero FOREIGN KEY (up) REFERENCES c (id)) ENGINE=CHEETAH", "fk")
    server.sql("INSERT INTO p VALUES (1, 1, 'One', '2026-01-01'), (2, NULL, 'two', NULL), "
               "(-3, 3, 'three', '2026-01-03')", "fk")
    sound = ("INSERT INTO c (pid, t, d, a, w, up) VALUES (1, 'ONE ', '2026-01-01', 1, REPEAT('x', "
             "20000), 1), (2, NULL, NULL, 7, NULL, NULL), (-3, 'Three', '2026-01-03', 3, 'w', 2), "
             "(NULL, 'two', NULL, 0, NULL, 3)")
    server.sql(sound, "fk")
    assert not told_by_check(server, "c", "EXTENDED")
    session = Session(server, "fk")
    session.run("SET foreign_key_checks = 0", "INSERT INTO c (pid, t, d, a, w, up) "
                "VALUES (5, 'four', '2026-01-01', 3, REPEAT('y', 20000), 99), "
                "(5, 'FOUR', '2026-01-03', 1, NULL, NULL), (-7, NULL, NULL, 9, NULL, 1)",
                "INSERT INTO c (pid, t, a) SELECT NULL, CONCAT('k', seq), 0 FROM seq_100_to_150")
    one, three, two, zero = told_by_check(server, "c")
    assert one.startswith("Rows without a parent: 3. ") and one.endswith(". Keys: (5), (-7)"), one
    assert "`fk`.`c`, CONSTRAINT `one` FOREIGN KEY (`pid`) REFERENCES `p` (`id`)" in one, one
    assert (three.startswith("Rows without a parent: 2. ")
            and "(2026-01-01, 3)" in three.replace("'", "")), three
    assert two.startswith("Rows without a parent: 53. ") and two.endswith(", ('k108'), .."), two
    assert "Keys: ('four'), ('k100')" in two, two
    assert zero.endswith(". Keys: (99)"), zero
    assert not told_by_check(server, "c", "QUICK") and not told_by_check(server, "p")
    # Uncommitted changes of other transactions are ignored, and CHECK TABLE does not wait for them.
    session.run("SET foreign_key_checks = 1", "BEGIN", "UPDATE p SET a = 33 WHERE id = 2",
                "INSERT INTO p VALUES (5, 5, 'four', '2026-01-05'), (99, 0, 'z', NULL)")
    assert told_by_check(server, "c") == [one, three, two, zero]
    session.run("COMMIT")
    assert told_by_check(server, "c")[0].startswith("Rows without a parent: 1. ")
    session.run("SET foreign_key_checks = 0", "ALTER TABLE p DROP KEY t", "UPDATE c SET up = NULL")
    told = told_by_check(server, "c")
    assert len(told) == 3 and told[2].startswith("Rows were not checked for parents"), told


def test_check_table_can_be_killed_while_it_looks_for_parents(server):
    server.sql("CREATE DATABASE fk")
    run(server, "CREATE TABLE p (id INT PRIMARY KEY) ENGINE=CHEETAH",
        "CREATE TABLE c (pid INT, FOREIGN KEY (pid) REFERENCES p (id)) ENGINE=CHEETAH",
        *(f"INSERT INTO {name} SELECT seq FROM seq_1_to_200000" for name in "pc"), database="fk")
    checker = Checker(server)
    checker.start()
    while checker.is_alive():
        time.sleep(0.3)
        server.sql(f"KILL QUERY {checker.connection.thread_id()}")
    assert "1317" in checker.failure or "nterrupted" in checker.failure, checker.failure
    assert not told_by_check(server, "c")


class Checker(Client):
    """Runs CHECK TABLE until it does not report OK."""

    database = "fk"

    def work(self, cursor) -> None:
        cursor.execute("CHECK TABLE c")
        rows = cursor.fetchall()
        assert self.done < 100 and rows[-1][2:] == ("status", "OK"), rows


@pytest.mark.parametrize("how", ["ADD x INT, ALGORITHM = COPY", "ALGORITHM = INPLACE"])
def test_children_come_back_when_a_rename_fails_at_its_triggers(server, how):
    """The server renames triggers last. If this fails, it reverts the renames of the tables."""
    server.sql("CREATE DATABASE fk")
    run(server, "CREATE TABLE p (id INT PRIMARY KEY, up INT, "
        "CONSTRAINT own FOREIGN KEY (up) REFERENCES p (id)) ENGINE=CHEETAH",
        "CREATE TABLE c (pid INT, CONSTRAINT one FOREIGN KEY (pid) REFERENCES p (id)) "
        "ENGINE=CHEETAH", "CREATE TRIGGER t BEFORE INSERT ON p FOR EACH ROW SET NEW.id = NEW.id",
        "INSERT INTO p VALUES (1, NULL), (2, 1)", "INSERT INTO c VALUES (1)", database="fk")
    (server.data / "fk/q.TRG").mkdir()
    with pytest.raises(Failure):
        server.sql(f"ALTER TABLE p RENAME TO q, {how}", "fk")
    listed = ("SELECT id, for_name, ref_name, ref_index "
              "FROM information_schema.cheetah_foreign_keys ORDER BY id")
    expected = [("fk/one", "fk/c", "fk/p", "PRIMARY"), ("fk/own", "fk/p", "fk/p", "PRIMARY")]
    for _ in range(2):
        assert sorted(row[0] for row in server.sql("SHOW TABLES", "fk")) == ["c", "p"]
        assert list(server.sql(listed)) == expected
        for statement, number in (("DELETE FROM p WHERE id = 1", 1451),
                                  ("INSERT INTO c VALUES (7)", 1452)):
            with pytest.raises(Failure, match=rf"\({number}, "):
                server.sql(statement, "fk")
        crash(server)
