"""Distributions of an attribute's values: the share of values below a cut."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tamis.errors import InputError
from tamis.predicates.ranges import HIGH, LOW, NULL, Cut


class Distribution(Protocol):
    """The values of one attribute, with NULL."""

    def below(self, cut: Cut) -> float:
        """The share of values below `cut`, from 0 to 1."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Numbers spread evenly over [first, last]; `null` is the share of NULLs. Raises `InputError` if first is
    greater than last, or one of them isn't finite.
    """

    first: float
    last: float
    null: float = 0.0

    def __post_init__(self) -> None:
        if not (-math.inf < self.first <= self.last < math.inf and 0.0 <= self.null <= 1.0):
            raise InputError(
                f"a distribution over [{self.first}, {self.last}] with a share of {self.null} NULLs"
                " is impossible",
                hint="give finite ends in their order, and a share of NULLs from 0 to 1",
            )

    def below(self, cut: Cut) -> float:
        """See `Distribution`.

        >>> Uniform(0, 10).below((0, 2.5))
        0.25
        """
        if cut in (NULL, LOW, HIGH):
            return {NULL: 0.0, LOW: self.null, HIGH: 1.0}[cut]
        if self.last <= self.first:
            share = 1.0 if cut[1] > self.first else 0.0
        else:
            share = (cut[1] - self.first) / (self.last - self.first)
        return self.null + (1.0 - self.null) * min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Observed:
    """Observed values, ascending: each stands for the same share of all values that aren't NULL."""

    values: Sequence[float | int | str | bool]
    null: float = 0.0

    def below(self, cut: Cut) -> float:
        """See `Distribution`.

        >>> Observed([1, 1, 2, 5]).below((0, 2))
        0.5
        """
        if cut in (NULL, LOW, HIGH):
            return {NULL: 0.0, LOW: self.null, HIGH: 1.0}[cut]
        return self.null + (1.0 - self.null) * bisect_left(self.values, cut[1]) / max(len(self.values), 1)
