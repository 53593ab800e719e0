"""Runs applications on an InnoDB server and on a Cheetah server and compares the outcomes."""

import pytest
import sides
from cheetah_tools.engines import CHEETAH, INNODB


@pytest.fixture
def beside(new_server, request):
    """`beside(what, work)` runs `work(side)` on InnoDB's server, then on Cheetah's, and fails
    unless both return equal dicts. It returns both sides and adds a line to the final report."""
    options = {}
    for mark in request.node.iter_markers("options"):
        options |= mark.args[0]

    def run(what: str, work, more=lambda _inno, _cheetah: ""):
        pair, outcomes = [], []
        for engine in (INNODB, CHEETAH):
            side = sides.Side(engine, new_server, options)
            pair.append(side)
            outcomes.append(work(side))
            print(engine.label, {name: round(spent, 1) for name, spent in side.seconds.items()})
        sides.compared(what, *outcomes)
        times = [f"{name} {pair[1].seconds[name]:.1f} s (InnoDB {pair[0].seconds[name]:.1f})"
                 for name in pair[0].seconds]
        parts = [f"{what}: as with InnoDB", *pair[1].notes, *times, more(*pair)]
        line = "; ".join(part for part in parts if part)
        sides.lines.append(line)
        print(line)
        return pair
    return run


def pytest_terminal_summary(terminalreporter):
    """Prints a line for each application that ran on both servers. Pytest itself reports skips."""
    if sides.lines:
        terminalreporter.section("applications")
    for line in sides.lines:
        terminalreporter.write_line(line)
