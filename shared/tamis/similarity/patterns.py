"""Watch for patterns in one series."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.similarity.columns import column
from tamis.similarity.keyed_patterns import KeyedPatterns
from tamis.similarity.pattern import Pattern


class Match(NamedTuple):
    """A window that matches a pattern.

    `pattern` is the pattern's name, `end` the index of the window's last reading, counted from 0 at the first
    reading ever pushed. `distance` is the least sqrt(mean((Q - (a S + b))²)) over the allowed scales a and
    shifts b; it is attained at `scale` and `shift`.
    """

    pattern: str
    end: int
    distance: float
    scale: float
    shift: float


class Patterns:
    """Matches of the latest readings of one series with many patterns; see `Pattern`.

    >>> ramp = Pattern("ramp", [0, 1, 2], epsilon=0.1)
    >>> Patterns([ramp]).push([5.0, 5.0, 7.0, 9.0])
    [Match(pattern='ramp', end=3, distance=0.0, scale=0.5, shift=-2.5)]
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        """The patterns may differ in length. Raises `InputError` if two have one name."""
        self._watched = KeyedPatterns(patterns)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns, as given."""
        return self._watched.patterns

    def push(self, readings: npt.ArrayLike) -> list[Match]:
        """Append the next readings of the series; returns the matches, by their end, then by pattern.

        A reading that is NaN, None, infinite or of magnitude above 1e150 is a gap: it counts as a reading,
        and no window with it matches. Raises `InputError` for anything else than a column of numbers.
        """
        try:
            values = column(readings, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"readings must be a column of numbers: {error}") from None
        if values.ndim > 1:
            raise InputError(f"readings have the shape {values.shape}, not that of a column")
        found = self._watched.push(np.zeros(len(values), np.int64), values)
        names = [self.patterns[number].name for number in found.pattern.tolist()]
        columns = (found.end, found.distance, found.scale, found.shift)
        return list(map(Match, names, *(column.tolist() for column in columns)))

    def dump(self) -> bytes:
        """The latest readings, as bytes for `load`."""
        return self._watched.dump()

    def load(self, state: bytes) -> None:
        """Continue where the object that dumped `state` was; see `KeyedPatterns.load`."""
        self._watched.load(state)
