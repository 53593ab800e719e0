"""The same rows with a sequence, a GUID and no key: insertion, size, look-ups."""

import time
import uuid
from contextlib import closing
from dataclasses import dataclass

from cheetah_lab import judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.inputs import purchases
from cheetah_lab.model import LESS, MORE, Experiment, Measure, Plot, Value
from cheetah_tools import points

QUICK_ROWS = 80_000
QUICK_POOL_BYTES, POOL_BYTES_MIN = 8 << 20, 8 << 20
TENTHS = 10
# InnoDB's bytes per row with its entry in the secondary index, uncompressed, in partly filled pages
GUID_ROW_BYTES = 350
SECONDARY_KEY = "KEY customer (customerid)"
LOOK_UP = "SELECT * FROM purchases WHERE customerid = ?"


@dataclass(frozen=True)
class Kind:
    """A kind of key. `column` defines its column, and that of an additional GUID; `value(rng)`
    returns their values in an INSERT; `key` is an index in addition to those of all tables."""

    name: str
    label: str
    column: str
    value: object = None
    full: bool = False
    key: str = ""


def guid(rng) -> uuid.UUID:
    return uuid.UUID(int=rng.getrandbits(128), version=4)


BESIDE = ("transactionid BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, "
          "guid CHAR(36) CHARACTER SET ascii NOT NULL")
KINDS = [
    Kind("sequence", "sequence", "transactionid BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"),
    Kind("guid", "GUID", "transactionid CHAR(36) CHARACTER SET ascii NOT NULL PRIMARY KEY",
         lambda rng: f"'{guid(rng)}'"),
    Kind("none", "no primary key", ""),
    Kind("unique", "sequence, and a GUID in a UNIQUE index", BESIDE,
         lambda rng: f"NULL, '{guid(rng)}'", full=True, key="UNIQUE KEY guid (guid)"),
    Kind("plain", "sequence, and a GUID in another index", BESIDE,
         lambda rng: f"NULL, '{guid(rng)}'", full=True, key="KEY guid (guid)"),
    Kind("binary", "GUID, BINARY(16)", "transactionid BINARY(16) NOT NULL PRIMARY KEY",
         lambda rng: f"X'{guid(rng).hex}'", full=True),
]
MEASURED = [("rate", "rows a second", "1/s", MORE), ("seconds", "time of all rows", "s", LESS),
            ("half", "time of the last half of the rows", "s", LESS),
            ("bytes", "bytes on disk", "bytes", LESS),
            ("lookups", "look-ups a second", "1/s", MORE)]


