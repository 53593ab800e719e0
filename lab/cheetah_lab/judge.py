"""Derives verdicts from the ratios of all repeats, with 90 % confidence intervals.

A claim holds if the interval is within the wanted bounds, and does not hold if the interval is
outside them. Otherwise it is not decided. One repeat has no interval, so it decides nothing."""

import math
import statistics

from .model import FAILS, HOLDS, OPEN, Verdict

# The limit for "no longer", "no slower", "no worse" and "no impact" on a time. A time up to 5 %
# longer counts as equal, because an engine differs from itself by about that much. Sizes do not
# vary like this, so "no larger" means a limit of 1.
NO_LONGER = 1.05
CERTAIN = 0.90   # the confidence level of intervals


def within(claim: str, what: str, ratios: list, low: float = 0, high: float = math.inf) -> Verdict:
    """Returns the verdict on whether the value of `what`, of these `ratios`, is within bounds."""
    if not ratios:
        return Verdict(claim, OPEN, f"{what}: not measured")
    if len(ratios) == 1:
        return Verdict(claim, OPEN, f"{what}: {number(*ratios)}: there is no spread to judge by")
    # without logarithms there is no interval, so all repeats must agree
    if min(ratios) <= 0:
        inside = [low <= ratio <= high for ratio in ratios]
        outcome = HOLDS if all(inside) else OPEN if any(inside) else FAILS
        told = f"{number(min(ratios))} to {number(max(ratios))}"
    else:
        middle, least, most = interval(ratios)
        outcome = (HOLDS if low <= least and most <= high
                   else FAILS if most < low or least > high else OPEN)
        told = f"{number(middle)} (90 % interval {number(least)} to {number(most)})"
    return Verdict(claim, outcome, f"{what}: {told}, wanted {bounds(low, high)}")


def each(claims: dict, rows: list) -> list:
    """Returns a verdict of `within` for each row: the key of its claim, and the arguments."""
    return [within(claims[key], *row) for key, *row in rows]


def at_most(claim: str, what: str, values: list, limit: float) -> Verdict:
    """Returns the verdict on whether values (errors, pages) are at most `limit`, in all repeats."""
    if not values:
        return Verdict(claim, OPEN, f"{what}: not measured")
    why = f"{what}: {number(min(values))} to {number(max(values))}, wanted {bounds(0, limit)}"
    if len(values) == 1:
        return Verdict(claim, OPEN, f"{why}: a single repeat decides nothing")
    return Verdict(claim, (HOLDS if max(values) <= limit
                           else FAILS if min(values) > limit else OPEN), why)


def all_are(claim: str, what: str, values: list, wanted: float) -> Verdict:
    """Returns the verdict on whether every value equals `wanted`; one other value refutes it."""
    if not values:
        return Verdict(claim, OPEN, f"{what}: not measured")
    why = f"{what}: {number(min(values))} to {number(max(values))}, wanted {number(wanted)} always"
    if any(value != wanted for value in values):
        return Verdict(claim, FAILS, f"{why}; {sum(value != wanted for value in values)} "
                                     f"of {len(values)} are not")
    return Verdict(claim, HOLDS if len(values) > 1 else OPEN, why)


def bounds(low: float, high: float) -> str:
    if low > 0 and high < math.inf:
        return f"{number(low)} to {number(high)}"
    return f"at least {number(low)}" if low > 0 else f"at most {number(high)}"


def number(value: float) -> str:
    """Formats a number with three significant digits, or as a whole number from 100 on."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def interval(values: list) -> tuple:
    """Returns the geometric mean and the ends of its 90 % interval (None for a single value)."""
    logs = [math.log(value) for value in values]
    middle = math.exp(statistics.mean(logs))   # exact if all values are equal
    if len(values) == 1:
        return middle, None, None
    from scipy import stats   # the import takes a second
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    factor = math.exp(stats.t.ppf((1 + CERTAIN) / 2, len(logs) - 1) * error)
    return middle, middle / factor, middle * factor
