"""Batches of tuples in columns: comparisons, buckets, and the filter of tuples that change a synopsis.

With DISTINCT, most tuples need not be processed one by one. A synopsis keeps one tuple for each bucket, the
one with the greatest lead (see `synopsis`). A new tuple of the same bucket with a lead that isn't greater
adds no row, because the kept tuple joins everything that the new tuple joins. So only tuples that change a
synopsis are processed one by one, and `InsertFilter` finds these.

A difference of two 64-bit numbers may need 65 bits, so it is stored in two words (see `two_words`). The
offsets of a limit are stored relative to the least offset among its terms, and are capped at 64 bits. The cap
doesn't change a result, because the term with the least offset is smaller than a term with a capped offset.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.difference_bounds import Bound
from tamis.operators.synopses.bucket_coordinates import Coordinate
from tamis.operators.synopses.row_numbering import BucketMaxima
from tamis.operators.synopses.synopsis import Layout
from tamis.plan.conjunction import Difference, Unequal

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
_MOST = 2**63 - 1
_LEAST = -(2**63)


@dataclass(frozen=True)
class Column:
    """The values of one node. In rows where `null` is true, `data` has no meaning. If `null` is None, no row
    is NULL.
    """

    data: Ints
    null: Mask | None = None

    def take(self, at: Ints) -> Column:
        """The values in some rows."""
        return Column(self.data[at], None if self.null is None else self.null[at])


Columns = Mapping[int, Column]  # by node


def two_words(number: int) -> tuple[int, int]:
    """A number as (high, low) with `number = high * 2**64 + low`, where `low` is a signed 64-bit number.

    >>> two_words(2**63), two_words(-1)
    ((1, -9223372036854775808), (0, -1))
    """
    low = (number - _LEAST) % 2**64 + _LEAST
    return (number - low) >> 64, low


def beyond(columns: Columns, one: Difference) -> Mask:
    """The rows where a difference is known and above its bound."""
    above, low = _difference(columns, one)
    most, least = two_words(one.bound)
    return _known(columns, one, (above > most) | (above == most) & (low > least))


def equals(columns: Columns, one: Unequal) -> Mask:
    """The rows where both nodes are known and exactly at the forbidden distance."""
    above, low = _difference(columns, one)
    most, least = two_words(one.offset)
    return _known(columns, one, (above == most) & (low == least))


class InsertFilter:
    """Finds the tuples that change a synopsis. It remembers the greatest lead of each bucket, so that it can
    be used batch by batch.
    """

    def __init__(self, layouts: Sequence[Layout], needed: Sequence[int]) -> None:
        self._layouts, self._needed = layouts, needed
        in_coordinates = {
            node for one in layouts for coordinate in one.coordinates for node, _ in coordinate.terms
        }
        self.nodes = in_coordinates | set(needed) if layouts else set()
        self._maxima: list[BucketMaxima | None] = [None for _ in layouts]

    def of(self, columns: Columns, rows: int) -> Mask:
        """The tuples of a batch that are taken in, in any cell. `columns` are those of `nodes`, with the same
        number for the same value in every batch.
        """
        found = np.zeros(rows, np.bool_)
        for cell, layout in enumerate(self._layouts):
            placed = bucket_rows(layout, self._needed, columns, rows)
            maxima = self._maxima[cell] = self._maxima[cell] or BucketMaxima(placed.keys.shape[1])
            found[placed.at] |= maxima.rising(placed.keys, placed.leads)
        return found


@dataclass(frozen=True)
class BucketRows:
    """The tuples of a batch that have a bucket in a cell: their row numbers `at`, their buckets, of shape (n,
    parts), and their leads.
    """

    at: Ints
    keys: Ints
    leads: Ints


def bucket_rows(layout: Layout, needed: Sequence[int], columns: Columns, rows: int) -> BucketRows:
    """The buckets of a batch, as `synopsis.bucket_of` gives them for one tuple. The values of `needed` nodes
    belong to each bucket.
    """
    placed, leads, own = _placed(layout, columns, rows)
    parts = [*own, *(part for node in needed for part in parts_of(columns[node]))]
    at = np.flatnonzero(placed)
    keys = np.empty((len(at), len(parts)), np.int64)
    for place, part in enumerate(parts):
        keys[:, place] = part[at]
    return BucketRows(at, keys, leads[at])


def parts_of(column: Column) -> list[Ints]:
    """A column as two columns of numbers in which equal values are equal; NULL equals NULL."""
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
    """Differences in two words."""
    low = left - right
    over = (left >= 0) & (right < 0) & (low < 0)
    under = (left < 0) & (right >= 0) & (low >= 0)
    return over.astype(np.int64) - under, low


@dataclass(frozen=True)
class _Values:
    """A coordinate of every tuple, see `Coordinate.value`, minus `shift`."""

    one: Coordinate
    shift: int
    data: Ints

    @property
    def capped(self) -> Mask:
        """The rows in which it is at its cap."""
        cap = self.one.cap - self.shift
        if cap > _MOST:
            return np.zeros(len(self.data), np.bool_)
        return self.data >= cap

    def at_least(self, number: Bound) -> Mask:
        """The rows in which it is not below a number."""
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
        term = np.where(value > _MOST - more, _MOST, value + np.int64(two_words(more)[1]))
        np.minimum(found, term, out=found, where=True if column.null is None else ~column.null)
    return _Values(one, shift, found)


def _placed(layout: Layout, columns: Columns, rows: int) -> tuple[Mask, Ints, list[Ints]]:
    """The tuples with a bucket, their leads, and the parts of the bucket besides kept values."""
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
