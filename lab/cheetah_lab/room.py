"""Checks before a run that the disk has enough space."""

import shutil
from pathlib import Path

from cheetah_tools.paths import show
from cheetah_tools.say import Failure

from .model import Scale
from .numbers import number

# The space for an empty server with its logs (InnoDB's log has 256 MiB, Cheetah's segments grow and
# shrink), and the space that the machine itself keeps.
SERVER_BYTES = 700 << 20
KEEP_BYTES = 256 << 20
SCALES = (100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


def check(experiments: list, scale: Scale, place: Path) -> None:
    """Raises Failure unless `place` has enough free bytes, with the scale that would fit."""
    free = shutil.disk_usage(place).free - KEEP_BYTES
    if needed(experiments, scale) <= free:
        return
    smaller = (Scale(factor, scale.full, scale.repeats) for factor in SCALES
               if factor < scale.factor)
    fitting = next((less.factor for less in smaller if needed(experiments, less) <= free), None)
    largest = max(experiments, key=lambda experiment: experiment.room_bytes(scale))
    hint = f"SCALE={fitting:g} would fit" if fitting else "no smaller scale would fit"
    raise Failure(f"no room: at scale {scale.factor:g} the run needs "
                  f"{number(needed(experiments, scale), 'bytes')} (most for {largest.name}), but "
                  f"{show(place)} has {number(max(free, 0), 'bytes')} beside the "
                  f"{number(KEEP_BYTES, 'bytes')} that stay free: {hint}; or make room")


def needed(experiments: list, scale: Scale) -> int:
    """Returns the bytes of the largest trial and of the inputs of all experiments, which remain."""
    return (SERVER_BYTES
            + max((experiment.room_bytes(scale) for experiment in experiments), default=0)
            + sum(experiment.input_bytes(scale) for experiment in experiments))
