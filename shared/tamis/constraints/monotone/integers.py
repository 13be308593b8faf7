"""Monotone constraints over integers: elimination where it is exact, and satisfiability.

Integer solutions aren't closed under projection: eliminating y from `x = 2 y` leaves the even numbers. A
variable can be eliminated if, of each lower and upper bound of it that other variables give, at least one is
always an integer: if both bounds exclude each other in no solution, an integer lies between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from tamis.constraints.monotone.lines import Line
from tamis.constraints.monotone.network import Network, Unsatisfiable

# Rounds of tightening all bounds, each of which takes time proportional to the number of constraints.
MOST_ROUNDS = 1000
# Rounding makes room for more implied constraints; further passes seldom find a contradiction.
_MOST_PASSES = 3


class Conflict(NamedTuple):
    """Two constraints `x <= first(name)` and `name <= second(y)` between which there may be no integer."""

    x: str
    first: Line
    name: str
    second: Line
    y: str


def conflict(network: Network, name: str) -> Conflict | None:
    """The reason why the elimination of an integer variable isn't exact; None if it is."""
    lower, upper = network.lower.get(name), network.upper.get(name)
    if lower is not None and lower == upper:
        return None  # the variable is a constant
    entering = [
        (x, line)
        for (x, y), lines in network.clusters.items()
        if y == name
        for line in lines
        if not _whole(1 / line.slope, line.intercept / line.slope)
    ]
    leaving = [
        (y, line)
        for (x, y), lines in network.clusters.items()
        if x == name
        for line in lines
        if not _whole(line.slope, line.intercept)
    ]
    if not entering or not leaving:
        return None
    (x, first), (y, second) = entering[0], leaving[0]
    return Conflict(x, first, name, second, y)


def eliminate(network: Network, names: set[str]) -> Conflict | None:
    """Eliminate integer variables in an order in which it is exact.

    Returns None when all are eliminated, or else why none of the others can be. Raises `Unsatisfiable`.
    """
    rest = sorted(names & set(network.variables))
    while rest:
        found = next((name for name in rest if conflict(network, name) is None), None)
        if found is None:
            return conflict(network, rest[0])
        network.eliminate(found)
        rest.remove(found)
    return None


def satisfiable(network: Network) -> bool | None:
    """Tell if there is an integer solution; None if it isn't found out.

    If exact elimination gets stuck, solutions are looked for from above and from below. The minimum and the
    maximum of two solutions are solutions, so that tightening all upper bounds ends at the greatest solution
    below them, if there is one (Hochbaum and Naor, 1994).
    """
    try:
        if eliminate(network.copy(), set(network.variables)) is None:
            return True
        closed = network.copy()
        for _ in range(_MOST_PASSES):
            closed.make_consistent()
    except Unsatisfiable:
        return False
    answers = [_search(closed, downwards=True), _search(closed, downwards=False)]
    return True if True in answers else False if False in answers else None


def _search(network: Network, downwards: bool) -> bool | None:
    """Search for the greatest solution below the upper bounds, or the least one above the lower bounds.

    A bound that is missing is replaced by a number far from all bounds; without a solution the answer is then
    unknown.
    """
    known, opposite = (network.upper, network.lower) if downwards else (network.lower, network.upper)
    far = _far(network) if downwards else -_far(network)
    values = {name: known[name].value if name in known else far for name in network.variables}
    for _ in range(MOST_ROUNDS):
        changed = False
        for name, value in _steps(network, values, downwards):
            if (value < values[name]) if downwards else (value > values[name]):
                values[name] = value
                changed = True
                end = opposite.get(name)
                if end is not None and ((value < end.value) if downwards else (value > end.value)):
                    return False if values.keys() <= known.keys() else None
        if not changed:
            return True
    return None


def _steps(network: Network, values: dict[str, Fraction], downwards: bool) -> Iterator[tuple[str, Fraction]]:
    """The bound that each constraint gives one of its variables, from the current values."""
    for (x, y), lines in network.clusters.items():
        for line in lines:
            if downwards:
                yield x, Fraction(floor(line.at(values[y])))
            else:
                yield y, Fraction(ceil(line.inverse(values[x])))


def _far(network: Network) -> Fraction:
    """A number beyond all bounds and intercepts, divisible by the denominators of slopes."""
    reach = Fraction(1)
    numbers: list[Fraction] = [
        bound.value for side in (network.lower, network.upper) for bound in side.values()
    ]
    for lines in network.clusters.values():
        numbers += [line.intercept for line in lines]
        for line in lines:
            reach *= line.slope.denominator * line.slope.numerator
    return reach * ceil(1 + max((abs(value) for value in numbers), default=Fraction(0)))


def _whole(*values: Fraction) -> bool:
    return all(value.denominator == 1 for value in values)
