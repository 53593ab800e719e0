"""Ratios of two engines' values, repeat by repeat, and their geometric means.

Both values of a ratio come from the same repeat, so what disturbs the machine disturbs both.
Means come with Student's 90 % interval of their logarithm.
"""

import math
import statistics
from statistics import geometric_mean

from .say import table

SAME = 0.02    # two builds are alike when no geometric mean is worse by more than this
LEAST = 1e-6   # stands for zero, which has no logarithm
CERTAIN = 0.90   # of intervals


def paired(ours: list, theirs: list) -> list:
    """Our value through theirs, repeat by repeat."""
    return [max(our, LEAST) / max(their, LEAST) for our, their in zip(ours, theirs)]


def interval(values: list) -> tuple:
    """The geometric mean, and the ends of its 90 % interval (None of a single value)."""
    logs = [math.log(value) for value in values]
    middle = math.exp(statistics.mean(logs))   # exact: equal values have their own mean
    if len(values) == 1:
        return middle, None, None
    from scipy import stats   # takes a second to be loaded; only the environment var/venv has it
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    factor = math.exp(stats.t.ppf((1 + CERTAIN) / 2, len(logs) - 1) * error)
    return middle, middle / factor, middle * factor


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
