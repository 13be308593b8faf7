"""Batches of tuples in columns: how they compare, the buckets that they belong to, and which of them a
synopsis under DISTINCT takes in.

A tuple that a synopsis doesn't take in gives no row that isn't given already: in each cell the tuple of its
bucket leads it, and joined, or will join, whatever it joins. So only those that are taken in are looked at
one by one.

A difference of two numbers of 64 bits may need 65: it is kept in two words (see `words`). What a limit adds
to a value is kept without its least part, and at the end of 64 bits: that is beyond what the term with the
least part has.
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
_MOST = 2**63 - 1
_LEAST = -(2**63)


@dataclass(frozen=True)
class Column:
    """The values of one node: where `null` is set (None: nowhere), `data` says nothing."""

    data: Ints
    null: Mask | None = None

    def take(self, at: Ints) -> Column:
        """The values at some places."""
        return Column(self.data[at], None if self.null is None else self.null[at])


Columns = Mapping[int, Column]  # by node


def words(number: int) -> tuple[int, int]:
    """A number as `high * 2**64 + low`, where `low` is a signed number of 64 bits.

    >>> words(2**63), words(-1)
    ((1, -9223372036854775808), (0, -1))
    """
    low = (number - _LEAST) % 2**64 + _LEAST
    return (number - low) >> 64, low


def beyond(columns: Columns, one: Difference) -> Mask:
    """Where a difference is known and above its bound."""
    above, low = _difference(columns, one)
    most, least = words(one.bound)
    return _known(columns, one, (above > most) | (above == most) & (low > least))


def equals(columns: Columns, one: Unequal) -> Mask:
    """Where nodes are known and apart by just what they must not be."""
    above, low = _difference(columns, one)
    most, least = words(one.offset)
    return _known(columns, one, (above == most) & (low == least))


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
        """
        found = np.zeros(rows, np.bool_)
        for cell, layout in enumerate(self._layouts):
            placed = places(layout, self._needed, columns, rows)
            ledger = self._ledgers[cell] = self._ledgers[cell] or Ledger(placed.keys.shape[1])
            found[placed.at] |= ledger.rising(placed.keys, placed.leads)
        return found


@dataclass(frozen=True)
class Placed:
    """The tuples of a batch that have a bucket in a cell: where they stand in it, their buckets, of shape (n,
    parts), and their leads.
    """

    at: Ints
    keys: Ints
    leads: Ints


def places(layout: Layout, needed: Sequence[int], columns: Columns, rows: int) -> Placed:
    """The buckets of a batch, as `synopsis.place` has them of one tuple; the values of `needed` nodes belong
    to each.
    """
    placed, leads, own = _placed(layout, columns, rows)
    parts = [*own, *(part for node in needed for part in parts_of(columns[node]))]
    at = np.flatnonzero(placed)
    keys = np.empty((len(at), len(parts)), np.int64)
    for place, part in enumerate(parts):
        keys[:, place] = part[at]
    return Placed(at, keys, leads[at])


def parts_of(column: Column) -> list[Ints]:
    """A column as numbers by which equal values are found; NULL equals itself."""
    if column.null is None:
        return [np.zeros(len(column.data), np.int64), column.data]
    return [column.null.astype(np.int64), np.where(column.null, 0, column.data)]


def _known(columns: Columns, one: Difference | Unequal, found: Mask) -> Mask:
    for node in (one.left, one.right):
        null = None if node == 0 else columns[node].null
        if null is not None:
            found = found & ~null
    return found


def _difference(columns: Columns, one: Difference | Unequal) -> tuple[Ints, Ints]:
    left = np.zeros(1, np.int64) if one.left == 0 else columns[one.left].data
    right = np.zeros(1, np.int64) if one.right == 0 else columns[one.right].data
    return _minus(left, right)


def _minus(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Differences as `words`."""
    low = left - right
    over = (left >= 0) & (right < 0) & (low < 0)
    under = (left < 0) & (right >= 0) & (low >= 0)
    return over.astype(np.int64) - under, low


@dataclass(frozen=True)
class _Values:
    """A coordinate of every tuple, see `Coordinate.value`, less `shift`."""

    one: Coordinate
    shift: int
    data: Ints

    @property
    def capped(self) -> Mask:
        """Where it is at its cap."""
        cap = self.one.cap - self.shift
        if cap > _MOST:
            return np.zeros(len(self.data), np.bool_)
        return self.data >= cap

    def at_least(self, number: Bound) -> Mask:
        """Where it is not below a number."""
        return np.asarray(self.data >= number - self.shift, np.bool_)


def _values(one: Coordinate, columns: Columns, rows: int) -> _Values:
    # -1 - value has 64 bits where -value may not.
    terms = [(node, weight + (one.sign < 0)) for node, weight in one.terms]
    shift = min(weight for _, weight in terms)
    cap = min(one.cap - shift, _MOST)
    found = np.full(rows, max(cap, _LEAST), np.int64)
    for node, weight in terms:
        more, column = weight - shift, columns[node]
        if more > _MOST - _LEAST:
            continue
        value = column.data if one.sign > 0 else ~column.data
        term = np.where(value > _MOST - more, _MOST, value + np.int64(words(more)[1]))
        np.minimum(found, term, out=found, where=True if column.null is None else ~column.null)
    return _Values(one, shift, found)


def _placed(layout: Layout, columns: Columns, rows: int) -> tuple[Mask, Ints, list[Ints]]:
    """Which tuples have a place, their leads, and what makes the bucket besides kept values."""
    placed = np.ones(rows, np.bool_)
    parts: list[Ints] = []

    def seen(one: Coordinate) -> _Values:
        nonlocal placed
        values = _values(one, columns, rows)
        placed &= values.at_least(one.floor)
        return values

    parts += [seen(one).data for one in layout.finite]
    led = {one.sign: seen(one) for one in (layout.up, layout.down) if one is not None}
    for one, leader, zone in layout.followers:
        value = seen(one)
        near = value.at_least(zone) & (one.cap != math.inf)
        high, low = _minus(value.data, led[leader.sign].data)
        parts += [near.astype(np.int64), np.where(near, 0, high), np.where(near, value.data, low)]
    if layout.up is None or layout.down is None:
        leads = next((one.data for one in led.values()), np.zeros(rows, np.int64))
        return placed, leads, parts
    top = led[1].capped
    parts += [top.astype(np.int64), np.where(top, 0, led[-1].data)]
    return placed, np.where(top, led[-1].data, led[1].data), parts
