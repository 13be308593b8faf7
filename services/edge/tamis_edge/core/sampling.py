"""Samples of a shard's numbers and booleans, which are reported to the registry at intervals.

Texts and times are never in a sample. The values of each column are shuffled separately, so that nobody can
put a reading together again from a sample. The samples are defined in `tamis.predicates.sketch`;
this module keeps them in columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.plan.model import StreamPlan
from tamis.predicates.sketch import SIZE, Sketch

# Columns in a sample: with this many it has at most some 300 KB.
MOST = 32
# Readings before the first report: a sample of fewer says little.
LEAST = SIZE


class Sampler:
    """Draws a random number for each row and keeps the rows with the smallest numbers. A report is due each
    time the number of readings has doubled.
    """

    def __init__(self, stream: StreamPlan, random: np.random.Generator) -> None:
        self._random = random
        sampled = [c.name for c in stream.columns if c.type.numeric or c.type is Type.BOOLEAN]
        self._columns: dict[str, Vector] = dict.fromkeys(sampled[:MOST], Vector(np.empty(0)))
        self._numbers = np.empty(0)
        self._count = 0
        self._next = LEAST

    @property
    def due(self) -> bool:
        """True if a report is due."""
        return bool(self._columns) and self._count >= self._next

    def take(self, columns: Mapping[str, Vector], count: int) -> None:
        """Take a batch of `count` readings."""
        self._count += count
        drawn = self._random.random(count)
        rows = np.flatnonzero(drawn < self._numbers[-1]) if len(self._numbers) == SIZE else np.arange(count)
        if not len(rows) or not self._columns:
            return
        first = not len(self._numbers)
        numbers = np.concatenate([self._numbers, drawn[rows]])
        kept = np.argsort(numbers)[:SIZE]
        self._numbers = numbers[kept]
        for name, before in self._columns.items():
            new = columns[name].take(rows)
            self._columns[name] = (new if first else Vector.concat([before, new])).take(kept)

    def report(self) -> bytes:
        """The sketch to report. The next one is due after twice as many readings."""
        self._next = 2 * self._count
        values = {
            name: tuple(map(_known, column.take(self._shuffled()).to_list()))
            for name, column in self._columns.items()
        }
        return Sketch(self._count, tuple(self._numbers.tolist()), values).to_bytes()

    def _shuffled(self) -> npt.NDArray[np.int64]:
        return self._random.permutation(len(self._numbers))


def _known(value: object) -> object:
    return None if isinstance(value, float) and not np.isfinite(value) else value
