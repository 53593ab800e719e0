"""Converts the values of a run to figures, series, and rows of tables."""

from .engines import CHEETAH, INNODB
from .model import ABSENT, Cell, Figure, Series, Table


def figure(found, key: str, what: str, document: float, unit: str, values) -> Figure:
    others = {found.label(engine): values(engine) for engine in found.engines
              if engine not in (INNODB, CHEETAH) and values(engine)}
    return Figure(key, what, document, unit, values(INNODB), values(CHEETAH), others)


def others(found, values, engines: list) -> dict:
    """Returns label -> values of those of `engines` that have any, for the last column of a figure.
    `values(engine)` returns the values of all repeats."""
    return {found.label(engine): values(engine) for engine in engines
            if engine in found.engines and values(engine)}


def lines(found, measure: str) -> list:
    return [Series(found.label(engine), found.curve(engine, measure), engine)
            for engine in found.engines if found.curve(engine, measure)]


def bars(found, measures: dict) -> list:
    """Returns a group of bars for each engine; `measures`: word below a bar -> (measure, at)."""
    made = []
    for engine in found.engines:
        points = [(word, found.values(engine, measure, at))
                  for word, (measure, at) in measures.items() if found.values(engine, measure, at)]
        if points:
            made.append(Series(found.label(engine), points, engine))
    return made


def cell(values: list, unit: str) -> Cell:
    return Cell(values=values, unit=unit) if values else Cell(ABSENT)


def cells(found, engine: str, measures: list) -> list:
    """Returns a row of a table: the engine, then a cell for each (measure, at, unit)."""
    return [Cell(found.label(engine)),
            *(cell(found.values(engine, measure, at), unit) for measure, at, unit in measures)]


def columns(measures: list) -> list:
    """Returns columns for `table`, for measures that are not curves."""
    return [(measure.label, measure.key, None, measure.unit) for measure in measures]


def table(found, title: str, shown: list, caption: str = "") -> Table:
    """Returns a table with a row for each engine with values; `shown`: head, measure, at, unit."""
    rows = [cells(found, engine, [column[1:] for column in shown]) for engine in found.engines
            if any(found.values(engine, measure, at) for _, measure, at, _ in shown)]
    return Table(title, ["engine", *(column[0] for column in shown)], rows, caption)
