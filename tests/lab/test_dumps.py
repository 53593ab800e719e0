"""Tests of dump files, and of the experiment that loads them: what is not whole or not as it says
is refused, and engines are told apart."""

import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path

import export
import made
import pytest
from cheetah_lab import engines, room, trial as trial_module
from cheetah_lab.inputs import dumps, own
from cheetah_lab.model import FAILS, HOLDS, OPEN, Scale
from cheetah_lab.trial import Refused, Trial
from cheetah_tools import dump, engines as tools_engines, setup
from cheetah_tools.formatdata import write_dump
from cheetah_tools.paths import shared_data
from cheetah_tools.say import Failure
from cheetah_tools.server import PrivateServer

NAME = "own_data"
load_all = dumps.load
INNODB = "ENGINE=InnoDB"
OPTIONS = {"innodb_log_file_size": "64M", "innodb_buffer_pool_size": "64M",
           "innodb_flush_log_at_trx_commit": 2, "innodb_flush_method": "nosync"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PrivateServer(tmp_path_factory.mktemp("server"), OPTIONS, plugin=False) as started:
        yield started


@pytest.fixture(scope="module")
def genuine(server):
    """What mariadb-dump writes: bytes of all kinds, keys, a table without rows."""
    server.sql("CREATE DATABASE made")
    server.sql("CREATE TABLE `a'b` (id int PRIMARY KEY, s varchar(200), b blob, KEY (s)) "
               "DEFAULT CHARSET=utf8mb4", "made")
    server.sql("CREATE TABLE fixed (n int PRIMARY KEY, c char(9), f float, at timestamp NULL)",
               "made")
    server.sql("CREATE TABLE nothing (n int PRIMARY KEY)", "made")
    server.sql("INSERT INTO `a'b` WITH RECURSIVE n(i) AS "
               "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
               "SELECT i, CONCAT('🐆 ü \\'\\n', i), UNHEX('00ff0a0d5c271a80') FROM n", "made")
    server.sql("INSERT INTO fixed VALUES (1, 'x', 0.1, '2001-02-03 04:05:06'), "
               "(2, NULL, -1e30, NULL)", "made")
    place = server.folder / "genuine.sql"
    write_dump(server, "made", place, "--default-character-set=utf8mb4")
    return place.read_bytes()


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Servers that start in a moment."""
    monkeypatch.setattr(own.engines, "equal_memory", lambda _: OPTIONS)
    monkeypatch.setattr(trial_module, "equal_memory", lambda _: OPTIONS)


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """The folder of inputs, for a test alone."""
    monkeypatch.setattr(own, "FOLDER", tmp_path / "inputs")
    return tmp_path / "inputs"


def load(server, place, clause=INNODB):
    server.sql("DROP DATABASE IF EXISTS own")
    return dumps.load(server, "own", place, clause)


def contents(server, database):
    return {table["name"]: (table["rows"], table["checksum"])
            for table in dumps.describe(server, database)}


@pytest.mark.parametrize("way", ["", ".gz", ".bz2", ".xz", ".zst", ".7z"])
def test_a_dump_arrives_however_it_is_packed(server, genuine, tmp_path, way):
    if way == ".7z" and "7-Zip" in setup.absent():
        pytest.skip("7-Zip could not be had")
    place = export.pack(tmp_path / f"d.sql{way}", [genuine[:1000], genuine[1000:]])
    assert load(server, place) == len(genuine)
    assert contents(server, "own") == contents(server, "made") and len(contents(server, "own")) == 3
    whole = place.read_bytes()
    place.write_bytes(whole[:len(whole) - 30])
    with pytest.raises(Failure, match="cut off"):
        load(server, place)


def refusals(genuine):
    """What is changed in a genuine dump, and what is said of it."""
    lines = genuine.splitlines(keepends=True)
    latin = (b"-- MariaDB dump 10.19\nSET NAMES utf8mb4;\nSET SQL_MODE='';\n"
             b"CREATE TABLE t (s varchar(9)) DEFAULT CHARSET=utf8mb4;\n"
             b"INSERT INTO t VALUES ('caf\xe9s');\n-- Dump completed\n")
    return {
        "cut off at the end of a line": (b"".join(lines[:-2]), "cut off: its end.*Dump completed"),
        "no end": (genuine[:len(genuine) // 2], "cut off"),
        "cut off without comments": (b"CREATE TABLE t (n int);\nINSERT INTO t VALUES (1),\n",
                                     "in the middle of a statement"),
        "empty": (b"", "is empty"),
        "UTF-16": (genuine.decode(errors="replace").encode("utf-16"), "UTF-16"),
        "no dump": (b"hello world\n", "no dump"),
        "Latin-1": (latin, r"1 values do not arrive.*Incorrect string value.*another encoding"),
        "two databases": (b"USE `one`;\nCREATE TABLE t (n int);\n"
                          b"USE `two`;\nCREATE TABLE t (n int);\n",
                          r"several databases \(one, two"),
        "a newer MySQL": (b"CREATE TABLE t (s varchar(9)) COLLATE=utf8mb4_1500_ai_ci;\n",
                          "Unknown collation.*replace that collation"),
        "GTIDs of MySQL": (b"SET @@GLOBAL.GTID_PURGED='x';\n", "set-gtid-purged=OFF"),
        "broken SQL": (b"CREATE TABLE t (n int;\n", "error in your SQL syntax"),
        "a duplicate": (b"CREATE TABLE t (n int PRIMARY KEY);\nINSERT INTO t VALUES (1),(1);\n",
                        "Duplicate entry"),
    }


@pytest.mark.parametrize("what", list(refusals(b"-\n-\n-\n")))
def test_what_is_wrong_is_said(server, genuine, tmp_path, what):
    place = tmp_path / "d.sql"
    content, match = refusals(genuine)[what]
    place.write_bytes(content)
    with pytest.raises(Failure, match=match):
        load(server, place)


def test_nothing_is_left_of_an_input_that_is_not_whole(genuine, inputs, tmp_path):
    place = tmp_path / "d.sql"
    place.write_bytes(genuine[:len(genuine) // 2])
    with pytest.raises(Failure, match="cut off"):
        own.prepare("dump", str(place))
    assert not list(inputs.iterdir())


def test_an_input_that_is_not_there_or_has_no_room_is_said(inputs, genuine, tmp_path, monkeypatch):
    with pytest.raises(Failure, match="cannot be read: No such file"):
        own.prepare("dump", str(tmp_path / "absent.sql"))
    place = tmp_path / "d.sql"
    place.write_bytes(genuine)
    monkeypatch.setattr(room, "KEEP_BYTES", 1 << 60)
    with pytest.raises(Failure, match="no room: about .* make room"):
        own.prepare("dump", str(place))


def test_a_dump_without_tables_is_no_input(inputs, tmp_path):
    place = tmp_path / "d.sql"
    place.write_bytes(b"SELECT 1;\n")
    with pytest.raises(Failure, match="has no tables"):
        own.prepare("dump", str(place))


@pytest.fixture(scope="module")
def prepared(genuine, tmp_path_factory):
    """The genuine dump, made ready, and its file."""
    folder = tmp_path_factory.mktemp("prepared")
    place = folder / "d.sql"
    place.write_bytes(genuine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own, "FOLDER", folder / "inputs")
        patch.setattr(own.engines, "equal_memory", lambda _: OPTIONS)
        return own.prepare("dump", str(place)), place


@pytest.fixture
def experiment(prepared):
    """The experiment, with an input."""
    found = made.experiment(NAME)
    found.input = prepared[0]
    return found


def run(experiment, tmp_path, engine):
    trial = Trial(engines.ALL[engine], Scale(0.01), 0, True, tmp_path / "trial")
    try:
        return trial, made.by_place(list(experiment.run(trial)))
    finally:
        shutil.rmtree(tmp_path / "trial", ignore_errors=True)


def test_an_input_is_made_ready_once(experiment, prepared, monkeypatch):
    monkeypatch.setattr(own, "PrivateServer", None)
    monkeypatch.setattr(own, "FOLDER", prepared[1].parent / "inputs")
    assert own.prepare("dump", str(prepared[1])) == experiment.input
    assert (experiment.input.rows() == 902
            and [table["name"] for table in experiment.input.tables] == ["a'b", "fixed", "nothing"])
    assert (not experiment.skip()
            and experiment.room_bytes(Scale()) > experiment.input.innodb_bytes > 0)
    assert made.experiment(NAME).skip().startswith("there is no input: give DUMP=")


def test_a_packed_dump_is_unpacked_before_its_load_is_timed(
        experiment, prepared, genuine, tmp_path, monkeypatch):
    place = export.pack(tmp_path / "d.sql.bz2", [genuine])
    experiment.input = replace(experiment.input, dump=str(place))
    loaded = []
    monkeypatch.setattr(dumps, "load", lambda server, database, path, *_: (
        loaded.append(path.read_bytes()) or load_all(server, database, path, *_)))
    trial, values = run(experiment, tmp_path, "innodb-dynamic")
    assert (loaded == [genuine] and values["sql_bytes", None] == len(genuine)
            and values["rows", None] == 902)
    assert any(command.startswith("bzip2 -dc ") for command in trial.commands)
    assert (dumps.unpacked(prepared[1], tmp_path) == prepared[1]
            and not (tmp_path / "unpacked.sql").exists())


def test_statements_of_a_dump_reach_no_file(server, tmp_path):
    secret, target, place = tmp_path / "secret", tmp_path / "written", tmp_path / "d.sql"
    secret.write_text("a secret\n")
    tmp_path.chmod(0o777)
    place.write_text(f"CREATE TABLE t (s text);\nINSERT INTO t VALUES (LOAD_FILE('{secret}'));\n")
    load(server, place)
    assert server.sql("SELECT s FROM t", "own") == [(None,)]
    for statement, match in [(f"SELECT 1 INTO OUTFILE '{target}'", "Access denied"),
                             (f"LOAD DATA INFILE '{secret}' INTO TABLE t", "Access denied"),
                             (f"LOAD DATA LOCAL INFILE '{secret}' INTO TABLE t",
                              "disabled the local infile"),
                             (f"SET GLOBAL general_log_file = '{target}'", "Access denied"),
                             ("INSERT INTO mysql.global_priv VALUES ('%', 'x', '{}')", "denied"),
                             (f"\\! touch {target}", "Unknown command")]:
        place.write_text(f"CREATE TABLE t (s text);\n{statement};\n")
        with pytest.raises(Failure, match=match):
            load(server, place)
    assert not target.exists()


def test_what_a_dump_makes_reaches_no_file_either(server, tmp_path):
    """Routines and triggers act with the rights of their definer: the loader."""
    secret, target, place = tmp_path / "secret", tmp_path / "written", tmp_path / "d.sql"
    secret.write_text("a secret\n")
    tmp_path.chmod(0o777)
    begin, procedure = "CREATE TABLE t (s text);\n", (
        "PROCEDURE p() SQL SECURITY DEFINER SELECT 1 INTO OUTFILE '%s';\nCALL p();\n" % target)
    for definer in ("DEFINER=root@localhost ", "definer = `root` @ `localhost` ",
                    "/*!50017 DEFINER='root'@'localhost'*/ ", "\nDEFINER=root@localhost\n",
                    "DEFINER\n= root@localhost "):
        place.write_text(f"{begin}CREATE {definer}{procedure}")
        with pytest.raises(Failure, match="Access denied|denied"):
            load(server, place)
        assert not target.exists(), definer
    place.write_text(f"{begin}CREATE TABLE u (n int);\n"
                     "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ "
                     "/*!50003 TRIGGER r BEFORE INSERT ON u FOR EACH ROW "
                     f"INSERT INTO t VALUES (LOAD_FILE('{secret}')) */;\n"
                     "/*!50001 CREATE ALGORITHM=UNDEFINED */\n"
                     "/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */\n"
                     "/*!50001 VIEW v AS select 'DEFINER=root@localhost' AS text */;\n"
                     "INSERT INTO u VALUES (1);\n"
                     "INSERT INTO t VALUES ('CREATE DEFINER=root@localhost');\n")
    load(server, place)
    assert server.sql("SELECT s FROM t", "own") == [(None,), ("CREATE DEFINER=root@localhost",)]
    assert server.sql("SELECT DEFINER FROM information_schema.triggers "
                      "WHERE trigger_schema = 'own'") == [("lab_loader@localhost",)]
    server.sql("DROP DATABASE own")


def test_what_the_client_says_is_not_kept(server, tmp_path):
    place = tmp_path / "d.sql"
    place.write_bytes(b"SET SQL_MODE='';\nCREATE TABLE t (s varchar(3));\n"
                      + b"SELECT REPEAT('x', 1000000);\n" * 40
                      + b"INSERT INTO t VALUES ('long');\n" * 3)
    tracemalloc.start()
    with pytest.raises(Failure, match="3 values do not arrive.*the first: "
                                      "Data truncated for column 's' at row 1"):
        load(server, place)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4_000_000, f"{most:,} bytes for 40 MB of output"


@pytest.mark.parametrize("engine", ["innodb-8k", "cheetah"])
def test_tables_that_keep_their_history_are_compared_too(server, inputs, tmp_path, engine):
    server.sql("CREATE OR REPLACE DATABASE versioned")
    server.sql("CREATE TABLE plain (n int PRIMARY KEY)", "versioned")
    server.sql("CREATE TABLE kept (n int PRIMARY KEY, t text) WITH SYSTEM VERSIONING", "versioned")
    server.sql("CREATE TABLE shown (n int PRIMARY KEY, "
               "b timestamp(6) GENERATED ALWAYS AS ROW START, "
               "e timestamp(6) GENERATED ALWAYS AS ROW END, "
               "PERIOD FOR SYSTEM_TIME (b, e)) WITH SYSTEM VERSIONING", "versioned")
    for statement in ("INSERT INTO kept VALUES (1, 'a'), (2, 'b')",
                      "UPDATE kept SET t = 'c' WHERE n = 1",
                      "INSERT INTO shown (n) VALUES (1), (2), (3)"):
        server.sql(statement, "versioned")
    assert (dump.base_tables(server, "versioned") == ["kept", "plain", "shown"]
            == list(dump.checksums(server, "versioned")))
    tools_engines.INNODB.write_out(server, "versioned")
    place = tmp_path / "d.sql"
    write_dump(server, "versioned", place, "--default-character-set=utf8mb4")
    found = made.experiment(NAME)
    found.input = own.prepare("dump", str(place))
    assert {table["name"]: table["rows"] for table in found.input.tables} == {
        "kept": 2, "plain": 0, "shown": 3}
    _, values = run(found, tmp_path, engine)
    assert values["rows", None] == 5 and values["bytes of kept", None] > 0
    place.write_bytes(place.read_bytes().replace(b"(1,'c')", b"(1,'a')"))
    with pytest.raises(Failure, match="kept has other contents"):
        run(found, tmp_path, engine)


@pytest.mark.parametrize("engine", ["innodb-8k", "myrocks", "cheetah"])
def test_a_trial_loads_the_tables_and_compares_them(experiment, tmp_path, engine):
    try:
        trial, values = run(experiment, tmp_path, engine)
    except Refused as refused:
        pytest.skip(str(refused))
    assert (values["rows", None] == 902 and values["tables", None] == 3
            and values["bytes", None] > 0 and values["load_s", None] > 0)
    assert any(engines.ALL[engine].engine.clause() in command for command in trial.commands)
    sizes = {measure: value for (measure, _), value in values.items()
             if measure.startswith("bytes of ")}
    assert (list(sizes) == ["bytes of a'b", "bytes of fixed", "bytes of nothing"]
            and sizes["bytes of a'b"] >= sizes["bytes of nothing"])
    assert set(sizes) <= {measure.key for measure in experiment.measures}


def test_other_rows_than_the_sources_are_a_failure(experiment, genuine, tmp_path):
    experiment.input = replace(experiment.input, dump=str(tmp_path / "d.sql"))
    for old, new, match in [(b"(1,'x',0.1,", b"(1,'y',0.1,", "fixed has other contents"),
                            (b"(1,'x',0.1,'2001-02-03 04:05:06'),", b"",
                             "fixed has 1 rows, the source has 2")]:
        assert old in genuine
        (tmp_path / "d.sql").write_bytes(genuine.replace(old, new))
        with pytest.raises(Failure, match=match):
            run(experiment, tmp_path, "innodb-dynamic")


IN_ONE_LINE = (b"CREATE TABLE words (n int PRIMARY KEY, "
               b"t text DEFAULT ') -- FULLTEXT KEY (t), \\' /* ', "
               b"FULLTEXT KEY `by,(t` (t), KEY k (t(9)));\n"
               b"CREATE TABLE placed (SPATIAL KEY (g), # (\n"
               b"  n int PRIMARY KEY, g geometry NOT NULL) COMMENT='SPATIAL KEY (g),';\n"
               b"CREATE TABLE `last` (n int, KEY (n),\n  FOREIGN KEY (n) REFERENCES words (n));\n"
               b"INSERT INTO words VALUES (1, DEFAULT);\n"
               b"INSERT INTO placed VALUES (1, POINT(1, 2));\nINSERT INTO last VALUES (1);\n")


@pytest.mark.parametrize("engine", ["cheetah", "innodb-dynamic"])
def test_keys_are_left_out_wherever_they_stand(inputs, tmp_path, engine):
    place = tmp_path / "d.sql"
    place.write_bytes(IN_ONE_LINE)
    found = made.experiment(NAME)
    found.input = own.prepare("dump", str(place))
    trial, values = run(found, tmp_path, engine)
    assert values["rows", None] == 3 and any(
        "SPATIAL key g of placed; FULLTEXT key by,(t of words" in command
        for command in trial.commands), trial.commands


def test_a_type_that_innodb_does_not_know_is_told_with_the_file(inputs, tmp_path):
    place = tmp_path / "d.sql"
    place.write_bytes(b"CREATE TABLE t (n int PRIMARY KEY, v vectorlike(3) NOT NULL);\n")
    with pytest.raises(Failure, match="d.sql: InnoDB does not take a table.*"
                                      "Unknown data type.*--ignore-table"):
        own.prepare("dump", str(place))


def test_what_an_engine_refuses_stands_in_its_column(inputs, tmp_path):
    place = tmp_path / "d.sql"
    place.write_bytes(b"CREATE TABLE places (n int PRIMARY KEY, g geometry NOT NULL);\n"
                      b"INSERT INTO places VALUES (1, POINT(1, 2));\n"
                      b"ALTER TABLE places ADD SPATIAL KEY (g);\n")
    found = made.experiment(NAME)
    found.input = own.prepare("dump", str(place))
    with pytest.raises(Refused, match="refuses a row or a table of it: .*SPATIAL.*--ignore-table"):
        run(found, tmp_path, "cheetah")
    _, values = run(found, tmp_path, "innodb-compact")
    assert values["rows", None] == 1


def test_keys_that_engines_lack_are_left_out_for_all_and_named(inputs, tmp_path):
    place = tmp_path / "d.sql"
    place.write_bytes(b"CREATE TABLE `words` (\n  `n` int PRIMARY KEY,\n"
                      b"  `t` text COMMENT 'FOREIGN KEY',\n  KEY `k` (`t`(9)),\n"
                      b"  FULLTEXT KEY `f``t` (`t`)\n);\n"
                      b"CREATE TABLE `uses` (\n  `n` int,\n  KEY `n` (`n`),\n"
                      b"  CONSTRAINT `one` FOREIGN KEY (`n`) REFERENCES `words` (`n`),\n"
                      b"  CONSTRAINT `two` CHECK (`n` > 0)\n) ENGINE=InnoDB;\n"
                      b"INSERT INTO words VALUES (1, 'cheetah');\nINSERT INTO uses VALUES (1);\n")
    found = made.experiment(NAME)
    found.input = own.prepare("dump", str(place))
    without = "FULLTEXT key f`t of words; 1 foreign key"
    assert dumps.not_compared(found.input.tables) == without
    for engine in ("innodb-dynamic", "myrocks", "cheetah"):
        try:
            trial, values = run(found, tmp_path, engine)
        except Refused as refused:
            assert "not on this machine" in str(refused)
            continue
        assert values["rows", None] == 2 and any(without in command for command in trial.commands)
    found.given = own.give([found], [("dump", str(place))])["input"]
    assert found.given["words"] == f'DUMP="{place}"' and found.given["not_compared"] == without
    results = made.results({"cheetah": {"bytes": [1, 2], "sql_bytes": [400, 400]}})
    assert (found.tables(results)[0].caption.startswith(f"Compared without: {without}. ")
            and without in found.method())
    found.given = {}
    assert "Compared without" not in found.tables(results)[0].caption + found.method()
    assert all(verdict.outcome == OPEN and "too small to say: 400 B of SQL" in verdict.why
               for verdict in found.verdicts(results))
    assert "count more than tables of less than 16.0 MB" in found.plots(results)[0].caption


def test_a_row_that_no_compressed_page_holds_is_refused_not_failed(inputs, tmp_path):
    place = tmp_path / "d.sql"
    columns = ", ".join(f"c{number} char(250)" for number in range(30))
    place.write_bytes(f"CREATE TABLE wide (n int PRIMARY KEY, {columns}) CHARSET=latin1;\n"
                      "INSERT INTO wide (n) VALUES (1);\n".encode())
    found = made.experiment(NAME)
    found.input = own.prepare("dump", str(place))
    with pytest.raises(Refused, match="wide: Row size too large"):
        run(found, tmp_path, "innodb-4k")


def test_verdicts_follow_the_sizes():
    values = {"innodb-dynamic": {"bytes": [100] * 3, "load_s": [10, 11, 10]},
              "myrocks": {"bytes": [50, 51, 50], "load_s": [9, 9, 9]},
              "cheetah": {"bytes": [40, 40, 41], "load_s": [20, 21, 20]}}
    smallest, ratio, loads = made.experiment(NAME).about["claims"].values()
    assert made.outcomes(made.results(values), NAME) == {
        smallest: HOLDS, ratio: HOLDS, loads: FAILS}
    found = made.results({**values, "cheetah": {"bytes": [60, 61, 60], "load_s": [10, 11, 10]}})
    assert (made.outcomes(found, NAME)[smallest] == FAILS
            and "MyRocks" in made.experiment(NAME).verdicts(found)[0].why)
    assert set(made.outcomes(made.results({"cheetah": values["cheetah"]}), NAME).values()) == {OPEN}
    series = {one.label: one.points for one in made.experiment(NAME).plots(found)[0].series}
    assert series["Cheetah"] == [("all tables", [60, 61, 60])]
    rows = {row[0].text: row[2].values for row in made.experiment(NAME).tables(found)[0].rows}
    assert rows["Cheetah"] == [0.6, 0.61, 0.6]


def test_only_a_run_with_an_input_has_the_experiment():
    mine, other = made.experiment(NAME), made.experiment("row_counts")
    given = [("dump", "d.sql")]
    assert (own.experiments_for([mine, other], [], named=False) == [other]
            and own.experiments_for([mine, other], given, named=False) == [mine])
    with pytest.raises(Failure, match="own_data wants an input: give DUMP=file, XML=file or LIVE="):
        own.experiments_for([mine], [], named=True)
    with pytest.raises(Failure, match="leave EXPERIMENT away"):
        own.experiments_for([other], given, named=True)
    with pytest.raises(Failure, match="one of them, not DUMP and XML"):
        own.experiments_for([mine], [*given, ("xml", "a.xml")], named=False)


def test_xml_becomes_tables_of_every_engine(inputs, tmp_path):
    found = made.experiment(NAME)
    found.input = own.prepare("xml", str(Path(__file__).parent / "data/export-0.11.xml"))
    assert {table["name"]: table["rows"] for table in found.input.tables} == {
        "page": 3, "revision": 5, "slots": 1, "text": 5}
    assert not list(inputs.glob("*/server"))
    _, values = run(found, tmp_path, "cheetah")
    assert values["rows", None] == 14


@pytest.mark.parametrize("change, match", [
    (lambda text: text.replace(b"<mediawiki", b"<other", 1), "first element is <other>"),
    (lambda text: text[:len(text) * 3 // 4], "cut off")])
def test_nothing_is_left_of_xml_that_is_wrong(inputs, tmp_path, monkeypatch, change, match):
    place = tmp_path / "d.xml"
    place.write_bytes(change((Path(__file__).parent / "data/export-0.11.xml").read_bytes()))
    with pytest.raises(Failure, match=match):
        own.prepare("xml", str(place))
    assert not inputs.exists() or not list(inputs.iterdir())
    # The end of a longer file shows while it is imported.
    monkeypatch.setattr(own.mediawiki, "check", lambda _: None)
    with pytest.raises(Failure, match=match):
        own.prepare("xml", str(place))
    assert not list(inputs.iterdir())


def test_an_import_that_was_stopped_stays_and_says_what_goes_on(inputs, monkeypatch, capsys):
    def stopped(self):
        raise KeyboardInterrupt
    monkeypatch.setattr(own.mediawiki.Import, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        own.prepare("xml", str(Path(__file__).parent / "data/export-0.11.xml"))
    assert (len(list(inputs.glob("*/server"))) == 1
            and "the same command goes on with the import" in "".join(capsys.readouterr()))


def test_commands_unpack_what_is_packed(genuine, tmp_path):
    place = export.pack(tmp_path / "my d.sql.zst", [genuine])
    assert dumps.packed.fed(place, "mariadb own") == f"zstd -dc --long=31 '{place}' | mariadb own"
    place = export.pack(tmp_path / "d.sql", [genuine])
    assert dumps.packed.fed(place, "mariadb own") == f"mariadb own < {place}"


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The experiment, with real tables that have foreign keys and views."""
    place = shared_data() / "sakila.sql.zst"
    if not place.exists():
        pytest.skip(f"the shared data sets are not there: {place.name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own, "FOLDER", tmp_path_factory.mktemp("real"))
        patch.setattr(own.engines, "equal_memory", lambda _: OPTIONS)
        found = made.experiment(NAME)
        found.input = own.prepare("dump", str(place))
    return found


@pytest.mark.parametrize("engine", ["innodb-8k", "myrocks", "cheetah"])
def test_real_tables_with_foreign_keys_and_views_load(real, tmp_path, engine):
    assert len(real.input.tables) == 16
    assert dumps.not_compared(real.input.tables) == (
        "FULLTEXT key idx_title_description of film_text; 22 foreign keys")
    try:
        _, values = run(real, tmp_path, engine)
    except Refused as refused:
        assert "not on this machine" in str(refused)
        pytest.skip(str(refused))
    assert values["rows", None] == real.input.rows() == 47_273
