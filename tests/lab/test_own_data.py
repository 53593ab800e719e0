"""A user's own tables: what is not whole is refused, what engines have is compared with the
source."""

import bz2
import gzip
import lzma
import shutil

import made
import pytest
from cheetah_lab import engines, room, trial as trial_module
from cheetah_lab.inputs import own
from cheetah_lab.model import FAILS, HOLDS, OPEN, Scale
from cheetah_lab.trial import Refused, Trial
from cheetah_tools.paths import shared_data
from cheetah_tools.say import Failure

NAME = "own_data"
OPTIONS = {"innodb_log_file_size": "64M", "innodb_buffer_pool_size": "64M",
           "innodb_flush_log_at_trx_commit": 2, "innodb_flush_method": "nosync"}
DUMP = (b"-- MariaDB dump 10.19\nCREATE TABLE `words` (\n  `n` int PRIMARY KEY,\n"
        b"  `t` text COMMENT 'FOREIGN KEY',\n  KEY `k` (`t`(9)),\n"
        b"  FULLTEXT KEY `f``t` (`t`)\n) ENGINE=InnoDB;\n"
        b"CREATE TABLE `uses` (`n` int, KEY (`n`), CONSTRAINT `one` FOREIGN KEY (`n`) "
        b"REFERENCES `words` (`n`), CONSTRAINT `two` CHECK (`n` > 0)) ENGINE=InnoDB;\n"
        b"INSERT INTO words VALUES (1, 'cheetah'), (2, 'other');\n"
        b"INSERT INTO uses VALUES (1);\n-- Dump completed\n")
