"""Tests of `make bench`: tiny sizes of each set, the arguments, figures from cells and ratios."""

import functools
import os
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import made
import pytest
from cheetah_lab import bench, cells, engines, judge, room
from cheetah_lab.model import OPEN, TURN, Measure, Scale
from cheetah_lab.results import Section
from cheetah_tools import cgroup, device, sysbench
from cheetah_tools.say import Failure

MIB = 1 << 20
# Set -> the options that make it small, and the first words of measures that each trial must have.
TINY = {
    "oltp": ({"rows": 4000, "seconds": 1, "workloads": "oltp_read_write,oltp_point_select",
              "connections": "1,4"}, ["tps", "p99", "cpu"]),
    "relations": ({"rows": 4000, "seconds": 1, "connections": "4"}, ["tps", "p99", "cpu"]),
    "memory": ({"rows": 4000, "seconds": 1, "workloads": "oltp_update_index", "connections": "2",
                "shares": "0.5,0.2"}, ["tps", "cpu", "written", "disk"]),
    "inserts": ({"seconds": 1, "cache": 8}, ["rows", "p99", "longest", "cpu", "written", "disk"]),
    "guids": ({"kinds": "guid,unique,plain"}, ["seconds", "bytes"]),
    "indexes": ({"rows": 500}, ["clock", "processor"]),
    "formats": ({"data": "sysbench", "sysbench_rows": 500},
                ["bytes", "load_data", "add_index", "multi_row", "dump", "one_row"]),
    "sysbench": ({"sysbench_rows": 500}, ["bytes", "dump", "scan", "point"]),
    "binlog": ({"rows": 4000, "seconds": 1, "connections": "1"}, ["tps", "p99", "cpu"]),
    "recovery": ({"log_gigabytes": 4 / 1024, "update_rows": 3000}, ["restart", "KILL:", "kill"]),
    "fulltext": ({"text_bytes": 300_000}, ["add", "bytes", "load", "small", "search", "answers"]),
}


def prepared(name: str, **options):
    chosen = bench.SETS[name]
    experiment = made.experiment(chosen.experiment)
    experiment.choose({**chosen.options, **options})
    return experiment


@pytest.mark.parametrize("engine", ["innodb-dynamic", "cheetah"])
@pytest.mark.parametrize("name", list(TINY))
def test_each_set_measures(tmp_path, name, engine):
    options, wanted = TINY[name]
    experiment = prepared(name, **options)
    _, values = made.tiny_of(experiment, tmp_path, engine)
    there = {value.measure.split()[0] for value in values}
    assert set(wanted) <= there, there
    assert all(value.value > 0 for value in values
               if value.measure.split()[0] in ("tps", "rows", "clock", "seconds", "add",
                                               "restart", "point", "scan", "dump", "bytes"))
    found = made.results({engine: {(v.measure, v.at): [v.value, v.value] for v in values}})
    for table in experiment.tables(found):
        assert table.rows and all(len(row) == len(table.head) for row in table.rows)
    assert experiment.verdicts(found) is not None and experiment.plots(found) is not None


def test_every_set_is_of_the_registry():
    for name, chosen in bench.SETS.items():
        assert set(chosen.options) <= set(made.experiment(chosen.experiment).options), name
        assert set(chosen.engines) <= set(engines.ALL)


def test_shares_and_disks_are_not_both_the_places_of_cells():
    assert prepared("memory").by_share() and not prepared("disks").by_share()
    with pytest.raises(Failure, match="not both"):
        prepared("memory", disks="0,200").by_share()


