"""Applications run on two servers beside each other; a line for each at the end."""

import pytest
import sides
from cheetah_tools.engines import CHEETAH, INNODB


@pytest.fixture
def beside(new_server, request):
    """`beside(what, work)`: does `work(side)` with InnoDB's server, then with Cheetah's, and fails
    unless both give an equal dict. The sides are returned; a line tells of it at the end."""
    options = {}
    for mark in request.node.iter_markers("options"):
        options |= mark.args[0]

    def run(what: str, work, more=lambda _inno, _cheetah: ""):
        pair = []
        outcomes = []
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
    """A line for each application; for those without one, pytest's own lines say why."""
    if sides.lines:
        terminalreporter.section("applications")
    for line in sides.lines:
        terminalreporter.write_line(line)
