"""`make bench`: named sets of experiments with the user's options, and a report as text.

Each set is a run of the lab and has a page. The report has all tables, then the ratios of the first
engine to each other engine. Both values of a ratio come from the same repeat, so a disturbance of
the machine affects both. Means have a 90 % confidence interval (Student's t) of their logarithms.
"""

import argparse
import shlex
from dataclasses import dataclass, field
from statistics import geometric_mean

from cheetah_tools.paths import VAR, show
from cheetah_tools.say import Failure, note, run_main, step, table

from . import engines, experiments, machine, numbers, room, run as running, sections, store
from .engines import BEFORE, CHEETAH, INNODB
from .judge import interval
from .model import LESS, MORE, OPEN, Scale

ALL_FORMS = [INNODB, "innodb-8k", "innodb-4k", "innodb-holes", "myrocks", CHEETAH, "cheetah-4k",
             "cheetah-none"]
CELL = 0.05     # cells whose whole interval is worse by more than this are reported
SAME = 0.02     # two builds are alike if no geometric mean is worse by more than this
LEAST = 1e-6    # replaces zero, which has no logarithm


@dataclass(frozen=True)
class Set:
    """An experiment as `make bench` runs it. The first engine is compared with the others."""

    experiment: str
    engines: list
    options: dict = field(default_factory=dict)
    repeats: int = 5


SETS = {
    **{name: Set("data_sets", [CHEETAH, INNODB, "innodb-8k"],
                 {"data": name, "measures": "dump,scan,point,bytes", "sysbench_rows": 1_000_000,
                  "memory": 512}) for name in ("enwiki_text_plain", "flights_nyc13", "sysbench")},
    "oltp": Set("transactions", [CHEETAH, INNODB], {"parts": "cells"}),
    "recovery": Set("recovery", [CHEETAH, INNODB], repeats=1),
    "formats": Set("data_sets", [CHEETAH, *(key for key in ALL_FORMS if key != CHEETAH)],
                   {"measures": "bytes,load_data,add_index,multi_row,dump,one_row"}),
    "indexes": Set("fast_index_creation", [CHEETAH, INNODB], {"parts": "changes"}),
    "memory": Set("rented_disks", [CHEETAH, INNODB, "innodb-8k", "myrocks"],
                  {"rows": 1_000_000, "seconds": 8, "warm_seconds": 5, "disks": "0",
                   "keys": "uniform", "texts": "digits", "connections": "1,16,64,256",
                   "shares": "0.5,0.2,0.05"}),
    "inserts": Set("growing_indexes", [CHEETAH, INNODB, "myrocks"],
                   {"seconds": 8, "cache": 128, "variants": "first"}),
    "guids": Set("primary_keys", [CHEETAH, INNODB, "myrocks"], {"kinds": "guid,unique,plain"}),
    "fulltext": Set("fulltext", [CHEETAH, INNODB]),
    "binlog": Set("transactions", [CHEETAH, INNODB],
                  {"parts": "cells", "binlog": 1, "workloads": "oltp_write_only",
                   "connections": "1,16", "rows": 100_000}),
    "relations": Set("relations", [CHEETAH, INNODB]),
    "backups": Set("backups", [CHEETAH]),
    "disks": Set("rented_disks", [CHEETAH, INNODB, "myrocks"], repeats=3),
}
USUAL = ["enwiki_text_plain", "flights_nyc13", "sysbench", "oltp", "recovery"]
# the default sets when two builds are compared
BUILDS = ["oltp", "relations", "formats", "memory", "inserts", "guids"]
OPTIONS = {
    "rows": (int, "oltp, memory, disks, backups: in all tables; relations: children; indexes: in "
                  "one"),
    "seconds": (int, "oltp, relations, memory, disks: of each cell, when warm; inserts, backups: "
                     "of each run"),
    "workloads": (str, "oltp, relations, memory, disks"),
    "connections": (str, "oltp, relations, memory, disks"), "cache": (int, "inserts: MiB"),
    "shares": (str, "memory, disks: of InnoDB's bytes as cache"),
    "disks": (str, "disks: reads, and writes, a second; 0: as many as can be"),
    "keys": (str, "disks: uniform, zipfian"), "texts": (str, "disks: digits, real"),
    "log_gigabytes": (float, "recovery: log to replay"),
    "update_rows": (int, "recovery: rows to roll back"),
    "rest": (float, "data sets: seconds of rest before bytes on disk are looked at"),
    "data": (str, "formats: sets of data"), "measures": (str, "formats: of what is measured"),
}


