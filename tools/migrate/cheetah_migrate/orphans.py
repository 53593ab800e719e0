"""Finds rows without a parent."""

from cheetah_client.connection import Connection, name

from .tables import Constraint


def query(constraint: Constraint, what: str = "child.*") -> str:
    given = " AND ".join(f"child.{name(column)} IS NOT NULL" for column in constraint.columns)
    same = " AND ".join(f"parent.{name(there)} = child.{name(here)}" for here, there in
                        zip(constraint.columns, constraint.parent_columns))
    return (f"SELECT {what} FROM {constraint.child.sql()} child WHERE {given} AND NOT EXISTS "
            f"(SELECT 1 FROM {constraint.parent.sql()} parent WHERE {same})")


def found(server: Connection, constraints: list) -> list:
    """Returns the violated constraints with numbers of rows, each counted in one snapshot."""
    counts = [(constraint, int(server.value(query(constraint, "COUNT(*)"))))
              for constraint in constraints]
    return [pair for pair in counts if pair[1]]


def told(pairs: list) -> str:
    """Formats the result of `found`: each constraint with the query that finds its rows."""
    return "\n".join(f"{constraint}: {count:,} rows of {constraint.child} have no parent in "
                     f"{constraint.parent}. They are found by\n  {query(constraint)};"
                     for constraint, count in pairs)
