"""Tuples of one topic that the joiner holds, as columns sorted by (key, time)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.key_codes import KeyCodes
from tamis.evaluation.temporal_join import Tuples
from tamis.expressions.vectors import Vector, dtype_of
from tamis_joiner.core.records.tuple_columns import Schema, TupleColumns

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# A tuple whose filters have not been evaluated.
NO_SLOT = -1


@dataclass(frozen=True)
class StoredTuples(Tuples):
    """`Tuples` with three more columns: whether a tuple is late, the time of its arrival (Kafka's timestamp
    in microseconds), and the number of its bit in the topic's `FilterBitmaps`.
    """

    late: Bools
    arrived: Ints
    slots: Ints

    def pick(self, rows: NDArray[Any]) -> StoredTuples:
        """The tuples at `rows` (numbers or a mask), which must keep the order."""
        return StoredTuples(
            self.times[rows],
            self.keys[rows],
            self.versions[rows],
            self.new[rows],
            {name: vector.take(rows) for name, vector in self.columns.items()},
            self.late[rows],
            self.arrived[rows],
            self.slots[rows],
        )

    def as_old(self) -> StoredTuples:
        """The same tuples, marked as seen by an earlier call (`new` is False)."""
        return replace(self, new=np.zeros(len(self), np.bool_))

    def without_slots(self) -> StoredTuples:
        """The same tuples, as if their filters had never been evaluated."""
        return replace(self, slots=np.full(len(self), NO_SLOT))


def no_tuples(schema: Schema) -> StoredTuples:
    """An empty table with the columns of `schema`."""
    numbers = np.empty(0, np.int64)
    flags = np.empty(0, np.bool_)
    columns = {name: Vector.nulls(type_, 0) for name, type_ in schema.items()}
    return StoredTuples(numbers, numbers, numbers, flags, columns, flags, numbers, numbers)


def with_schema(tuples: StoredTuples, schema: Schema) -> StoredTuples:
    """The tuples with the columns of `schema`. A column is NULL if a tuple has no value of that name and
    type.
    """
    same = {
        name: vector
        for name, vector in tuples.columns.items()
        if name in schema and vector.data.dtype == dtype_of(schema[name])
    }
    if list(same) == list(tuples.columns) == list(schema):
        return tuples
    return replace(
        tuples,
        columns={
            name: same[name] if name in same else Vector.nulls(type_, len(tuples))
            for name, type_ in schema.items()
        },
    )


def with_key_codes(tuples: TupleColumns, key: Iterable[str], codes: KeyCodes, *, new: bool) -> StoredTuples:
    """Tuples with the codes of their keys, not yet sorted. All of them get the mark `new`."""
    size = len(tuples.times)
    return StoredTuples(
        tuples.times,
        codes.encode([tuples.columns[name] for name in key], size),
        tuples.versions,
        np.full(size, new),
        tuples.columns,
        tuples.late,
        tuples.arrived,
        np.full(size, NO_SLOT),
    )
