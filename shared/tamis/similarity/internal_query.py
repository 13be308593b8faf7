"""From a pattern's ranges to limits on a window's normal form, deviation and mean (goldin-1997, 7.5).

Every window that matches a pattern is within these limits; most others are not. Figure 7.2 of the paper has
the rows of deviation and mean exchanged; its section 7.5.3 is right, with two corrections:

- Where a numerator is negative, the quotient is least at the least scale, not at the greatest. With the
  paper's formula, windows that match would be dismissed.
- The distance of the normal forms is limited only if epsilon is less than the pattern's deviation. The paper
  has this condition reversed. Otherwise all windows with an allowed deviation and mean have to be verified.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

from tamis.similarity.pattern import Pattern


class InternalQuery(NamedTuple):
    """Limits of the windows that may match a pattern.

    `distance` is the greatest similarity distance (infinite where it has no limit); `deviation` and `mean`
    are the closed ranges of the window's deviation and mean.
    """

    distance: float
    deviation: tuple[float, float]
    mean: tuple[float, float]


def internal_query(pattern: Pattern) -> InternalQuery:
    """The limits of the windows that may match.

    >>> query = internal_query(Pattern("p", [0, 2], epsilon=0.5, scale=(0.5, 2)))
    >>> round(query.distance, 6), [round(end, 6) for end in query.deviation], query.mean
    (0.517638, [0.25, 3.0], (-inf, inf))
    """
    epsilon, deviation, mean = pattern.limit, pattern.deviation, pattern.mean
    low_a, high_a = pattern.scale
    low_b, high_b = pattern.shift
    greatest = inf
    if epsilon < deviation:
        share = epsilon / deviation
        # 2 - 2 sqrt(1 - share²), without cancellation where the share is small.
        greatest = sqrt(2 * share * share / (1 + sqrt(1 - share * share)))
    return InternalQuery(
        distance=greatest,
        deviation=(
            max(_least(deviation - epsilon, low_a, high_a), 0.0),
            -_least(-deviation - epsilon, low_a, high_a),
        ),
        mean=(
            _least(mean - high_b - epsilon, low_a, high_a),
            -_least(low_b - mean - epsilon, low_a, high_a),
        ),
    )


def _least(numerator: float, low: float, high: float) -> float:
    """The infimum of `numerator / a` over 0 < low <= a <= high, or 0 < a <= high for a `low` of 0."""
    if numerator >= 0:
        return numerator / high
    return numerator / low if low > 0 else -inf
