"""A user's own tables: bytes on disk and time to load, in every format and engine."""

import re
import time
from pathlib import Path

from cheetah_lab import judge
from cheetah_lab.engines import INNODB
from cheetah_lab.inputs import own
from cheetah_lab.model import LESS, OPEN, Cell, Experiment, Measure, Plot, Table, Value, Verdict
from cheetah_lab.numbers import number
from cheetah_lab.show import bars, cell
from cheetah_lab.trial import Refused
from cheetah_tools import dump
from cheetah_tools.say import Failure

MEMORY_BYTES = 256 << 20
TABLES_SIZED = 20       # those with the most rows
SMALL_SQL_BYTES = 16_000_000      # below, files and the server's start weigh more than tables
OF_TABLE = "bytes of "  # how the measure of a table's size begins
# The server's errors that say that an engine cannot have a table or a row, not that something went
# wrong.
REFUSALS = re.compile(r"ERROR (1031|1071|1112|1118|1178|1214|1235|1252|1286|1464|1478|4161)\b.*")
WITHOUT_THEM = ("to measure the others with it, give a dump without such tables "
                "(mariadb-dump --ignore-table=database.table)")
# What a trial takes beside what InnoDB DYNAMIC does: MyRocks merges everything into new files, logs
# come and go.
ROOM_BY_INNODB = 2.5


class OwnData(Experiment):
    """`input` (of own.prepare) is set by the command."""

    wants_input = True

    @property
    def measures(self):
        """Those of the whole, and the size of each of the largest tables."""
        return [Measure("bytes", "size", "bytes", LESS),
                Measure("load_s", "time to load until all is written", "s", LESS),
                Measure("rows", "rows", "rows"), Measure("tables", "tables", ""),
                Measure("sql_bytes", "size as SQL", "bytes"),
                *(Measure(f"{OF_TABLE}{name}", f"size of {name}", "bytes", LESS)
                  for name in self.sized())]

    def sized(self):
        """The tables whose sizes are told one by one."""
        tables = self.input.tables if self.input else {}
        return sorted(tables, key=lambda table: -tables[table][0])[:TABLES_SIZED]

    def skip(self):
        """There must be an input."""
        return "" if self.input else f"there is no input: {own.WANTED}"

    def room_bytes(self, scale):
        """From what the input took in InnoDB; the SQL of a packed dump lies beside it."""
        return super().room_bytes(scale) + (
            round(self.input.innodb_bytes * ROOM_BY_INNODB + self.input.sql_bytes)
            if self.input else 0)

    def run(self, trial):
        """Load the dump; what is there then must be what the source has."""
        clause, given = trial.engine.clause(), Path(self.input.dump)
        with trial.server(MEMORY_BYTES) as server:
            trial.step(f"load {given.name}")
            started = time.monotonic()
            try:
                own.load(server, given, clause)
            except Failure as failure:
                refusal = REFUSALS.search(str(failure))
                if not refusal or server.died():
                    raise
                raise Refused(f"refuses a table or a row of it: {refusal[0]}; "
                              f"{WITHOUT_THEM}") from failure
            trial.engine.write_out(server, own.DATABASE)
            yield Value("load_s", time.monotonic() - started)
            yield Value("bytes", trial.bytes_at_rest(server, own.DATABASE))
            yield from table_sizes(server, self.sized())
            trial.step("compare with the source")
            wrong = own.differences(server, self.input.tables)
            if wrong:
                raise Failure(f"{trial.lab_engine.label} does not have what {self.input.label} "
                              f"has: {'; '.join(wrong)}")
        yield Value("rows", self.input.rows())
        yield Value("tables", len(self.input.tables))
        yield Value("sql_bytes", self.input.sql_bytes)
        trial.did(f"# the input: {self.input.said()}")
        without = f", without {self.input.left_out}" if self.input.left_out else ""
        trial.did(f"mariadb own < {given}   # every table with {clause}{without}")

    def compared(self) -> str:
        """A sentence on what was left out for every engine, if anything."""
        without = self.given.get("not_compared")
        return f"Compared without: {without}. " if without else ""

    def method(self):
        """With what was left out of this input."""
        return f"{super().method().strip()} {self.compared()}".strip()

    def plots(self, results):
        """Sizes and times."""
        return [Plot("sizes", "Size of your tables", "bars", "", "bytes",
                     bars(results, {"all tables": ("bytes", None)}),
                     caption="All tables with their keys, at rest: whole files, which have room "
                             "beside the tables"
                             + (", and count more than tables of less than "
                                f"{number(SMALL_SQL_BYTES, 'bytes')}. The sizes of single tables "
                                "below leave it out." if is_small(results) else ".")),
                Plot("times", "Time to load your tables", "bars", "", "seconds",
                     bars(results, {"all tables": ("load_s", None)}),
                     caption="Until all is loaded and written out.")]

    def tables(self, results):
        """Every engine."""
        rows = []
        for engine in results.engines:
            rows.append([Cell(results.label(engine)),
                         cell(results.values(engine, "bytes"), "bytes"),
                         cell(results.ratios(engine, "bytes", INNODB), "ratio"),
                         cell(results.ratios(engine, "bytes", engine, base_measure="sql_bytes"),
                              "ratio"),
                         cell(results.values(engine, "load_s"), "s"),
                         cell(results.ratios(engine, "load_s", INNODB), "ratio")])
        head = ["engine", "size", "size by InnoDB DYNAMIC's", "size by that of the SQL",
                "time to load", "time by InnoDB DYNAMIC's"]
        count = number(max((value for engine in results.engines
                            for value in results.values(engine, "rows")), default=0), "rows")
        return [Table("Every engine", head, rows,
                      f"{self.compared()}{count} rows. They and the checksums of all tables are "
                      "those of the source."), each_table(results)]

    def verdicts(self, results):
        """Which is the smallest, and Cheetah by InnoDB DYNAMIC."""
        others = [engine for engine in results.engines if results.family(engine) != "Cheetah"]
        ratios = results.by_smallest("cheetah", "bytes", others) if others else []
        claims = self.about["claims"]
        if is_small(results):
            why = (f"too small to say: {number(sql_bytes(results), 'bytes')} of SQL is less than "
                   f"{number(SMALL_SQL_BYTES, 'bytes')}; files and the server's start dominate")
            return [Verdict(claim, OPEN, why) for claim in claims.values()]
        return [judge.within(claims["smallest"],
                             f"bytes, Cheetah by the smallest other ({smallest(results, others)})",
                             ratios, high=1.0),
                judge.within(claims["smaller"], "bytes, Cheetah by InnoDB DYNAMIC",
                             results.ratios("cheetah", "bytes", INNODB), high=1.0),
                judge.within(claims["load"], "time, Cheetah by InnoDB DYNAMIC",
                             results.ratios("cheetah", "load_s", INNODB), high=judge.NO_LONGER)]


