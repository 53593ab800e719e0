"""Measures engines whose memory holds only a share of the data, on disks with the I/O limits of
rented ones, with skewed and uniform keys, and with real texts and random digits."""

import itertools
from statistics import median

from cheetah_lab import cells, judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import TURN, Cell, Experiment, Plot, Series, Table
from cheetah_lab.trial import PAGE_CACHE_BYTES
from cheetah_tools import cgroup, sysbench, texts
from cheetah_tools.paths import VAR
from cheetah_tools.say import Failure

WORKLOADS = ["oltp_point_select", "oltp_read_write", "oltp_update_index"]
KEYS, TEXTS = ["uniform", "zipfian"], ["digits", "real"]
# Bytes per row with its key, in InnoDB; shares refer to this size.
BYTES_OF_ROW, POOL_BYTES_MIN, LOAD_BYTES = 285, 8 << 20, 1 << 30
ROOM_BYTES_OF_ROW = 2800     # in four engines at once
DISKS = {0: "no limit", 3000: "3,000 a second: a cloud volume", 200: "200 a second: a hard disk"}
# The page cache's shares of the cache and `PAGE_CACHE_BYTES` together. Logs always need some.
PAGE_CACHE_PARTS = [0.1, 0.3, 0.6]
SHARE_SAID = "share of InnoDB's bytes as cache"


