"""Tuples of one topic that the joiner holds, as columns sorted by (key, time)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Vector, dtype_of
from tamis.operators.time_join.key_codes import KeyCodes
from tamis.operators.time_join.temporal_join import Tuples
from tamis.row_order import by_key_and_time
from tamis_joiner.core.records.tuple_columns import Schema, TupleColumns

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# A tuple whose filters have not been evaluated.
NO_SLOT = -1
# The arrays of `StoredTuples` beside its columns.
_ARRAYS = ("times", "keys", "versions", "new", "late", "arrived", "slots")


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
        columns = {name: vector.take(rows) for name, vector in self.columns.items()}
        return StoredTuples(columns=columns, **{name: getattr(self, name)[rows] for name in _ARRAYS})

    def as_old(self) -> StoredTuples:
        """A copy that marks all tuples as seen by an earlier call (`new` is False)."""
        return replace(self, new=np.zeros(len(self), np.bool_))

    def without_slots(self) -> StoredTuples:
        """A copy that marks the filters of all tuples as not evaluated (`NO_SLOT`)."""
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


def distinct(numbers: Ints) -> Ints:
    """The different numbers, ascending.

    Codes of keys and numbers of slices are close together, so marking them is faster than sorting or hashing
    a million of them.

    >>> distinct(np.array([7, 5, 7])).tolist()
    [5, 7]
    """
    if not len(numbers):
        return numbers
    least = int(numbers.min())
    if int(numbers.max()) - least > len(numbers):
        return np.unique(numbers)
    found = np.zeros(int(numbers.max()) - least + 1, np.bool_)
    found[numbers - least] = True
    return np.flatnonzero(found) + least


def merge(parts: list[StoredTuples]) -> StoredTuples:
    """All tuples of the parts (at least one), sorted by (key, time).

    Tuples with equal key, time and columns are duplicates, and one of them is kept. It is new if any of them
    is new, and late if all are late. It gets their greatest version and their first arrival.
    """
    whole = _concatenate(parts)
    order = by_key_and_time(whole.keys, whole.times)
    if order is None:
        order = np.arange(len(whole))
    copies = _find_duplicates(whole, order)
    if copies is None:
        return whole.pick(order)
    keep = np.ones(len(whole), np.bool_)
    keep[copies.rows[~copies.first]] = False
    return _combine(whole, copies).pick(order[keep[order]])


@dataclass(frozen=True)
class _Duplicates:
    """Rows that may be duplicates, equal ones side by side. `first` marks the first one of equal rows."""

    rows: Ints
    first: Bools


def _concatenate(parts: list[StoredTuples]) -> StoredTuples:
    if len(parts) == 1:
        return parts[0]
    columns = {name: Vector.concat([p.columns[name] for p in parts]) for name in parts[0].columns}
    arrays = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _ARRAYS}
    return StoredTuples(columns=columns, **arrays)


def _find_duplicates(whole: StoredTuples, order: Ints) -> _Duplicates | None:
    """The rows with equal key and time of which at least one is new; None if no two of them are equal.

    Tuples that aren't new were already compared when they arrived.
    """
    times, keys = whole.times[order], whole.keys[order]
    tie = (times[1:] == times[:-1]) & (keys[1:] == keys[:-1])
    if not tie.any():
        return None
    run = np.concatenate(([0], np.cumsum(~tie)))
    suspect = np.bincount(run, minlength=run[-1] + 1) > 1
    suspect &= np.bincount(run, weights=whole.new[order], minlength=run[-1] + 1) > 0
    at = np.flatnonzero(suspect[run])
    if not len(at):
        return None
    rows, runs = order[at], run[at]
    values = [_value_codes(vector.take(rows)) for vector in whole.columns.values()]
    # Stable: of equal tuples, the one in the state or with the least offset comes first.
    within = np.lexsort((*values, runs))
    first = np.ones(len(rows), np.bool_)
    first[1:] = runs[within][1:] != runs[within][:-1]
    for value in values:
        first[1:] |= value[within][1:] != value[within][:-1]
    return None if first.all() else _Duplicates(rows[within], first)


def _combine(whole: StoredTuples, copies: _Duplicates) -> StoredTuples:
    """The tuples with the combined version, lateness and arrival of equal rows in the first row of each."""
    starts = np.flatnonzero(copies.first)
    kept = copies.rows[starts]
    versions, new = whole.versions.copy(), whole.new.copy()
    late, arrived = whole.late.copy(), whole.arrived.copy()
    versions[kept] = np.maximum.reduceat(versions[copies.rows], starts)
    new[kept] = np.logical_or.reduceat(new[copies.rows], starts)
    late[kept] = np.logical_and.reduceat(late[copies.rows], starts)
    arrived[kept] = np.minimum.reduceat(arrived[copies.rows], starts)
    return replace(whole, versions=versions, new=new, late=late, arrived=arrived)


def _value_codes(vector: Vector) -> Ints:
    """Codes that are equal where the values are equal; NULL equals NULL."""
    codes: Ints
    if vector.data.dtype == np.object_:
        known: dict[Any, int] = {}
        codes = np.fromiter((known.setdefault(v, len(known)) for v in vector.data.tolist()), np.int64)
    else:
        codes = np.unique(vector.data, return_inverse=True)[1].astype(np.int64)
    if vector.null is not None:
        codes = np.where(vector.null, -1, codes)
    return codes
