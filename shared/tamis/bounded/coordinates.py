"""What a tuple asks of the other streams.

With the values s of a tuple of S put into a closed query, the closure over the nodes of the other streams is
again closed, and follows from one step: for a node y of another stream

    y <= U_y = min( upper(y), min over x in S of (bound of y - x) + s[x] )
    -y <= L_y = min( -lower(y), min over x in S of (bound of x - y) - s[x] ).

These numbers, the *coordinates* of the tuple, say exactly with what it joins: of two tuples with the same
projected values, one can stand for the other where none of its coordinates is smaller. So they are at once
the buckets of arasu-2004, section 7 (the cap by `upper(y)` makes all values beyond the constants one), and
its representatives: the tuple with the greatest U_y is the one with max of min over MaxRef, with offsets, and
the one with the greatest L_y that with min of max over MinRef.

One case needs more than one representative (lemma B.6): a node y that may be high is compared with S from
above, and one that may be low from below. Then what others bring is split in *cells*: all such y below a
pivot, or one of them above it. In each cell one side is settled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamis.bounded.closure import Bound, Closure
from tamis.bounded.keyed import pinned
from tamis.bounded.normal_form import Conjunction
from tamis.bounded.references import references


@dataclass(frozen=True)
class Coordinate:
    """min(cap, min over terms of weight + sign * value); `sign` 1 for an upper limit of `node`, -1 for a
    lower one. `floor`: no tuple that can join has less.
    """

    node: int
    sign: int
    cap: Bound
    terms: tuple[tuple[int, int], ...]  # node of S, weight
    floor: Bound

    @property
    def count(self) -> Bound:
        """How many values it can have."""
        return self.cap - self.floor + 1

    def value(self, values: Sequence[Bound | None]) -> Bound:
        """Of a tuple, whose values stand at its nodes' numbers; None is NULL, which no term compares."""
        sign = self.sign
        found = self.cap
        for node, weight in self.terms:
            one = values[node]
            if one is not None and weight + sign * one < found:
                found = weight + sign * one
        return found


@dataclass(frozen=True)
class Cell:
    """A part of what other streams may bring, as a closure, and the coordinates of S in it."""

    closure: Closure
    coordinates: tuple[Coordinate, ...]


def cells(query: Conjunction, closure: Closure, occurrence: int) -> tuple[Cell, ...]:
    """The cells of one occurrence; one alone where each tuple's coordinates need no splitting."""
    parts = _split(query, closure, occurrence) if query.distinct else [closure]
    apart = pinned(query, closure)
    own = tuple(node for node in query.own(occurrence) if node not in apart)
    return tuple(Cell(part, _coordinates(query, part, occurrence, own)) for part in parts)


def _coordinates(
    query: Conjunction, closure: Closure, occurrence: int, own: tuple[int, ...]
) -> tuple[Coordinate, ...]:
    """Those coordinates of an occurrence in which its tuples can differ, as far as its `own` nodes make them;
    one of those that always agree up to a constant.
    """
    found: dict[object, Coordinate] = {}
    for node in range(1, query.size):
        if query.occurrence(node) == occurrence:
            continue
        for sign in (1, -1):
            one = limit(closure, own, node, sign)
            if one is not None:
                least = min(weight for _, weight in one.terms)
                shape = (sign, one.cap - least, tuple((x, weight - least) for x, weight in one.terms))
                kept = found.get(shape)
                if kept is None or one.count < kept.count:
                    found[shape] = one
    return tuple(found.values())


def limit(closure: Closure, own: tuple[int, ...], node: int, sign: int) -> Coordinate | None:
    """The limit that nodes set for another one; None where they never do."""
    rows = closure.rows
    if sign == 1:
        cap, nonempty = rows[node][0], -rows[0][node]
        terms = [(x, rows[node][x], -rows[0][x]) for x in own]
    else:
        cap, nonempty = rows[0][node], -rows[node][0]
        terms = [(x, rows[x][node], -rows[x][0]) for x in own]
    # The last number is the least of sign * value: a term that never gets below the cap says nothing.
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
    # Where a top is infinite the query isn't bounded, and any pivot is as good as another.
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
