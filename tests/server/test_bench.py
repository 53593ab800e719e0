"""The parts of `make bench` that need servers, at tiny sizes: do they still measure?"""

import pytest
from cheetah_tools import bench, comments, formatdata, formats, indexes, oltp, recovery, relations
from cheetah_tools.engines import CHEETAH, INNODB, MYROCKS


@pytest.mark.parametrize("kind, cells", [
    (oltp.SYSBENCH, [("oltp_read_write", 4), ("oltp_point_select", 1)]),
    (relations.KIND, [("relations", 4)])], ids=["sysbench", "relations"])
def test_throughput_is_measured(kind, cells):
    """Both engines in each cell; the verdicts can be had."""
    choice = bench.choose(["--repeats", "1", "--seconds", "1", "--rows", "4000"])
    results, failures = oltp.figures(cells, choice, kind)
    assert not failures, f"not measured: {failures}"
    for cell in cells:
        for engine in (CHEETAH, INNODB):
            found = results[cell][engine.label]
            assert len(found) == 1 and found[0].tps > 0 and found[0].cpu_us > 0
    for measure in oltp.MEASURES:
        oltp.verdict(measure, [oltp.cell_ratio(results[cell], measure.field) for cell in cells])


def test_restarts_and_rollbacks_are_measured():
    """4 MB of log, and 3,000 rows that the crash and KILL roll back."""
    for engine in (CHEETAH, INNODB):
        assert min(recovery.restart(engine, 4 << 20)) > 0, "nothing was measured"
        for found in recovery.rollback(engine, 3000):
            assert set(recovery.STATEMENTS) <= set(found)


def test_formats_are_measured():
    """Bytes, and the times of every form, of three engines; the verdicts can be had."""
    folder, engines = formatdata.prepare("sysbench", sysbench_rows=500), [INNODB, MYROCKS, CHEETAH]
    results = {}
    formats.add(results, "sysbench", "bytes", formats.bytes_at_rest(folder, "sysbench", engines, 0))
    for form in formats.FORMS:
        for measure, found in formats.load_times(folder, "sysbench", form, engines, True).items():
            formats.add(results, "sysbench", measure, found)
    assert sorted(results["sysbench"]) == sorted(formats.MEASURES)
    assert all(len(found) == len(engines) and min(map(min, found.values())) > 0
               for found in results["sysbench"].values()), f"{results}"
    assert len(formats.verdicts("sysbench", results["sysbench"])) == 5, "a verdict is missing"


def test_indexes_are_measured():
    """Every change, on both engines."""
    found = indexes.measure(500, 1, rest_seconds=0)
    assert len(found) == len(indexes.CHANGES) * len(indexes.ENGINES)
    assert all(len(times) == 1 and times[0][0] > 0 for times in found.values()), f"{found}"


def test_comments_are_measured():
    """A part on each engine; each comment has two transactions, and so two syncs at least."""
    found = comments.measure(1, comments.PART)
    assert sorted(found) == sorted(engine.label for engine in (CHEETAH, INNODB))
    for label, measured in found.items():
        assert min(measured["seconds"]) > 0 and min(measured["syncs"]) >= 2, f"{label}: {measured}"
