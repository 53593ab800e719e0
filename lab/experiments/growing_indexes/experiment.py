"""The insert benchmark: rate over the rows, while three indexes outgrow the cache; W11."""

import statistics
import time
from contextlib import closing
from dataclasses import dataclass

from cheetah_lab import judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.inputs import purchases
from cheetah_lab.model import (LESS, MORE, NEITHER, Experiment, Figure, Measure, Plot, Series,
                               Value)

QUICK_SECONDS, FULL_SECONDS = 10, 20
QUICK_POOL_BYTES, POOL_BYTES_MIN = 8 << 20, 8 << 20
QUICK_STEP_ROWS = 10_000
SECONDS_MIN = 0.5
# InnoDB's bytes per row with its entries in three indexes, uncompressed, in partly filled pages
ROW_BYTES = 320
FIFTHS = 5


@dataclass(frozen=True)
class Variant:
    """One way to insert. `engines`: keys; empty: all. `full`: only in a full run."""

    name: str
    label: str
    options: dict
    fourth_key: str = ""
    engines: tuple = ()
    full: bool = False


COSTS = {"p99": ("99th percentile of a batch", "ms"), "longest": ("longest batch", "ms"),
         "cpu": ("server's processor time for a row", "us"),
         "read": ("read from the device for a row", "bytes"),
         "written": ("written to it for a row", "bytes"),
         "disk": ("on disk for a row when the last batch ended", "bytes")}
MEASURED = [("rate", "rows a second", "1/s", MORE), ("rows", "rows inserted", "rows", MORE),
            ("last by first", "rate over the last fifth of the rows, by that over the first",
             "ratio", MORE), ("bytes", "bytes on disk at the end", "bytes", NEITHER),
            *((key, label, unit, LESS) for key, (label, unit) in COSTS.items())]
BUFFERED = {"innodb_change_buffering": "all"}
VARIANTS = [
    Variant("", "", {"innodb_change_buffering": "none"}),
    Variant("buffered", ", change buffering", BUFFERED, engines=("innodb-dynamic",)),
    Variant("plain", ", a fourth index", BUFFERED, "KEY ticket (data)", full=True),
    Variant("unique", ", a UNIQUE fourth index", BUFFERED, "UNIQUE KEY ticket (data)", full=True),
]


def named(measure: str, variant: Variant) -> str:
    return f"{measure} {variant.name}".strip()


class GrowingIndexes(Experiment):
    options = {"seconds": 0, "cache": 0, "variants": ""}   # 0 and "": the default of the scale
    measures = [Measure("cache", "cache", "bytes"),
                *(Measure(named(key, variant), f"{label}{variant.label}", unit, better)
                  for variant in VARIANTS for key, label, unit, better in MEASURED)]

    def seconds(self, factor, chosen):
        """Returns the given time plus the time of the check, if the user gives a time."""
        return self.option["seconds"] + 20 if self.option["seconds"] else super().seconds(
            factor, chosen)

    def run(self, trial):
        pool_bytes = (self.option["cache"] << 20) or trial.scale.of(QUICK_POOL_BYTES,
                                                                    POOL_BYTES_MIN)
        seconds = self.option["seconds"] or max(SECONDS_MIN, trial.scale.factor * (
            FULL_SECONDS if trial.scale.full else QUICK_SECONDS))
        for variant in VARIANTS[:1] if self.option["variants"] == "first" else VARIANTS:
            if ((variant.engines and trial.engine.key not in variant.engines)
                    or (variant.full and not trial.scale.full)):
                continue
            options = variant.options if trial.family == "InnoDB" else {}
            with trial.server(pool_bytes, **options) as server:
                if variant is VARIANTS[0]:
                    yield Value("cache", pool_bytes)
                trial.step(f"inserting{variant.label}")
                yield from insert(trial, server, variant, seconds)

    def plots(self, results) -> list:
        three, four = ([Series(line.label + variant.label, line.points, line.engine)
                        for variant in variants
                        for line in show.lines(results, named("rate", variant))]
                       for variants in (VARIANTS[:2], VARIANTS[2:]))
        plots = [Plot("rate", "Rows a second into a table with three secondary indexes", "lines",
                      "rows inserted", "1/s", three, log_y=True),
                 Plot("unique", "With a fourth index, plain and UNIQUE", "lines",
                      "rows inserted", "1/s", four, log_y=True)]
        return plots if four else plots[:1]

    def tables(self, results) -> list:
        told = [("rows inserted", "rows", "rows"),
                ("last fifth of them by first", "last by first", "ratio"),
                ("bytes on disk at the end", "bytes", "bytes"),
                *((label, key, unit) for key, (label, unit) in COSTS.items())]
        made = [show.table(results, "Three secondary indexes" + variant.label,
                           [(label, named(key, variant), None, unit) for label, key, unit in told])
                for variant in VARIANTS]
        return [table for table in made if table.rows]

    def figures(self, results) -> list:
        """Returns the figure W11, without and with change buffering in InnoDB. The document shows
        only curves, so its column is empty. All engines are compared at the same number of rows."""
        # in every repeat; 0 if one is missing
        rows = min(max(reached(results, engine), default=0) for engine in (INNODB, CHEETAH))
        what = ("rows a second into growing indexes: last fifth by first fifth of the same rows"
                + (f" ({rows:,.0f})" if rows else ""))
        buffered = fall_within(results, INNODB, rows, VARIANTS[1])
        return [show.figure(results, "W11", what, None, "ratio",
                            lambda engine: fall_within(results, engine, rows)),
                Figure("W11 buffered", f"{what}, InnoDB with change buffering", None, "ratio",
                       buffered, fall_within(results, CHEETAH, rows))]

    def verdicts(self, results) -> list:
        past = "when the indexes outgrew the cache (in InnoDB's uncompressed size)"
        fifths = f"last fifth of the rows by first fifth, {past}"
        buffered = past_cache(results, (INNODB, "rows buffered"), (INNODB, "rows"))
        by_innodb = past_cache(results, (CHEETAH, "rows"), (INNODB, "rows buffered"))
        unique = [past_cache(results, (engine, "rows unique"), (engine, "rows plain"))
                  for engine in (INNODB, CHEETAH)]
        by_plain = f"rows with the UNIQUE index, by those with the plain one, {past}"
        return judge.each(self.about["claims"], [
            ("innodb_falls", fifths, outgrown(results, INNODB), 0, 0.5),
            ("buffering", f"rows with change buffering, by those without, {past}", buffered, 1.1),
            ("cheetah_stays", fifths, outgrown(results, CHEETAH), 0.5),
            ("more_rows", f"rows of Cheetah, by those of InnoDB, {past}", by_innodb, 1),
            ("innodb_unique", by_plain, unique[0], 0, 1),
            ("cheetah_unique", by_plain, unique[1], 0.9)])


