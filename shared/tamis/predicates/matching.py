"""Matching of a query's predicate with a stream's (kuntschke-2006, sections 2.2 and 3).

`exact` finds every implication (section 3.5, Algorithm 4); `heuristics` compares box by box. `METHODS` has
them under one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tamis.errors import InputError, RefusedError
from tamis.expressions.nodes import Type
from tamis.kernels import njit
from tamis.predicates.boxes import Box, inside, overlap
from tamis.predicates.cover import covered, decided
from tamis.predicates.cover.splitting import Int32s, compress, filtered_depth_first
from tamis.predicates.cover.zones import compares
from tamis.predicates.differences import ComputedDimension
from tamis.predicates.heuristics import Boxes, Rows, complex_relaxation, quick_check, simple_relaxation
from tamis.predicates.predicate import Predicate
from tamis.predicates.ranges import IS_NULL, NOT_NULL

Method = Callable[[Boxes, Boxes, Mapping[str, Type]], Boxes | None]
"""It takes the boxes of stream and query and the types of their attributes. It returns None if it finds that
the query implies the stream, otherwise boxes that cover both.
"""

# Fewer boxes are cheaper to decide one by one than to compress together with the stream's boxes.
_FEW = 8


@dataclass(frozen=True)
class Match:
    """The result of matching: `implied` if the query implies the stream, and the predicate to which the
    stream must be relaxed. This is the stream's own predicate if it is implied.
    """

    implied: bool
    relaxed: Predicate


def match(stream: Predicate, query: Predicate, method: str = "exact") -> Match:
    """Match a query with a stream by one of `METHODS`.

    `exact` finds every implication and relaxes the stream to the union of both. The heuristics `hsr` and
    `hcr` only find boxes of the query that lie in one box of the stream; `hcr` widens boxes instead of adding
    them, so that the result may cover more than both. Raises `InputError` for an unknown method and
    where an attribute has different types in the two, `RefusedError` where an exact answer takes too long.

    >>> from tamis.predicates.parse import parse
    >>> found = match(parse("a BETWEEN 1 AND 2 OR a BETWEEN 3 AND 4"), parse("a IN (1, 2, 3, 5)"))
    >>> found.implied, found.relaxed.sql()
    (False, 'a >= 1 AND a <= 2 OR a >= 3 AND a <= 4 OR a = 5')
    """
    if method not in METHODS:
        raise InputError(f"no such method: {method!r}", hint=f"give one of {', '.join(METHODS)}")
    return match_by(METHODS[method], stream, query)


def match_by(method: Method, stream: Predicate, query: Predicate) -> Match:
    """Match a query with a stream by a method. Raises as `match` does."""
    types = _common_types(stream, query)
    relaxed = method(stream.boxes, query.boxes, types)
    if relaxed is None:
        return Match(True, stream)
    return Match(False, Predicate(relaxed, types))


def implies(p: Predicate, q: Predicate) -> bool:
    """True if every tuple that satisfies `p` satisfies `q`. The answer is exact. Raises `InputError` as
    `match` does.
    """
    _common_types(q, p)
    return all(covered(box, q.boxes) for box in p.boxes)


def surely_implies(p: Predicate, q: Predicate) -> bool:
    """True if it is proved that every tuple that satisfies `p` satisfies `q`; False also if that isn't known.

    It takes less time than `implies`, which searches a tuple where nothing is proved. Raises `InputError` as
    `match` does.
    """
    _common_types(q, p)
    with suppress(RefusedError):
        return all(covered(box, q.boxes, refute=False) for box in p.boxes)
    return False


def _common_types(stream: Predicate, query: Predicate) -> dict[str, Type]:
    types = dict(stream.types)
    for name, kind in query.types.items():
        mine = types.get(name, kind)
        if mine is kind or {mine, kind} == {Type.INT, Type.BIGINT} or not _matters(name, query):
            types[name] = mine
        elif not _matters(name, stream):
            types[name] = kind
        else:
            raise InputError(
                f"'{name}' is {mine} in the stream's predicate and {kind} in the query's",
                hint="give a schema, or compare it with constants of one type",
            )
    return types


def _matters(name: str, predicate: Predicate) -> bool:
    """True if the attribute is compared with a constant or another attribute, not only tested for NULL."""
    return any(box[name] not in (IS_NULL, NOT_NULL) for box in predicate.boxes if name in box) or any(
        name in made.attributes
        for box in predicate.boxes
        for made in box
        if isinstance(made, ComputedDimension)
    )


def exact(stream: Boxes, query: Boxes, types: Mapping[str, Type]) -> Boxes | None:
    """The method that Tamis uses: boxes of the query that no single box of the stream contains are decided by
    `filtered_depth_first`.

    A box of the query that isn't covered is added as a whole, not only its uncovered part: overlapping boxes
    cost little, but more boxes cost much (section 3.5). Boxes of the stream inside the added box are dropped.
    """
    left = [box for box in query if not any(inside(box, other) for other in stream)]
    if len(left) < _FEW or any(map(compares, (*stream, *left))):
        return _one_by_one(stream, left)
    near = [i for i, other in enumerate(stream) if any(overlap(box, other) for box in left)]
    boxes = compress([*(stream[i] for i in near), *left])
    rows = _relaxed(boxes.lower, boxes.upper, np.arange(len(near)))
    if rows is None:
        return None
    gone = set(near) - {near[row] for row in rows if row < len(near)}
    added = [left[row - len(near)] for row in rows if row >= len(near)]
    return (*(box for i, box in enumerate(stream) if i not in gone), *added)


def _one_by_one(stream: Boxes, query: Sequence[Box]) -> Boxes | None:
    relaxed = list(stream)
    changed = False
    for box in query:
        if not covered(box, relaxed):
            relaxed = [other for other in relaxed if not inside(other, box)] + [box]
            changed = True
    return tuple(relaxed) if changed else None


def _relaxed(lower: Int32s, upper: Int32s, rows: Rows) -> Rows | None:
    """The rows of boxes that cover both: the stream's `rows`, and the query's after them. None if the
    stream's boxes alone do.
    """
    changed = False
    for row in range(len(rows), len(lower)):
        lo, hi = lower[row], upper[row]
        found = quick_check(lo, hi, lower, upper, rows)
        if found > 0:
            continue
        if found < 0 or not decided(filtered_depth_first, lo, hi, lower[rows], upper[rows]):
            rows = _added(lower, upper, rows, row)
            changed = True
    return rows if changed else None


@njit(cache=True, nogil=True)
def _added(lower: Int32s, upper: Int32s, rows: Rows, new: int) -> Rows:
    """The boxes `rows` that a new box doesn't contain, and the new one."""
    kept = np.empty(len(rows) + 1, np.intp)
    n = 0
    for row in rows:
        holds = True
        for d in range(lower.shape[1]):
            holds &= lower[new, d] <= lower[row, d] and upper[row, d] <= upper[new, d]
        if not holds:
            kept[n] = row
            n += 1
    kept[n] = new
    return kept[: n + 1]


METHODS: Mapping[str, Method] = {"exact": exact, "hsr": simple_relaxation, "hcr": complex_relaxation}
