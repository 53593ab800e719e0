"""Disks as they are rented, skewed keys beside even ones, and real texts beside random digits."""

from cheetah_lab import cells, judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import TURN, Cell, Experiment, Plot, Series, Table
from cheetah_tools import cgroup, sysbench, texts
from cheetah_tools.paths import VAR

WORKLOADS = ["oltp_point_select", "oltp_read_write", "oltp_update_index"]
KEYS, TEXTS = ["uniform", "zipfian"], ["digits", "real"]
CONNECTIONS, WARM_SECONDS = 16, 3
SHARE = 0.2
BYTES_OF_ROW, POOL_BYTES_MIN, LOAD_BYTES = 285, 8 << 20, 512 << 20
ROOM_BYTES_OF_ROW = 2100     # in three engines at once
DISKS = {0: "no limit", 3000: "3,000 a second: a cloud volume", 200: "200 a second: a hard disk"}


class RentedDisks(Experiment):
    """See experiment.toml."""

    by_name = together = True
    compared = cells.COMPARED
    options = {"rows": 300_000, "seconds": 5, "workloads": "all", "disks": "0,3000,200",
               "keys": "all", "texts": "all"}

    @property
    def measures(self):
        """Those of the cells that are asked for."""
        return cells.measures(self.names())

    def asked(self, option: str, known: list) -> list:
        """The words of an option."""
        return cells.chosen(self.option[option], known, option)

    def names(self):
        """Of cells: workload, keys, texts."""
        return [f"{workload} {keys} {kind}" for kind in self.asked("texts", TEXTS)
                for keys in self.asked("keys", KEYS)
                for workload in self.asked("workloads", WORKLOADS)]

    def disks(self):
        """Reads, and writes, a second; 0: no limit. The slowest last, so that caches are warm."""
        return [*map(int, self.option["disks"].split(","))]

    def skip(self):
        """The device must be one that can be limited, and texts must be there."""
        VAR.mkdir(exist_ok=True)
        limited = cgroup.no_rented_disk(VAR) if any(self.disks()) else ""
        return limited or (texts.missing() if "real" in self.asked("texts", TEXTS) else "")

    def seconds(self, factor, chosen):
        """Those of the cells."""
        return (self.option["rows"] / cells.LOAD_ROWS_PER_SECOND
                * len(self.asked("texts", TEXTS))
                + cells.seconds(self.names(), len(self.disks()), self.option["seconds"],
                                WARM_SECONDS))

    def room_bytes(self, scale):
        """From the rows."""
        return self.option["rows"] * ROOM_BYTES_OF_ROW

    def run(self, trial):
        """Load each kind of text once; then all cells on each disk."""
        for kind in self.asked("texts", TEXTS):
            of = cells.tables(self.option["rows"], kind)
            with trial.server(LOAD_BYTES) as server:
                trial.step(f"loading {self.option['rows']:,} rows, {kind}")
                sysbench.load(server, trial.engine, of)
                trial.engine.settle(server)
                cache = max(int(SHARE * self.option["rows"] * BYTES_OF_ROW), POOL_BYTES_MIN)
                trial.restart(server, cache, **sysbench.server_options(CONNECTIONS, of.tables))
                yield TURN
                for disk in self.disks():
                    yield from self.on_disk(trial, server, of, kind, disk)

    def on_disk(self, trial, server, of, kind, disk):
        """All cells of one kind of texts."""
        for keys in self.asked("keys", KEYS):
            for workload in self.asked("workloads", WORKLOADS):
                said = f"{said_of(disk)}, {workload}, {keys} keys, {kind}"
                with (trial.held(server, sysbench.DATABASE, said),
                      trial.rented_disk(server, disk)):
                    found = list(cells.measure(
                        trial, server, f"{workload} {keys} {kind}", disk, workload, of,
                        CONNECTIONS, self.option["seconds"], WARM_SECONDS, keys))
                yield from found

    def plots(self, results):
        """Transactions a second on each disk, a picture for each cell."""
        found = []
        for name in self.names():
            series = [Series(results.label(engine), [(said_of(disk), values) for disk, values
                                                     in results.curve(engine, f"tps {name}")],
                             engine) for engine in results.engines
                      if results.curve(engine, f"tps {name}")]
            if series:
                found.append(Plot(name, f"{name}: transactions a second", "bars", "disk", "1/s",
                                  series, log_y=True))
        return found

    def tables(self, results):
        """Through InnoDB's on each disk, then every cell."""
        others = [engine for engine in results.engines if engine != INNODB]
        disks = self.disks()
        rows = [[Cell(f"{name}, {results.label(engine)}"),
                 *(show.cell(results.ratios(engine, f"tps {name}", INNODB, disk), "ratio")
                   for disk in disks)]
                for name in self.names() for engine in others]
        return [Table("Transactions a second through InnoDB's",
                      ["workload, keys, texts, engine", *map(said_of, disks)], rows),
                cells.table(results, "Every cell", self.names(), "reads and writes a second")]

    def verdicts(self, results):
        """On each disk."""
        return [judge.within(self.about["claims"][str(disk)], "Cheetah by InnoDB, geometric mean",
                             results.mean_of_cells(CHEETAH, [f"tps {name}"
                                                             for name in self.names()], INNODB,
                                                   only=disk), low=1)
                for disk in DISKS]


def said_of(disk: float) -> str:
    """A disk in words."""
    return DISKS.get(int(disk), f"{disk:,.0f} a second")
