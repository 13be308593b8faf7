"""Proofs over a whole box from enclosures over its parts: interval arithmetic with subdivision.

A statement about a box (such as "the derivative is never negative") is tried on the whole box. If the
enclosures don't show it, the box is split, and the statement is tried on each part, until it is shown for all
parts or the effort is spent. The effort is counted in operators times boxes, not in time, so that every
machine finds the same proofs.

A statement that fails at a point fails over every box with that point. So statements are first tried at some
points, which costs little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tamis.certificates.curvature.properties import Curvature, closed
from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.derivatives import (
    NO_VARIABLE,
    Box,
    Derivatives,
    PossibleNulls,
    UndefinedError,
)
from tamis.certificates.interval_arithmetic.interval_derivatives import derivatives
from tamis.certificates.interval_arithmetic.intervals import Interval, Mask
from tamis.expressions.nodes import Call, Column, Expr

# One unit is one operator over one box, some 2 µs on a slow core.
MOST_WORK = 250_000  # for one statement about one expression
ALL_WORK = 750_000  # for one certificate: about 2 s at most
QUERY_WORK = 1_000_000  # for all certificates of one query, which may join sixteen streams
TRIALS = 1_000_000  # for trying statements at points, in all certificates of one query
_MOST_FUTILE_ROUNDS = (
    12  # rounds, each of twice the boxes, after which some box at least must have been proved
)
_ROUND = 40  # boxes that the fixed cost of one round of subdivision is worth
_PLACES = 120  # random places at which a statement is first tried

Test = Callable[[Derivatives], Mask]


@dataclass
class Effort:
    """The work that is left for one certificate.

    `trials` is the work left for trying statements at points: an expression of thousands of parts has
    thousands of statements.
    """

    left: int = ALL_WORK
    used: bool = False
    trials: int = TRIALS

    def try_at_points(self, operators: int) -> bool:
        """True if enough work is left to try a statement about an expression of `operators` operators. The
        work is then subtracted.
        """
        work = (_PLACES + _ROUND) * operators
        if work > self.trials:
            return False
        self.trials -= work
        return True


@dataclass
class QueryEffort:
    """The work that is left for all certificates of one query."""

    left: int = QUERY_WORK
    trials: int = TRIALS

    def certificate(self) -> Effort:
        """The effort for the next certificate; pass it to `spent` afterwards."""
        return Effort(min(ALL_WORK, self.left), trials=self.trials)

    def spent(self, effort: Effort) -> None:
        """Subtract the work of a certificate that has ended."""
        self.left -= min(ALL_WORK, self.left) - effort.left
        self.trials = effort.trials


def derivatives_over(expr: Expr, box: Box, variable: Column, *, strict: bool = False) -> Derivatives:
    """The interval derivatives over one box. Raises UndefinedError if a part may be NULL."""
    nulls = PossibleNulls()
    out = derivatives(expr, box, variable, nulls, strict=strict)
    nulls.check()
    return out


def enclose(expr: Expr, box: Box, variable: Column, effort: Effort) -> Derivatives:
    """The interval derivatives over a box, joined from those over its parts. Used if the whole box has no
    enclosure.

    Raises UndefinedError if it may be NULL, or where the effort is too small to show that it is not.
    """
    effort.used = True
    if not effort.try_at_points(_operators(expr)):
        raise UndefinedError(expr, "may be NULL")
    nulls = PossibleNulls()
    derivatives(expr, sample_points(box), variable, nulls)
    nulls.check()
    parts: list[Derivatives] = []

    def keep(part: Derivatives) -> Mask:
        parts.append(part)
        return np.ones((), np.bool_)

    if not _holds_over(expr, box, variable, effort, keep):
        derivatives_over(expr, box, variable)  # says what may be NULL
        raise UndefinedError(expr, "may be NULL")
    return replace(
        parts[0],
        value=_joined([p.value for p in parts]),
        first=_joined([p.first for p in parts]),
        second=_joined([p.second for p in parts]),
    )


def _joined(parts: list[Interval]) -> Interval:
    return iv.span(min(float(np.min(p.lo)) for p in parts), max(float(np.max(p.hi)) for p in parts))


def _strictly_monotone(j: Derivatives) -> Mask:
    """Where the number is smooth and its slope is never 0. A bend has no second derivative (see
    `operator_derivatives`).
    """
    smooth = np.isfinite(j.second.lo) & np.isfinite(j.second.hi)
    return ((j.first.lo > 0) | (j.first.hi < 0)) & smooth


# Quasiconvex: a maximum between two lower values needs a point with slope 0, or a bend, and the number must
# fall to its right. A second derivative >= 0 rules that out.
_TESTS: dict[Curvature, Test] = {
    Curvature.RISING: lambda j: j.first.lo >= 0,
    Curvature.FALLING: lambda j: j.first.hi <= 0,
    Curvature.CONVEX: lambda j: j.second.lo >= 0,
    Curvature.CONCAVE: lambda j: j.second.hi <= 0,
    Curvature.QUASICONVEX: lambda j: _strictly_monotone(j) | (j.second.lo >= 0),
    Curvature.QUASICONCAVE: lambda j: _strictly_monotone(j) | (j.second.hi <= 0),
}
# The same where only the sign of a number matters: a ray can only end at a zero, and away from zero the
# number may rise and fall.
_AT_ZERO: dict[Curvature, Test] = {
    Curvature.RISING: lambda j: ~j.value.holds(0.0) | (j.first.lo >= 0),
    Curvature.FALLING: lambda j: ~j.value.holds(0.0) | (j.first.hi <= 0),
    Curvature.QUASICONVEX: lambda j: (j.value.hi < 0) | _TESTS[Curvature.QUASICONVEX](j),
    Curvature.QUASICONCAVE: lambda j: (j.value.lo > 0) | _TESTS[Curvature.QUASICONCAVE](j),
}
_RAYS = Curvature.RISING | Curvature.FALLING


def prove_curvature(
    expr: Expr, box: Box, variable: Column, effort: Effort, *, at_zero: bool = False
) -> Curvature:
    """The curvature that the signs of the first and second derivative prove of `expr`. Then `expr` is also
    never NULL.

    With `at_zero`, the result is about the sets where `expr` is above, below or at 0.
    """
    if not effort.try_at_points(_operators(expr)):
        return Curvature.NONE
    tests = _AT_ZERO if at_zero else _TESTS
    points = sample_points(box)
    nulls = PossibleNulls()
    there = derivatives(expr, points, variable, nulls)
    found = Curvature.NONE
    for curvature, test in tests.items():
        if curvature in closed(found) or not np.all(test(there) & ~nulls.boxes):
            continue
        effort.used = True
        if _holds_over(expr, box, variable, effort, test):
            found |= curvature
            if curvature in _RAYS:
                break  # a ray is the strongest statement
    return closed(found)


def never_negative(expr: Expr, box: Box, effort: Effort) -> bool:
    """True if `expr` is proved to be NULL or at least 0 over the whole box."""
    if not effort.try_at_points(_operators(expr)):
        return False

    def test(j: Derivatives) -> Mask:
        return j.value.lo >= 0

    if not np.all(test(derivatives(expr, sample_points(box), NO_VARIABLE, PossibleNulls()))):
        return False
    effort.used = effort.used or bool(box)
    return _holds_over(expr, box, NO_VARIABLE, effort, test)


def sample_points(box: Box) -> Box:
    """Points of the box, with corners and zeros among them. They are the same every time, so that a verdict
    is repeatable.
    """
    rng = np.random.default_rng(0)
    out = {}
    for column in sorted(box, key=lambda c: (c.alias, c.name)):
        side = box[column]
        lo, hi = float(side.lo), float(side.hi)
        share = rng.random(_PLACES)
        at = np.clip(lo * (1 - share) + hi * share, lo, hi)
        ends = rng.choice([lo, hi, min(max(0.0, lo), hi)], size=_PLACES)
        at = np.where(rng.random(_PLACES) < 0.4, ends, at)
        out[column] = Interval(at, at)
    return out


def _holds_over(expr: Expr, box: Box, variable: Column, effort: Effort, test: Test) -> bool:
    """True if `test` is proved to hold over the whole box. The box is split until `test` holds over each
    part; False if the effort runs out.
    """
    names = sorted(box, key=lambda c: (c.alias, c.name))
    lows = np.array([[float(box[c].lo) for c in names]]).reshape(1, len(names))
    highs = np.array([[float(box[c].hi) for c in names]]).reshape(1, len(names))
    size = np.maximum(highs[0] / 2 - lows[0] / 2, np.finfo(float).tiny)
    most, operators, futile = MOST_WORK, _operators(expr), 0
    while len(lows):
        work = (len(lows) + _ROUND) * operators
        if work > min(most, effort.left):
            return False
        most -= work
        effort.left -= work
        parts = {c: Interval(lows[:, i], highs[:, i]) for i, c in enumerate(names)}
        nulls = PossibleNulls()
        found = derivatives(expr, parts, variable, nulls)
        proved = test(found) & ~nulls.boxes
        rest = np.flatnonzero(~np.broadcast_to(proved, (len(lows),)))
        if not len(rest):
            return True
        futile = futile + 1 if len(rest) == len(lows) else 0
        if not names or futile > _MOST_FUTILE_ROUNDS:
            return False
        lows, highs = lows[rest], highs[rest]
        rows = np.arange(len(rest))
        # The side that is longest, as a share of the whole box's.
        side = np.argmax((highs / 2 - lows / 2) / size, axis=1)
        lo, hi = lows[rows, side], highs[rows, side]
        at = _middle(lo, hi)
        if np.any((at <= lo) | (at >= hi)):
            return False  # there is no number between the ends
        lower, upper = highs.copy(), lows.copy()
        lower[rows, side] = at
        upper[rows, side] = at
        lows, highs = np.concatenate([lows, upper]), np.concatenate([lower, highs])
    return True


def _operators(expr: Expr) -> int:
    return 1 + sum(_operators(arg) for arg in expr.args) if isinstance(expr, Call) else 1


def _middle(lo: iv.Array, hi: iv.Array) -> iv.Array:
    """The point at which to split an interval: 0, the geometric mean if the ends differ much in size, else
    the middle.
    """
    near = np.maximum(np.minimum(np.abs(lo), np.abs(hi)), 1e-3)
    far = np.maximum(np.abs(lo), np.abs(hi))
    with np.errstate(over="ignore"):  # ends that are both as large as can be aren't split
        geometric = np.copysign(np.sqrt(near) * np.sqrt(far), np.where(lo < 0, -1.0, 1.0))
    crossing = (lo < 0) & (hi > 0)
    wide = np.where(crossing, 0.0, np.where(far / 1e3 > near, geometric, lo / 2 + hi / 2))
    return np.where(far > 1e6, wide, lo / 2 + hi / 2)
