"""Coordinates of a tuple: the limits that its values set for the attributes of the other streams.

A tuple of a stream S must be kept for the tuples of other streams that it can still join. Which tuples these
are follows from the closure: put the values s of the tuple into it. Then for each node y of another stream

    y <= U_y = min( upper(y), min over x in S of (bound of y - x) + s[x] )
    -y <= L_y = min( -lower(y), min over x in S of (bound of x - y) - s[x] ).

The numbers U_y and L_y are the *coordinates* of the tuple. They determine exactly which tuples it joins. Of
two tuples with the same projected values, one can stand for the other if none of its coordinates is smaller.

In arasu-2004, section 7, tuples are kept in buckets, with a representative for each bucket. The coordinates
do both. Tuples with equal coordinates are in one bucket (the cap `upper(y)` makes all values beyond the
constants equal). The tuple with the greatest U_y is the paper's representative by max of min over MaxRef, and
the tuple with the greatest L_y is the one by min of max over MinRef, both extended by offsets.

In one case there is more than one representative (lemma B.6): S limits a node from above that may be high,
and it limits a node from below that may be low. Then the possible tuples of the other streams are divided
into *cells*: in one cell all high nodes are below a pivot, in the other cells one of them is above the pivot.
In each cell, one representative is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamis.difference_bounds import Bound, Closure
from tamis.operators.synopses.decide import references
from tamis.plan.conjunction import Conjunction, pinned


@dataclass(frozen=True)
class Coordinate:
    """min(cap, min over terms of weight + sign * value): `sign` is 1 for an upper limit of `node`, -1 for a
    lower limit. No tuple that can join has less than `floor`.
    """

    node: int
    sign: int
    cap: Bound
    terms: tuple[tuple[int, int], ...]  # node of S, weight
    floor: Bound

    @property
    def count(self) -> Bound:
        """The number of possible values."""
        return self.cap - self.floor + 1

    def value(self, values: Sequence[Bound | None]) -> Bound:
        """The coordinate of a tuple, whose values stand at the numbers of their nodes. None is NULL, which no
        term compares.
        """
        sign = self.sign
        coordinate = self.cap
        for node, weight in self.terms:
            one = values[node]
            if one is not None and weight + sign * one < coordinate:
                coordinate = weight + sign * one
        return coordinate


@dataclass(frozen=True)
class Cell:
    """A part of the possible tuples of the other streams, as a closure, and the coordinates of S in it."""

    closure: Closure
    coordinates: tuple[Coordinate, ...]


def cells(query: Conjunction, closure: Closure, occurrence: int) -> tuple[Cell, ...]:
    """The cells of one occurrence; a single cell if its coordinates need no split."""
    parts = _split(query, closure, occurrence) if query.distinct else [closure]
    apart = pinned(query, closure)
    own = tuple(node for node in query.own(occurrence) if node not in apart)
    return tuple(Cell(part, _coordinates(query, part, occurrence, own)) for part in parts)


def _coordinates(
    query: Conjunction, closure: Closure, occurrence: int, own: tuple[int, ...]
) -> tuple[Coordinate, ...]:
    """The coordinates in which the tuples of an occurrence can differ, by its `own` nodes. Of coordinates
    that always agree up to a constant there is one.
    """
    by_shape: dict[object, Coordinate] = {}
    for node in range(1, query.size):
        if query.occurrence(node) == occurrence:
            continue
        for sign in (1, -1):
            one = limit(closure, own, node, sign)
            if one is not None:
                least = min(weight for _, weight in one.terms)
                shape = (sign, one.cap - least, tuple((x, weight - least) for x, weight in one.terms))
                kept = by_shape.get(shape)
                if kept is None or one.count < kept.count:
                    by_shape[shape] = one
    return tuple(by_shape.values())


def limit(closure: Closure, own: tuple[int, ...], node: int, sign: int) -> Coordinate | None:
    """The limit that own nodes set for another node; None if they set none."""
    rows = closure.rows
    if sign == 1:
        cap, nonempty = rows[node][0], -rows[0][node]
        terms = [(x, rows[node][x], -rows[0][x]) for x in own]
    else:
        cap, nonempty = rows[0][node], -rows[node][0]
        terms = [(x, rows[x][node], -rows[x][0]) for x in own]
    # The last number is the least value of sign * value: a term that is never below the cap limits nothing.
    used = [(x, weight, least) for x, weight, least in terms if weight != math.inf and weight + least < cap]
    if not used:
        return None
    floor = max(nonempty, min(weight + least for _, weight, least in used))
    return Coordinate(node, sign, cap, tuple((x, int(weight)) for x, weight, _ in used), floor)


def _split(query: Conjunction, closure: Closure, occurrence: int) -> list[Closure]:
    into, out = references(query, closure, occurrence)
    above = [int(node) for node in np.unique(into.outer[into.high])]
    if not above or not out.low.any():
        return [closure]
    tops = [closure.upper(int(x)) for x in out.inner[out.low]]
    # If a top is infinite, the query isn't bounded, and any pivot will do.
    pivot = max((int(top) for top in tops if top != math.inf), default=0)
    parts = []
    whole = closure.copy()
    if all(whole.add(node, 0, pivot) for node in above):
        parts.append(whole)
    for node in above:
        part = closure.copy()
        if part.add(0, node, -pivot - 1):
            parts.append(part)
    return parts