def test_words_of_the_command():
    choice = bench.choose(["--sets", "memory", "--best-split", "--rows", "7"])
    assert choice.given == {"rows": 7, "best_split": True}
    assert bench.asked_engines(bench.SETS["oltp"], choice) == ["cheetah", "innodb-dynamic"]
    choice = bench.choose(["--against", "other.so"])
    assert bench.asked_engines(bench.SETS["memory"], choice) == ["cheetah", "cheetah-before"]
    choice = bench.choose(["--engines", "InnoDB,MyRocks,Cheetah encrypted,cheetah-4k"])
    assert bench.asked_engines(bench.SETS["oltp"], choice) == [
        "innodb-dynamic", "myrocks", "cheetah-encrypted", "cheetah-4k"]
    with pytest.raises(Failure, match="no such engine: Oracle"):
        engines.named("Oracle")
    with pytest.raises(Failure, match="no such set: what"):
        bench.main(["--sets", "what"])
    with pytest.raises(Failure, match="--against goes with the sets"):
        bench.main(["--sets", "recovery", "--against", "x"])
    with pytest.raises(Failure, match="no such file"):
        engines.given_plugin("/nothing/there.so")


def test_cells_are_the_usual_ones_unless_told():
    assert cells.chosen("all", ["a", "b"], "workload") == ["a", "b"]
    with pytest.raises(Failure, match="no such workload: c"):
        cells.chosen("b,c", ["b"], "workload")


def test_the_time_of_all_cells_is_known_before():
    assert prepared("oltp").seconds(1.0, True) == 1_000_000 / 40_000 + 20 * (8 + 2 + 1)
    assert prepared("memory", shares="0.2").seconds(1.0, True) == 25 + 12 * (8 + 5 + 1)
    assert prepared("inserts", seconds=90).seconds(1.0, True) == 110
    assert made.experiment("row_counts").seconds(2.0, True) == 8


def test_figures_of_a_cell_are_by_query():
    found = sysbench.Result(540.07, 350.33, 982.1, queries=22613, errors=10.5, total_seconds=2.5)
    got = cells.values(found, [2.2613, 22613 * 3, 22613 * 4], 10)
    assert (got["tps"], got["p99"], round(got["cpu"], 3), got["errors"], got["read"],
            got["written"], got["disk"]) == (540.07, 350.33, 100, 10.5, 3, 4, 10)


def test_a_time_without_transactions_has_figures_too():
    got = cells.values(sysbench.Result(0.0, 0, 0, queries=0, total_seconds=2.5), [2.0, 0, 0], 0)
    assert (got["tps"], got["p99"]) == (0.4, 2500.0)


@pytest.mark.parametrize("dead", [False, True])
def test_a_cell_that_fails_is_told_while_the_server_lives(monkeypatch, dead):
    monkeypatch.setattr(cells.sysbench, "run", Mock(side_effect=Failure("it hangs")))
    trial = made.nothing()
    server = SimpleNamespace(data=Path("nowhere"), died=lambda: dead, spent=lambda: (0, 0, 0))
    going = functools.partial(list, cells.measure(trial, server, "w", 1, "w", sysbench.Tables(1), 1,
                                                  1, 0))
    if dead:
        with pytest.raises(Failure):
            going()
    else:
        assert going() == [TURN] and "not measured: w, 1 connections" in trial.remarks[0]


def test_the_interval_is_that_of_student():
    middle, low, high = judge.interval([0.5, 2.0])
    assert (middle, low * high) == pytest.approx((1.0, 1.0))
    # One degree of freedom; the standard error of the mean of the logarithms is log 2.
    assert high == pytest.approx(2.0 ** 6.31375, abs=0.01)
    assert judge.interval([1.5, 1.5, 1.5])[1:] == judge.interval([1.5, 1.5])[1:]
    assert judge.interval([3.0])[1:] == (None, None)


def test_each_split_of_a_share_is_the_same_memory_in_all():
    module = made.module("rented_disks")
    divided, page_cache = module.divided, module.PAGE_CACHE_BYTES
    assert divided(54 * MIB, None) == (54 * MIB, page_cache)
    splits = list(prepared("memory", best_split=True).splits().values())
    assert len(splits) == 3
    for part in splits:
        cache, beside = divided(54 * MIB, part)
        assert 0 <= 54 * MIB + page_cache - cache - beside < MIB + 1 and cache >= 8 * MIB


