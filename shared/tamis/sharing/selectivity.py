"""Selectivity of filters: the estimated share of a stream's tuples that a filter lets pass.

The estimate of an attribute uses the observed readings, or else an even distribution over its declared
domain. Attributes are taken to be independent. A condition on any other attribute is taken to let every
tuple pass, and so is a conjunct that doesn't compare with constants. Omission is left out, since nobody can
promise how much it saves. The estimate is therefore usually too high.

The volume of a union of thousands of boxes is a quasi-Monte-Carlo estimate. The same points are used each
time, so the estimate does not depend on the order in which boxes were added, and the cost of adding or
removing one box does not depend on the number of boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from tamis.certificates.interval_arithmetic.derivatives import domain
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr, Type, conjuncts
from tamis.identity_cache import IdentityCache
from tamis.kernels import njit
from tamis.predicates.boxes import Box
from tamis.predicates.predicate import Predicate
from tamis.predicates.selectivity import Distribution, Uniform, measure
from tamis.predicates.sketch import Observed

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]

# With this many evenly spread points the error of a share is a few thousandths.
POINTS = 1 << 14

# A filter with more clauses is taken to let every tuple pass.
MOST_CLAUSES = 50
# The exact volume of this many boxes takes a few milliseconds; the volume of thousands takes minutes.
MOST_EXACT = 100


@cache
def points(dimensions: int) -> Floats:
    """Points that fill the unit cube evenly, of shape (POINTS, d).

    They are the fractional parts of the multiples of a vector of powers of 1/g, where g^(d + 1) = g + 1
    (Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018).
    """
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (dimensions + 1))
    steps = g ** -np.arange(1.0, dimensions + 1)
    found: Floats = (0.5 + np.arange(1, POINTS + 1)[:, None] * steps[None, :]) % 1.0
    return found


def estimated_volume(lower: Floats, upper: Floats) -> float:
    """The estimated volume of a union of boxes; `lower`, `upper`: of shape (boxes, d), no box is empty."""
    first, size = lower.min(axis=0), upper.max(axis=0) - lower.min(axis=0)
    at = points(lower.shape[1])
    covered = count_covered((lower - first) / size, (upper - first) / size, at)
    return float(size.prod() * covered / len(at))


@njit(cache=True, nogil=True)
def count_hits(lower: Floats, upper: Floats, at: Floats, by: int, hits: Int32s) -> None:
    """Add `by` to the hits of each point for every box [lower, upper) that contains it."""
    for box in range(lower.shape[0]):
        for i in range(at.shape[0]):
            inside = True
            for d in range(at.shape[1]):
                if at[i, d] < lower[box, d] or at[i, d] >= upper[box, d]:
                    inside = False
                    break
            if inside:
                hits[i] += by


@njit(cache=True, nogil=True)
def count_covered(lower: Floats, upper: Floats, at: Floats) -> int:
    """The number of points that lie in at least one box."""
    covered = 0
    for i in range(at.shape[0]):
        for box in range(lower.shape[0]):
            inside = True
            for d in range(at.shape[1]):
                if at[i, d] < lower[box, d] or at[i, d] >= upper[box, d]:
                    inside = False
                    break
            if inside:
                covered += 1
                break
    return covered


@dataclass(frozen=True, eq=False)
class BoxUnion:
    """The tuples that filters let pass, as a union of boxes in the unit cube; its volume is the share.

    The cube has one dimension for each attribute with a known distribution. `lower`, `upper`: shape (boxes,
    d). `hits`: for more than `MOST_EXACT` boxes, how many boxes contain each point of the estimate.
    """

    lower: Floats
    upper: Floats
    share: float
    hits: Int32s | None = None

    @staticmethod
    def of(lower: Floats, upper: Floats) -> BoxUnion:
        """The union of some boxes."""
        if len(lower) <= MOST_EXACT:
            return BoxUnion(lower, upper, volume(lower, upper))
        hits = np.zeros(POINTS, np.int32)
        count_hits(lower, upper, points(lower.shape[1]), 1, hits)
        return BoxUnion(lower, upper, float((hits > 0).mean()), hits)

    @staticmethod
    def union(parts: Iterable[BoxUnion]) -> BoxUnion:
        """The union of one or more parts."""
        several = list(parts)
        if len(several) == 1:
            return several[0]
        lower, upper = (np.concatenate([getattr(p, side) for p in several]) for side in ("lower", "upper"))
        return BoxUnion.of(lower, upper)

    def replaced(self, first: int, behind: int, parts: Sequence[BoxUnion]) -> BoxUnion:
        """The union with the boxes from `first` to `behind` replaced by the boxes of `parts`."""
        lower, upper = (
            np.concatenate([mine[:first], *(getattr(p, side) for p in parts), mine[behind:]])
            for side, mine in (("lower", self.lower), ("upper", self.upper))
        )
        if self.hits is None or len(lower) <= MOST_EXACT:
            return BoxUnion.of(lower, upper)
        hits, at = self.hits.copy(), points(lower.shape[1])
        come = len(lower) - len(self.lower) + behind
        count_hits(self.lower[first:behind], self.upper[first:behind], at, -1, hits)
        count_hits(lower[first:come], upper[first:come], at, 1, hits)
        return BoxUnion(lower, upper, float((hits > 0).mean()), hits)

    def growth(self, need: BoxUnion) -> float:
        """The share of `need` outside of this union, which has `hits`: the share of the union grows by it if
        the boxes of `need` are added. The cost doesn't depend on the number of boxes.
        """
        assert self.hits is not None
        hits = self.hits.copy()
        count_hits(need.lower, need.upper, points(need.lower.shape[1]), 1, hits)
        return float((hits > 0).mean()) - self.share


@dataclass(frozen=True)
class StreamStatistics:
    """Distributions of the attributes of a stream, observed in `count` readings."""

    count: int
    attributes: Mapping[str, Observed]


@dataclass(frozen=True)
class ShareEstimate:
    """The estimated share of tuples that pass a filter, and the source of the estimate, for people."""

    share: float
    estimated_from: str


class SelectivityEstimator:
    """Estimates of the selectivity of filters on one stream."""

    def __init__(self, stream: StreamDef, statistics: StreamStatistics | None = None) -> None:
        self.stream, self.statistics = stream, statistics
        observed = {column.name: _observed(column, statistics) for column in stream.columns if statistics}
        self._observed = {name: found for name, found in observed.items() if found is not None}
        self._readings = statistics.count if statistics else 0
        # Few windows look like a pattern: their distances have no even distribution.
        self._known: dict[str, Distribution] = {
            column.name: found
            for column in stream.recorded_columns
            if (found := self._observed.get(column.name) or _declared(column)) is not None
        }
        self._estimates = IdentityCache[tuple[BoxUnion, frozenset[str]]]()

    def share(self, filter_: Expr) -> ShareEstimate | None:
        """The share of a filter over bare columns; None if none of the compared attributes is known."""
        found, used = self._estimate(filter_)
        return ShareEstimate(found.share, self.basis(filter_)) if used or not found.share else None

    @property
    def dimensions(self) -> int:
        """The number of attributes with a known distribution."""
        return len(self._known)

    def basis(self, filter_: Expr | None) -> str:
        """The source of the estimate of a filter, for people."""
        if filter_ is None:
            return "no filter: all pass"
        share, used = self._estimate(filter_)
        found = []
        if used & self._observed.keys():
            found.append(f"{self._readings:,} readings")
        if used - self._observed.keys():
            found.append("declared domains")
        if not found and not share.share:
            return "its own conditions, which no tuple meets"
        return " and ".join(found) or "nothing: of what it compares neither readings nor domains are known"

    def passed(self, filter_: Expr | None) -> BoxUnion:
        """The tuples that pass a filter over bare columns; None lets all pass."""
        return self._estimate(filter_)[0]

    def _estimate(self, filter_: Expr | None) -> tuple[BoxUnion, frozenset[str]]:
        """The tuples that pass a filter, and the attributes that the estimate uses."""
        return self._estimates.get((filter_,), None, lambda: self._compute(filter_))

    def _compute(self, filter_: Expr | None) -> tuple[BoxUnion, frozenset[str]]:
        boxes = [dict[str, tuple[float, float]]()]
        for part in conjuncts(filter_):
            found = _boxes(part)
            if found is not None and len(boxes) * len(found) <= MOST_CLAUSES:
                boxes = [_intersection(box, self._shares(other)) for box in boxes for other in found]
        lower = np.array([[box.get(name, (0.0, 1.0))[0] for name in self._known] for box in boxes])
        upper = np.array([[box.get(name, (0.0, 1.0))[1] for name in self._known] for box in boxes])
        shape = len(boxes), len(self._known)
        used = frozenset(name for box in boxes for name in box)
        return BoxUnion.of(lower.reshape(shape), upper.reshape(shape)), used

    def _shares(self, box: Box) -> dict[str, tuple[float, float]]:
        return {
            name: (self._known[name].below(first), self._known[name].below(behind))
            for name, (first, behind) in box.items()
            if name in self._known
        }


# A query is explained and then planned, which estimates equal filters.
@lru_cache(maxsize=1_000)
def _boxes(part: Expr) -> tuple[Box, ...] | None:
    """A conjunct as boxes; None if it has no such form, or needs too many boxes."""
    try:
        return Predicate.of(part, MOST_CLAUSES).boxes
    except RefusedError:
        return None


def volume(lower: Floats, upper: Floats) -> float:
    """The volume of a union of boxes in the unit cube; estimated for more than `MOST_EXACT` boxes."""
    there = (upper > lower).all(axis=1)
    lower, upper = lower[there], upper[there]
    if len(lower) > MOST_EXACT:
        return estimated_volume(lower, upper)
    if len(lower) <= 1 or lower.shape[1] == 0:
        return float((upper - lower).prod(axis=1).sum()) if lower.shape[1] else float(len(lower) > 0)
    cuts = [np.unique(np.concatenate([lower[:, d], upper[:, d]])) for d in range(lower.shape[1])]
    cumulative = np.zeros((len(cuts), max(map(len, cuts))))
    for d, ends in enumerate(cuts):
        cumulative[d, : len(ends)] = ends
    codes = [
        np.stack([np.searchsorted(cuts[d], side[:, d]) for d in range(len(cuts))], axis=1).astype(np.int32)
        for side in (lower, upper)
    ]
    return min(measure(codes[0], codes[1], cumulative), 1.0)


def _observed(column: ColumnDef, statistics: StreamStatistics) -> Observed | None:
    """The observed distribution of a column; None if the observed values don't fit the column's type."""
    found = statistics.attributes.get(column.name)
    if found is None or not (column.type.numeric or column.type is Type.BOOLEAN):
        return None
    fits = all(isinstance(value, bool) is (column.type is Type.BOOLEAN) for value in found.values)
    return found if fits else None


def _declared(column: ColumnDef) -> Distribution | None:
    if column.type is Type.BOOLEAN:
        return Uniform(0, 2)
    if column.check is None or not (column.type.numeric or column.type is Type.TIMESTAMP):
        return None
    found, default = domain(column), domain(ColumnDef(column.name, column.type))
    ends, widest = (found.lo.item(), found.hi.item()), (default.lo.item(), default.hi.item())
    if ends[0] == widest[0] or ends[1] == widest[1]:
        return None
    return Uniform(ends[0], ends[1] + 1 if column.type.integral else ends[1])


def _intersection(
    one: dict[str, tuple[float, float]], other: dict[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    out = dict(one)
    for name, (first, behind) in other.items():
        mine = out.get(name, (0.0, 1.0))
        out[name] = max(first, mine[0]), min(behind, mine[1])
    return out
