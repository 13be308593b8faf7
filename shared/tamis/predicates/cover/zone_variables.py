"""Variables of zones: attributes, and rounded sums of DOUBLEs, as whole numbers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tamis.expressions.double_order import GREATEST, double_at, number_of
from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box
from tamis.predicates.cover.splitting import compress
from tamis.predicates.differences import Difference, Form, largest_below
from tamis.predicates.ranges import ANYTHING, HIGH, LOW, NULL, Cut

# How often terms and their bases tighten each other: each round is sound, and few find everything.
ROUNDS = 3

Matrix = list[list[int]]
"""Entry (i, j) bounds variable i minus variable j; variable 0 is 0."""
Bound = tuple[int, int, int]
"""`variable i - variable j <= k`."""

FREE = 1 << 200
_INTEGERS = -(2**63), 2**63 - 1


def differences(box: Box) -> Iterator[Difference]:
    """The differences that a box bounds."""
    return (name for name in box if isinstance(name, Difference))


@dataclass(frozen=True)
class Term:
    """The rounded number that a DOUBLE is compared with: `base + offset` (ORDER), or the greatest DOUBLE that
    is more than base by at most offset (ROUNDED). It grows with base.
    """

    base: str
    form: Form
    offset: float

    def key(self, base: int) -> int:
        """The number of its value, where `base` is the number of the base."""
        if self.form is Form.ORDER:
            return number_of(double_at(base) + self.offset)
        return _greatest_within(double_at(base), self.offset)

    def least_base(self, key: int, low: int, high: int) -> int:
        """The least base in [low, high] for which it is at least `key`; high + 1 if there is none."""
        while low <= high:
            middle = (low + high) // 2
            if self.key(middle) >= key:
                high = middle - 1
            else:
                low = middle + 1
        return low


@lru_cache(100_000)
def _greatest_within(base: float, offset: float) -> int:
    """The number of the greatest DOUBLE x with x - base <= offset; one below all DOUBLEs if there is none."""
    low, high = -GREATEST, GREATEST
    while low <= high:
        middle = (low + high) // 2
        if double_at(middle) - base <= offset:
            low = middle + 1
        else:
            high = middle - 1
    return high


@dataclass
class ZoneVariables:
    """The variables: 0, compared attributes that aren't NULL, terms, and all other attributes by the numbers
    of their cuts.
    """

    boxes: Sequence[Box]
    numeric: frozenset[str]
    at: dict[str | Term, int] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)
    _codes: Mapping[str, Mapping[Cut, int]] = field(default_factory=dict)
    _base: Matrix = field(default_factory=list)
    _sums: dict[str, list[Term]] = field(default_factory=dict)  # by base, in order of offsets

    def __post_init__(self) -> None:
        kinds: dict[str, Type] = {}
        terms: set[Term] = set()
        for box in self.boxes:
            for d in differences(box):
                if d.left in self.numeric and d.right in self.numeric:
                    kinds |= {d.left: d.kind, d.right: d.kind}
                    terms |= {term for term in _terms(d, box[d]) if term is not None}
        self._kinds = kinds
        self.terms = sorted(terms, key=lambda term: (term.base, term.form, term.offset))
        for term in self.terms:
            if term.form is Form.ORDER:
                self._sums.setdefault(term.base, []).append(term)
        cuts = compress(self.boxes).cuts
        self._codes = {
            name: {cut: at for at, cut in enumerate(sorted({*ends, *ANYTHING}))}
            for name, ends in cuts.items()
            if name not in kinds and not isinstance(name, Difference)
        }
        names: list[str | Term] = [*sorted(kinds), *self.terms, *sorted(self._codes)]
        self.at = {name: number for number, name in enumerate(names, 1)}
        self._base = self._all()

    def _all(self) -> Matrix:
        """The zone of all tuples."""
        size = len(self.at) + 1
        zone = [[0 if i == j else FREE for j in range(size)] for i in range(size)]
        bounds: list[Bound] = []
        for name, at in self.at.items():
            if isinstance(name, Term):
                low, high = -GREATEST - 1, GREATEST
            elif name in self._kinds:
                low, high = (-GREATEST, GREATEST) if self._kinds[name] is Type.DOUBLE else _INTEGERS
            else:
                low, high = 0, len(self._codes[name])
            bounds += [(at, 0, high), (0, at, -low)]
        for term in self.terms:
            base, at = self.at[term.base], self.at[term]
            below_base = term.offset < 0
            bounds.append((at, base, -1 if term.form is Form.ROUNDED else 0) if below_base else (base, at, 0))
        for one, other in zip(self.terms, self.terms[1:], strict=False):
            if (one.base, one.form) == (other.base, other.form):
                bounds.append((self.at[one], self.at[other], 0))
        found: Matrix | None = zone
        for bound in bounds:
            assert found is not None
            found = tightened_by(found, bound)
        assert found is not None
        return found

    def zone(self, box: Box) -> Matrix | None:
        """The zone of a box; None if it is empty."""
        found: Matrix | None = self._base
        for bound in self.bounds(box):
            if found is not None:
                found = self.tightened(found, bound)
        return found

    def bounds(self, box: Box) -> list[Bound]:
        """The bounds that a box sets."""
        out: list[Bound] = []
        for name, (lower, upper) in box.items():
            if isinstance(name, Difference):
                out += self._bounds_of_difference(name, lower, upper)
                continue
            at = self.at[name]
            if name in self._kinds:
                if lower not in (NULL, LOW):
                    out.append((0, at, -self._key(name, lower)))
                if upper != HIGH:
                    out.append((at, 0, self._key(name, upper) - 1))
            else:
                codes = self._codes[name]
                if lower != NULL:
                    out.append((0, at, -codes[lower]))
                if upper != HIGH:
                    out.append((at, 0, codes[upper] - 1))
        return out

    def _key(self, name: str, cut: Cut) -> int:
        if cut == LOW:  # the end of a range of NULL alone: nothing else is below
            return -FREE
        return number_of(cut[1]) if self._kinds[name] is Type.DOUBLE else int(cut[1])

    def _bounds_of_difference(self, d: Difference, lower: Cut, upper: Cut) -> list[Bound]:
        left = self.at[d.left]
        if d.form is Form.ROUNDED:
            least, most = (self.at[term] for term in _terms(d, (lower, upper)) if term is not None)
            return [(left, most, 0), (least, left, -1)]
        terms = _terms(d, (lower, upper))
        right = self.at[terms[0] or d.right]
        out: list[Bound] = []
        if upper != HIGH:
            out.append((left, right, upper[1] - 1))
        if lower != LOW:
            out.append((right, left, -lower[1]))
        return out

    def tightened(self, zone: Matrix, bound: Bound) -> Matrix | None:
        """A zone with one more bound; None if it is empty."""
        found = tightened_by(zone, bound)
        if found is None or found is zone or not self.terms:
            return found
        before = None
        rounds = 0
        while found is not None and found is not before and rounds < ROUNDS:
            before = found
            rounds += 1
            for bound_of_term in self._ends(found):
                found = found and tightened_by(found, bound_of_term)
            if found is not None:
                for between in self._between(found):
                    found = found and tightened_by(found, between)
        return found

    def _ends(self, zone: Matrix) -> Iterator[Bound]:
        """The bounds between the ends of a term and those of its base."""
        for term in self.terms:
            base, at = self.at[term.base], self.at[term]
            low, high = -zone[0][base], zone[base][0]
            if low > high:
                return
            least, most = term.key(low), term.key(high)
            yield at, 0, most
            yield 0, at, -least
            if -zone[0][at] > least:
                yield 0, base, -term.least_base(-zone[0][at], low, high)
            if zone[at][0] < most:
                yield base, 0, term.least_base(zone[at][0] + 1, low, high) - 1

    def _between(self, zone: Matrix) -> Iterator[Bound]:
        """The bounds between terms of two bases."""
        for one in self.terms:
            for other in self.terms:
                if one.base == other.base or one.form is not other.form:
                    continue
                a, b = self.at[one.base], self.at[other.base]
                if one.offset <= other.offset:
                    if zone[a][b] <= 0:
                        yield self.at[one], self.at[other], 0
                    elif zone[self.at[other]][self.at[one]] < 0:
                        yield b, a, -1
        for one in self.terms:
            for way in self.terms:
                if one.form is way.form is Form.ORDER and zone[self.at[one.base]][self.at[way]] <= 0:
                    # x + p as rounded is at most x + 2p where p > 0, and at most x where not: x is a DOUBLE.
                    most = math.nextafter(2 * (max(one.offset, 0.0) + max(way.offset, 0.0)), math.inf)
                    # The next one: those behind it are no less.
                    sums = self._sums[way.base]
                    at = bisect_left(sums, most, key=_offset)
                    if at < len(sums):
                        yield self.at[one], self.at[sums[at]], 0


def _offset(term: Term) -> float:
    return term.offset


def _terms(d: Difference, found: tuple[Cut, Cut]) -> tuple[Term | None, ...]:
    """The terms that the left side of a difference is compared with; None stands for the right side
    itself.
    """
    if d.form is Form.ROUNDED:
        return tuple(Term(d.right, Form.ROUNDED, largest_below(cut)) for cut in found)
    return (Term(d.right, Form.ORDER, d.offset) if d.offset else None,)


def tightened_by(zone: Matrix, bound: Bound) -> Matrix | None:
    """A zone with one more bound, tightened along all paths; None if it is empty."""
    i, j, k = bound
    if zone[i][j] <= k:
        return zone
    if zone[j][i] + k < 0:
        return None
    beyond = zone[j]
    out = []
    for row in zone:
        via = row[i] + k
        out.append([min(mine, via + rest) for mine, rest in zip(row, beyond, strict=True)])
    return out