def test_an_engine_is_reported_with_the_split_in_which_it_did_most():
    experiment = prepared("memory", best_split=True, workloads="oltp_point_select",
                          connections="16")
    one, other, third = (f"tps {name}" for name in experiment.names())
    found = made.results({"cheetah": {(one, 0.2): [10, 30, 20], (other, 0.2): [19, 90, 1]},
                          "myrocks": {(one, 0.2): [7], (other, 0.2): [8], (third, 0.2): [6]}})
    best = made.module("rented_disks").best(found, experiment.names(), 3)
    assert [(engine, measure) for engine, measure, _, _ in best.all()] == [
        ("cheetah", one), ("myrocks", other)]


def test_costs_of_rows_are_by_row():
    module = made.module("growing_indexes")
    costs = {value.measure: value.value for value in module.costs(
        module.VARIANTS[0], [0.010] * 9 + [0.050], [1e-6, 2.0, 3.0], 40)}
    assert costs == {"p99": 50, "longest": 50, "cpu": 1, "read": 2, "written": 3, "disk": 40}


@pytest.mark.parametrize("values, builds, told", [
    ([2.0, 2.1], False, "worse by more than 5%, interval and all: time: "),
    ([1.03, 1.03], True, "worse by more than 2%: time, "),
    ([1.0, 1.0], True, "worse by more than 2%: no geometric mean")])
def test_what_is_worse_is_told(capsys, values, builds, told):
    class One(made.Experiment):
        measures = [Measure("time", "time", "s", "less")]
    found = made.results({"cheetah": {"time": values}, "innodb-dynamic": {"time": [1.0, 1.0]}})
    bench.compare(Section(One("one", {}), found, {}, {}, []), "cheetah", "innodb-dynamic", builds)
    assert told in capsys.readouterr().out


def test_a_disk_is_limited_where_it_can_be(tmp_path):
    why = cgroup.no_rented_disk(tmp_path)
    if why:
        pytest.skip(why)
    group = cgroup.make(256 << 20)
    (group.folder / "cgroup.procs").write_text(str(os.getpid()))
    try:
        with cgroup.rented_disk(os.getpid(), group.folder, tmp_path, 100):
            limited = device.price(tmp_path)
    finally:
        for folder in group.folder.parent.glob("cgroup.procs"):
            folder.write_text(str(os.getpid()))
        group.remove()
    assert 0 < limited["reads_8"] < 250 and limited["read_cpu_us"] > 0
    assert not list(tmp_path.iterdir())


def test_rented_disks_are_measured(tmp_path):
    experiment = made.experiment("rented_disks")
    experiment.choose({"rows": 4000, "seconds": 1, "workloads": "oltp_point_select",
                       "disks": "0,200", "texts": "real"})
    if experiment.skip():
        pytest.skip(experiment.skip())
    _, values = made.tiny_of(experiment, tmp_path, "cheetah")
    assert {(value.measure, value.at) for value in values if value.measure.startswith("tps")} == {
        (f"tps oltp_point_select 16 {keys} real", at)
        for keys in ("uniform", "zipfian") for at in (0.0, 200.0)}
    assert room.needed([experiment], Scale()) > 0


def test_claims_of_disks_follow_the_values():
    names = made.experiment("rented_disks").names()
    def engine(*rates):
        return {(f"tps {name}", at): [rate] * 3 for name in names
                for at, rate in zip((0, 3000, 200), rates)}
    values = {"innodb-dynamic": engine(10, 10, 10), "cheetah": engine(8, 10, 20)}
    assert made.decided(values, "rented_disks") == ["does not hold", "holds", "holds"]
    assert set(made.decided({}, "rented_disks")) == {OPEN}
