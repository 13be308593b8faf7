"""Decisions of the entries of a topic about tuples: which match, what omission compares, and its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from tamis.declarations.definitions import Window
from tamis.expressions.evaluate import evaluate
from tamis.expressions.exact.polynomials import polynomial, rounded
from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Expr, columns
from tamis.expressions.python_functions import FunctionError
from tamis.expressions.vectors import Columns, Mask, Vector
from tamis.omission.batch import retained_by_key
from tamis.omission.columns import Sides
from tamis.omission.exact_ranks import ExactRanks, ExactValues
from tamis.omission.stream import OmissionState
from tamis.omission.window_batch import retained_in_windows
from tamis.omission.window_stream import WindowState
from tamis.plan.model import Entry

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Matches:
    """`published`: tuples that pass some entry without omission, and so are published. `offered`: for each
    entry with omission, the tuples on which it decides, of shape (entries, n). `represented`: for each entry
    with representatives, the tuples that pass it; None without such entries.
    """

    published: Mask
    offered: Mask
    represented: Mask | None = None

    def any(self) -> Mask:
        """The tuples that match any entry."""
        found: Mask = self.published | self.offered.any(axis=0)
        return found if self.represented is None else found | self.represented.any(axis=0)

    def only(self, rows: Mask) -> Matches:
        """The matches among some of the tuples."""
        represented = None if self.represented is None else self.represented & rows
        return Matches(self.published & rows, self.offered & rows, represented)


def matches(
    partition_key: Sequence[str],
    columns: Mapping[str, Vector],
    without_omission: Mask,
    with_omission: Mask,
    null_keys: Sequence[bool],
) -> Matches:
    """The matches of a topic's entries, from where the filters of its entries hold, each of shape (entries,
    n). `null_keys`: of the entries with omission, those that also concern tuples without a key.

    A tuple with NULL in the partition key joins nothing. So it matches no entry with omission that serves
    joins alone. It may match an entry without omission, which may serve an alert over this stream alone.
    """
    offered = with_omission
    for name in partition_key:
        null = columns[name].null
        if null is not None:
            offered = offered & (~null | np.array(null_keys, np.bool_)[:, None])
    return Matches(np.logical_or.reduce(without_omission, axis=0), offered)


class OmissionRule(NamedTuple):
    """The parameters of omission. An edge decides entries together if all of their parameters are equal.

    `interval` and `max_delay` are microseconds. For a `window` another rule applies: the extremes of each
    window are retained.
    """

    interval: int
    sides: Sides
    max_delay: int | None
    window: Window | None

    @classmethod
    def of(cls, entry: Entry) -> OmissionRule:
        """The rule of an entry with omission."""
        return cls(entry.interval, entry.sides, entry.max_delay, entry.window)

    def state(self) -> OmissionState | WindowState:
        """The state of the stream form, without tuples."""
        if self.window is None:
            return OmissionState(self.interval, self.sides, self.max_delay)
        slide, size, offset = self.window.slide, self.window.size, self.window.offset
        return WindowState(slide, size, self.sides, self.max_delay, offset)

    def retained(self, keys: npt.ArrayLike, times: npt.ArrayLike, values: npt.ArrayLike) -> Mask:
        """The tuples that the batch form retains, in any order of their times."""
        if self.window is None:
            return retained_by_key(
                keys, times, values, self.interval, sides=self.sides, max_delay=self.max_delay
            )
        slide, size, offset = self.window.slide, self.window.size, self.window.offset
        return retained_in_windows(
            keys, times, values, slide, size, sides=self.sides, max_delay=self.max_delay, offset=offset
        )


# Integers beyond it aren't exact as DOUBLE: two that differ could look equal to omission.


class Offer(NamedTuple):
    """Tuples at `rows` of a batch, with their omission keys and event times. `alive`: see `ExactRanks.of`."""

    rows: Ints
    keys: Ints
    times: Ints
    alive: Ints


class Compared(NamedTuple):
    """The numbers of the tuples of an offer.

    A tuple that is `outside` has no place in the order and must be retained: its value is NULL, or too
    large to be exact as DOUBLE. `error`: the values can't be computed, so that all tuples are outside.
    """

    numbers: Floats
    outside: Mask
    error: FunctionError | None = None


def compared(
    value: Expr | None, columns: Columns, count: int, *, exact: bool, ranks: ExactRanks, offer: Offer
) -> Compared:
    """The numbers that omission on `value` compares, for the tuples of an offer from a batch of `count`
    tuples.

    `exact`: the exact values of a sum of products are compared instead of the rounded ones; `ranks` remembers
    their order. Without a value, all tuples are equal.
    """
    if value is None:
        return Compared(np.zeros(len(offer.rows)), np.zeros(len(offer.rows), np.bool_))
    if exact:
        return _compared_exactly(value, columns, ranks, offer)
    try:
        values = evaluate(value, columns, count).take(offer.rows)
    except FunctionError as error:
        return Compared(np.zeros(len(offer.rows)), np.ones(len(offer.rows), np.bool_), error)
    outside = np.zeros(len(offer.rows), np.bool_) if values.null is None else values.null
    if values.data.dtype.kind == "i":
        outside = outside | (values.data > LARGEST_EXACT_INTEGER) | (values.data < -LARGEST_EXACT_INTEGER)
    return Compared(values.data.astype(np.float64), outside)


def _compared_exactly(value: Expr, given: Columns, ranks: ExactRanks, offer: Offer) -> Compared:
    form = polynomial(value)
    count = len(offer.keys)
    if form is None:  # of another release's plan: nothing is compared
        return Compared(np.zeros(count), np.ones(count, np.bool_))
    own = {(c.alias, c.name): given[c.alias, c.name].take(offer.rows) for c in columns(value)}
    whole = rounded(form, own, count)
    outside = whole.outside.copy()
    inside = np.flatnonzero(~outside)
    readings = list(zip(*(vector.data[inside].tolist() for vector in own.values()), strict=True))
    keys, times = offer.keys[inside], offer.times[inside]
    placed = ExactValues(keys, times, whole.values[inside], whole.rest[inside], whole.exact[inside])
    found = np.zeros(count)
    found[inside], outside[inside] = ranks.of(placed, readings, offer.alive[inside])
    return Compared(found, outside)
