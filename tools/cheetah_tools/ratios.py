"""Ratios of two engines' values, repeat by repeat, and their geometric means.

Both values of a ratio come from the same repeat, so what disturbs the machine disturbs both.
Means come with Student's 90 % interval of their logarithm.
"""

import math

from .say import table

SAME = 0.02    # two builds are alike when no geometric mean is worse by more than this
LEAST = 1e-6   # stands for zero, which has no logarithm
# Student's t for a two-sided interval of 90 %, by degrees of freedom.
STUDENT = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833]


def paired(ours: list, theirs: list) -> list:
    """Our value through theirs, repeat by repeat."""
    return [max(our, LEAST) / max(their, LEAST) for our, their in zip(ours, theirs)]


def geometric_mean(values) -> float:
    """The geometric mean of values above zero."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def interval(values: list) -> tuple:
    """The geometric mean, and the ends of its 90 % interval (None of a single value)."""
    logs = [math.log(value) for value in values]
    middle = sum(logs) / len(logs)
    if len(logs) == 1:
        return math.exp(middle), None, None
    deviation = math.sqrt(sum((log - middle) ** 2 for log in logs) / (len(logs) - 1))
    half = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * deviation / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def told(found: tuple, digits: int = 2) -> str:
    """What `interval` found, in words."""
    middle, low, high = found
    if low is None:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"


def mean_over(cells: list) -> tuple:
    """The geometric mean over cells, each a list of ratios by repeat.

    The interval is that of the repeats' means. There is none when cells lack repeats.
    """
    if len(set(map(len, cells))) == 1:
        return interval([geometric_mean(repeat) for repeat in zip(*cells)])
    return geometric_mean([geometric_mean(cell) for cell in cells]), None, None


def report_means(title: str, groups: dict, floors: set, judged: bool) -> None:
    """Print geometric means; with `judged`, also those that are worse by more than `SAME`.

    `groups`: name -> measure -> cells. `floors`: the measures of which more is better.
    """
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
