"""Batches of tuples in columns: which of them keep the conditions on their stream, and which of these a
synopsis under DISTINCT takes in.

A tuple that a synopsis doesn't take in gives no row that isn't given already: in each cell the tuple of its
bucket leads it, and joined, or will join, whatever it joins. So only those that are taken in are looked at
one by one.

Numbers beyond 64 bits are not computed here: where there may be some, every tuple is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.closure import Bound
from tamis.bounded.coordinates import Coordinate
from tamis.bounded.evaluate.kernels import numbered, rising
from tamis.bounded.evaluate.synopsis import Layout, Synopsis, Values
from tamis.bounded.normal_form import Difference, Unequal

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
_ENDLESS = 2**63 - 1  # stands for infinity: all numbers are less
_ROOM = 2**62


@dataclass(frozen=True)
class Column:
    """The values of one node: where `null` is set (None: nowhere), `data` says nothing."""

    data: Ints
    null: Mask | None = None

    def take(self, at: Ints) -> Column:
        """The values at some places."""
        return Column(self.data[at], None if self.null is None else self.null[at])


Columns = Mapping[int, Column]  # by node
ValuesOf = Callable[[Ints], Sequence[Values]]


class TooLargeError(Exception):
    """A number may have more than 64 bits."""


def keep(rows: int, columns: Columns, differences: Sequence[Difference], unequal: Sequence[Unequal]) -> Mask:
    """Which tuples keep conditions on single nodes and pairs of them; NULL keeps all.

    Raises TooLargeError.
    """
    kept = np.ones(rows, np.bool_)
    if not rows:
        return kept
    for one in differences:
        kept &= ~_known(columns, one, _difference(columns, one) > one.bound)
    for other in unequal:
        kept &= ~_known(columns, other, _difference(columns, other) == other.offset)
    return kept


def taken_in(synopsis: Synopsis, columns: Columns, rows: int, values: ValuesOf) -> Mask:
    """Which tuples, one after the other, a synopsis under DISTINCT takes in, in any cell. `values` gives
    those of some rows as the synopsis has them.

    Raises TooLargeError.
    """
    found = np.zeros(rows, np.bool_)
    if not rows:
        return found
    for cell, layout in enumerate(synopsis.layouts):
        placed, leads, parts = _places(layout, columns, rows)
        for node in synopsis.needed:
            parts += _parts(columns[node])
        at = np.flatnonzero(placed)
        if len(at):
            numbers, first = _numbers([part[at] for part in parts], len(at))
            best, known = np.zeros(len(first), np.int64), np.zeros(len(first), np.bool_)
            for number, one in enumerate(values(at[first])):
                old = synopsis.lead(cell, one)
                if old is not None:
                    _fit(0 if old == math.inf else old)
                    known[number], best[number] = True, min(old, _ENDLESS)
            found[at] |= rising(numbers, leads[at], best, known)
    return found


def _known(columns: Columns, one: Difference | Unequal, broken: Mask) -> Mask:
    for node in (one.left, one.right):
        null = None if node == 0 else columns[node].null
        if null is not None:
            broken = broken & ~null
    return broken


def _difference(columns: Columns, one: Difference | Unequal) -> Ints:
    left = np.zeros(1, np.int64) if one.left == 0 else columns[one.left].data
    right = np.zeros(1, np.int64) if one.right == 0 else columns[one.right].data
    return _minus(left, right)


def _minus(left: Ints, right: Ints) -> Ints:
    _fit(int(left.max()) - int(right.min()), int(left.min()) - int(right.max()))
    return np.asarray(left - right)


def _fit(*numbers: Bound) -> None:
    if any(not -_ENDLESS < number < _ENDLESS for number in numbers):
        raise TooLargeError


def _value(one: Coordinate, columns: Columns, rows: int) -> Ints:
    """A coordinate of every tuple, see `Coordinate.value`."""
    if one.cap != math.inf:
        _fit(one.cap)
    found = np.full(rows, min(one.cap, _ENDLESS), np.int64)
    for node, weight in one.terms:
        column = columns[node]
        low, high = int(column.data.min()), int(column.data.max())
        _fit(*(weight + one.sign * end for end in (low, high)))
        term = weight + one.sign * column.data
        np.minimum(found, term, out=found, where=True if column.null is None else ~column.null)
    return found


def _places(layout: Layout, columns: Columns, rows: int) -> tuple[Mask, Ints, list[Ints]]:
    """Which tuples have a place, their leads, and what makes the bucket besides kept values; as
    `synopsis.place` has it of one.
    """
    placed = np.ones(rows, np.bool_)
    parts: list[Ints] = []

    def seen(one: Coordinate) -> Ints:
        nonlocal placed
        value = _value(one, columns, rows)
        placed &= value >= one.floor
        return value

    parts += [seen(one) for one in layout.finite]
    led = {one.sign: seen(one) for one in (layout.up, layout.down) if one is not None}
    for one, leader, zone in layout.followers:
        value = seen(one)
        near = (value >= zone) & (one.cap != math.inf)
        parts += [near.astype(np.int64), np.where(near, value, _minus(value, led[leader.sign]))]
    if layout.up is None or layout.down is None:
        return placed, next(iter(led.values()), np.zeros(rows, np.int64)), parts
    top = led[1] == min(layout.up.cap, _ENDLESS)
    parts += [top.astype(np.int64), np.where(top, 0, led[-1])]
    return placed, np.where(top, led[-1], led[1]), parts


def _parts(column: Column) -> list[Ints]:
    if column.null is None:
        return [column.data]
    return [column.null.astype(np.int64), np.where(column.null, 0, column.data)]


def _numbers(parts: Sequence[Ints], rows: int) -> tuple[Ints, Ints]:
    """Numbers from 0 for rows, the same where all parts are, and where each appears first."""
    codes, size = np.zeros(rows, np.int64), 1
    for part in parts:
        low, high = int(part.min()), int(part.max())
        own, count = part, high - low + 1
        if count > 4 * rows:
            own = np.unique(part, return_inverse=True)[1].reshape(-1)
            low, count = 0, int(own.max()) + 1
        if size * count > _ROOM:
            codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
            size = int(codes.max()) + 1
        codes = codes * count + (own - low)
        size *= count
    if size > 4 * rows + 1000:
        _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
        return numbers.reshape(-1), first
    numbers, first = numbered(codes, size)
    return np.asarray(numbers), np.asarray(first)
