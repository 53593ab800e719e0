"""The engine in a server that runs without InnoDB."""

from servers import crash, run, Session

OPTIONS = {"skip_innodb": None, "default_storage_engine": "CHEETAH"}


def test_it_needs_no_innodb(server):
    """Not even its variable for lock wait timeouts is needed, which the engine otherwise uses."""
    assert not server.has_engine("InnoDB")
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    with Session(server, autocommit=False) as first, Session(server, autocommit=False) as second:
        first.run("UPDATE t SET b = 3 WHERE a = 1")
        second.run("UPDATE t SET b = 4 WHERE a = 2", "SET cheetah_lock_wait_timeout = 0")
        assert second.error("UPDATE t SET b = 4 WHERE a = 1") == 1205
        first.run("COMMIT")
        second.run("COMMIT")
    crash(server)
    assert server.sql("SELECT * FROM d.t ORDER BY a") == [(1, 3), (2, 4)]
