"""The values of one experiment, in the form that experiments and the report use.

Values of engines are compared repeat by repeat. Within a repeat the engines take turns, so a
disturbance of the machine affects all of them, and the ratio of two values of the same repeat is
more reliable than the ratio of two medians."""

import statistics
from dataclasses import dataclass, field


class Found:
    """The values of one experiment. `trials`: dicts with engine, repeat and values."""

    def __init__(self, trials: list, engines: dict):
        """`engines`: key -> Engine, in display order."""
        self.known = engines
        self._values = {}
        for trial in trials:
            for measure, value, at in trial["values"]:
                self._values.setdefault((trial["engine"], measure, at), {})[trial["repeat"]] = value
        self.engines = [key for key in engines if any(found == key for found, _, _ in self._values)]

    def without(self, dropped):
        """Returns a copy without the values for which `dropped(engine, measure, at)` is true."""
        found = Found([], self.known)
        found._values = {place: values for place, values in self._values.items()
                         if not dropped(*place)}
        found.engines = self.engines
        return found

    def label(self, engine: str) -> str:
        return self.known[engine].label

    def family(self, engine: str) -> str:
        return self.known[engine].family

    def values(self, engine: str, measure: str, at: float = None) -> list:
        """Returns the values of all repeats in order; empty if not measured."""
        return list(self._by_repeat(engine, measure, at).values())

    def curve(self, engine: str, measure: str) -> list:
        """Returns (x, values of all repeats) of a measure that is a curve, by ascending x."""
        places = sorted({at for found, name, at in self._values
                         if found == engine and name == measure and at is not None})
        return [(at, self.values(engine, measure, at)) for at in places]

    def all(self) -> list:
        """Returns (engine, measure, x, values of all repeats) for everything."""
        return [(engine, measure, at, self.values(engine, measure, at))
                for engine, measure, at in self._values]

    def ratios(self, engine: str, measure: str, base: str, at: float = None,
               base_measure: str = "") -> list:
        above, below = (self._by_repeat(engine, measure, at),
                        self._by_repeat(base, base_measure or measure, at))
        return [above[repeat] / below[repeat] for repeat in above if below.get(repeat)]

    def together(self, *places) -> list:
        """Returns, for each repeat that has all `places` (engine, measure, x), their values."""
        found = [self._by_repeat(*place) for place in places]
        return [tuple(values[repeat] for values in found) for repeat in found[0]
                if all(repeat in values for values in found)]

    def by_smallest(self, engine: str, measure: str, others: list) -> list:
        """Returns the value by the smallest value of `others`, for each repeat that has all."""
        above, below = (self._by_repeat(engine, measure, None),
                        [self._by_repeat(other, measure, None) for other in others])
        return [value / min(found[repeat] for found in below) for repeat, value in above.items()
                if all(found.get(repeat) for found in below)]

    def median_ratios(self, engine: str, measure: str, base: str, places: list) -> list:
        """Returns, for a measure that is a curve, the median of the ratios at these places, for
        each repeat in which both engines have all of them."""
        made = []
        for values in (self.together(*((key, measure, at)
                                       for at in places for key in (engine, base)))
                       if places else ()):
            ratios = [value / below for value, below in zip(values[::2], values[1::2]) if below]
            made += [statistics.median(ratios)] if ratios else []
        return made

    def mean_of_cells(self, engine: str, measures: list, base: str, only: float = None) -> list:
        """Returns, for each repeat, the geometric mean of the ratios over all places (or `only`
        one) of curves. Places with fewer repeats or a ratio that is not positive are left out."""
        cells = [ratios for measure in measures for ratios in
                 (self.ratios(engine, measure, base, at) for at, _ in self.curve(engine, measure)
                  if only in (None, at))
                 if ratios and min(ratios) > 0]
        most = max(map(len, cells), default=0)
        return [statistics.geometric_mean(repeat)
                for repeat in zip(*(cell for cell in cells if len(cell) == most))]

    def _by_repeat(self, engine: str, measure: str, at: float) -> dict:
        return dict(sorted(self._values.get((engine, measure, at), {}).items()))


@dataclass(frozen=True)
class Section:
    """One experiment of a run, as the report shows it. `problems`: engine -> why values are
    missing; `commands`: engine -> what a person would type; `trials`: the lines of trials.jsonl,
    including failed and refused ones; `remarks`: engine -> what to know about its values."""

    experiment: object
    found: Found
    problems: dict
    commands: dict
    trials: list
    remarks: dict = field(default_factory=dict)
