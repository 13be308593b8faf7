"""Canonical form of globally consistent networks: equal sets of points have equal networks.

In a globally consistent network the bounds are the tightest ones, so only clusters can differ. A constraint
that touches the set of points along more than one point is determined by that set. A strict constraint may
also exclude a single corner. Then its slope is arbitrary, and a fixed one is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tamis.constraints.monotone.lines import Line, Piece, envelope
from tamis.constraints.monotone.network import Bound, Network


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
