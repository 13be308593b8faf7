"""The tuples of one topic that the joiner holds, as columns sorted by (key, time)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.key_codes import KeyCodes
from tamis.evaluation.temporal_join import Tuples
from tamis.expressions.vectors import Vector, dtype_of
from tamis.omission.order import by_key_and_time
from tamis_joiner.core.decode import Fresh, Schema

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Live(Tuples):
    """As `Tuples`, and whether a tuple is late and when it arrived (Kafka's time, microseconds)."""

    late: Bools
    arrived: Ints

    def pick(self, rows: NDArray[Any]) -> Live:
        """The tuples at `rows` (numbers or a mask), which must keep their order."""
        return Live(
            self.times[rows],
            self.keys[rows],
            self.versions[rows],
            self.new[rows],
            {name: vector.take(rows) for name, vector in self.columns.items()},
            self.late[rows],
            self.arrived[rows],
        )

    def old(self) -> Live:
        """The same, nothing of it new."""
        return replace(self, new=np.zeros(len(self), np.bool_))


def conform(live: Live, schema: Schema) -> Live:
    """The same tuples with the columns of `schema`: NULL where a tuple was sent without one, or with another
    type.
    """
    same = {
        name: vector
        for name, vector in live.columns.items()
        if name in schema and vector.data.dtype == dtype_of(schema[name])
    }
    if list(same) == list(live.columns) == list(schema):
        return live
    return replace(
        live,
        columns={
            name: same[name] if name in same else Vector.nulls(type_, len(live))
            for name, type_ in schema.items()
        },
    )


def coded(fresh: Fresh, key: Iterable[str], codes: KeyCodes, *, new: bool) -> Live:
    """Tuples with codes for their keys, not yet sorted."""
    size = len(fresh.times)
    return Live(
        fresh.times,
        codes.encode([fresh.columns[name] for name in key], size),
        fresh.versions,
        np.full(size, new),
        fresh.columns,
        fresh.late,
        fresh.arrived,
    )


def merge(parts: list[Live]) -> Live:
    """All the tuples, sorted by (key, time); at least one part.

    A tuple that is there twice (key, time and all columns equal) is kept once, as new if any of the copies
    is: with the greatest version, not late unless all are, and since its first arrival.
    """
    if len(parts) == 1:
        whole = parts[0]
    else:
        whole = Live(
            np.concatenate([p.times for p in parts]),
            np.concatenate([p.keys for p in parts]),
            np.concatenate([p.versions for p in parts]),
            np.concatenate([p.new for p in parts]),
            {name: Vector.concat([p.columns[name] for p in parts]) for name in parts[0].columns},
            np.concatenate([p.late for p in parts]),
            np.concatenate([p.arrived for p in parts]),
        )
    order = by_key_and_time(whole.keys, whole.times)
    if order is None:
        order = np.arange(len(whole))
    times, keys = whole.times[order], whole.keys[order]
    tie = (times[1:] == times[:-1]) & (keys[1:] == keys[:-1])
    if not tie.any():
        return whole.pick(order)
    run = np.concatenate(([0], np.cumsum(~tie)))
    suspect = np.bincount(run, minlength=run[-1] + 1) > 1
    suspect &= np.bincount(run, weights=whole.new[order], minlength=run[-1] + 1) > 0
    rows = np.flatnonzero(suspect[run])
    if not len(rows):
        return whole.pick(order)
    picked = order[rows]
    values = [_value_codes(vector.take(picked)) for vector in whole.columns.values()]
    # Stable, so that of equal tuples the first in state or in order of offsets comes first.
    within = np.lexsort((*values, run[rows]))
    first = np.ones(len(rows), np.bool_)
    first[1:] = run[rows][within][1:] != run[rows][within][:-1]
    for value in values:
        first[1:] |= value[within][1:] != value[within][:-1]
    if first.all():
        return whole.pick(order)
    starts = np.flatnonzero(first)
    copies = picked[within]
    survivor = copies[starts]
    versions, arrived = whole.versions.copy(), whole.arrived.copy()
    new, late = whole.new.copy(), whole.late.copy()
    versions[survivor] = np.maximum.reduceat(versions[copies], starts)
    new[survivor] = np.logical_or.reduceat(new[copies], starts)
    late[survivor] = np.logical_and.reduceat(late[copies], starts)
    arrived[survivor] = np.minimum.reduceat(arrived[copies], starts)
    keep = np.ones(len(whole), np.bool_)
    keep[copies[~first]] = False
    merged = replace(whole, versions=versions, new=new, late=late, arrived=arrived)
    return merged.pick(order[keep[order]])


def _value_codes(vector: Vector) -> Ints:
    """Codes that are equal where the values are, NULL equal to NULL."""
    codes: Ints
    if vector.data.dtype == np.object_:
        known: dict[Any, int] = {}
        codes = np.fromiter((known.setdefault(v, len(known)) for v in vector.data.tolist()), np.int64)
    else:
        codes = np.unique(vector.data, return_inverse=True)[1].astype(np.int64)
    if vector.null is not None:
        codes = np.where(vector.null, -1, codes)
    return codes
