"""A node of a Galera cluster. Rows of CHEETAH tables are not replicated: writes are refused.

The provider is taken from the machine's package archives without being installed. One node is
enough, because it counts the write sets that it would send."""

import contextlib
import subprocess

import pymysql
import pytest
from cheetah_tools import apt, setup
from cheetah_tools.paths import VAR
from cheetah_tools.say import Failure
from servers import free_port, run, Session, wait_until

REFUSED = 4165


@pytest.fixture(scope="module")
def provider():
    folder = VAR / "galera"
    found = list(folder.rglob("libgalera_smm.so"))
    if not found:
        try:
            debs = apt.Archive(setup.release()).download(["galera-4"], folder / "debs")
            setup.unpack_debs(debs, folder)
        except Failure as failure:
            pytest.skip(f"Galera cannot be had: {failure}")
        found = list(folder.rglob("libgalera_smm.so"))
    listed = subprocess.run(["ldd", found[0]], env=setup.library_environment(), text=True,
                            capture_output=True, check=False).stdout
    if "not found" in listed or setup.is_foreign():
        pytest.skip(f"Galera does not run here: {listed}")
    return found[0]


@pytest.fixture
def node(new_server, provider):
    listens = (f"gmcast.listen_addr=tcp://127.0.0.1:{free_port()};"
               f"ist.recv_addr=127.0.0.1:{free_port()}")
    made = new_server({"wsrep_on": "ON", "wsrep_provider": provider, "binlog_format": "ROW",
                       "wsrep_cluster_address": "gcomm://", "wsrep_node_address": "127.0.0.1",
                       "wsrep_provider_options": f"'{listens};gcache.size=16M'",
                       "innodb_autoinc_lock_mode": 2})
    made.start()
    wait_until(lambda: made.sql("SHOW STATUS LIKE 'wsrep_ready'")[0][1] == "ON", "the node")
    made.sql("CREATE DATABASE d")
    return made


def replicated(node) -> int:
    return int(node.sql("SHOW STATUS LIKE 'wsrep_replicated'")[0][1])


def refused(node, *statements) -> None:
    """Asserts that each statement is refused with advice."""
    for text in statements:
        with pytest.raises(Failure, match="cheetah_wsrep_local_writes") as told:
            node.sql(text, "d")
        assert str(REFUSED) in str(told.value), told.value


def in_session(node, *statements) -> list:
    with Session(node) as session:
        return session.run(*statements)


def test_rows_that_would_stay_on_one_node_are_refused(node):
    node.sql("CREATE TABLE i (id INT PRIMARY KEY) ENGINE=InnoDB", "d")
    warned = in_session(node, "CREATE TABLE c (id INT PRIMARY KEY, b INT) ENGINE=CHEETAH",
                        "SHOW WARNINGS")
    assert len(warned) == 1 and "not replicated" in warned[0][2], warned
    before = replicated(node)
    node.sql("INSERT INTO i VALUES (1), (2)", "d")
    assert replicated(node) == before + 1
    refused(node, "INSERT INTO c VALUES (1, 1)", "REPLACE INTO c VALUES (1, 1)",
            "INSERT INTO c SELECT id, 1 FROM i", "CREATE TABLE e ENGINE=CHEETAH SELECT * FROM i")
    assert not node.sql("SHOW TABLES LIKE 'e'", "d")
    before = replicated(node)
    in_session(node, "SET SESSION cheetah_wsrep_local_writes = ON",
               "INSERT INTO c VALUES (1, 1), (2, 2)")
    assert replicated(node) == before, "they stay here"
    refused(node, "UPDATE c SET b = 3", "DELETE FROM c", "DELETE FROM c WHERE id = 1")
    assert node.sql("SELECT * FROM c", "d") == [(1, 1), (2, 2)]


def test_changes_of_definitions_are_made_on_every_node_with_its_rows(node):
    node.sql("CREATE TABLE c (id INT PRIMARY KEY, b INT) ENGINE=CHEETAH", "d")
    in_session(node, "SET SESSION cheetah_wsrep_local_writes = ON",
               "INSERT INTO c VALUES (1, 1), (2, 2)")
    for change in ("ALTER TABLE c ADD COLUMN d INT, ADD KEY (b)",
                   "ALTER TABLE c ADD COLUMN e INT, ALGORITHM=COPY", "OPTIMIZE TABLE c"):
        before = replicated(node)
        node.sql(change, "d")
        assert replicated(node) == before + 1, change
    assert node.value("SELECT COUNT(*) FROM c WHERE e IS NULL", "d") == 2
    node.sql("TRUNCATE TABLE c", "d")
    assert node.value("SELECT COUNT(*) FROM c", "d") == 0
    node.sql("ALTER TABLE c ENGINE=InnoDB", "d")
    before = replicated(node)
    node.sql("INSERT INTO c (id) VALUES (1)", "d")
    assert replicated(node) == before + 1


def test_what_is_not_to_be_replicated_is_let_through(node):
    run(node, "CREATE TABLE c (id INT PRIMARY KEY) ENGINE=CHEETAH",
        "CREATE TABLE i (id INT PRIMARY KEY) ENGINE=InnoDB")
    in_session(node, "SET SESSION wsrep_on = OFF", "INSERT INTO c VALUES (1)")
    in_session(node, "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY) ENGINE=CHEETAH",
               "INSERT INTO t VALUES (1), (2)", "UPDATE t SET id = id + 10", "DELETE FROM t")
    in_session(node, "LOCK TABLES c READ", "SELECT * FROM c", "UNLOCK TABLES")
    in_session(node, "SELECT * FROM c FOR UPDATE", "INSERT INTO i SELECT id FROM c")
    run(node, "SET GLOBAL cheetah_wsrep_local_writes = ON", "INSERT INTO c VALUES (2)",
        "SET GLOBAL cheetah_wsrep_local_writes = OFF")
    refused(node, "INSERT INTO c VALUES (3)")
    assert node.value("SELECT COUNT(*) FROM c", "d") == 2


def test_a_server_without_a_provider_is_left_alone(server):
    run(server, "CREATE TABLE c (id INT PRIMARY KEY) ENGINE=CHEETAH", "INSERT INTO c VALUES (1)")
    with contextlib.suppress(pymysql.MySQLError):
        in_session(server, "SET GLOBAL wsrep_on = ON")
    server.sql("INSERT INTO d.c VALUES (2)")