def sql_bytes(results) -> float:
    """What the tables take as SQL; what is not small where nothing was measured."""
    return max((value for engine in results.engines
                for value in results.values(engine, "sql_bytes")), default=SMALL_SQL_BYTES)


def is_small(results) -> bool:
    """Whether files and the server's start weigh more than the tables."""
    return sql_bytes(results) < SMALL_SQL_BYTES


def table_sizes(server, names: list):
    """Values of the sizes that the engine itself tells, once it has looked at its tables."""
    for name in names:
        server.sql(f"ANALYZE TABLE {dump.quoted(name)}", own.DATABASE)
    told = dict(server.sql("SELECT table_name, data_length + index_length "
                           "FROM information_schema.tables "
                           f"WHERE table_schema = '{own.DATABASE}' AND {dump.WITH_ROWS}"))
    for name in names:
        yield Value(f"{OF_TABLE}{name}", told[name] or 0)


def each_table(results) -> Table:
    """A row for each table, a column for each engine."""
    keys = list(dict.fromkeys(measure for _, measure, _, _ in results.all()
                              if measure.startswith(OF_TABLE)))
    rows = [[Cell(key.removeprefix(OF_TABLE)),
             *(cell(results.values(engine, key), "bytes") for engine in results.engines)]
            for key in keys]
    return Table("Every table", ["table", *map(results.label, results.engines)], rows,
                 "As the engines say themselves (DATA_LENGTH + INDEX_LENGTH after ANALYZE TABLE), "
                 f"of the {TABLES_SIZED} tables with the most rows. InnoDB does not count the "
                 "holes in files of PAGE_COMPRESSED; MyRocks estimates, and small tables badly; "
                 "whole files, as above, have room beside the tables.")


def smallest(results, engines: list) -> str:
    """The label of the engine with the fewest bytes."""
    sizes = {results.label(engine): min(results.values(engine, "bytes"))
             for engine in engines if results.values(engine, "bytes")}
    return min(sizes, key=sizes.get) if sizes else "none"
