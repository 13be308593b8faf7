"""The interface of a step: the work of a group of keys with new rows and a new watermark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

# The watermark before the first one.
BEGINNING = -(2**63)


def behind(watermark: int, lag: int) -> int:
    """The event time that rows have passed which may be `lag` behind the watermark."""
    return watermark if watermark == BEGINNING else watermark - lag


Sides = Mapping[int, pa.Table]
"""Rows by the number of the input that they are from."""


@dataclass(frozen=True)
class Counts:
    """Numbers of rows of one call: `taken` came in and `given` went out, `late` came behind the watermark,
    `unusable` can't be compared. `held` are kept in the state; `bound` is the most that the declared rates
    allow, None without rates.
    """

    taken: int = 0
    given: int = 0
    late: int = 0
    unusable: int = 0
    held: int = 0
    bound: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of a step: the rows to give out, the rows to keep, and counts. Tables may be missing where
    they are empty.
    """

    given: pa.Table | None
    held: Sides
    counts: Counts


class Step(Protocol):
    """The work of one group of keys in one batch. It is a pure function of its arguments, so a batch can be
    repeated.
    """

    @property
    def rule(self) -> str:
        """The arguments that must not change as long as a checkpoint is used, as text."""

    def run(self, held: Sides, arrived: Sides, decided: int, watermark: int) -> Outcome:
        """Take the rows that have arrived. `held`: what the last call kept. `watermark`: rows before it are
        late from the next call on, in microseconds; `decided`: that of the last call; both are `BEGINNING`
        before the first watermark.
        """
