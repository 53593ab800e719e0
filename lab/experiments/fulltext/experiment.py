"""Measures FULLTEXT keys: adding them, their bytes, loads, searches."""

import time
import zlib

from cheetah_lab import judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import LESS, TURN, Experiment, Measure, Value
from cheetah_lab.trial import Refused
from cheetah_tools import dump, setup, texts

DATABASE = "words"
MEMORY_BYTES = 1 << 30
OPTIONS = {"innodb_log_file_size": 512 << 20, "innodb_flush_log_at_trx_commit": 2,
           "loose_cheetah_flush_log_at_trx_commit": 2}
COLUMNS = "id INT PRIMARY KEY, t MEDIUMTEXT NOT NULL"
SMALL_STATEMENTS, SMALL_ROWS = 50, 20
SEARCHES = ("mutex", "the transaction log", "+buffer +pool -mutex", '"storage engine"', "inno*",
            "+(read write) +lock", "character set collation", '"foreign key" @4',
            "optimizer statistics index", "+copyright +oracle -innodb")


class Fulltext(Experiment):
    by_name = together = True
    options = {"text_bytes": 1 << 40}   # more than exist
    measures = [Measure("texts", "texts", "rows"),
                Measure("add", "ADD FULLTEXT", "s", LESS),
                Measure("bytes", "bytes of it", "bytes", LESS),
                Measure("load", "load of all", "s", LESS),
                Measure("small", f"{SMALL_ROWS} rows a statement, {SMALL_STATEMENTS} statements",
                        "s", LESS),
                Measure("search", f"{len(SEARCHES)} searches", "s", LESS),
                Measure("answers", "a sum over the rows that they find", "")]

    def engines(self, chosen, scale):
        return [key for key in chosen if key != "myrocks"]

    def run(self, trial):
        if trial.family == "MyRocks":
            raise Refused("MyRocks has no FULLTEXT keys")
        with trial.server(MEMORY_BYTES, **OPTIONS) as server:
            trial.step("loading the texts")
            self.fill(trial, server)
            yield Value("texts", server.value("SELECT COUNT(*) FROM t", DATABASE))
            yield TURN
            before = size(trial, server)
            add = "ALTER TABLE t ADD FULLTEXT KEY ft (t), ALGORITHM=INPLACE"
            trial.did(add)
            yield Value("add", seconds(server, add))
            yield Value("bytes", size(trial, server) - before)
            yield TURN
            yield Value("search", sum(seconds(server, search(words) + " LIMIT 10")
                                      for words in SEARCHES))
            yield TURN
            small = [f" WHERE id > {first} AND id <= {first + SMALL_ROWS}"
                     for first in range(0, SMALL_ROWS * SMALL_STATEMENTS, SMALL_ROWS)]
            for measure, parts in (("load", [""]), ("small", small)):
                table = f"CREATE TABLE {measure}_t ({COLUMNS}, FULLTEXT KEY ft (t)) "
                server.sql(f"{table}{trial.engine.clause()} DEFAULT CHARSET=latin1", DATABASE)
                yield Value(measure, sum(seconds(server,
                                                 f"INSERT INTO {measure}_t SELECT * FROM t{part}")
                                         for part in parts))
                server.sql(f"DROP TABLE {measure}_t", DATABASE)
                yield TURN
            found = [server.sql(search(words) + " ORDER BY id", DATABASE) for words in SEARCHES]
            yield Value("answers", zlib.crc32(repr(found).encode()))

    def fill(self, trial, server):
        place = server.folder / "text.sql"
        texts.write_dump(place, self.option["text_bytes"],
                         texts.source_rows(setup.source_tarball()))
        server.sql(f"CREATE DATABASE {DATABASE}")
        dump.feed(server, DATABASE, place, "the texts")
        server.sql(f"CREATE TABLE t ({COLUMNS}) {trial.engine.clause()} DEFAULT CHARSET=latin1",
                   DATABASE)
        server.sql("INSERT INTO t SELECT old_id, old_text FROM text ORDER BY old_id", DATABASE)

    def tables(self, results):
        return [show.table(results, "FULLTEXT", show.columns(
            measure for measure in self.measures if measure.key != "answers"))]

    def verdicts(self, results):
        return [judge.all_are(self.about["claims"]["answers"], "sum over the rows, by InnoDB's",
                              results.ratios(CHEETAH, "answers", INNODB), 1)]


def seconds(server, statement: str) -> float:
    began = time.monotonic()
    server.sql(statement, DATABASE)
    return time.monotonic() - began


def search(words: str) -> str:
    mode = " IN BOOLEAN MODE" if set(words) & set('+-"*(') else ""
    return f"SELECT id FROM t WHERE MATCH (t) AGAINST ('{words}'{mode})"


def size(trial, server) -> int:
    """Returns the table's bytes on disk: InnoDB's files, otherwise information_schema's sizes."""
    if trial.family == "InnoDB":
        files = [*(server.data / DATABASE).glob("FTS_*.ibd"), server.data / DATABASE / "t.ibd"]
        return sum(file.stat().st_blocks * 512 for file in files)
    trial.engine.flush(server)
    server.sql("FLUSH TABLE t", DATABASE)
    return int(server.value("SELECT data_length + index_length FROM information_schema.tables "
                            f"WHERE table_schema = '{DATABASE}' AND table_name = 't'"))
