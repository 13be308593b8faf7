"""Batches of tuples in columns: which of them keep the conditions on their stream, and which of these a
synopsis under DISTINCT takes in.

A tuple that a synopsis doesn't take in gives no row that isn't given already: in each cell the tuple of its
bucket leads it, and joined, or will join, whatever it joins. So only those that are taken in are looked at
one by one.

Numbers beyond 64 bits are not computed here: where there may be some, every tuple is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.closure import Bound
from tamis.bounded.coordinates import Coordinate
from tamis.bounded.evaluate.ledger import Ledger
from tamis.bounded.evaluate.synopsis import Layout
from tamis.bounded.normal_form import Difference, Unequal

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
_ENDLESS = 2**63 - 1  # stands for infinity: all numbers are less


@dataclass(frozen=True)
class Column:
    """The values of one node: where `null` is set (None: nowhere), `data` says nothing."""

    data: Ints
    null: Mask | None = None

    def take(self, at: Ints) -> Column:
        """The values at some places."""
        return Column(self.data[at], None if self.null is None else self.null[at])


Columns = Mapping[int, Column]  # by node


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


class TakenIn:
    """Which tuples a synopsis takes in, of those that it was asked about: it forgets none, so that it answers
    for batches one after the other.
    """

    def __init__(self, layouts: Sequence[Layout], needed: Sequence[int]) -> None:
        self._layouts, self._needed = layouts, needed
        asked = {node for one in layouts for coordinate in one.coordinates for node, _ in coordinate.terms}
        self.nodes = asked | set(needed) if layouts else set()
        self._ledgers: list[Ledger | None] = [None for _ in layouts]

    def of(self, columns: Columns, rows: int) -> Mask:
        """Which tuples of a batch are taken in, in any cell. `columns` are those of `nodes`, with the same
        number for the same value in every batch.

        Raises TooLargeError.
        """
        found = np.zeros(rows, np.bool_)
        if not rows:
            return found
        places = [_places(layout, columns, rows) for layout in self._layouts]
        kept = [part for node in self._needed for part in _parts(columns[node])]
        for cell, (placed, leads, own) in enumerate(places):
            parts = [*own, *kept]
            ledger = self._ledgers[cell] = self._ledgers[cell] or Ledger(len(parts))
            at = np.flatnonzero(placed)
            keys = np.empty((len(at), len(parts)), np.int64)
            for place, part in enumerate(parts):
                keys[:, place] = part[at]
            found[at] |= ledger.rising(keys, leads[at])
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
        return [np.zeros(len(column.data), np.int64), column.data]
    return [column.null.astype(np.int64), np.where(column.null, 0, column.data)]
