"""Monotone constraint networks, and the elimination of variables (goldin-1997, chapter 5).

A network has a node for each variable, with a lower and an upper bound, and for each ordered pair of
variables x, y the cluster of the constraints `x <= a y + b` or `x < a y + b` with a > 0. A constraint with a
= 0 is an upper bound of x, and one of x with itself is a bound too.

In a globally consistent network the bounds are the tightest ones, so only clusters can differ. A constraint
that touches the set of points along more than one point is determined by that set. A strict constraint may
also exclude a single corner. Then its slope is arbitrary, and a fixed one is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from tamis.constraints.monotone.lines import Line, Piece, compose, envelope


class Bound(NamedTuple):
    """A lower or an upper bound of a variable; `strict` excludes the value itself."""

    value: Fraction
    strict: bool


class Unsatisfiable(Exception):
    """The constraints of a network have no solution."""


class Network:
    """Bounds and clusters of constraints; methods add what the constraints imply.

    `integer`: the variables are integers, and each constraint is rounded to the tightest one with the same
    integer solutions. Methods raise `Unsatisfiable` as soon as the bounds of a variable exclude each other,
    or a constraint of a variable with itself has no solution.
    """

    def __init__(self, integer: bool = False) -> None:
        self.integer = integer
        self.lower: dict[str, Bound] = {}
        self.upper: dict[str, Bound] = {}
        self.clusters: dict[tuple[str, str], tuple[Line, ...]] = {}

    def copy(self) -> Network:
        """A network that can be changed on its own."""
        made = Network(self.integer)
        made.lower, made.upper, made.clusters = dict(self.lower), dict(self.upper), dict(self.clusters)
        return made

    @property
    def variables(self) -> list[str]:
        """The variables with a bound or a constraint, in order."""
        return sorted({*self.lower, *self.upper, *(name for pair in self.clusters for name in pair)})

    def add_lower(self, name: str, bound: Bound) -> None:
        """Add `name >= bound.value`, or `>`."""
        if self.integer:
            bound = Bound(Fraction(floor(bound.value) + 1 if bound.strict else ceil(bound.value)), False)
        known = self.lower.get(name)
        if known is None or (bound.value, bound.strict) > (known.value, known.strict):
            self.lower[name] = bound
            self._check(name)

    def add_upper(self, name: str, bound: Bound) -> None:
        """Add `name <= bound.value`, or `<`."""
        if self.integer:
            bound = Bound(Fraction(ceil(bound.value) - 1 if bound.strict else floor(bound.value)), False)
        known = self.upper.get(name)
        if known is None or (bound.value, not bound.strict) < (known.value, not known.strict):
            self.upper[name] = bound
            self._check(name)

    def add_lines(self, x: str, y: str, lines: Iterable[Line]) -> None:
        """Add `x <= line(y)` for each line; redundant ones are dropped from the cluster."""
        if x == y:
            for line in lines:
                self._add_loop(x, line)
            return
        if self.integer:
            lines = [_rounded(line) for line in lines]
        pieces = envelope((*self.clusters.get((x, y), ()), *lines))
        if pieces:
            self.clusters[x, y] = tuple(piece.line for piece in pieces)

    def contains(self, point: Mapping[str, Fraction]) -> bool:
        """Tell if a point, with a value for each variable, satisfies all constraints."""
        return (
            all(
                b.value < point[name] or (b.value == point[name] and not b.strict)
                for name, b in self.lower.items()
            )
            and all(
                point[name] < b.value or (point[name] == b.value and not b.strict)
                for name, b in self.upper.items()
            )
            and all(
                point[x] < (end := line.at(point[y])) or (point[x] == end and not line.strict)
                for (x, y), lines in self.clusters.items()
                for line in lines
            )
        )

    def compose_through(self, name: str) -> None:
        """Add the constraints between other variables that those of one variable imply.

        They are steps 1 to 4 of Algorithm II. Together with the other constraints they say everything about
        the other variables that holds for some value of this one, if it is a real number.
        """
        entering = {x: envelope(lines) for (x, y), lines in self.clusters.items() if y == name}
        leaving = {y: envelope(lines) for (x, y), lines in self.clusters.items() if x == name}
        lower, upper = self.lower.get(name), self.upper.get(name)
        for x, first in entering.items():
            for y, second in leaving.items():
                made = compose(first, second)
                assert len(made) < len(first) + len(second), "goldin-1997, Theorem 3"
                self.add_lines(x, y, made)
            if upper is not None:
                for piece in first:
                    line = piece.line
                    self.add_upper(x, Bound(line.at(upper.value), line.strict or upper.strict))
        if lower is not None:
            for y, second in leaving.items():
                for piece in second:
                    line = piece.line
                    self.add_lower(y, Bound(line.inverse(lower.value), line.strict or lower.strict))

    def remove(self, name: str) -> None:
        """Remove a variable and its constraints (step 5)."""
        self.lower.pop(name, None)
        self.upper.pop(name, None)
        self.clusters = {pair: lines for pair, lines in self.clusters.items() if name not in pair}

    def eliminate(self, name: str) -> None:
        """Eliminate a variable that is a real number: a stage of Algorithm II."""
        self.compose_through(name)
        self.remove(name)

    def make_consistent(self) -> None:
        """Make the network of real numbers globally consistent: projection is then restriction (Theorem 6).

        Each variable in turn adds what its constraints imply. Afterwards the network has at least the
        constraints that Algorithm II leaves when it eliminates all variables but any two, whichever they are.
        By Lemma 8 these are enough. (Its proof in the source shows another thing. The lemma holds since the
        median of three solutions, taken in each variable, is a solution.)
        """
        for name in self.variables:
            self.compose_through(name)

    def _check(self, name: str) -> None:
        lower, upper = self.lower.get(name), self.upper.get(name)
        if lower is None or upper is None:
            return
        if lower.value > upper.value or (lower.value == upper.value and (lower.strict or upper.strict)):
            raise Unsatisfiable

    def _add_loop(self, name: str, line: Line) -> None:
        """Add `(1 - slope) * name <= intercept`: a bound, true, or false."""
        if line.slope == 1:
            if line.intercept < 0 or (line.intercept == 0 and line.strict):
                raise Unsatisfiable
            return
        bound = Bound(line.intercept / (1 - line.slope), line.strict)
        if line.slope < 1:
            self.add_upper(name, bound)
        else:
            self.add_lower(name, bound)


def _rounded(line: Line) -> Line:
    """The tightest constraint with the same integer solutions: `q x - p y <= r` with whole numbers."""
    p, q = line.slope.numerator, line.slope.denominator
    end = q * line.intercept
    return Line(Fraction(p, q), Fraction(ceil(end) - 1 if line.strict else floor(end), q), False)


def drop_redundant(network: Network) -> None:
    """Drop the constraints that bounds and other constraints of the same two variables imply.

    The network must be globally consistent, over real numbers.
    """
    clusters = {pair: _needed(network, *pair) for pair in network.clusters}
    network.clusters = {pair: lines for pair, lines in clusters.items() if lines}


def _needed(network: Network, x: str, y: str) -> tuple[Line, ...]:
    """The constraints `x <= line(y)` that bounds of x and y don't imply."""
    lines = network.clusters[x, y]
    pieces = [piece for piece in envelope(lines) if not piece.point]
    lower, upper, top = network.lower.get(y), network.upper.get(y), network.upper.get(x)
    # The interval of y in which the cluster is tighter than the upper bound of x.
    first = None if lower is None else lower.value
    last = None if upper is None else upper.value
    if top is not None:
        reached = _reaches(pieces, top.value)
        last = reached if last is None else min(last, reached)
    if first is not None and last is not None and last < first:
        return ()
    kept = [
        piece.line
        for piece in pieces
        if (piece.upper is None or first is None or piece.upper > first)
        and (piece.lower is None or last is None or piece.lower < last)
        and (first is None or last is None or first < last)
    ]
    ends = [kept[i].meets(kept[i + 1]) for i in range(len(kept) - 1)]
    corners: list[Line] = []
    for end, left, right in zip(ends, kept, kept[1:], strict=False):
        if not left.strict and not right.strict and _excluded(lines, end, left.at(end)):
            corners.append(_through(end, left.at(end), (left.slope + right.slope) / 2))
    if first is not None and not (lower and lower.strict):
        slope = kept[0].slope * 2 if kept else Fraction(1)
        corners += _corner(lines, first, top, kept[:1], slope)
    if last is not None and last != first and not (upper and upper.strict and upper.value == last):
        slope = kept[-1].slope / 2 if kept else Fraction(1)
        corners += _corner(lines, last, top, kept[-1:], slope)
    return tuple(piece.line for piece in envelope((*kept, *corners)))


def _corner(
    lines: Sequence[Line], end: Fraction, top: Bound | None, neighbour: Sequence[Line], slope: Fraction
) -> list[Line]:
    """The constraint that excludes the corner at an end of the interval of y, if one does.

    `top`: the upper bound of x. `neighbour`: the constraint that ends there, if there is one.
    """
    value = min(line.at(end) for line in lines)
    if top is not None and (top.value < value or (top.value == value and top.strict)):
        return []
    if any(line.strict for line in neighbour) or not _excluded(lines, end, value):
        return []
    return [_through(end, value, slope)]


def _reaches(pieces: Sequence[Piece], value: Fraction) -> Fraction:
    """The y at which an envelope has a value."""
    return max(piece.line.inverse(value) for piece in pieces)


def _excluded(lines: Sequence[Line], at: Fraction, value: Fraction) -> bool:
    """Tell if a strict line passes through a point."""
    return any(line.strict and line.at(at) == value for line in lines)


def _through(at: Fraction, value: Fraction, slope: Fraction) -> Line:
    """The strict line of a slope through a point."""
    return Line(slope, value - slope * at, True)
