"""`make bench ARGS="--sets relations"`: transactions on a parent and its children, with a foreign
key that cascades, on Cheetah beside InnoDB, or beside another build.

As `oltp`, of which it is a variant: durable commits, all data in memory, one server for each
engine. `relations.lua` has the tables and the transaction.
"""

from . import oltp, sysbench

NAME = "relations"


def fill(server, engine, rows: int) -> None:
    """Create and fill both tables, with so many children and a quarter as many parents."""
    sysbench.prepare(server, sysbench.DATABASE, sysbench.Tables(rows),
                     f"--mysql-storage-engine={engine.name}", script=NAME)
    engine.flush(server)
    for name in ("parents", "children"):
        server.sql(f"ANALYZE TABLE {name}", sysbench.DATABASE)


KIND = oltp.Kind(NAME, [NAME], [1, 16, 64], sysbench.Tables, fill)


def run(choice) -> int:
    """The part of the bench; 1 when a cell could not be measured."""
    return oltp.run(choice, KIND)
