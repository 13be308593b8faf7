"""Matching box by box (kuntschke-2006, sections 3.2 to 3.4): quick, and blind to a box of the query that only
several boxes of the stream cover together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box, inside, trimmed
from tamis.predicates.differences import Difference
from tamis.predicates.ranges import ANYTHING, HIGH, LOW, Range


def simple_relaxation(
    stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type], *, check: bool
) -> tuple[Box, ...] | None:
    """HSR (Algorithm 2): what isn't in a box of the stream is added; without the check, all is."""
    added: list[Box] = []
    for box in query:
        if not check or not any(inside(box, other) for other in (*stream, *added)):
            added.append(box)
    return (*stream, *added) if added else None


def complex_relaxation(
    stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type], *, check: bool
) -> tuple[Box, ...] | None:
    """HCR (Algorithm 3): for what isn't in a box of the stream, the box is widened that then
    has the fewest unbounded ends, and of those the one whose volume grows least.
    """
    relaxed = list(stream)
    for box in query:
        if check and any(inside(box, other) for other in relaxed):
            continue
        if not relaxed:
            relaxed.append(box)
            continue
        wider = [_widened(other, box, types) for other in relaxed]
        if any(wide == other for (_, wide), other in zip(wider, relaxed, strict=True)):
            continue  # it holds the box as it is
        best = min(range(len(wider)), key=lambda at: wider[at][0])
        relaxed[best] = wider[best][1]
    return None if tuple(relaxed) == stream else tuple(relaxed)


def _widened(box: Box, by: Box, types: Mapping[str, Type]) -> tuple[tuple[int, float], Box]:
    """`box` widened to hold `by`, with its cost: unbounded ends, and growth of volume.

    A dimension that `by` lacks is unbounded there: so it becomes in `box` (erratum of Algorithm 8).
    """
    out = dict(box)
    growth = 0.0
    for name, mine in box.items():
        theirs = by.get(name, ANYTHING)
        wide = min(mine[0], theirs[0]), max(mine[1], theirs[1])
        if wide != mine:
            others = [_length(found, _kind(n, types)) for n, found in out.items() if n != name]
            extent = math.prod(length for length in others if 0 < length < math.inf)
            kind = _kind(name, types)
            more = _length(wide, kind) - _length(mine, kind) if _finite(mine, kind) else 0.0
            growth += more * extent
            out[name] = wide
    ends = sum((found[0] <= LOW) + (found[1] == HIGH) for found in out.values())
    return (ends, growth), trimmed(out)


def _kind(name: str, types: Mapping[str, Type]) -> Type:
    return name.type if isinstance(name, Difference) else types[name]


def _finite(found: Range, kind: Type) -> bool:
    return _length(found, kind) < math.inf


def _length(found: Range, kind: Type) -> float:
    """The extent of a range: infinite where an end is unbounded or values have no distance."""
    lower, upper = found
    if kind is Type.VARCHAR or len(lower) == 1 or len(upper) == 1:
        return math.inf
    return float(upper[1]) - float(lower[1])
