"""cheetah-migrate converts a graph of tables to Cheetah and back, and is killed meanwhile."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import listed
import pytest
from cheetah_migrate import estimate
from cheetah_migrate.tables import Place, Table, without_engine
from cheetah_tools import setup
from cheetah_tools.paths import PROJECT, SERVER
from cheetah_tools.say import note
from servers import begun, left_by_innodb, run, tmpfs, wait_until

PROGRAM = PROJECT / "tools/migrate/cheetah-migrate"
SECONDS_MAX = 300
ROUNDS = 3
TRIES = 5   # the maximum number of tries to interrupt a short statement
OPTIONS = {"innodb_buffer_pool_size": "32M", "loose_cheetah_buffer_pool_size": "32M"}
# The graph has a circle (orders, items), a table that refers to itself, constraints on two columns,
# a second database, names that need quotes (one with a tab), all rules, and indexes that the server
# created for constraints.
GRAPH, ROWS = listed.statements(Path(__file__).with_name("migrate_graph.sql")).values()
TABLES = ["shop.customers", "shop.orders", "shop.items", "crm.products", "crm.`odd``n a.me`",
          "shop.alone", "shop.parts", "shop.numbers"]
CONNECTED = TABLES[:5]


def start(server, *arguments):
    return subprocess.Popen([sys.executable, str(PROGRAM), *arguments,
                             f"--defaults-file={server.folder / 'my.cnf'}",
                             f"--client={SERVER / 'usr/bin/mariadb'}"],
                            env=setup.library_environment(), text=True, start_new_session=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def said_by(program, *statuses: int) -> str:
    """Waits for the program's end, checks its status (none given: any), and returns its output."""
    said = program.communicate(timeout=SECONDS_MAX)[0]
    assert not statuses or program.returncode in statuses, said
    return said


def migrate(server, *arguments, status: int = 0) -> str:
    return said_by(start(server, *arguments), status)


def make_graph(server, rows: int) -> None:
    for text in ["CREATE DATABASE shop", "CREATE DATABASE crm CHARACTER SET utf8mb4", *GRAPH,
                 *(text.format(n=rows) for text in ROWS)]:
        # Zero timestamps require sql_mode=''.
        is_lax = text.startswith(("INSERT", "CREATE TABLE"))
        server.sql("SET STATEMENT sql_mode='' FOR " * is_lax + text, "d")


def shape(text: str) -> list:
    """Returns a definition without its engine. The lines are sorted because the server places an
    implicit index last when its constraint is added again."""
    return sorted(without_engine(text).splitlines())


