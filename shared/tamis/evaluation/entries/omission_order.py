"""The numbers that omission compares: one for each tuple, in the order of the values of an entry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate
from tamis.expressions.exact.polynomials import polynomial, rounded
from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Expr, columns
from tamis.expressions.python_functions import FunctionError
from tamis.expressions.vectors import Columns, Mask
from tamis.omission.exact_ranks import ExactRanks, ExactValues

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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
