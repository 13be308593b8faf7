"""Patterns: the shapes that are searched in a series, with tolerance and ranges of scale and shift.

Every window that matches a pattern is within the limits of its `internal_query`; most others are not. Figure
7.2 of goldin-1997 has the rows of deviation and mean exchanged; its section 7.5.3 is right, with two
corrections:

- Where a numerator is negative, the quotient is least at the least scale, not at the greatest. With the
  paper's formula, windows that match would be dismissed.
- The distance of the normal forms is limited only if epsilon is less than the pattern's deviation. The paper
  has this condition reversed. Otherwise all windows with an allowed deviation and mean have to be verified.
"""

from __future__ import annotations

from math import hypot, inf, isnan, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.similarity.normal_form import Floats, Moments, moments

Range = tuple[float | None, float | None]


class Pattern:
    """A pattern Q, and which windows match it (the general similarity query of goldin-1997, section 7.4).

    A window S of the length of Q matches if some scale a > 0 and shift b, both in their closed ranges, have
    sqrt(mean((Q - (a S + b))²)) <= epsilon. Epsilon is in the unit of the pattern's values.

    | query of the paper | `scale` | `shift` |
    |---|---|---|
    | unbounded | None | None |
    | scaling | None | (0, 0) |
    | shifting | (1, 1) | None |
    | approximate match | (1, 1) | (0, 0) |
    | exact similarity | any, with `epsilon=0` | any |

    None as a range, or as one of its ends, means that there is no limit. Rounding decides nothing: a distance
    that exceeds epsilon by no more than 10^-12 of the greater of epsilon and the pattern's deviation matches.

    `mean`, `mean_low`, `deviation` and `centred` are the moments of `values`; see `Moments`.

    `InputError` is raised for fewer than two values, equal values, values that aren't finite or exceed 1e150,
    an empty range, and for an epsilon that every window would pass, also by this allowance.
    """

    def __init__(
        self,
        name: str,
        values: npt.ArrayLike,
        *,
        epsilon: float,
        scale: Range | None = None,
        shift: Range | None = None,
    ) -> None:
        where = f"pattern {name}"
        self.name = name
        of_values = moments(where, values)
        self.mean, self.mean_low, self.deviation, self.centred = of_values
        self.values: Floats = np.array(values, dtype=np.float64)
        self.values.flags.writeable = False
        self.scale = _range(where, "scale", scale)
        self.shift = _range(where, "shift", shift)
        if self.scale[1] <= 0:
            raise InputError(f"no scale up to {self.scale[1]:g} is above 0", where=where)
        self.scale = max(self.scale[0], 0.0), self.scale[1]
        self.epsilon = _number(where, "epsilon", epsilon)
        if not 0 <= self.epsilon < inf:
            raise InputError(f"epsilon is {epsilon}", where=where, hint="it must be finite and at least 0")
        least = _limit(of_values, self.scale, self.shift)
        if self.limit >= least:
            raise InputError(
                f"every window would match, since epsilon is {self.epsilon:g}",
                where=where,
                hint=f"use an epsilon less than {least:.6g}, or a range of scales that begins above 0",
            )

    def __repr__(self) -> str:
        return (
            f"Pattern({self.name!r}, <{len(self.values)} values>, epsilon={self.epsilon:g}, "
            f"scale={self.scale}, shift={self.shift})"
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def limit(self) -> float:
        """The greatest distance that counts as epsilon or less."""
        return self.epsilon + 1e-12 * max(self.epsilon, self.deviation)


def epsilon_limit(values: npt.ArrayLike, scale: Range | None = None, shift: Range | None = None) -> float:
    """The least epsilon with which every window would match; infinite if there is none.

    Raises `InputError` for values that have no normal form, and for an empty range.

    >>> epsilon_limit([1.0, -1.0]), epsilon_limit([1.0, -1.0], scale=(0.5, 2))
    (1.0, inf)
    """
    found = moments("values", values)
    return _limit(found, _range("values", "scale", scale), _range("values", "shift", shift))


def _limit(found: Moments, scale: tuple[float, float], shift: tuple[float, float]) -> float:
    if scale[0] > 0:
        return inf
    # A small scale makes any window almost constant, and so close to the mean, if the shift allows it.
    reachable = min(max(found.mean, shift[0]), shift[1])
    return hypot(found.deviation, reachable - found.mean)


def _range(where: str, name: str, ends: Range | None) -> tuple[float, float]:
    if ends is None:
        return -inf, inf
    try:
        low, high = ends
    except (TypeError, ValueError):
        raise InputError(f"{name} is {ends!r}", where=where, hint="give a pair (low, high)") from None
    least = -inf if low is None else _number(where, name, low)
    most = inf if high is None else _number(where, name, high)
    if least > most or least == inf or most == -inf:
        raise InputError(f"the range of {name} from {least:g} to {most:g} is empty", where=where)
    return least, most


def _number(where: str, name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = np.nan
    if isnan(found):
        raise InputError(f"{name} is {value!r}", where=where, hint="give a number")
    return found


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