class PrimaryKeys(Experiment):
    options = {"kinds": ""}   # comma-separated names; "": those of the scale
    measures = [Measure("cache", "cache", "bytes"),
                *(Measure(f"{key} {kind.name}", f"{label}, {kind.label}", unit, better)
                  for kind in KINDS for key, label, unit, better in MEASURED)]

    def run(self, trial):
        program = points.build()
        pool_bytes = trial.scale.of(QUICK_POOL_BYTES, POOL_BYTES_MIN)
        yield Value("cache", pool_bytes)
        for kind in self.kinds(trial.scale):
            with trial.server(pool_bytes) as server:
                trial.step(f"inserting, {kind.label}")
                server.sql("CREATE DATABASE shop")
                with trial.held(server, "shop", f"insertion, {kind.label}"):
                    yield from insert(trial, server, kind)
                rows = tenth_in_batches(trial) * TENTHS * purchases.ROWS_OF_BATCH
                if kind.column:   # a table without a primary key has no index of that name
                    purchases.check(server, "shop", [SECONDARY_KEY, *filter(None, [kind.key])],
                                    rows, "guid" if kind.key else "transactionid")
                trial.engine.write_out(server, "shop")
                yield Value(f"bytes {kind.name}", trial.bytes_at_rest(server, "shop"))
                trial.step(f"looking up, {kind.label}")
                seconds = max(0.1, min(1, trial.scale.factor) * (2 if trial.scale.full else 1))
                trial.did(f"{LOOK_UP}   -- prepared; {points.CONNECTIONS} connections, "
                          f"{seconds:g} s")
                with trial.held(server, "shop", f"look-ups, {kind.label}"):
                    rate = points.once(server, program, "shop", "purchases", "customerid", seconds)
                    yield Value(f"lookups {kind.name}", rate)

    def kinds(self, scale) -> list:
        named = [name for name in self.option["kinds"].split(",") if name]
        return [kind for kind in KINDS
                if (kind.name in named if named else scale.full or not kind.full)]

    def plots(self, results) -> list:
        lines = [Plot(f"rate-{kind.name}", f"Rows a second: {kind.label}", "lines",
                      "rows inserted", "1/s", show.lines(results, f"rate {kind.name}"), log_y=True)
                 for kind in KINDS]
        return [*(plot for plot in lines if plot.series),
                *(Plot(measure, title, "bars", "", unit,
                       show.bars(results, {kind.label: (f"{measure} {kind.name}", None)
                                           for kind in KINDS}))
                  for measure, title, unit in (("seconds", "Time of all rows", "s"),
                                               ("bytes", "Bytes on disk", "bytes"),
                                               ("lookups", "Look-ups a second", "1/s")))]

    def tables(self, results) -> list:
        kinds = [kind for kind in KINDS if any(results.values(engine, f"seconds {kind.name}")
                                               for engine in results.engines)]
        parts = (("seconds", "Time of all rows", "s"), ("half", "Time of the last half", "s"),
                 ("bytes", "Bytes on disk", "bytes"),
                 ("lookups", "Look-ups a second through the secondary index", "1/s"))
        return [show.table(results, title, [(kind.label, f"{measure} {kind.name}", None, unit)
                                            for kind in kinds])
                for measure, title, unit in parts]

    def verdicts(self, results) -> list:
        both = (INNODB, CHEETAH)
        by_guid = [results.ratios(engine, "half guid", engine, base_measure="half sequence")
                   if outgrown(results, engine) else [] for engine in both]
        by_none = [results.ratios(engine, "seconds none", engine, base_measure="seconds sequence")
                   for engine in both]
        by_innodb = (results.ratios(CHEETAH, "seconds guid", INNODB)
                     if all(outgrown(results, engine) for engine in both) else [])
        past = "of a table that outgrew the cache (in InnoDB's uncompressed size)"
        told = f"time with a GUID, by that with a sequence, {past}"
        without = "time without a key, by that with a sequence"
        return judge.each(self.about["claims"], [
            ("innodb_guid", told, by_guid[0], 2), ("cheetah_guid", told, by_guid[1], 2),
            ("guid", f"Cheetah's time, by InnoDB's, {past}", by_innodb, 0, 1),
            ("innodb_none", without, by_none[0], 1), ("cheetah_none", without, by_none[1], 1)])


def tenth_in_batches(trial) -> int:
    return max(1, trial.scale.of(QUICK_ROWS) // (TENTHS * purchases.ROWS_OF_BATCH))


def outgrown(results, engine: str) -> bool:
    rows, caches = results.curve(engine, "rate guid"), results.values(engine, "cache")
    return (bool(rows and caches)
            and rows[-1][0] * GUID_ROW_BYTES > purchases.OUTGROWN_BY * max(caches))


def insert(trial, server, kind: Kind):
    tenth = tenth_in_batches(trial)
    definition = purchases.create_table(trial.engine.clause(),
                                        [SECONDARY_KEY, *filter(None, [kind.key])], kind.column)
    server.sql(definition, "shop")
    trial.did(definition)
    statements = purchases.batches(tenth * TENTHS, seed=trial.repeat + 1, first_column=kind.value)
    ends = []
    with server.cursor("shop") as cursor, closing(purchases.ahead(statements)) as ready:
        started = time.monotonic()
        for number, statement in enumerate(ready, 1):
            cursor.execute(statement)
            if number % tenth == 0:
                ends.append(time.monotonic() - started)
    rows = tenth * purchases.ROWS_OF_BATCH
    for number, (begin, end) in enumerate(zip([0, *ends], ends), 1):
        yield Value(f"rate {kind.name}", rows / (end - begin), number * rows)
    yield Value(f"seconds {kind.name}", ends[-1])
    yield Value(f"half {kind.name}", ends[-1] - ends[TENTHS // 2 - 1])