class RentedDisks(Experiment):
    """The places of its cells are disks, or shares of the memory if there are several."""

    by_name = together = True
    compared = cells.COMPARED
    options = {"rows": 300_000, "seconds": 5, "warm_seconds": 3, "workloads": "all",
               "disks": "0,3000,200", "keys": "all", "texts": "all", "connections": "16",
               "shares": "0.2", "best_split": False}

    @property
    def measures(self):
        return cells.measures(self.names())

    def asked(self, option: str, known: list) -> list:
        return cells.chosen(self.option[option], known, option)

    def numbers(self, option: str, kind=int) -> list:
        return [*map(kind, self.option[option].split(","))]

    def names(self):
        """Returns the cells' names: workload, connections, keys, texts, division of memory."""
        return [f"{workload} {count} {keys} {kind}{split}" for kind in self.asked("texts", TEXTS)
                for keys in self.asked("keys", KEYS)
                for workload in self.asked("workloads", WORKLOADS)
                for count in self.numbers("connections") for split in self.splits()]

    def splits(self):
        """Returns the ways to divide the memory: the suffix of a cell's name -> the page cache's
        part; None means `PAGE_CACHE_BYTES` in addition to the cache."""
        return ({f" {part:g}": part for part in PAGE_CACHE_PARTS} if self.option["best_split"]
                else {"": None})

    def by_share(self) -> bool:
        """Returns whether the places are shares. Raises Failure for several shares and disks."""
        several = len(self.numbers("shares", float)) > 1
        if several and len(self.numbers("disks")) > 1:
            raise Failure("several shares of the memory, or several disks, but not both")
        return several

    def skip(self):
        VAR.mkdir(exist_ok=True)
        limited = cgroup.no_rented_disk(VAR) if any(self.numbers("disks")) else ""
        return limited or (texts.missing() if "real" in self.asked("texts", TEXTS) else "")

    def seconds(self, factor, chosen):
        places = len(self.numbers("disks")) * len(self.numbers("shares", float))
        return (self.option["rows"] / cells.LOAD_ROWS_PER_SECOND
                * len(self.asked("texts", TEXTS))
                + cells.seconds(self.names(), places, self.option["seconds"],
                                self.option["warm_seconds"]))

    def room_bytes(self, scale):
        return self.option["rows"] * ROOM_BYTES_OF_ROW

    def run(self, trial):
        self.by_share()
        for kind in self.asked("texts", TEXTS):
            of = cells.tables(self.option["rows"], kind)
            with trial.server(LOAD_BYTES) as server:
                trial.step(f"loading {self.option['rows']:,} rows, {kind}")
                sysbench.load(server, trial.engine, of)
                trial.engine.settle(server)
                yield TURN
                for share in self.numbers("shares", float):
                    for split, part in self.splits().items():
                        cache, page_cache = divided(share * self.option["rows"] * BYTES_OF_ROW,
                                                    part)
                        trial.restart(server, cache, **sysbench.server_options(
                            max(self.numbers("connections")), of.tables))
                        for disk in self.numbers("disks"):   # slow ones last, with warm caches
                            yield from self.on_disk(trial, server, of, kind, disk, share, split,
                                                    page_cache)

    def on_disk(self, trial, server, of, kind, disk, share, split, page_cache):
        for keys, workload, count in itertools.product(
                self.asked("keys", KEYS), self.asked("workloads", WORKLOADS),
                self.numbers("connections")):
            said = (f"{share:g} of the memory{split}, {said_of(disk)}, {workload}, "
                    f"{count}, {keys} keys, {kind}")
            with (trial.held(server, sysbench.DATABASE, said, page_cache),
                  trial.rented_disk(server, disk)):
                found = list(cells.measure(
                    trial, server, f"{workload} {count} {keys} {kind}{split}",
                    share if self.by_share() else disk, workload, of, count,
                    self.option["seconds"], self.option["warm_seconds"], keys))
            yield from found

    def plots(self, results):
        if self.by_share():
            return cells.plots(results, self.names(), SHARE_SAID)
        found = []
        for name in self.names():
            series = [Series(line.label, [(said_of(disk), values) for disk, values in line.points],
                             line.engine) for line in show.lines(results, f"tps {name}")]
            if series:
                found.append(Plot(name, f"{name}: transactions a second", "bars", "disk", "1/s",
                                  series, log_y=True))
        return found

    def tables(self, results):
        results = best(results, self.names(), len(self.splits()))
        if self.by_share():
            return [cells.table(results, "With less memory", self.names(), SHARE_SAID)]
        others = [engine for engine in results.engines if engine != INNODB]
        disks = self.numbers("disks")
        rows = [[Cell(f"{name}, {results.label(engine)}"),
                 *(show.cell(results.ratios(engine, f"tps {name}", INNODB, disk), "ratio")
                   for disk in disks)]
                for name in self.names() for engine in others]
        return [Table("Transactions a second through InnoDB's",
                      ["workload, keys, texts, engine", *map(said_of, disks)], rows),
                cells.table(results, "Every cell", self.names(), "reads and writes a second")]

    def verdicts(self, results):
        claims, names = self.about["claims"], [f"tps {name}" for name in self.names()]
        return [judge.within(claims[str(disk)], "Cheetah by InnoDB, geometric mean",
                             results.mean_of_cells(CHEETAH, names, INNODB, only=disk), low=1)
                for disk in (() if self.by_share() else DISKS)]


def said_of(disk: float) -> str:
    return DISKS.get(int(disk), f"{disk:,.0f} a second")


def divided(cache_bytes: float, part: float) -> tuple:
    """Returns the bytes of cache and page cache; with a part, their sum stays the same."""
    cache = max(int(cache_bytes) >> 20, POOL_BYTES_MIN >> 20) << 20
    if part is None:
        return cache, PAGE_CACHE_BYTES
    total = cache + PAGE_CACHE_BYTES
    return int((1 - part) * total) >> 20 << 20, int(part * total)


def best(results, names: list, splits_count: int):
    """Returns the values of each cell's best division of the memory."""
    if splits_count == 1:
        return results
    dropped = set()
    for engine in results.engines:
        for first in range(0, len(names), splits_count):
            found = {}
            for name in names[first:first + splits_count]:
                for share, values in results.curve(engine, f"tps {name}"):
                    found.setdefault(share, {})[name] = median(values)
            dropped |= {(engine, name, share) for share, each in found.items() for name in each
                        if name != max(each, key=each.get)}
    return results.without(lambda engine, measure, at: (
        (engine, measure.partition(" ")[2], at) in dropped))