def main(words: list) -> int:
    """Runs the command; returns 1 if something could not be measured."""
    choice = choose(words)
    names = (choice.sets or ",".join(BUILDS if choice.against else USUAL)).split(",")
    if unknown := [name for name in names if name not in SETS]:
        raise Failure(f"no such set: {', '.join(unknown)}; there are {', '.join(SETS)}")
    if choice.against and set(names) - set(BUILDS):
        raise Failure(f"--against goes with the sets {' and '.join(BUILDS)}, not with others")
    return max([measure(name, choice, words) for name in names])


def choose(words: list):
    parser = argparse.ArgumentParser(prog="make bench", description="measure Cheetah beside others")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--sets", help=f"of {', '.join(SETS)}; usually {', '.join(USUAL)}")
    parser.add_argument("--against", metavar="OTHER.so",
                        help=f"another build of the plugin, for {', '.join(BUILDS)}: "
                             "measured beside this one as \"Cheetah before\"")
    parser.add_argument("--best-split", action="store_const", const=True,
                        help="memory: each engine divides the same memory as it does most with it")
    parser.add_argument("--engines", default="all",
                        help="the first is compared with each other one; of "
                             + ", ".join(engine.label for engine in engines.ALL.values()))
    for name, (kind, said) in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=said)
    choice = parser.parse_args(words)
    choice.given = {name: value for name in [*OPTIONS, "best_split"]
                    if (value := getattr(choice, name)) is not None}
    return choice


def asked_engines(chosen: Set, choice) -> list:
    """Returns the keys of the engines; the first is compared with the others."""
    if choice.engines != "all":
        return engines.named(choice.engines)
    return [CHEETAH, BEFORE] if choice.against else chosen.engines


def measure(name: str, choice, words: list) -> int:
    chosen = SETS[name]
    experiment, = experiments.load([chosen.experiment])
    options = {key: value for key, value in {**chosen.options, **choice.given}.items()
               if key in experiment.options}
    experiment.choose(options)
    plugin = machine.hash_of(engines.given_plugin(choice.against)) if choice.against else ""
    keys = asked_engines(chosen, choice)
    scale = Scale(repeats=choice.repeats or chosen.repeats)
    minutes = experiment.seconds(scale.factor, True) * len(keys) * scale.repeats / 60
    step(f"{name}: {experiment.about['title']}: {len(keys)} engines, {scale.repeats} repeats: "
         f"about {minutes:.0f} minutes")
    if experiment.skip():
        print(f"skipped: {name}: {experiment.skip()}")
        return 0
    with store.alone(store.RUNS):
        room.check([experiment], scale, VAR)
        named = {"words": f"make bench ARGS={shlex.quote(shlex.join(words))}", "set": name}
        found = running.find(store.RUNS, running.describe(
            [experiment], keys, scale, {"options": options, "against": plugin}, named), "", False)
        failed = running.execute(found, [experiment], keys, scale)
        found.about["ended"] = None if failed else running.now()
        found.save()
    report(found, keys, choice.against)
    place = sections.page(found)
    print(f"raw figures: {show(found.folder / 'trials.jsonl')}"
          f"{f'; as a page: {show(place)}' if place else ''}")
    return 1 if failed else 0