def is_large(rows: float, cache_bytes: float) -> bool:
    return rows * ROW_BYTES > purchases.OUTGROWN_BY * cache_bytes


def past_cache(results, measured: tuple, base: tuple) -> list:
    """Returns the rows of `measured` divided by those of `base`, both (engine, measure), for each
    repeat in which both tables grew larger than the cache."""
    tries = results.together((*measured, None), (*base, None), (measured[0], "cache", None))
    return [rows / others for rows, others, cache in tries if is_large(min(rows, others), cache)]


def fall(rates: list):
    """Returns the rate of the last fifth of the steps divided by that of the first fifth; all steps
    have the same number of rows. Returns None for a single step."""
    fifth = max(1, len(rates) // FIFTHS)
    return (statistics.harmonic_mean(rates[-fifth:]) / statistics.harmonic_mean(rates[:fifth])
            if len(rates) > 1 else None)


def outgrown(results, engine: str) -> list:
    """Returns how the rate fell over all rows, for repeats in which the table outgrew the cache."""
    tries = results.together(*((engine, measure, None)
                               for measure in ("last by first", "rows", "cache")))
    return [fell for fell, rows, cache in tries if is_large(rows, cache)]


def reached(results, engine: str, measure: str = "rate") -> list:
    """Returns the places of the curve that every repeat reached."""
    curve = results.curve(engine, measure)
    most = max((len(values) for _, values in curve), default=0)
    return [at for at, values in curve if len(values) == most]


def fall_within(results, engine: str, rows: float, variant: Variant = VARIANTS[0]) -> list:
    """Returns how the rate fell within this many rows, if the cache does not hold them."""
    measure, caches = named("rate", variant), results.values(engine, "cache")
    steps = reached(results, engine, measure)
    if not caches or not steps or steps[-1] < rows or not is_large(rows, max(caches)):
        return []
    tries = results.together(*((engine, measure, at) for at in steps if at <= rows))
    return [fall(rates) for rates in tries if len(rates) > 1]


def costs(variant: Variant, took: list, spent: list, disk: float):
    """Yields the costs: of batches (`took`), and per row (`spent`, and bytes on disk)."""
    cpu, read, written = spent
    took = sorted(took)
    found = (took[int(len(took) * 0.99)] * 1e3, took[-1] * 1e3, cpu * 1e6, read, written, disk)
    for key, value in zip(COSTS, found):
        yield Value(named(key, variant), value)


def insert(trial, server, variant: Variant, seconds: float):
    """Inserts batches for a given time. Raises Failure if an index has other rows at the end."""
    step_rows = (trial.scale.of(QUICK_STEP_ROWS, purchases.ROWS_OF_BATCH)
                 // purchases.ROWS_OF_BATCH * purchases.ROWS_OF_BATCH)
    definition = purchases.create_table(
        trial.engine.clause(), [*purchases.SECONDARY_KEYS, *filter(None, [variant.fourth_key])])
    server.sql("CREATE DATABASE shop")
    server.sql(definition, "shop")
    for name, value in variant.options.items() if trial.family == "InnoDB" else ():
        trial.did(f"SET GLOBAL {name} = '{value}'")
    trial.did(definition)
    trial.did(next(purchases.batches(1, rows=1)) + ", ..   -- a thousand rows; one after the other")
    rows, places, took = 0, [], []
    endless = purchases.batches(1 << 40, seed=trial.repeat + 1)
    with (trial.held(server, "shop", f"insertion{variant.label}"), server.cursor("shop") as cursor,
          closing(purchases.ahead(endless)) as statements):
        before, started = server.spent(), time.monotonic()
        ended = step_started = started
        for statement in statements:
            cursor.execute(statement)
            now = time.monotonic()
            took.append(now - ended)
            ended = now
            rows += purchases.ROWS_OF_BATCH
            if rows % step_rows == 0:
                places.append((rows, step_rows / (now - step_started)))
                step_started = now
            if now - started >= seconds:
                break
        spent = [after - begun for after, begun in zip(server.spent(), before)]
        yield from costs(variant, took, [amount / rows for amount in spent],
                         trial.engine.allocated_bytes(server, "shop") / rows)
    purchases.check(server, "shop", purchases.SECONDARY_KEYS, rows)
    yield from (Value(named("rate", variant), rate, at) for at, rate in places)
    yield Value(named("rows", variant), rows)
    if fell := fall([rate for _, rate in places]):
        yield Value(named("last by first", variant), fell)
    trial.engine.write_out(server, "shop")
    yield Value(named("bytes", variant), trial.bytes_at_rest(server, "shop"))
