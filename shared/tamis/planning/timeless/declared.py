"""What a column's type and CHECK say of all its values but NULL, and `keys` of a stream's key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from tamis.bounded.closure import Closure
from tamis.bounded.normal_form import Difference, Keyed, close
from tamis.expressions.nodes import Column, Type, substitute
from tamis.planning.timeless.alternatives import alternatives
from tamis.planning.timeless.differences import Bounded, Reading, differences
from tamis.query.model import ColumnDef, StreamDef


def domain(column: Column, of: ColumnDef | None, code: Callable[[str], int]) -> Iterator[Reading]:
    """The limits that a column's declaration gives; of a CHECK with OR, the range around its ranges."""
    if column.type is Type.BOOLEAN:
        yield from _limits(column, 0, 1)
    if of is None or of.check is None:
        return
    check = substitute(of.check, lambda own: Column(column.alias, own.name, own.type))
    readings = [[differences(part, code) for part in one] for one in alternatives(check) or ()]
    understood = [[r for r in one if r is not None] for one in readings]
    if not understood or not all(understood):
        return
    valued = [one for one in understood if not any(reading.null for reading in one)]
    found = [closure for one in valued if (closure := _closure(column, one)) is not None]
    if found:
        low, high = min(one.lower(1) for one in found), max(one.upper(1) for one in found)
        yield from _limits(column, low, high)


def keyed(streams: Mapping[str, StreamDef], nodes: Sequence[Column]) -> Iterator[Keyed]:
    """The keys, by alias, that are declared to have a limited number of values; nodes are counted from 1."""
    for alias, stream in streams.items():
        own = [at for at, one in enumerate(nodes, 1) if one.alias == alias and one.name in stream.key]
        if stream.keys is not None and own:
            yield Keyed(tuple(own), stream.keys)


def _closure(column: Column, readings: Sequence[Reading]) -> Closure | None:
    """What readings imply of one column by itself."""
    number = {None: 0, column: 1}
    bounds = [
        Difference(number[b.left], number[b.right], b.bound)
        for reading in readings
        for b in reading.bounds
        if b.left in number and b.right in number
    ]
    return close(2, tuple(bounds))


def _limits(column: Column, low: float, high: float) -> Iterator[Reading]:
    if math.isfinite(high):
        yield Reading((Bounded(column, None, int(high)),), compares=False)
    if math.isfinite(low):
        yield Reading((Bounded(None, column, -int(low)),), compares=False)
