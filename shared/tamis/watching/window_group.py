"""The window functions of the same value: one history of the value for all of their frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tamis.declarations.watches import VALUES, WindowFunction
from tamis.expressions.exact.sums import (
    SCALE,
    SPREADS,
    fitting,
    of_doubles,
    of_whole,
    quotient,
    spread,
    squares_of_doubles,
    squares_of_whole,
)
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.vectors import Vector, dtype_of
from tamis.similarity.sliding_transform import Int64s
from tamis.watching.key_history import KeyHistory

# Readings of frames that are looked at together.
_BLOCK = 1_000_000
# No reading is forgotten because of it.
_NO_WATERMARK = -(2**63)


class WindowGroup:
    """Window functions of `value` over the readings of many keys."""

    def __init__(self, functions: Sequence[WindowFunction]) -> None:
        self.value: Expr = functions[0].value
        self.functions = tuple(functions)
        self.history = self._limited(KeyHistory(self.value.type))

    def continue_from(self, before: WindowGroup) -> None:
        """Continue the histories of a group of the same value. Where a frame has more readings than those of
        `before` kept, it is whole after as many new readings.
        """
        self.history = self._limited(before.history)

    def _limited(self, history: KeyHistory) -> KeyHistory:
        history.keep_nothing()
        for function in self.functions:
            history.keep(function.frame)
        return history

    def push(
        self, keys: Int64s, times: Int64s, values: Vector, defaults: Sequence[Vector | None]
    ) -> list[Vector]:
        """Append readings to their keys, in the order of their event times; returns the values of each
        function. `defaults` are those of the functions.
        """
        slots = self.history.add(keys, times, values)
        found = [
            self._values(function, slots, default)
            for function, default in zip(self.functions, defaults, strict=True)
        ]
        self.history.forget(keys, _NO_WATERMARK)
        return found

    def _values(self, function: WindowFunction, slots: Int64s, default: Vector | None) -> Vector:
        counts = self.history.counts(slots, function.frame)
        parts = [
            self._part(function, slots[part], counts[part], None if default is None else default.take(part))
            for part in _blocks(counts)
        ]
        return Vector.concat(parts) if parts else Vector.nulls(function.type, 0)

    def _part(
        self, function: WindowFunction, slots: Int64s, counts: Int64s, default: Vector | None
    ) -> Vector:
        readings = self.history.readings(slots, counts, function.frame)
        if function.function in VALUES:
            return self._chosen(function, readings, counts, default)
        values = self.history.at(readings)
        if values.null is not None:
            frame = np.repeat(np.arange(len(counts)), counts)
            counts = np.bincount(frame[~values.null], minlength=len(counts))
            values = values.take(~values.null)
        if function.function == "count":
            return Vector(counts)
        some = np.flatnonzero(counts)
        if not len(some):
            return Vector.nulls(function.type, len(counts))
        starts = np.concatenate([[0], np.cumsum(counts[some])[:-1]])
        of_some = _aggregated(function, values, starts, counts[some])
        place = np.full(len(counts), len(some))
        place[some] = np.arange(len(some))
        return Vector.concat([of_some, Vector.nulls(function.type, 1)]).take(place)

    def _chosen(
        self, function: WindowFunction, readings: Int64s, counts: Int64s, default: Vector | None
    ) -> Vector:
        """The value of the first or the last reading of each frame; the default for a frame without one."""
        ends = np.cumsum(counts)
        place = ends - (counts if function.function == "last_value" else 1)
        some = counts > 0
        of_some = self.history.at(readings[place[some]])
        none = Vector.nulls(function.type, len(counts)) if default is None else default
        # The rows with a reading come first in `of_some`; the others take their default.
        source = len(of_some) + np.arange(len(counts))
        source[some] = np.arange(len(of_some))
        return Vector.concat([of_some, none]).take(source)


def _blocks(counts: Int64s) -> Iterator[slice]:
    """Parts of the frames with some `_BLOCK` readings each."""
    ends, begin = np.cumsum(counts), 0
    while begin < len(counts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _BLOCK, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end


def _aggregated(function: WindowFunction, values: Vector, starts: Int64s, counts: Int64s) -> Vector:
    """An aggregate of each run of values, none of which is NULL. Sums, means and spreads are exact numbers,
    rounded once.
    """
    name, data = function.function, values.data
    if name in ("min", "max"):
        extreme = np.minimum if name == "min" else np.maximum
        return Vector(extreme.reduceat(data, starts).astype(dtype_of(function.type), copy=False))
    double = data.dtype == np.float64
    unit = 1 << SCALE if double else 1
    totals = (of_doubles if double else of_whole)(data, starts).tolist()
    if name == "sum":
        sums = [quotient(total, unit) if double else fitting(total) for total in totals]
        return Vector.from_list(sums, function.type)
    if name == "avg":
        means = [quotient(total, count * unit) for total, count in zip(totals, counts.tolist(), strict=True)]
        return Vector.from_list(means, Type.DOUBLE)
    assert name in SPREADS
    squares = (squares_of_doubles if double else squares_of_whole)(data, starts).tolist()
    return Vector.from_list(
        [spread(name, *one, unit) for one in zip(counts.tolist(), totals, squares, strict=True)], Type.DOUBLE
    )
