"""Random predicates and data items of the paper (kuntschke-2006, sections 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box
from tamis.predicates.predicate import Predicate
from tamis.predicates.ranges import above, below

Floats = npt.NDArray[np.float64]

FIRST, LAST = 0.0, 100.0
DISTINCT = 21  # values that ends are chosen from
# The paper's normal distribution of ends, whose spread it doesn't tell: nearly all within the data space.
SPREAD = 100 / 6


def names(dimensions: int) -> list[str]:
    """The names of the dimensions."""
    return [f"d{at:02}" for at in range(dimensions)]


def types(dimensions: int) -> dict[str, Type]:
    """All are DOUBLE, as in the paper."""
    return dict.fromkeys(names(dimensions), Type.DOUBLE)


def of_bounds(lower: Floats, upper: Floats) -> Predicate:
    """The closed boxes of shape (boxes, d); NaN for an attribute that a box doesn't name."""
    dimensions = lower.shape[1]
    boxes: list[Box] = [
        {
            name: (below(float(lo), Type.DOUBLE), above(float(hi), Type.DOUBLE))
            for name, lo, hi in zip(names(dimensions), los, his, strict=True)
            if not np.isnan(lo)
        }
        for los, his in zip(lower, upper, strict=True)
    ]
    return Predicate(tuple(boxes), types(dimensions))


def predicate(
    r: np.random.Generator,
    dimensions: int,
    boxes: int,
    *,
    normal: bool,
    bounded: bool = True,
    distinct: int = DISTINCT,
) -> Predicate:
    """Ends of ranges among few values, normal for queries and uniform for streams. Where not bounded, each
    box names only some of the dimensions, at least one, which ones by chance.
    """
    values = np.linspace(FIRST, LAST, distinct)
    shape = boxes, dimensions, 2
    chosen = np.zeros(shape, np.int64)
    while (same := chosen[..., 0] == chosen[..., 1]).any():  # no range is a point
        count = int(same.sum())
        if normal:
            places = r.normal((FIRST + LAST) / 2, SPREAD, (count, 2)) / (LAST - FIRST) * (distinct - 1)
            chosen[same] = np.clip(np.rint(places), 0, distinct - 1).astype(np.int64)
        else:
            chosen[same] = r.integers(0, distinct, (count, 2))
    ends = np.sort(values[chosen], axis=2)
    if not bounded:
        for box in range(boxes):
            ends[box, r.permutation(dimensions)[r.integers(1, dimensions + 1) :]] = np.nan
    return of_bounds(ends[..., 0], ends[..., 1])


def covering(r: np.random.Generator, dimensions: int, boxes: int, share: float, overlap: float) -> Predicate:
    """A predicate that a share of uniform items satisfies: a cube, cut into disjoint boxes, and `overlap`
    of all boxes placed about its middle, normally distributed.
    """
    placed = round(boxes * overlap)
    side = (LAST - FIRST) * share ** (1 / dimensions)
    corner = (LAST - FIRST - side) / 2
    parts = [(np.full(dimensions, corner), np.full(dimensions, corner + side))]
    while len(parts) < boxes - placed:
        lo, hi = max(parts, key=lambda part: float((part[1] - part[0]).prod()))
        parts = [part for part in parts if part[0] is not lo]
        d = int((hi - lo).argmax())
        middle = lo[d] + (hi[d] - lo[d]) * r.uniform(0.4, 0.6)
        below_it, above_it = hi.copy(), lo.copy()
        below_it[d] = above_it[d] = middle
        parts += [(lo, below_it), (above_it, hi)]
    lower, upper = np.array([lo for lo, _ in parts]), np.array([hi for _, hi in parts])
    if placed:
        # As large as the others, and wholly inside the area.
        sizes = (upper - lower)[r.integers(0, len(lower), placed)]
        centers = r.normal((FIRST + LAST) / 2, side / 6, (placed, dimensions))
        starts = np.clip(centers - sizes / 2, corner, corner + side - sizes)
        lower, upper = np.concatenate([lower, starts]), np.concatenate([upper, starts + sizes])
    order = r.permutation(len(lower))
    return of_bounds(lower[order], upper[order])


def items(r: np.random.Generator, dimensions: int, count: int) -> dict[str, Floats]:
    """Data items as columns, uniform."""
    return {name: r.uniform(FIRST, LAST, count) for name in names(dimensions)}


def pairs(
    r: np.random.Generator, dimensions: int, of_query: int, of_stream: int, *, bounded: bool = True
) -> Sequence[tuple[Predicate, Predicate]]:
    """60 query predicates with 20 stream predicates each: 1,200 pairs, in no order."""
    streams = [predicate(r, dimensions, of_stream, normal=False, bounded=bounded) for _ in range(20)]
    queries = [predicate(r, dimensions, of_query, normal=True, bounded=bounded) for _ in range(60)]
    found = [(stream, query) for stream in streams for query in queries]
    return [found[at] for at in r.permutation(len(found))]