def report(run: store.Run, keys: list, builds: bool) -> None:
    for section in sections.sections(run):
        for shown in section.experiment.tables(section.found):
            print(f"\n{shown.title}")
            table(shown.head, [[written(cell) for cell in row] for row in shown.rows])
        ours, *others = [key for key in keys if key in section.found.engines] or [None]
        for other in others:
            compare(section, ours, other, builds=builds and other == BEFORE)
        decided = [verdict for verdict in section.experiment.verdicts(section.found)
                   if verdict.outcome != OPEN]
        if decided and not builds:
            print()
            table(["claim", "", "why"],
                  [[verdict.claim, verdict.outcome, verdict.why] for verdict in decided])
        for why in [*section.problems.values(), *sum(section.remarks.values(), [])]:
            print(f"not as wanted: {why}" if "not measured" not in why else why)
    print(f"\n{machine.told(run.about['machine'])}")


def written(cell) -> str:
    """Returns a cell as text; a single repeat, which has no spread, is marked."""
    if cell.values is None:
        return cell.text
    return (f"{numbers.number(*cell.values, cell.unit)} (once)" if len(cell.values) == 1
            else numbers.spread(cell.values, cell.unit))


def compare(section, ours: str, other: str, builds: bool) -> None:
    """Prints the geometric means of our values divided by another engine's, by measure and overall,
    and the cells whose whole interval is worse. `builds`: both are builds of one engine."""
    groups, worse, better = {}, [], {}
    for measure in section.experiment.measures:
        kind, _, rest = measure.key.partition(" ")
        if (measure.better not in (LESS, MORE)
                or section.experiment.compared and kind not in section.experiment.compared):
            continue
        places = [at for engine, key, at, _ in section.found.all()
                  if (engine, key) == (ours, measure.key)]
        for at in places:
            both = section.found.together((ours, measure.key, at), (other, measure.key, at))
            if not both:
                continue
            better[kind] = measure.better
            ratios = [max(our, LEAST) / max(their, LEAST) for our, their in both]
            for group in (rest or measure.label, "all"):
                groups.setdefault(group, {}).setdefault(kind, []).append(ratios)
            found = interval(ratios)
            if found[1] and (found[2] < 1 - CELL if measure.better == MORE
                             else found[1] > 1 + CELL):
                worse.append(f"{measure.key}{'' if at is None else f', {at:g}'}: {told(found)}")
    if groups:
        groups["all"] = groups.pop("all")   # after the others
        title = f"{section.found.label(ours)} through {section.found.label(other)}"
        report_means(title, groups, {kind for kind, side in better.items() if side == MORE},
                     judged=builds)
        if worse:
            note(f"worse by more than {CELL:.0%}, interval and all: {'; '.join(worse)}")


def told(found: tuple, digits: int = 2) -> str:
    middle, low, high = found
    around = "" if low is None else f" ({low:.{digits}f}..{high:.{digits}f})"
    return f"{middle:.{digits}f}{around}"


def mean_over(cells: list) -> tuple:
    """Returns the geometric mean over cells, each a list of ratios by repeat, with the interval of
    the repeats' means, if all cells have equally many."""
    if len(set(map(len, cells))) == 1:
        return interval([geometric_mean(repeat) for repeat in zip(*cells)])
    return geometric_mean([geometric_mean(cell) for cell in cells]), None, None


def report_means(title: str, groups: dict, floors: set, judged: bool) -> None:
    """Prints geometric means of `groups` (name -> measure -> cells); with `judged`, also those that
    are worse by more than `SAME`. `floors`: measures of which higher values are better."""
    found = {name: {measure: mean_over(cells) for measure, cells in measures.items()}
             for name, measures in groups.items()}
    columns = list(dict.fromkeys(measure for measures in found.values() for measure in measures))
    print()
    table([f"geometric means, {title}", *columns],
          [[name, *(told(means[measure], 3) if measure in means else "-" for measure in columns)]
           for name, means in found.items()])
    if not judged:
        return
    worse = [f"{name}, {measure}: {mean[0]:.3f}" for name, means in found.items()
             for measure, mean in means.items()
             if (1 / mean[0] if measure in floors else mean[0]) > 1 + SAME]
    print(f"\nworse by more than {SAME:.0%}: {'; '.join(worse) or 'no geometric mean'}")


if __name__ == "__main__":
    run_main(main)
