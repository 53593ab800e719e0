"""Runs transactions on a parent and its children, with a foreign key that cascades."""

from cheetah_lab import cells
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import TURN, Experiment
from cheetah_lab.trial import Refused
from cheetah_tools import sysbench

NAME = "relations"
POOL_BYTES, LOG_BYTES, WARM_SECONDS = 1 << 30, 1 << 30, 2


class Relations(Experiment):
    by_name = together = True
    compared = cells.COMPARED
    options = {"rows": 100_000, "seconds": 3, "workloads": "all", "connections": "1,16,64"}
    measures = cells.measures([NAME])

    def engines(self, chosen, scale):
        return [key for key in chosen if key.startswith((INNODB, CHEETAH, "innodb-enc"))]

    def run(self, trial):
        if trial.family == "MyRocks":
            raise Refused("MyRocks has no foreign keys")
        cells.chosen(self.option["workloads"], [NAME], "workload")
        counts = [*map(int, self.option["connections"].split(","))]
        of = sysbench.Tables(trial.scale.of(self.option["rows"], 1000))
        with trial.server(POOL_BYTES, innodb_log_file_size=LOG_BYTES,
                          loose_cheetah_log_size_max=LOG_BYTES,
                          **sysbench.server_options(max(counts))) as server:
            trial.step(f"loading {of.rows:,} children")
            sysbench.prepare(server, sysbench.DATABASE, of,
                             f"--mysql-storage-engine={trial.engine.name}", script=NAME)
            trial.engine.flush(server)
            for table in ("parents", "children"):
                server.sql(f"ANALYZE TABLE {table}", sysbench.DATABASE)
            yield TURN
            for count in counts:
                yield from cells.measure(trial, server, NAME, count, NAME, of, count,
                                         self.option["seconds"], WARM_SECONDS)

    def plots(self, results):
        return cells.plots(results, [NAME], "connections")

    def tables(self, results):
        return [cells.table(results, "Parents and children", [NAME], "connections")]
