"""Columns of a batch with their types, and the values that don't fit these types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamis.expressions.vectors import Vector
from tamis.plan.model import StreamColumn
from tamis.recordings.json_values import Offence, convert
from tamis.recordings.times import TimeUnit
from tamis_edge.core.messages.keys import Int64s


@dataclass(frozen=True, slots=True)
class Converted:
    """The vectors of all columns, by name. `misfits`: the values that don't fit the column's type, by column.
    `value`: the value that was sent, by column and row.
    """

    vectors: dict[str, Vector]
    misfits: Mapping[str, Sequence[Offence]]
    value: Callable[[str, int], Any]

    def over(
        self, vectors: Mapping[str, Vector], rows: Int64s, value: Callable[[str, int], Any]
    ) -> Converted:
        """The columns of a larger batch: these at its positions `rows`, and `vectors` at all others. `value`
        is of the larger batch.
        """
        return Converted(
            {name: _put(vector, rows, self.vectors[name]) for name, vector in vectors.items()},
            {name: at_rows(some, rows) for name, some in self.misfits.items()},
            value,
        )


def convert_all(
    columns: Sequence[StreamColumn], raw: Mapping[str, Sequence[Any]], unit: TimeUnit
) -> Converted:
    """Columns of Python values with the types of a stream's columns."""
    vectors: dict[str, Vector] = {}
    misfits: dict[str, Sequence[Offence]] = {}
    for column in columns:
        vectors[column.name], misfits[column.name] = convert(column.name, raw[column.name], column.type, unit)
    return Converted(vectors, misfits, lambda name, row: raw[name][row])


def at_rows(offences: Sequence[Offence], rows: Int64s) -> list[Offence]:
    """Offences of the payloads that have the positions `rows` in a larger batch."""
    return [replace(offence, row=int(rows[offence.row])) for offence in offences]


def _put(vector: Vector, rows: Int64s, some: Vector) -> Vector:
    data = vector.data.copy()
    data[rows] = some.data
    null = np.zeros(len(data), np.bool_) if vector.null is None else vector.null.copy()
    null[rows] = False if some.null is None else some.null
    return Vector(data, null if null.any() else None)
