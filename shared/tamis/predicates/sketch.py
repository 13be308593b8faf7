"""Sketch of a stream: a random sample of its rows that edges keep, report and merge.

Every row gets a random number, and the rows with the least numbers are the sample (bottom-k sampling). So
each row is in the sample with the same probability. It does not matter which edge has read the row, or in
which order samples were merged. A share that is estimated from a sample is typically wrong by 2 percentage
points, and by at most 6.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from tamis.errors import InputError
from tamis.predicates.ranges import HIGH, LOW, NULL, Cut

Columns = Mapping[str, npt.NDArray[np.generic]]

# Rows of a sample: a share of one half is then known to 2.2 % (one standard deviation). Four attributes take
# some 20 KB.
SIZE = 512
# Every JSON reader keeps such a count exactly.
MOST_ROWS = 2**53
# The most bytes of a sketch, whatever its values are.
MOST_BYTES = 4_000_000


@dataclass(frozen=True)
class Observed:
    """Observed values, ascending: each stands for the same share of all values that aren't NULL."""

    values: Sequence[float | int | str | bool]
    null: float = 0.0

    def below(self, cut: Cut) -> float:
        """The share of observed values below `cut`, from 0 to 1. NULL is below every other value.

        >>> Observed([1, 1, 2, 5]).below((0, 2))
        0.5
        """
        if cut in (NULL, LOW, HIGH):
            return {NULL: 0.0, LOW: self.null, HIGH: 1.0}[cut]
        return self.null + (1.0 - self.null) * bisect_left(self.values, cut[1]) / max(len(self.values), 1)


@dataclass(frozen=True)
class Sketch:
    """A sample of `count` rows: the random `numbers` of its rows, ascending, and their values by attribute;
    None is NULL.
    """

    count: int
    numbers: tuple[float, ...]
    values: Mapping[str, tuple[Any, ...]]

    def distributions(self) -> dict[str, Observed]:
        """The distribution of each attribute's values, for `selectivity`."""
        out = {}
        for name, seen in self.values.items():
            known = sorted(value for value in seen if value is not None)
            out[name] = Observed(known, 1 - len(known) / len(seen) if seen else 0.0)
        return out

    def to_bytes(self) -> bytes:
        """As JSON."""
        return orjson.dumps({"count": self.count, "numbers": self.numbers, "values": self.values})

    @staticmethod
    def from_bytes(data: bytes) -> Sketch:
        """Read a sketch. Raises `InputError` if the bytes aren't one."""
        try:
            if len(data) > MOST_BYTES:
                raise ValueError(f"it has {len(data)} bytes, more than {MOST_BYTES}")
            document = orjson.loads(data)
            count, numbers = document["count"], tuple(map(float, document["numbers"]))
            if type(count) is not int or not 0 <= count <= MOST_ROWS:
                raise ValueError("it has no count of rows")
            values = {str(name): tuple(seen) for name, seen in document["values"].items()}
            if not len(numbers) <= min(SIZE, count) or any(len(v) != len(numbers) for v in values.values()):
                raise ValueError("its rows don't fit together")
            if not all(map(_alike, values.values())):
                raise ValueError("an attribute has values of several types")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"this is no sketch of a stream: {error}", hint="send what `observe` made"
            ) from None
        return Sketch(count, numbers, values)


def observe(columns: Columns, random: np.random.Generator) -> bytes:
    """The sketch of a batch of rows: arrays of shape (n,) by attribute; NaN, infinities and None are NULL."""
    count = len(next(iter(columns.values()))) if columns else 0
    drawn = random.random(count)
    rows = np.argsort(drawn)[:SIZE] if count <= SIZE else np.argpartition(drawn, SIZE)[:SIZE]
    rows = rows[np.argsort(drawn[rows])]
    values = {name: tuple(map(_known, column[rows].tolist())) for name, column in columns.items()}
    return Sketch(count, tuple(drawn[rows].tolist()), values).to_bytes()


def merge(sketches: Iterable[bytes]) -> bytes:
    """The sketch of all rows together. An attribute that one sketch lacks is NULL in its rows. An attribute
    with values of several types (the stream was created anew) is left out. Raises `InputError`.
    """
    parts = [Sketch.from_bytes(data) for data in sketches]
    names = list(dict.fromkeys(name for part in parts for name in part.values))
    rows = sorted(
        (number, at, row) for at, part in enumerate(parts) for row, number in enumerate(part.numbers)
    )
    kept = rows[:SIZE]
    values = {
        name: tuple(parts[at].values[name][row] if name in parts[at].values else None for _, at, row in kept)
        for name in names
    }
    values = {name: seen for name, seen in values.items() if _alike(seen)}
    return Sketch(
        min(sum(part.count for part in parts), MOST_ROWS), tuple(number for number, _, _ in kept), values
    ).to_bytes()


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _alike(seen: tuple[Any, ...]) -> bool:
    """True if all values have one type. A number may be written as 1 or as 1.0."""
    kinds = {type(value) for value in seen if value is not None}
    return kinds <= {int, float} or kinds in ({str}, {bool})
