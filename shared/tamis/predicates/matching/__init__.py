"""Matching of a query's predicate with a stream's (kuntschke-2006, sections 2.2 and 3).

`exact` finds every implication, and `heuristics` compares box by box. `METHODS` has them under one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box
from tamis.predicates.cover import covered
from tamis.predicates.cover.strategies import breadth_first, depth_first, mixed
from tamis.predicates.differences import Difference
from tamis.predicates.matching.exact import by_splitting, exact
from tamis.predicates.matching.heuristics import complex_relaxation, simple_relaxation
from tamis.predicates.predicate import Predicate
from tamis.predicates.ranges import IS_NULL, NOT_NULL

Boxes = tuple[Box, ...]

METHODS: Mapping[str, Callable[[Boxes, Boxes, Mapping[str, Type]], Boxes | None]] = {
    "exact": exact,
    "hsr": partial(simple_relaxation, check=True),
    "hcr": partial(complex_relaxation, check=True),
    "hsr-unchecked": partial(simple_relaxation, check=False),
    "hcr-unchecked": partial(complex_relaxation, check=False),
    "bfs": by_splitting(breadth_first, check=True),
    "dfs": by_splitting(depth_first, check=True),
    "mix": by_splitting(mixed, check=True),
    "bfs-indexed": by_splitting(breadth_first, check=True, indexed=True),
    "dfs-indexed": by_splitting(depth_first, check=True, indexed=True),
    "mix-indexed": by_splitting(mixed, check=True, indexed=True),
    "bfs-unchecked": by_splitting(breadth_first, check=False),
    "dfs-unchecked": by_splitting(depth_first, check=False),
    "mix-unchecked": by_splitting(mixed, check=False),
}
"""Each takes the boxes of stream and query and the types of their attributes. It returns None if it finds
that the query implies the stream, otherwise boxes that cover both. The first three are for use; the others
are the paper's: strategies of splitting, with an index over the stream's boxes, or without the quick check
(Algorithm 1).
"""


@dataclass(frozen=True)
class Match:
    """The result of matching: `implied` if the query implies the stream, and the predicate to which the
    stream must be relaxed. This is the stream's own predicate if it is implied.
    """

    implied: bool
    relaxed: Predicate


def match(stream: Predicate, query: Predicate, method: str = "exact") -> Match:
    """Match a query with a stream by one of `METHODS`.

    `exact` (and `bfs`, `dfs`, `mix`) finds every implication and relaxes the stream to the union of both. The
    heuristics only find boxes of the query that lie in one box of the stream; `hcr` widens boxes instead of
    adding them, so that the result may cover more than both. Raises `InputError` for an unknown method and
    where an attribute has different types in the two, `RefusedError` where an exact answer takes too long.

    >>> from tamis.predicates.parse import parse
    >>> found = match(parse("a BETWEEN 1 AND 2 OR a BETWEEN 3 AND 4"), parse("a IN (1, 2, 3, 5)"))
    >>> found.implied, found.relaxed.sql()
    (False, 'a >= 1 AND a <= 2 OR a >= 3 AND a <= 4 OR a = 5')
    """
    if method not in METHODS:
        raise InputError(f"no such method: {method!r}", hint=f"give one of {', '.join(METHODS)}")
    types = _common_types(stream, query)
    relaxed = METHODS[method](stream.boxes, query.boxes, types)
    if relaxed is None:
        return Match(True, stream)
    return Match(False, Predicate(relaxed, types))


def implies(p: Predicate, q: Predicate) -> bool:
    """True if every tuple that satisfies `p` satisfies `q`. The answer is exact. Raises `InputError` as
    `match` does.
    """
    _common_types(q, p)
    return all(covered(box, q.boxes) for box in p.boxes)


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
        name in (d.left, d.right) for box in predicate.boxes for d in box if isinstance(d, Difference)
    )
