"""Measures data sets in formats and engines: bytes on disk, loads in every form, scans, selects."""

import time

from cheetah_lab import cells, judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import LESS, MORE, TURN, Experiment, Measure, Plot, Value
from cheetah_tools import formatdata, points

SETS = formatdata.SETS
UNITS = {"bytes": ("on disk, at rest", "bytes", LESS),
         "load_data": ("LOAD DATA without secondary indexes", "s", LESS),
         "add_index": ("then ADD INDEX", "s", LESS),
         "multi_row": ("large INSERTs without secondary indexes", "s", LESS),
         "dump": ("dump as it is", "s", LESS), "one_row": ("one row in each INSERT", "s", LESS),
         "scan": ("full scan, cold", "s", LESS), "point": ("point selects", "1/s", MORE)}
# Data set -> table and key of the point selects, and statement of the full scan.
READ = {"enwiki_text_plain": ("page", "page_id", "SELECT SUM(LENGTH(old_text)) FROM text"),
        "flights_nyc13": ("flights", "id", "SELECT COUNT(*), SUM(air_time) FROM flights "
                                           "FORCE INDEX (PRIMARY)"),
        "sysbench": ("sbtest1", "id", "SELECT SUM(LENGTH(c)) FROM sbtest1 FORCE INDEX (PRIMARY)")}
DENSE, CHEETAH_DENSE, CHEETAH_PLAIN, SMALLEST = "innodb-8k", "cheetah-4k", "cheetah-none", ""
SEVERAL_INDEXES = ["feed_beer", "flights_nyc13"]
# By claim: measure, engine, compared engine, limit of the ratio (minimum for rates), data sets.
WANTED = {
    "smallest": ("bytes", CHEETAH, SMALLEST, 1.0, SETS),
    "smallest_dense": ("bytes", CHEETAH_DENSE, SMALLEST, 0.9, SETS),
    "bytes": ("bytes", CHEETAH, INNODB, 0.4, ["enwiki_text_plain", "flights_nyc13"]),
    "bytes_sysbench": ("bytes", CHEETAH, INNODB, 0.45, ["sysbench"]),
    "bytes_8k": ("bytes", CHEETAH, DENSE, 0.9, READ),
    "load_data": ("load_data", CHEETAH, INNODB, 0.8, SETS),
    "multi_row": ("multi_row", CHEETAH, INNODB, 0.8, SETS),
    "dump": ("dump", CHEETAH, INNODB, 1.05, READ),
    "dump_indexes": ("dump", CHEETAH, INNODB, 0.6, SEVERAL_INDEXES),
    "dump_indexes_8k": ("dump", CHEETAH, DENSE, 0.2, SEVERAL_INDEXES),
    "one_row": ("one_row", CHEETAH, INNODB, 1.0, SETS),
    "add_index": ("add_index", CHEETAH, INNODB, 0.5, SETS),
    "load_data_plain": ("load_data", CHEETAH, CHEETAH_PLAIN, 1.05, SETS),
    "multi_row_plain": ("multi_row", CHEETAH, CHEETAH_PLAIN, 1.05, SETS),
    "scan": ("scan", CHEETAH, INNODB, 1 / 1.5, READ),
    "point": ("point", CHEETAH, INNODB, 0.9, READ),
}


class DataSets(Experiment):
    by_name = together = True
    options = {"data": "all", "measures": "all", "sysbench_rows": 300_000, "memory": 256,
               "rest": 0.0}
    measures = [Measure(f"{key} {name}", f"{name}: {label}", unit, better)
                for name in SETS for key, (label, unit, better) in UNITS.items()]

    def sets(self):
        return [name for name in cells.chosen(self.option["data"], SETS, "data set")
                if formatdata.present(name)]

    def skip(self):
        return "" if self.sets() else f"no such data sets: {self.option['data']}"

    def run(self, trial):
        asked = cells.chosen(self.option["measures"], list(UNITS), "measure")
        for name in self.sets():
            trial.step(f"{name}: making it ready")
            folder = formatdata.prepare(name, self.option["sysbench_rows"])
            if {"bytes", "dump", "scan", "point"} & set(asked):
                yield from self.of_dump(trial, folder, name, asked)
            for form in ("load_data", "multi_row", "one_row"):
                if form in asked or (form == "load_data" and "add_index" in asked):
                    yield from self.of_form(trial, folder, name, form, asked)

    def of_dump(self, trial, folder, name, asked):
        with trial.server(self.option["memory"] << 20) as server:
            trial.step(f"{name}: dump")
            trial.did(f"mariadb {name} < dump.sql   # tables declared with "
                      f"{trial.engine.clause()}")
            seconds = formatdata.load(server, trial.engine, folder, name, "dump")
            if "dump" in asked:
                yield Value(f"dump {name}", seconds)
            yield TURN
            if "bytes" in asked:
                time.sleep(self.option["rest"])
                yield Value(f"bytes {name}", trial.bytes_at_rest(server, name))
                yield TURN
            if name not in READ:
                return
            table, key, statement = READ[name]
            if "point" in asked:
                trial.step(f"{name}: point selects")
                trial.did(f"SELECT * FROM {table} WHERE {key} = ?   -- prepared; "
                          f"{points.CONNECTIONS} connections")
                yield Value(f"point {name}", points.rate(server, points.build(), name, table, key))
                yield TURN
            if "scan" in asked:
                server.stop()
                trial.engine.drop_page_cache(server, name)
                server.start()
                trial.did(statement)
                started = time.monotonic()
                server.sql(statement, name)
                yield Value(f"scan {name}", time.monotonic() - started)
        yield TURN

    def of_form(self, trial, folder, name, form, asked):
        with trial.server(self.option["memory"] << 20) as server:
            trial.step(f"{name}: {form}")
            seconds = formatdata.load(server, trial.engine, folder, name, form)
            if form in asked:
                yield Value(f"{form} {name}", seconds)
            if form == "load_data" and "add_index" in asked:
                seconds = formatdata.add_indexes(server, trial.engine, folder, name)
                if seconds is not None:
                    yield Value(f"add_index {name}", seconds)
        yield TURN

    def plots(self, results):
        found = [Plot(key, label, "bars", "", unit,
                      show.bars(results, {name: (f"{key} {name}", None) for name in SETS}))
                 for key, (label, unit, _) in UNITS.items()]
        return [plot for plot in found if plot.series]

    def tables(self, results):
        found = [show.table(results, name,
                            [(label, f"{key} {name}", None, unit)
                             for key, (label, unit, _) in UNITS.items()
                             if any(results.values(engine, f"{key} {name}")
                                    for engine in results.engines)]) for name in SETS]
        return [table for table in found if table.rows]

    def verdicts(self, results):
        others = [engine for engine in results.engines if results.family(engine) != "Cheetah"]
        found = []
        for key, (measure, ours, theirs, limit, sets) in WANTED.items():
            for name in sets:
                word = f"{measure} {name}"
                ratios = (results.ratios(ours, word, theirs) if theirs
                          else results.by_smallest(ours, word, others) if others else [])
                if ratios:
                    bound = "low" if UNITS[measure][2] == MORE else "high"
                    found.append(judge.within(f"{self.about['claims'][key]} ({name})", word, ratios,
                                              **{bound: limit}))
        return found
