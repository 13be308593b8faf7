"""What share of a stream's tuples a filter lets pass, estimated.

An attribute of which readings were observed is taken to be spread as they are; one with a declared domain
only, evenly over it; and each independently of the others. Of any other nothing is known, so a condition on
it is taken to let all pass; likewise a conjunct that isn't made of comparisons with constants, and omission,
of which nobody can promise how much it saves. So an estimate is rather too high than too low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr, Type, conjuncts
from tamis.planning.domains import domain
from tamis.planning.points import POINTS, Int32s, count_hits, points, sampled
from tamis.planning.remembered import MOST, Remembered
from tamis.predicates import Predicate
from tamis.predicates.boxes import Box
from tamis.predicates.selectivity import Distribution, Observed, Uniform
from tamis.predicates.selectivity.measure import measure
from tamis.query.model import ColumnDef, StreamDef

Floats = npt.NDArray[np.float64]

# Clauses of a filter that are looked at; what has more is taken to let all pass.
MOST_CLAUSES = 50
# Boxes of which the union is measured exactly: that takes a few milliseconds, and of thousands minutes.
MOST_EXACT = 100


@dataclass(frozen=True, eq=False)
class Footprint:
    """The tuples that filters let pass: boxes in the unit cube with a dimension for each attribute whose
    spread is known, where volume is share. `lower`, `upper`: shape (boxes, d). `hits`: of many boxes, how
    many of them hold each of the points by which their share is estimated.
    """

    lower: Floats
    upper: Floats
    share: float
    hits: Int32s | None = None

    @staticmethod
    def of(lower: Floats, upper: Floats) -> Footprint:
        """The footprint of a union of boxes."""
        if len(lower) <= MOST_EXACT:
            return Footprint(lower, upper, volume(lower, upper))
        hits = np.zeros(POINTS, np.int32)
        count_hits(lower, upper, points(lower.shape[1]), 1, hits)
        return Footprint(lower, upper, float((hits > 0).mean()), hits)

    @staticmethod
    def union(parts: Iterable[Footprint]) -> Footprint:
        """What at least one of them lets pass; of at least one part."""
        several = list(parts)
        if len(several) == 1:
            return several[0]
        lower, upper = (np.concatenate([getattr(p, side) for p in several]) for side in ("lower", "upper"))
        return Footprint.of(lower, upper)

    def changed(self, first: int, behind: int, parts: Sequence[Footprint]) -> Footprint:
        """The footprint with the boxes from `first` to `behind` replaced by those of `parts`."""
        lower, upper = (
            np.concatenate([mine[:first], *(getattr(p, side) for p in parts), mine[behind:]])
            for side, mine in (("lower", self.lower), ("upper", self.upper))
        )
        if self.hits is None or len(lower) <= MOST_EXACT:
            return Footprint.of(lower, upper)
        hits, at = self.hits.copy(), points(lower.shape[1])
        come = len(lower) - len(self.lower) + behind
        count_hits(self.lower[first:behind], self.upper[first:behind], at, -1, hits)
        count_hits(lower[first:come], upper[first:come], at, 1, hits)
        return Footprint(lower, upper, float((hits > 0).mean()), hits)


@dataclass(frozen=True)
class Estimate:
    """How attributes of a stream were spread in `count` readings."""

    count: int
    attributes: Mapping[str, Observed]


@dataclass(frozen=True)
class Share:
    """What share of its stream's tuples passes a filter, and what that rests on, for people."""

    share: float
    estimated_from: str


class Spread:
    """How the attributes of a stream are spread."""

    def __init__(self, stream: StreamDef, observed: Estimate | None = None) -> None:
        self.stream, self.observed = stream, observed
        seen = {column.name: _observed(column, observed) for column in stream.columns if observed}
        self._seen = {name: found for name, found in seen.items() if found is not None}
        self._readings = observed.count if observed else 0
        self._known: dict[str, Distribution] = {
            column.name: found
            for column in stream.columns
            if (found := self._seen.get(column.name) or _declared(column)) is not None
        }
        self._footprints = Remembered[tuple[Footprint, frozenset[str]]](MOST)

    def share(self, filter_: Expr) -> Share | None:
        """What a filter over bare columns lets pass; None where nothing is known of what it compares."""
        found, used = self._estimate(filter_)
        return Share(found.share, self.basis(filter_)) if used or not found.share else None

    @property
    def dimensions(self) -> int:
        """How many attributes are known."""
        return len(self._known)

    def basis(self, filter_: Expr | None) -> str:
        """What the estimate of a filter rests on, for people."""
        if filter_ is None:
            return "no filter: all pass"
        _, used = self._estimate(filter_)
        found = []
        if used & self._seen.keys():
            found.append(f"{self._readings:,} readings")
        if used - self._seen.keys():
            found.append("declared domains")
        return " and ".join(found) or "nothing: of what it compares neither readings nor domains are known"

    def footprint(self, filter_: Expr | None) -> Footprint:
        """What passes a filter over bare columns; None lets all pass."""
        return self._estimate(filter_)[0]

    def _estimate(self, filter_: Expr | None) -> tuple[Footprint, frozenset[str]]:
        """The footprint of a filter, and the attributes that it rests on."""
        return self._footprints.get((filter_,), None, lambda: self._footprint(filter_))

    def _footprint(self, filter_: Expr | None) -> tuple[Footprint, frozenset[str]]:
        boxes = [dict[str, tuple[float, float]]()]
        for part in conjuncts(filter_):
            found = _boxes(part)
            if found is not None and len(boxes) * len(found) <= MOST_CLAUSES:
                boxes = [_met(box, self._shares(other)) for box in boxes for other in found]
        lower = np.array([[box.get(name, (0.0, 1.0))[0] for name in self._known] for box in boxes])
        upper = np.array([[box.get(name, (0.0, 1.0))[1] for name in self._known] for box in boxes])
        shape = len(boxes), len(self._known)
        used = frozenset(name for box in boxes for name in box)
        return Footprint.of(lower.reshape(shape), upper.reshape(shape)), used

    def _shares(self, box: Box) -> dict[str, tuple[float, float]]:
        return {
            name: (self._known[name].below(first), self._known[name].below(behind))
            for name, (first, behind) in box.items()
            if name in self._known
        }


def _boxes(part: Expr) -> tuple[Box, ...] | None:
    """A conjunct as boxes; None where it isn't made of few of them."""
    try:
        return Predicate.of(part, MOST_CLAUSES).boxes
    except RefusedError:
        return None


def volume(lower: Floats, upper: Floats) -> float:
    """The volume of a union of boxes in the unit cube; of many it is estimated."""
    there = (upper > lower).all(axis=1)
    lower, upper = lower[there], upper[there]
    if len(lower) > MOST_EXACT:
        return sampled(lower, upper)
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


def _observed(column: ColumnDef, observed: Estimate) -> Observed | None:
    """How the column was spread, where what was seen are values that it can have."""
    found = observed.attributes.get(column.name)
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


def _met(
    one: dict[str, tuple[float, float]], other: dict[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    out = dict(one)
    for name, (first, behind) in other.items():
        mine = out.get(name, (0.0, 1.0))
        out[name] = max(first, mine[0]), min(behind, mine[1])
    return out
