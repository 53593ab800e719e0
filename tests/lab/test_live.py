"""Tests of tables of a live server: what is copied is what it has, and nothing is written there.
The server is a private one."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cheetah_lab.inputs import dumps, live, own
from cheetah_tools.say import Failure
from cheetah_tools.server import PrivateServer
from labs import children, until

OPTIONS = {"innodb_log_file_size": "64M", "innodb_buffer_pool_size": "64M",
           "innodb_flush_log_at_trx_commit": 2, "innodb_flush_method": "nosync"}
SECRET = 'a "b\\c\' # ü'
# Statements that change nothing: reads, settings of the session, the transaction's begin and its
# places to go back to. (UNLOCK: of no locks.)
READS = re.compile(r"(/\*M?!\d+ )?(SELECT (?!.*(INTO OUTFILE|FOR UPDATE|IN SHARE MODE))|SHOW|"
                   r"SET (?!.*\bGLOBAL\b)|START TRANSACTION.*CONSISTENT SNAPSHOT|SAVEPOINT|"
                   r"ROLLBACK TO SAVEPOINT|RELEASE SAVEPOINT|UNLOCK TABLES$|USE )", re.I)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The server whose tables are wanted; it writes down every statement."""
    folder = tmp_path_factory.mktemp("source")
    with PrivateServer(folder, {**OPTIONS, "general_log": 1,
                                "general_log_file": folder / "general.log"},
                       plugin=False) as started:
        started.sql("CREATE DATABASE shop")
        started.sql("CREATE TABLE orders (id int PRIMARY KEY, what varchar(99), raw blob, "
                    "KEY (what)) CHARSET=utf8mb4", "shop")
        started.sql("INSERT INTO orders WITH RECURSIVE n(i) AS "
                    "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700) "
                    "SELECT i, CONCAT('🐆', i), UNHEX('00ff5c27') FROM n", "shop")
        started.sql("CREATE TABLE `odd,name` (id int PRIMARY KEY) ENGINE=Aria", "shop")
        started.sql("INSERT INTO `odd,name` VALUES (1), (2)", "shop")
        started.sql("CREATE TABLE secrets (id int PRIMARY KEY)", "shop")
        started.sql("CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW "
                    "SET NEW.what = 'changed'", "shop")
        started.sql("CREATE VIEW seen AS SELECT id FROM orders", "shop")
        with started.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE USER reader@localhost IDENTIFIED BY %s", (SECRET,))
        started.sql("GRANT SELECT, SHOW VIEW ON shop.* TO reader@localhost")
        started.sql("CREATE TABLE kept (id int PRIMARY KEY) WITH SYSTEM VERSIONING", "shop")
        started.sql("INSERT INTO kept VALUES (1), (2), (3)", "shop")
        started.sql("DELETE FROM kept WHERE id = 2", "shop")
        yield started


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The password, and a folder of inputs for a test alone."""
    monkeypatch.setenv(live.PASSWORD, SECRET)
    monkeypatch.setattr(own, "FOLDER", tmp_path / "inputs")
    monkeypatch.setattr(own.engines, "equal_memory", lambda _: OPTIONS)


def words(source, more=",tables=orders,secrets"):
    return f"socket={source.socket},user=reader,database=shop{more}"


def statements(source, since=0):
    """What the server was asked since that byte of its log."""
    text = source.folder.joinpath("general.log").read_bytes()[since:].decode(errors="replace")
    return [found.group(1) for found in re.finditer(r"\t\s*\d+ Query\t(.*)", text)]


def test_what_is_copied_is_what_the_server_has_and_nothing_is_written_there(source, monkeypatch):
    log = source.folder / "general.log"
    before = {name: source.sql(f"CHECKSUM TABLE shop.{name}")[0][1]
              for name in ("orders", "secrets")}
    here = log.stat().st_size
    made = own.prepare("live", words(source))
    asked = statements(source, here)
    assert (len(asked) > 10 and any("CONSISTENT SNAPSHOT" in statement for statement in asked)
            and any("`orders`" in statement for statement in asked))
    assert [statement for statement in asked if not READS.match(statement)] == []
    assert "SET SESSION TRANSACTION READ ONLY" in asked
    assert {table["name"]: table["rows"] for table in made.tables} == {"orders": 700, "secrets": 0}
    assert ({table["name"]: table["checksum"] for table in made.tables} == before
            == {name: source.sql(f"CHECKSUM TABLE shop.{name}")[0][1] for name in before})
    assert made.label == f"shop (orders, secrets) at {source.socket}"
    monkeypatch.setattr(live, "fetch", None)
    assert own.prepare("live", words(source)) == made


def test_every_table_is_copied_when_none_is_named_and_those_without_transactions_are_told(
        source, capsys):
    made = own.prepare("live", words(source, ""))
    assert "  odd,name: engines without transactions" in capsys.readouterr().out
    assert ({table["name"]: table["rows"] for table in made.tables}
            == {"kept": 2, "odd,name": 2, "orders": 700, "secrets": 0})


def test_no_list_of_processes_shows_the_password(source, tmp_path, monkeypatch):
    seen, begin = [], subprocess.Popen.__init__

    def watched(self, command, *more, **others):
        options = next(word.partition("=")[2] for word in command
                       if word.startswith("--defaults-file="))
        seen.append((" ".join(command), stat.S_IMODE(os.stat(options).st_mode), options))
        begin(self, command, *more, **others)
    monkeypatch.setattr(subprocess.Popen, "__init__", watched)
    wanted = live.parse(words(source))
    assert live.size(wanted) > 0
    live.fetch(wanted, tmp_path / "dump.sql")
    assert ([command.split()[0].rpartition("/")[2] for command, *_ in seen]
            == ["mariadb", "mariadb", "mariadb-dump"])
    for command, mode, options in seen:
        assert (SECRET not in command and "password" not in command and mode == 0o600
                and not os.path.exists(options))
    assert SECRET.encode() not in (tmp_path / "dump.sql").read_bytes()


def test_what_cannot_be_read_is_said(source, tmp_path, monkeypatch):
    for given, match in [(words(source, ",tables=orders,absent"),
                          "no table absent .*there are kept, odd,name, orders, secrets"),
                         (words(source).replace("shop", "cellar"), "no .* that reader may read"),
                         (f"socket={tmp_path}/none,database=shop",
                          "Can't connect.*does the server run"),
                         ("host=127.0.0.1,port=1,database=shop", "Can't connect")]:
        with pytest.raises(Failure, match=match):
            own.prepare("live", given)
    monkeypatch.setenv(live.PASSWORD, "wrong")
    with pytest.raises(Failure, match=r"Access denied.*password comes from \$CHEETAH_LAB_PASSWORD"):
        own.prepare("live", words(source))
    with pytest.raises(Failure, match="Access denied"):
        live.fetch(live.parse(words(source)), tmp_path / "dump.sql")
    assert not list(tmp_path.glob("dump.sql*")) and not list(tmp_path.glob("inputs/*/input.json"))


def test_a_copy_that_was_cut_off_is_not_taken(source, tmp_path, monkeypatch):
    fetch = live.fetch

    def interrupted(wanted, target, *more):
        fetch(wanted, target, *more)
        target.write_bytes(target.read_bytes()[:-40])
    monkeypatch.setattr(live, "fetch", interrupted)
    with pytest.raises(Failure, match="cut off"):
        own.prepare("live", words(source))
    assert not list(tmp_path.glob("inputs/*/input.json"))


COPY = """
import sys
from pathlib import Path
from cheetah_lab.inputs import live
live.fetch(live.parse(sys.argv[1]), Path(sys.argv[2]), 10**6,
           lambda done, size: print(done, size, flush=True))
