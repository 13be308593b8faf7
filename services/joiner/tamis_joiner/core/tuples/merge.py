"""Merge of tuples of one topic into one sorted table, without duplicates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamis.expressions.vectors import Vector
from tamis.omission.row_order import by_key_and_time
from tamis_joiner.core.tuples.stored_tuples import Bools, Ints, StoredTuples


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
    return StoredTuples(
        np.concatenate([p.times for p in parts]),
        np.concatenate([p.keys for p in parts]),
        np.concatenate([p.versions for p in parts]),
        np.concatenate([p.new for p in parts]),
        {name: Vector.concat([p.columns[name] for p in parts]) for name in parts[0].columns},
        np.concatenate([p.late for p in parts]),
        np.concatenate([p.arrived for p in parts]),
        np.concatenate([p.slots for p in parts]),
    )


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
