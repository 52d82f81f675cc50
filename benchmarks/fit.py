"""How does a cost grow? The exponent of a measured curve.

A cost that grows like its size has the exponent 1, one that does not care has 0. It is the slope of a
straight line through the upper points of the curve, both axes logarithmic: at the lower ones what is
fixed (the way to a thread and back, a commit) hides what grows. Least squares, nothing else.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

UPPER = 4
"""How many of a curve's largest sizes the line goes through."""


class Fit(NamedTuple):
    """What each round gives; the exponent is their median."""

    rounds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The result."""
        return statistics.median(self.rounds)

    @property
    def low(self) -> float:
        """The lowest that a round gave."""
        return min(self.rounds)

    @property
    def high(self) -> float:
        """The highest that a round gave."""
        return max(self.rounds)


def slope(curve: Mapping[float, float]) -> float:
    """Return the exponent of the upper points of a curve from sizes to costs."""
    sizes = sorted(curve)[-UPPER:]
    if len(sizes) < 2:
        raise ValueError("a slope needs two sizes at least")
    logs = [math.log(size) for size in sizes], [math.log(curve[size]) for size in sizes]
    return statistics.linear_regression(*logs).slope


def fit(curve: Mapping[float, Sequence[float]]) -> Fit:
    """Return the exponents of a curve from sizes to the costs of each round.

    Every size must have been measured in every round, in the same order.
    """
    rounds = len(next(iter(curve.values())))
    return Fit(tuple(slope({size: costs[one] for size, costs in curve.items()}) for one in range(rounds)))
