"""Clusters of monotone constraints between two variables, and their lower envelopes.

All constraints `x <= slope * y + intercept` between the same x and y, with slopes above zero, form a cluster
(goldin-1997, section 5.2.1). Together they say that x is at most the minimum of their lines at y. The
*domain* of a line is the interval of y on which it is the minimum; its *range* is the interval of x that the
line maps the domain to. A constraint whose domain is empty or one point is redundant. There is one exception,
which Proposition 1 overlooks: a strict constraint whose domain is one point excludes that point.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple


class Line(NamedTuple):
    """The right-hand side of `x <= slope * y + intercept`, or of `<` if strict; the slope is above zero."""

    slope: Fraction
    intercept: Fraction
    strict: bool

    def at(self, value: Fraction) -> Fraction:
        """The value of the line at y = `value`."""
        return self.slope * value + self.intercept

    def inverse(self, value: Fraction) -> Fraction:
        """The y at which the line has a value."""
        return (value - self.intercept) / self.slope

    def after(self, inner: Line) -> Line:
        """The constraint from x to z that this one, x to y, and `inner`, y to z, imply (Definition 16)."""
        strict = self.strict or inner.strict
        return Line(self.slope * inner.slope, self.slope * inner.intercept + self.intercept, strict)

    def meets(self, other: Line) -> Fraction:
        """The y at which two lines of different slopes have the same value."""
        return (other.intercept - self.intercept) / (self.slope - other.slope)


class Piece(NamedTuple):
    """A line that isn't redundant in its cluster, with its domain; None is infinite."""

    line: Line
    lower: Fraction | None
    upper: Fraction | None

    @property
    def point(self) -> bool:
        """True if the domain is one point; the line is then strict."""
        return self.lower is not None and self.lower == self.upper

    @property
    def range(self) -> tuple[Fraction | None, Fraction | None]:
        """The interval of values on the domain (Definition 18)."""
        lower, upper = self.lower, self.upper
        return None if lower is None else self.line.at(lower), None if upper is None else self.line.at(upper)


def envelope(lines: Iterable[Line]) -> tuple[Piece, ...]:
    """The pieces of a cluster's lower envelope, in order of their domains (goldin-1997, Proposition 2).

    The lines are sorted by slope, and redundant ones are dropped as in a convex hull: O(n log n). Domains of
    more than one point cover the axis and overlap at their ends only (Lemma 4). A strict line through the end
    of two domains of lines that aren't strict follows the first of them, with a domain of one point.
    """
    lowest: dict[Fraction, Line] = {}
    for line in lines:
        known = lowest.get(line.slope)
        if known is None or (line.intercept, not line.strict) < (known.intercept, not known.strict):
            lowest[line.slope] = line
    ordered = sorted(lowest.values(), key=lambda line: -line.slope)
    hull: list[Line] = []
    dropped: list[Line] = []
    for line in ordered:
        while len(hull) > 1 and line.meets(hull[-2]) <= hull[-1].meets(hull[-2]):
            dropped.append(hull.pop())
        hull.append(line)
    ends = [one.meets(other) for one, other in pairwise(hull)]
    pieces: list[Piece] = []
    excluded = _excluded(hull, ends, dropped)
    for i, line in enumerate(hull):
        pieces.append(Piece(line, ends[i - 1] if i else None, ends[i] if i < len(ends) else None))
        if i in excluded:
            pieces.append(Piece(excluded[i], ends[i], ends[i]))
    return tuple(pieces)


def _excluded(hull: Sequence[Line], ends: Sequence[Fraction], dropped: Iterable[Line]) -> dict[int, Line]:
    """Strict lines through ends of domains that no strict line of the hull passes through, by the end."""
    found: dict[int, Line] = {}
    for line in dropped:
        if not line.strict:
            continue
        # A line touches a concave envelope where slopes change from greater to smaller ones.
        end = bisect_left(hull, -line.slope, key=lambda other: -other.slope) - 1
        if not 0 <= end < len(ends) or hull[end].strict or hull[end + 1].strict:
            continue
        if hull[end].at(ends[end]) == line.at(ends[end]):
            found.setdefault(end, line)
    return found


def compose(first: Sequence[Piece], second: Sequence[Piece]) -> list[Line]:
    """The constraints between x and z that clusters x to y and y to z imply, without most redundant ones.

    A line of `first` is composed with a line of `second` only if the domain of the former and the range of
    the latter have more than one point in common (Corollary 1), or if one of them excludes a point. There are
    less than len(first) + len(second) of them (Theorem 3). Both sequences are of pieces as `envelope` returns
    them.
    """
    outer = [piece for piece in first if not piece.point]
    inner = [piece for piece in second if not piece.point]
    made: list[Line] = []
    i = k = 0
    while i < len(outer) and k < len(inner):
        made.append(outer[i].line.after(inner[k].line))
        end, behind = outer[i].upper, inner[k].range[1]
        # Of two intervals that start together or overlap, the one that ends first is done with.
        i, k = i + _first(end, behind), k + _first(behind, end)
        if end is None and behind is None:
            break
    excluding: dict[Fraction, Line] = {}
    for line, value, _ in (piece for piece in first if piece.point):
        assert value is not None
        excluding[value] = line.after(_line_with_value(inner, value))
    for line, end, _ in (piece for piece in second if piece.point):
        assert end is not None
        value = line.at(end)
        excluding.setdefault(value, _line_at(outer, value).after(line))
    made += excluding.values()
    return made


def _first(end: Fraction | None, other: Fraction | None) -> bool:
    return end is not None and (other is None or end <= other)


def _line_at(pieces: Sequence[Piece], value: Fraction) -> Line:
    return next(p.line for p in pieces if p.upper is None or value <= p.upper)


def _line_with_value(pieces: Sequence[Piece], value: Fraction) -> Line:
    return next(p.line for p in pieces if (upper := p.range[1]) is None or value <= upper)
