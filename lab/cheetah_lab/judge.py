"""From ratios of all repeats to a verdict: is the whole 90 % interval where the claim wants it?

A claim holds when the interval lies within the bounds, it does not when the interval lies outside,
and otherwise nothing is decided. One repeat has no interval, so it decides nothing.
"""

import math
import statistics

from .model import FAILS, HOLDS, OPEN, Verdict

# "No longer", "no slower", "no worse", "no impact" on a time: up to a twentieth more is the same,
# for an engine differs by about that from itself. Sizes do not vary so: "no larger" means 1.
NO_LONGER = 1.05
CERTAIN = 0.90   # of intervals


def within(claim: str, what: str, ratios: list, low: float = 0, high: float = math.inf) -> Verdict:
    """Whether what `ratios` estimate lies between `low` and `high`. `what`: the ratio's name in the
    reason."""
    if not ratios:
        return Verdict(claim, OPEN, f"{what}: not measured")
    # no logarithms, so no interval: all repeats have to agree
    if len(ratios) > 1 and min(ratios) <= 0:
        inside = [low <= ratio <= high for ratio in ratios]
        return Verdict(claim, HOLDS if all(inside) else OPEN if any(inside) else FAILS,
                       f"{what}: {number(min(ratios))} to {number(max(ratios))}, "
                       f"wanted {bounds(low, high)}")
    if len(ratios) == 1:
        return Verdict(claim, OPEN, f"{what}: {', '.join(number(ratio) for ratio in ratios)}: "
                                    "there is no spread to judge by")
    middle, least, most = interval(ratios)
    outcome = (HOLDS if low <= least and most <= high
               else FAILS if most < low or least > high else OPEN)
    return Verdict(claim, outcome,
                   f"{what}: {number(middle)} (90 % interval {number(least)} to {number(most)}), "
                   f"wanted {bounds(low, high)}")


def at_most(claim: str, what: str, values: list, limit: float) -> Verdict:
    """Whether values that may be zero (errors, pages) stay below a limit: decided by two repeats or
    more that all agree."""
    if not values:
        return Verdict(claim, OPEN, f"{what}: not measured")
    why = f"{what}: {number(min(values))} to {number(max(values))}, wanted {bounds(0, limit)}"
    if len(values) == 1:
        return Verdict(claim, OPEN, f"{why}: a single repeat decides nothing")
    return Verdict(claim, (HOLDS if max(values) <= limit
                           else FAILS if min(values) > limit else OPEN), why)


def all_are(claim: str, what: str, values: list, wanted: float) -> Verdict:
    """Whether every value is just the wanted one: a single one that is not decides."""
    if not values:
        return Verdict(claim, OPEN, f"{what}: not measured")
    why = f"{what}: {number(min(values))} to {number(max(values))}, wanted {number(wanted)} always"
    if any(value != wanted for value in values):
        return Verdict(claim, FAILS, f"{why}; {sum(value != wanted for value in values)} "
                                     f"of {len(values)} are not")
    return Verdict(claim, HOLDS if len(values) > 1 else OPEN, why)


def bounds(low: float, high: float) -> str:
    """How the wanted range is said."""
    if low > 0 and high < math.inf:
        return f"{number(low)} to {number(high)}"
    return f"at least {number(low)}" if low > 0 else f"at most {number(high)}"


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def interval(values: list) -> tuple:
    """The geometric mean, and the ends of its 90 % interval (None of a single value)."""
    logs = [math.log(value) for value in values]
    middle = math.exp(statistics.mean(logs))   # exact: equal values have their own mean
    if len(values) == 1:
        return middle, None, None
    from scipy import stats   # takes a second to be loaded
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    factor = math.exp(stats.t.ppf((1 + CERTAIN) / 2, len(logs) - 1) * error)
    return middle, middle / factor, middle * factor
