"""What a shard's readings are like, told to the registry now and then: samples of numbers and truth values.

Texts and times are never told, and a reading can't be put together again: each column's values are shuffled
apart from the others'. The sample is that of `tamis.predicates.selectivity.sketch`, kept in columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.planning.plan import StreamPlan
from tamis.predicates.selectivity.sketch import SIZE, Sketch

# Columns of which a sample is kept: with as many it has some 300 KB at most.
MOST = 32
# Readings before the first word: less is no sample.
LEAST = SIZE


class Sampler:
    """Keeps the rows with the least of random numbers, and says when they are worth telling: each time that
    there are twice as many readings as the last.
    """

    def __init__(self, stream: StreamPlan, random: np.random.Generator) -> None:
        self._random = random
        told = [c.name for c in stream.columns if c.type.numeric or c.type is Type.BOOLEAN]
        self._columns: dict[str, Vector] = dict.fromkeys(told[:MOST], Vector(np.empty(0)))
        self._numbers = np.empty(0)
        self._count = 0
        self._next = LEAST

    @property
    def due(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._columns) and self._count >= self._next

    def take(self, columns: Mapping[str, Vector], count: int) -> None:
        """A batch of `count` readings."""
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

    def tell(self) -> bytes:
        """The sketch; there is nothing more to tell until there are twice as many readings."""
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
