"""The plan: which tables are converted, which stay and why, their sizes, and the duration."""

import re
from dataclasses import dataclass, field

from cheetah_client.connection import Connection
from cheetah_client.say import line, several, show_table, size, span

from . import estimate, groups, tables
from .convert import same
from .tables import Place
from .trial import Trial

CHEETAH, INNODB = "CHEETAH", "InnoDB"


@dataclass
class Selection:
    """The databases and tables that the operator named, or all of them."""

    schemas: set = field(default_factory=set)
    places: set = field(default_factory=set)
    is_all: bool = False

    def has(self, place: Place) -> bool:
        return self.is_all or place.schema in self.schemas or place in self.places


@dataclass
class Plan:
    """Groups to convert, in their order, and groups that stay; weights by place; notes for the
    operator; how many selected tables have the engine already, and tables of other engines."""

    engine: str
    going: list
    staying: list
    weights: dict
    notes: list
    there: int
    others: list
    speed: float

    def ordered(self) -> list:
        """Returns the weights of the tables to convert, in the order of conversion."""
        return [weight for group in self.going for weight in
                sorted((self.weights[place] for place in group.places if place in self.weights),
                       key=lambda weight: weight.before)]

    def seconds(self) -> float:
        """Returns the estimated duration of the copies, or 0 if it is unknown."""
        copied = sum(weight.before for weight in self.ordered())
        return copied / self.speed if self.speed else 0.0

    def show(self) -> None:
        rows = []
        for group in self.going:
            for place in group.places:
                if place in self.weights:
                    weight = self.weights[place]
                    rows.append([place, size(weight.before),
                                 size(weight.after) + (f" +-{weight.error_percent:.0f} %"
                                                       if weight.error_percent else "")])
            if group.constraints:
                rows.append([f"  these {len(group.places)} together: "
                             + several(len(group.constraints), "constraint"), "", ""])
        if rows:
            show_table([f"go to {self.engine}", "now", "then, about"], rows)
        for group in self.staying:
            for place in group.places:
                line(f"  stays: {place}: {group.stays[place]}")
        for place, engine in self.others:
            line(f"  left alone: {place}: its engine is {engine or 'unknown'}")
        for note in self.notes:
            line(f"  note: {note}")
        if self.there:
            line(f"  {self.engine}'s already: {several(self.there, 'table')}")
        self._show_sums()

    def _show_sums(self) -> None:
        weights = self.ordered()
        if not weights:
            line("nothing to do")
            return
        now, then = sum(w.before for w in weights), sum(w.after for w in weights)
        words = (f"{several(len(weights), 'table')}: {size(now)} now, "
                 f"about {size(then)} in {self.engine}")
        if self.speed:
            words += (f"; about {span(self.seconds())} of copying, at {size(self.speed)}/s in a "
                      "sample; constraints are checked after that")
        line(words)


def make_plan(look: Connection, selection: Selection, engine: str) -> Plan:
    """Examines all selected tables and tries their definitions with the engine."""
    source = INNODB if engine == CHEETAH else CHEETAH
    constraints = tables.read_constraints(look)
    known = {table.place: table for table in tables.read_tables(
        look, None if selection.is_all else
        sorted(selection.schemas | {place.schema for place in selection.places}))}
    named = [table for table in known.values() if selection.has(table.place)]
    from_source = [table.place for table in named if same(table.engine, source)]
    found = Plan(engine, [], [], {}, [],
                 sum(same(table.engine, engine) for table in named),
                 sorted((table.place, table.engine) for table in named
                        if not same(table.engine, source) and not same(table.engine, engine)), 0.0)
    with Trial(look, engine) as trial:
        for group in groups.connected(from_source, constraints):
            for place in group.places:
                if place not in known:
                    known |= {table.place: table for table in tables.read_tables(look, place=place)}
            groups.hold(group, reasons(group, known, selection, (source, engine), trial))
            (found.staying if group.stays else found.going).append(group)
        for group in found.going:
            for place in group.places:
                if not same(known[place].engine, engine):
                    found.weights[place] = estimate.weigh(look, known[place], engine)
                    found.notes += notes(look, known[place])
        if found.weights:
            found.speed = trial.bytes_a_second(
                known[max(found.weights, key=lambda place: found.weights[place].before)])
    found.going.sort(key=lambda group: (sum(known[place].bytes_now for place in group.places),
                                        group.places))
    return found


def reasons(group, known: dict, selection: Selection, engines: tuple, trial: Trial) -> dict:
    why = {}
    for place in group.places:
        if place not in known:
            why[place] = "it does not exist, but a constraint refers to it"
        elif not any(same(known[place].engine, engine) for engine in engines):
            why[place] = f"its engine is {known[place].engine}"
        elif not selection.has(place):
            why[place] = "it was not named, but constraints connect it: name it too"
    return why or trial.refusals([known[place] for place in group.places], group.constraints)


def notes(look: Connection, table: tables.Table) -> list:
    found = []
    if table.is_partitioned:
        found.append(f"{table.place} has partitions: a kill of the server while it is converted "
                     "can leave files of partitions without their table")
    if re.search(r"^\).* (DATA|INDEX) DIRECTORY=", tables.definition(look, table.place), re.M):
        found.append(f"{table.place} loses its DATA DIRECTORY: all tables share the engine's files")
    return found