PACKED = {".sql": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Servers that start in a moment, and a folder of inputs for a test alone."""
    monkeypatch.setattr(own.engines, "equal_memory", lambda _: OPTIONS)
    monkeypatch.setattr(trial_module, "equal_memory", lambda _: OPTIONS)
    monkeypatch.setattr(own, "FOLDER", tmp_path / "inputs")


def file(tmp_path, content, ending=".sql"):
    place = tmp_path / f"d{ending}"
    place.write_bytes(PACKED[ending](content))
    return str(place)


def prepared(place):
    """The experiment with an input."""
    found = made.experiment(NAME)
    found.input = own.prepare(place)
    return found


def run(experiment, tmp_path, engine):
    trial = Trial(engines.ALL[engine], Scale(0.01), 0, True, tmp_path / "trial")
    try:
        return trial, made.by_place(list(experiment.run(trial)))
    except Refused as refused:
        if "not on this machine" in str(refused):
            pytest.skip(str(refused))
        raise
    finally:
        shutil.rmtree(tmp_path / "trial", ignore_errors=True)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_a_dump_is_made_ready_once_however_it_is_packed(tmp_path, monkeypatch, ending):
    place = file(tmp_path, DUMP, ending)
    found = prepared(place)
    assert (found.input.rows(), list(found.input.tables)) == (3, ["uses", "words"])
    assert found.input.sql_bytes == len(DUMP) and found.input.innodb_bytes > 0
    assert found.input.left_out == "1 FULLTEXT key, 1 FOREIGN key"
    assert not found.skip() and found.room_bytes(Scale()) > found.input.innodb_bytes
    monkeypatch.setattr(own, "PrivateServer", None)
    assert own.prepare(place) == found.input
    assert made.experiment(NAME).skip().startswith("there is no input: give DUMP=")


@pytest.mark.parametrize("content, ending, match", [
    (DUMP[:-20], ".sql", "cut off: its end"), (b"SELECT 1;\n", ".sql", "has no tables"),
    (b"CREATE TABLE t (n int;\n", ".sql", "error in your SQL syntax"),
    (b"USE `one`;\nCREATE TABLE t (n int);\nUSE `two`;\n", ".sql", "several databases")])
def test_what_is_wrong_is_said_and_nothing_is_left(tmp_path, content, ending, match):
    with pytest.raises(Failure, match=match):
        own.prepare(file(tmp_path, content, ending))
    assert not list((tmp_path / "inputs").iterdir())


def test_an_input_that_is_not_whole_not_there_or_has_no_room_is_said(tmp_path, monkeypatch):
    with pytest.raises(Failure, match="no such dump"):
        own.prepare(str(tmp_path / "absent.sql"))
    place = tmp_path / "d.xz"
    place.write_bytes(lzma.compress(DUMP)[:-30])
    with pytest.raises(Failure, match="cannot be read to its end"):
        own.prepare(str(place))
    monkeypatch.setattr(room, "KEEP_BYTES", 1 << 60)
    with pytest.raises(Failure, match="no room: about .* make room"):
        own.prepare(str(place))


@pytest.mark.parametrize("engine", ["innodb-8k", "myrocks", "cheetah"])
def test_a_trial_loads_the_tables_and_compares_them(tmp_path, engine):
    experiment = prepared(file(tmp_path, DUMP))
    trial, values = run(experiment, tmp_path, engine)
    assert (values["rows", None], values["tables", None]) == (3, 2)
    assert values["bytes", None] > 0 and values["load_s", None] > 0
    assert any(engines.ALL[engine].engine.clause() in command
               and "without 1 FULLTEXT key, 1 FOREIGN key" in command
               for command in trial.commands)
    assert {measure for measure, _ in values} <= {measure.key for measure in experiment.measures}
    (tmp_path / "d.sql").write_bytes(DUMP.replace(b"'cheetah'", b"'leopard'"))
    with pytest.raises(Failure, match="words has other contents than the source"):
        run(experiment, tmp_path, engine)


def test_what_an_engine_refuses_stands_in_its_column(tmp_path):
    columns = ", ".join(f"c{number} char(250)" for number in range(30))
    experiment = prepared(file(tmp_path, f"CREATE TABLE wide (n int PRIMARY KEY, {columns}) "
                                         "CHARSET=latin1;\n".encode()))
    with pytest.raises(Refused, match="Row size too large.*--ignore-table"):
        run(experiment, tmp_path, "innodb-4k")


def test_what_was_left_out_is_on_the_page(tmp_path):
    experiment = made.experiment(NAME)
    experiment.given = {"not_compared": "1 FULLTEXT key"}
    results = made.results({"cheetah": {"bytes": [1, 2], "sql_bytes": [400, 400]}})
    assert experiment.tables(results)[0].caption.startswith("Compared without: 1 FULLTEXT key. ")
    assert "1 FULLTEXT key" in experiment.method()
    assert all(verdict.outcome == OPEN and "too small to say: 400 B of SQL" in verdict.why
               for verdict in experiment.verdicts(results))
    assert "count more than tables of less than 16.0 MB" in experiment.plots(results)[0].caption


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
    rows = {row[0].text: row[2].values for row in made.experiment(NAME).tables(found)[0].rows}
    assert rows["Cheetah"] == [0.6, 0.61, 0.6]


def test_only_a_run_with_an_input_has_the_experiment():
    mine, other, named = map(made.experiment, (NAME, "row_counts", "recovery"))
    assert (own.experiments_for([mine, other, named], "", named=False) == [other]
            and own.experiments_for([mine, other], "d.sql", named=False) == [mine]
            and own.experiments_for([named], "", named=True) == [named])
    with pytest.raises(Failure, match="own_data wants an input: give DUMP=file"):
        own.experiments_for([mine], "", named=True)
    with pytest.raises(Failure, match="leave EXPERIMENT away"):
        own.experiments_for([other], "d.sql", named=True)


@pytest.mark.parametrize("engine", ["myrocks", "cheetah"])
def test_real_tables_with_foreign_keys_and_views_load(tmp_path, engine):
    place = shared_data() / "sakila.sql.zst"
    if not place.exists():
        pytest.skip(f"the shared data sets are not there: {place.name}")
    real = prepared(str(place))
    assert (len(real.input.tables), real.input.left_out) == (
        16, "22 FOREIGN keys, 1 FULLTEXT key")
    _, values = run(real, tmp_path, engine)
    assert values["rows", None] == real.input.rows() == 47_273