def content(server, table: str) -> str:
    """Returns a digest of all rows. (CHECKSUM TABLE includes undefined bits of virtual columns.)"""
    rows = sorted(map(repr, server.sql(f"SELECT * FROM {table}")))
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def picture(server) -> dict:
    there = {str(Place(*row)) for row in server.sql(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES")}
    return {table: (server.sql(f"SHOW CREATE TABLE {table}")[0][1], content(server, table))
            for table in TABLES if table in there}


def engines(server) -> set:
    return {row[0].upper() for row in server.sql(
        "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('shop', 'crm') AND "
        "ENGINE IS NOT NULL")}


def engine_of(server, table: str) -> str:
    return re.search(r"^\) ENGINE=(\w+)", server.sql(f"SHOW CREATE TABLE {table}")[0][1], re.M)[1]


def constraints(server) -> set:
    return {tuple(row) for row in server.sql(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM "
        "information_schema.REFERENTIAL_CONSTRAINTS")}


def in_journal(server) -> set:
    if not server.sql("SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                      "'cheetah_migrate' AND TABLE_NAME = 'constraints'"):
        return set()
    return {tuple(row) for row in server.sql(
        "SELECT table_schema, table_name, constraint_name FROM cheetah_migrate.constraints c JOIN "
        "cheetah_migrate.groups g ON g.id = c.group_id WHERE g.state = 'open'")}


def test_there_and_back(server):
    make_graph(server, 2000)
    before = picture(server)
    said = migrate(server, "plan", "--all")
    assert "these 5 together: 7 constraints" in said and "shop.parts has partitions" in said, said
    said = migrate(server, "run", "shop", "crm")
    note(said)
    assert engines(server) == {"CHEETAH"}, said
    there = picture(server)
    for table, (text, rows) in before.items():
        assert without_engine(there[table][0]) == without_engine(text), table
        assert "ENGINE=CHEETAH" in there[table][0]
        assert there[table][1] == rows, table
    server.sql("INSERT INTO shop.customers (name) VALUES ('loud')")
    assert server.value("SELECT COUNT(*) FROM shop.names WHERE name = 'LOUD'") == 1
    assert server.value("SELECT NEXTVAL(shop.numbers)") == 3007, "the server had cached 1000"
    server.sql("DELETE FROM shop.customers WHERE name = 'loud'")
    said = migrate(server, "run", "--to", "innodb", "--all")
    assert engines(server) == {"INNODB"}, said
    again = picture(server)
    for table in TABLES[1:-1]:
        assert again[table] == before[table], table
    said = migrate(server, "status")
    assert "under way" not in said and len(re.findall(r" done ", said)) == 8, said
    assert "nothing to do" in migrate(server, "run", "--to", "innodb", "--all")


def test_a_sequence_alone(server):
    """A sequence is converted although it has no rows to sample."""
    server.sql("CREATE SEQUENCE numbers ENGINE=InnoDB", "d")
    server.value("SELECT NEXTVAL(d.numbers)")
    migrate(server, "run", "d")
    assert engine_of(server, "d.numbers") == "CHEETAH"
    assert server.value("SELECT NEXTVAL(d.numbers)") == 1001, "the server had cached 1000"


def test_a_file_that_innodb_has_left_is_named(server):
    run(server, "CREATE TABLE `a b` (id INT PRIMARY KEY) ENGINE=CHEETAH",
        "INSERT INTO `a b` SELECT seq FROM seq_1_to_100")
    left = server.data / "d/a@0020b.ibd"
    left.write_bytes(b"left")
    said = migrate(server, "run", "--to", "innodb", "d", status=1)
    assert "d/a@0020b.ibd" in said and left.read_bytes() == b"left", said
    assert engine_of(server, "d.`a b`") == "CHEETAH"
    assert make_way(server, said), said
    migrate(server, "resume")
    assert engine_of(server, "d.`a b`") == "InnoDB"
    assert server.value("SELECT COUNT(*) FROM d.`a b`") == 100


def test_ctrl_c_ends_what_is_running(server):
    make_graph(server, 10000)
    wanted = constraints(server)
    for statement in (r"INSERT INTO `cheetah\_migrate`.`trial%", "ALTER TABLE `shop`.%ENGINE=%",
                      "ALTER TABLE `shop`.%ADD CONSTRAINT%"):
        running = ("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' "
                   f"AND INFO LIKE '{statement}'")
        attempts = (press_ctrl_c_when(server, running) for _ in range(TRIES))
        said = next(filter(None, attempts), "")
        assert "\nstopped\n" in said, said
        wait_until(lambda: not server.value(running), "it has ended", 1)
    migrate(server, "run", "shop", "crm")
    assert engines(server) == {"CHEETAH"} and not in_journal(server)
    assert constraints(server) == wanted


@pytest.mark.options({"innodb_flush_log_at_trx_commit": 2})
def test_killed_at_any_moment(server, rng, rounds):
    make_graph(server, 3000)
    server.sql("DROP TABLE shop.parts")   # the server's DDL on partitions is not atomic
    server.restart()   # InnoDB forgets reserved AUTO_INCREMENT values
    wanted, before = constraints(server), picture(server)
    kills, goals = 0, ["cheetah", "innodb"]
    for number in range(rounds):
        for _ in range(rng.randint(1, 4)):
            goal = "innodb" if engines(server) == {"CHEETAH"} else "cheetah"
            arguments = (rng.choice([["resume"], ["undo"]]) if in_journal(server) else
                         ["run", "--all", "--to", goal])
            kills += kill_on_its_way(server, rng, arguments, wanted)
        said = end(server, rng.choice(["resume", "undo"]))
        said += end(server, "run", "--all", "--to", goals[number % 2])
        assert engines(server) == {goals[number % 2].upper()}, said
        assert constraints(server) == wanted, said
        assert not in_journal(server), said
        for table, (text, rows) in picture(server).items():
            assert shape(text) == shape(before[table][0]), said
            assert rows == before[table][1], said
            if table != "shop.numbers":   # the server does not check sequences
                assert server.sql(f"CHECK TABLE {table}")[-1][-1] == "OK"
    left = server.sql("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                      "'cheetah_migrate'")
    assert {row[0] for row in left} - {"synced"} == {"groups", "tables", "constraints"}
    note(f"{kills} kills in {rounds} rounds")
    assert kills >= rounds


def kill_on_its_way(server, rng, arguments: list, wanted: set) -> bool:
    """Starts the program and ends it, or the server, mostly while constraints are in the journal.
    Checks that no wanted constraint is lost. Returns whether the program was still running."""
    program = start(server, *arguments)
    if rng.random() < 0.8:
        wait_until(lambda: program.poll() is not None or in_journal(server), "there is a journal")
    time.sleep(rng.uniform(0, 1.5))
    kind = rng.choice(["program", "program", "Ctrl-C", "server", "server"])
    is_early = program.poll() is None
    if kind == "server":
        server.kill()
        said = said_by(program, 0, 1)
        server.start()
    else:
        program.send_signal(signal.SIGKILL if kind == "program" else signal.SIGINT)
        said = said_by(program)
        # Python may have been interrupted before our program started.
        statuses = (0, 130, -signal.SIGKILL, -signal.SIGINT)
        assert (make_way(server, said) or program.returncode in statuses
                or "KeyboardInterrupt" in said), said
    # Constraints are read first: one that is dropped after this query is in the journal.
    assert wanted <= constraints(server) | in_journal(server), f"{kind} {arguments}: {said}"
    return is_early


def end(server, *arguments) -> str:
    """Runs the program until it succeeds, following its advice. Returns its output."""
    program = start(server, *arguments)
    said = said_by(program)
    if program.returncode and make_way(server, said):
        return said + end(server, *arguments)
    assert program.returncode == 0, said
    return said


def make_way(server, said: str) -> bool:
    """Returns whether the program named a file left by InnoDB, and removes this file."""
    found = re.search(r"is in the way: (\S+)/(\S+)\.ibd in", said)
    if not found:
        return False
    files = {file.stem: file for file in left_by_innodb(server, found[1])}
    assert found[2] in files, said
    note(f"InnoDB has left {found[1]}/{found[2]}.ibd")
    files[found[2]].unlink(missing_ok=True)
    return True


def press_ctrl_c_when(server, running: str) -> str:
    """Runs the program and sends Ctrl-C when the query finds something. Returns the output. If the
    program ended before that, converts everything back to InnoDB and returns an empty string."""
    program = start(server, "run", "shop", "crm")
    wait_until(lambda: program.poll() is not None or server.value(running), running)
    program.send_signal(signal.SIGINT)
    said = said_by(program, 0, 130)
    if program.returncode == 0:
        migrate(server, "run", "--to", "innodb", "shop", "crm")
        return ""
    return said


def kill_when(server, condition) -> None:
    """Kills a conversion on the condition, and waits until the server ended its last statement."""
    program = start(server, "run", "--all")
    wait_until(lambda: program.poll() is not None or condition(), "there is something to kill")
    program.kill()
    assert program.wait() == -signal.SIGKILL, program.communicate()
    program.stdout.close()
    wait_until(lambda: server.value("SELECT IS_FREE_LOCK('cheetah_migrate')"), "it has ended")


def kill_without_constraints(server) -> None:
    kill_when(server, lambda: ("shop", "items", "of_product") not in constraints(server))


def test_rows_without_parents_are_said_and_nothing_is_changed(server):
    """Orphans may exist already, as foreign_key_checks=0 lets them in."""
    make_graph(server, 200)
    wanted = constraints(server)
    server.sql("SET STATEMENT foreign_key_checks=0 FOR INSERT INTO shop.orders (customer, number) "
               "VALUES (100001, 1), (100002, 1)")
    said = migrate(server, "run", "--all", status=1)
    assert "Nothing was changed" in said and "shop.orders.orders_ibfk_1: 2 rows" in said, said
    assert engines(server) == {"INNODB"} and constraints(server) == wanted
    query = re.search(r"^ *(SELECT child.*);$", said, re.M)[1]
    assert sorted(row[0] for row in server.sql(query)) == [100001, 100002]
    migrate(server, "run", "--all", "--unchecked")
    assert engines(server) == {"CHEETAH"} and constraints(server) == wanted
    assert server.value("SELECT COUNT(*) FROM shop.orders WHERE customer > 100000") == 2


def test_rows_that_lost_their_parent_meanwhile_are_said(server):
    """After a kill, no lock prevents writes to tables whose constraints are in the journal."""
    make_graph(server, 2000)
    wanted = constraints(server)
    kill_without_constraints(server)
    said = migrate(server, "status")
    assert "not there now: ALTER TABLE" in said and "under way" in said, said
    server.sql("DELETE FROM crm.products WHERE code = 'p7'")
    said = migrate(server, "resume", status=1)
    assert "shop.items.of_product: 4 rows of shop.items have no parent" in said, said
    assert "cheetah-migrate undo" in said
    assert wanted - constraints(server) == {("shop", "items", "of_product")}
    server.sql("INSERT INTO crm.products VALUES ('p7', 'again')")
    said = migrate(server, "resume")
    assert constraints(server) == wanted and not in_journal(server), said


def test_a_group_goes_back_to_the_start(server):
    make_graph(server, 2000)
    before, wanted = picture(server), constraints(server)
    kill_when(server, lambda: any(engine_of(server, table) == "CHEETAH" for table in CONNECTED))
    said = migrate(server, "undo")
    assert constraints(server) == wanted and not in_journal(server), said
    assert {engine_of(server, table) for table in CONNECTED} == {"InnoDB"}
    after = picture(server)
    for table in CONNECTED:
        assert after[table][1] == before[table][1]
        assert shape(after[table][0]) == shape(before[table][0])
    assert "nothing is under way" in migrate(server, "undo")


def test_nobody_writes_a_row_without_its_parent_meanwhile(server):
    make_graph(server, 2000)
    program = start(server, "run", "--all")
    tries = 0
    with server.cursor("shop") as cursor:
        while program.poll() is None:
            with pytest.raises(Exception, match="1452"):
                cursor.execute("INSERT INTO items (customer, number, product) VALUES (1, 1, 'no')")
            tries += 1
    said = program.communicate()[0]
    assert program.returncode == 0 and tries > 3, said
    assert engines(server) == {"CHEETAH"}


def test_what_cannot_go_stays_with_what_it_is_connected_to(server):
    run(server, "CREATE DATABASE s", "CREATE DATABASE other",
        "CREATE TABLE s.places (id INT PRIMARY KEY, at POINT NOT NULL, SPATIAL KEY (at)) "
        "ENGINE=InnoDB",
        "CREATE TABLE s.visits (id INT PRIMARY KEY, place INT, CONSTRAINT v FOREIGN KEY "
        "(place) REFERENCES places (id)) ENGINE=InnoDB",
        "CREATE TABLE s.photos (visit INT, CONSTRAINT p FOREIGN KEY (visit) REFERENCES "
        "visits (id)) ENGINE=InnoDB",
        "CREATE TABLE other.far (id INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE s.near (far INT, CONSTRAINT f FOREIGN KEY (far) REFERENCES "
        "other.far (id)) ENGINE=InnoDB",
        "SET STATEMENT foreign_key_checks=0 FOR CREATE TABLE s.waits (id INT, "
        "CONSTRAINT w FOREIGN KEY (id) REFERENCES missing (id)) ENGINE=InnoDB",
        "CREATE TABLE s.goes (id INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE s.history (id INT) ENGINE=InnoDB WITH SYSTEM VERSIONING",
        "CREATE TABLE s.aria (id INT PRIMARY KEY) ENGINE=Aria", database="")
    for command in ("plan", "run"):
        said = migrate(server, command, "s")
        assert re.search(r"stays: s.places: .*SPATIAL", said), said
        assert re.search(r"stays: s.history: .*versioned", said), said
        assert "stays: s.visits: connected with s.places by the constraint s.visits.v" in said
        assert "stays: s.photos: connected with s.visits by the constraint s.photos.p" in said
        assert "stays: other.far: it was not named" in said
        assert "stays: s.missing: it does not exist" in said
        assert "left alone: s.aria: its engine is Aria" in said
    found = dict(server.sql("SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE "
                            "TABLE_SCHEMA = 's'"))
    assert found.pop("goes") == "CHEETAH" and found.pop("aria") == "Aria"
    assert set(found.values()) == {"InnoDB"} and len(constraints(server)) == 4
    migrate(server, "run", "s", "other.far")
    assert engine_of(server, "other.far") == "CHEETAH"


def test_a_migration_without_room_is_refused_before_it_starts(server):
    make_graph(server, 200)
    wanted = constraints(server)
    said = migrate(server, "plan", "--all", "--free", "1M")
    assert "`run` would refuse" in said, said
    said = migrate(server, "run", "--all", "--free", "1M", status=1)
    assert re.search(r"not enough room: [\d.]+ MB must be free, 1.0 MB are", said), said
    assert engines(server) == {"INNODB"} and constraints(server) == wanted
    assert not in_journal(server)


def test_the_way_back_counts_all_partitions(server):
    """The engine's view has a row for each partition and none for the partitioned table."""
    definition = ("(PRIMARY KEY (id)) ENGINE=CHEETAH {} "
                  "SELECT seq AS id, REPEAT('x', 200) AS words FROM seq_1_to_20000")
    server.sql("CREATE TABLE whole " + definition.format(""), "d")
    server.sql("CREATE TABLE parts " + definition.format(
        "PARTITION BY RANGE (id) SUBPARTITION BY KEY (id) SUBPARTITIONS 2 "
        "(PARTITION p0 VALUES LESS THAN (9000), PARTITION p1 VALUES LESS THAN MAXVALUE)"), "d")
    look = SimpleNamespace(run=server.sql)
    whole, parts = (estimate.weigh_for_innodb(
        look, Table(Place("d", name), "CHEETAH", "BASE TABLE", 0, 0, 0, ""))
        for name in ("whole", "parts"))
    assert parts.after > 0.9 * whole.after > 3 << 20


def test_the_room_on_the_disk_is_looked_at(new_server, tmp_path):
    with tmpfs(tmp_path, 420):
        server = begun(new_server({"innodb_log_file_size": "8M"}, folder=tmp_path / "server"))
        server.sql("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB")
        server.sql("INSERT INTO d.t SELECT seq, CONCAT(" + ", ".join(["RANDOM_BYTES(1000)"] * 7) +
                   ") FROM seq_1_to_10000", "d")
        server.sql("ANALYZE TABLE d.t")
        free = os.statvfs(tmp_path).f_bavail * 4096
        ballast = tmp_path / "ballast"
        ballast.write_bytes(bytes(max(0, free - (100 << 20))))
        said = migrate(server, "run", "d", status=1)
        assert "not enough room" in said and str(server.data) in said, said
        assert engine_of(server, "d.t") == "InnoDB"
        ballast.unlink()
        migrate(server, "run", "d")
        assert engine_of(server, "d.t") == "CHEETAH"
        server.stop()


def test_two_runs_take_turns(server):
    make_graph(server, 500)
    for program in [start(server, "run", "--all", "--no-lock") for _ in range(2)]:
        said_by(program, 0)
    assert engines(server) == {"CHEETAH"}


def test_a_table_that_is_dropped_meanwhile_is_forgotten_by_name(server):
    make_graph(server, 2000)
    wanted = constraints(server)
    kill_without_constraints(server)
    server.sql("SET STATEMENT foreign_key_checks=0 FOR DROP TABLE crm.`odd``n a.me`")
    said = migrate(server, "resume", status=1)
    assert "is gone" in said and "cheetah-migrate forget" in said, said
    assert "is there" in migrate(server, "forget", "shop.items", status=1)
    said = migrate(server, "forget", "crm.`odd``n a.me`")
    assert "not added again: ALTER TABLE" in said
    said = migrate(server, "resume")
    assert wanted - constraints(server) == {
        ("crm", "odd`n a.me", "x-y z"), ("crm", "odd`n a.me", "odd`n a.me_ibfk_1")}, said
    assert engines(server) >= {"CHEETAH"} and not in_journal(server)


@pytest.mark.options({"log_bin": "bin", "server_id": 1})
def test_a_replica_is_left_alone_if_asked(server):
    """With --local, the binary log has nothing, otherwise all except the journal."""
    run(server, "CREATE TABLE p (id INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE c (id INT, CONSTRAINT k FOREIGN KEY (id) REFERENCES p (id)) ENGINE=InnoDB")
    position = server.sql("SHOW MASTER STATUS")[0][1]
    migrate(server, "run", "--all", "--local")
    assert server.sql("SHOW MASTER STATUS")[0][1] == position
    migrate(server, "run", "--all", "--to", "innodb")
    events = [row[5] for row in server.sql(f"SHOW BINLOG EVENTS FROM {position}")]
    assert sum("ENGINE=InnoDB" in text for text in events) == 2
    assert sum("DROP FOREIGN KEY" in text for text in events) == 1
    assert sum("ADD CONSTRAINT" in text for text in events) == 1
    assert not any("cheetah_migrate" in text for text in events)
