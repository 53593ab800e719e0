"""Formats values. A measured value is shown with its spread or not at all."""

import math
import statistics

from .model import ABSENT

ONE_REPEAT = "one repeat"
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0, "B"))
TIMES = ((1, "s"), (1e-3, "ms"), (0, "µs"))
# By unit: the size of one unit in the base of its names, and the names from the largest on.
SCALED = {"bytes": (1, BYTES), "s": (1, TIMES), "ms": (1e-3, TIMES), "us": (1e-6, TIMES)}
SUFFIXES = {"1/s": "/s", "rows": "", "pages": "", "ratio": "", "%": " %", "": ""}
UNITS = (*SCALED, *SUFFIXES)


def spread(values, unit: str) -> str:
    """Returns the median and range of all repeats: "1.20 s (1.10..1.40)"."""
    if not values:
        return ABSENT
    if len(values) == 1:
        return ONE_REPEAT
    return around(statistics.median(values), values, unit)


def around(middle: float, values, unit: str) -> str:
    """Returns a mean of any kind and the range of all values."""
    if min(values) == max(values):
        return f"{number(middle, unit)} (±0)"
    least, most = (digits(value, unit, like=middle) for value in (min(values), max(values)))
    return f"{number(middle, unit)} ({least}..{most})"


def number(value, unit: str) -> str:
    """Returns a number that has no repeats, such as a document's figure."""
    return ABSENT if value is None else digits(value, unit) + suffix(value, unit)


def digits(value: float, unit: str, like: float = None) -> str:
    """Returns the number without its unit, in the unit and decimal places of `like` or itself."""
    like = value if like is None else like
    by = divisor(like, unit)
    value, size = value / by, abs(like / by)
    if value == 0:
        return "0"
    return f"{value:,.{places(size, unit)}f}"


def places(size: float, unit: str) -> int:
    """Returns the decimal places for three significant digits; counts have 0, ratios mostly 2."""
    if size == 0 or size >= 100 or (unit in ("rows", "pages") and size >= 10):
        return 0
    if unit == "ratio" and size >= 0.1:
        return 2
    return max(0, 2 - math.floor(math.log10(size)))


def suffix(value: float, unit: str) -> str:
    """Returns the unit with the separator before it."""
    if unit in SCALED:
        base, names = SCALED[unit]
        return " " + next(name for least, name in names if abs(value) * base >= least)
    return SUFFIXES.get(unit, f" {unit}")


def divisor(value: float, unit: str) -> float:
    """Returns the divisor that converts a number to the unit that `suffix` names."""
    if unit not in SCALED:
        return 1.0
    base, names = SCALED[unit]
    least = next(least for least, _ in names if abs(value) * base >= least)
    return (least or (1 if unit == "bytes" else 1e-6)) / base