"""


def copying(source, target):
    """A process that copies, and tells its progress."""
    return subprocess.Popen([sys.executable, "-c", COPY, words(source), str(target)],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_the_copy_is_of_one_moment(source, tmp_path):
    """Rows that come in pairs while it runs are in it in pairs."""
    with (copying(source, tmp_path / "dump.sql") as process, source.connect("shop") as writing,
          writing.cursor() as cursor):
        number = 10 ** 6
        while process.poll() is None:
            number += 1
            cursor.execute("BEGIN NOT ATOMIC START TRANSACTION; "
                           f"INSERT INTO orders VALUES ({number}, 'x', ''); "
                           f"INSERT INTO secrets VALUES ({number}); COMMIT; END")
        told = [tuple(map(int, line.split())) for line in process.stdout if line[:1].isdigit()]
    for name in ("orders", "secrets"):
        source.sql(f"DELETE FROM {name} WHERE id > 1000000", "shop")
    assert (process.returncode == 0 and number > 10 ** 6 and told
            and all(0 <= done <= size for done, size in told))
    dumps.load(source, "copied", tmp_path / "dump.sql", "ENGINE=InnoDB")
    counts = [source.value(f"SELECT COUNT(*) FROM {name} WHERE id > 1000000", "copied")
              for name in ("orders", "secrets")]
    source.sql("DROP DATABASE copied")
    assert counts[0] == counts[1], "the tables are of two moments"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_leaves_no_copy_and_no_program(source, tmp_path, number):
    with source.connect("shop") as holding:
        holding.query("LOCK TABLES orders WRITE")
        with copying(source, tmp_path / "dump.sql") as process:
            waiting = ("SELECT COUNT(*) FROM information_schema.processlist "
                       "WHERE user = 'reader' AND state LIKE '%lock%'")
            until(lambda: source.value(waiting), "a lock of the table to be asked for")
            child, = children(process.pid)
            process.send_signal(number)
        # The table is still locked: what ends does not end by itself.
        until(lambda: not Path(f"/proc/{child}/exe").exists(), "the program that copies to end")
        assert process.returncode != 0
    assert not list(tmp_path.glob("dump.sql*" if number == signal.SIGINT else "dump.sql"))


def test_a_server_that_stops_meanwhile_leaves_no_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "PROGRESS_SECONDS", 0.01)
    monkeypatch.delenv(live.PASSWORD)
    server = PrivateServer(tmp_path / "server", OPTIONS, plugin=False)
    server.start()
    server.sql("CREATE DATABASE shop")
    server.sql("CREATE TABLE t (id INT PRIMARY KEY, c CHAR(250))", "shop")
    server.sql("INSERT INTO t SELECT seq, seq FROM seq_1_to_200000", "shop")
    with pytest.raises(Failure, match=r"shop \(all tables\) at .*(Lost connection|gone away|"
                                      r"Can't connect|reset by peer|TLS/SSL error)"):
        live.fetch(live.parse(f"socket={server.socket},user=root,database=shop"),
                   tmp_path / "dump.sql", 1, lambda done, size: server.kill())
    assert not list(tmp_path.glob("dump.sql*"))
    server.remove()


def test_words_are_understood_or_refused():
    assert (live.parse("host=db, port=3307 ,user=u,database=d,tables=a,b")
            == live.Live("d", ("a", "b"), "db", 3307, "u"))
    assert live.parse(live.EXAMPLE).tables == ("orders", "customers")
    for given, match in [("host=db", "database= is missing"),
                         ("database=d,colour=red", "'colour' is not understood"),
                         ("database=d,password=x",
                          "'password' is not understood.*CHEETAH_LAB_PASSWORD"),
                         ("database=d,b", "'b' is not understood"),
                         ("database=d,port=x", "wanted a number"),
                         ("database=d,tables=--all", "cannot begin with -"),
                         ("", "is not understood"),
                         ("database=d,tables=a,,b", "'' is not understood")]:
        with pytest.raises(Failure, match=match):
            live.parse(given)


def test_dumps_of_a_live_server_say_that_they_are_whole(source, tmp_path):
    live.fetch(live.parse(words(source)), tmp_path / "dump.sql")
    lines = dumps.Lines(tmp_path / "dump.sql")
    assert sum(len(line) for line in lines) == lines.bytes == (tmp_path / "dump.sql").stat().st_size
