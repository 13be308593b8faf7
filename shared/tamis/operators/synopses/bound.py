"""The memory bound: the number of entries that the synopses of a query can have.

A synopsis keeps one entry for each bucket (see `synopses.synopsis`), so the bound is the number of possible
buckets. A bucket has several components. For each occurrence and cell, the number of buckets is the product
of the numbers of values of the components. A component is counted in the way that gives the smaller number:
by the possible values of the coordinate (see `bucket_coordinates`), or by the possible values of the
attributes that determine the coordinate. All values beyond the cap of a coordinate count as one value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tamis.difference_bounds import Bound, Closure
from tamis.operators.synopses.bucket_coordinates import Cell, Coordinate, cells
from tamis.operators.synopses.synopsis import Layout, layout
from tamis.plan.conjunction import EXTREME_STREAM, Conjunction, bucket_nodes, pinned, spread


@dataclass(frozen=True)
class Factor:
    """One factor of a product: a number of values, and what they are values of."""

    count: Bound
    of: str


@dataclass(frozen=True)
class Term:
    """The entries of one occurrence in one cell; without alias, the rows that DISTINCT remembers, or the
    groups.
    """

    alias: str | None
    factors: tuple[Factor, ...]
    grouped: bool = False

    @property
    def count(self) -> Bound:
        """The product."""
        return math.prod(factor.count for factor in self.factors)

    @property
    def text(self) -> str:
        """As a formula."""
        what = "groups" if self.grouped else "rows already given"
        what = f"entries of {self.alias}" if self.alias is not None else what
        product = " * ".join(f"{factor.count} ({factor.of})" for factor in self.factors) or "1"
        return f"{product} {what}"


def terms(query: Conjunction, closure: Closure) -> tuple[Term, ...]:
    """The summands of the bound of a bounded query. A single stream without DISTINCT has none."""
    summands: list[Term] = []
    real = [(i, alias) for i, alias in enumerate(query.aliases) if query.streams[i] != EXTREME_STREAM]
    if len(real) > 1:
        for occurrence, alias in real:
            for cell in cells(query, closure, occurrence):
                needed = bucket_nodes(query, closure, occurrence)
                summands.append(Term(alias, factors(query, cell, needed)))
    if query.distinct or query.grouped:
        summands.append(Term(None, tuple(values_of(query, closure, query.projected)), query.grouped))
    return tuple(summands)


def entries(query: Conjunction, closure: Closure) -> Bound:
    """The bound as a number; infinity only if the query isn't bounded."""
    return sum((term.count for term in terms(query, closure)), 0)


def factors(query: Conjunction, cell: Cell, needed: Sequence[int]) -> tuple[Factor, ...]:
    """The factors of the number of buckets of one occurrence in a cell. `needed` are its nodes whose values
    are kept as they are.
    """
    laid = layout(cell, query.distinct)
    kept = _values(query, cell.closure, needed)
    by_value = _by_keys(query, [*kept, *_by_value(query, cell, needed, laid.finite)])
    by_coordinate = [*_by_keys(query, kept), *_by_coordinate(query, laid.finite)]
    cheaper = min((by_value, by_coordinate), key=lambda way: math.prod(factor.count for factor in way))
    return (*cheaper, *_unlimited(query, cell, laid))


def values_of(query: Conjunction, closure: Closure, nodes: Iterable[int]) -> list[Factor]:
    """The factors for the values of attributes."""
    return _by_keys(query, _values(query, closure, nodes))


def _values(query: Conjunction, closure: Closure, nodes: Iterable[int]) -> list[tuple[int, Factor]]:
    """The number of values of each attribute, with its node. Attributes at a fixed distance are counted once.
    For a pinned attribute the values for each key are counted, and the keys.
    """
    found: list[tuple[int, Factor]] = []
    counted: list[int] = []
    near = pinned(query, closure)
    for node in nodes:
        if any(closure.fixed(node, other) for other in counted):
            continue
        counted.append(node)
        key = near.get(node, node)
        if key != node:
            count = spread(closure, node, key)
            if count > 1:
                found.append((node, Factor(count, f"values of {query.name(node)} for each key")))
            if any(closure.fixed(key, other) for other in counted[:-1]):
                continue
            counted.append(key)
        count = closure.values(key) + query.nodes[key - 1].null_values
        if count > 1:
            found.append((key, Factor(count, f"values of {query.name(key)}")))
    return found


def _by_keys(query: Conjunction, values: Sequence[tuple[int, Factor]]) -> list[Factor]:
    """Values as factors. The columns of a key are counted together if there are fewer keys."""
    left = dict(values)
    found: list[Factor] = []
    for group in query.key_limits:
        own = [node for node in left if node in group.nodes]
        if math.prod(left[node].count for node in own) > group.keys:
            for node in own:
                del left[node]
            if group.keys > 1:
                found.append(Factor(group.keys, f"keys of {query.alias(group.nodes[0])}"))
    return [*found, *left.values()]


def _by_coordinate(query: Conjunction, finite: Sequence[Coordinate]) -> list[Factor]:
    side = {1: "upper", -1: "lower"}
    return [Factor(one.count, f"{side[one.sign]} limits of {query.name(one.node)}") for one in finite]


def _by_value(
    query: Conjunction, cell: Cell, needed: Sequence[int], finite: Sequence[Coordinate]
) -> list[tuple[int, Factor]]:
    found: list[tuple[int, Factor]] = []
    counted = list(needed)
    for node in dict.fromkeys(x for one in finite for x, _ in one.terms):
        if any(cell.closure.fixed(node, other) for other in counted):
            continue
        counted.append(node)
        low, high = cell.closure.lower(node), cell.closure.upper(node)
        signs = {one.sign for one in finite for x, _ in one.terms if x == node}
        if signs == {1}:
            high = min(high, max(one.cap - w for one in finite for x, w in one.terms if x == node))
        elif signs == {-1}:
            low = max(low, min(w - one.cap for one in finite for x, w in one.terms if x == node))
        if high - low + 1 > 1:
            found.append((node, Factor(high - low + 1, f"values of {query.name(node)}")))
    return found


def _unlimited(query: Conjunction, cell: Cell, laid: Layout) -> list[Factor]:
    found = []
    for one, leader, zone in laid.followers:
        count = _window(cell, one, leader) + (one.cap - zone + 1 if one.cap != math.inf else 0)
        found.append(
            Factor(count, f"distances of limits of {query.name(one.node)}, {query.name(leader.node)}")
        )
    if laid.up is not None and laid.down is not None:
        found.append(Factor(1 + _both(cell, laid.up, laid.down), f"limits of {query.name(laid.down.node)}"))
    return found


def _window(cell: Cell, one: Coordinate, leader: Coordinate) -> Bound:
    """The number of distances of a coordinate from its leader where both grow together."""
    rows, mine, its = cell.closure.rows, dict(one.terms), dict(leader.terms)
    most: Bound = one.cap - leader.cap if leader.cap != math.inf else -math.inf
    for node, weight in its.items():
        least = -(rows[0][node] if one.sign == 1 else rows[node][0])  # of sign * value
        reached = mine.get(node, one.cap - least if one.cap != math.inf else math.inf)
        most = max(most, reached - weight)
    shared = [its[node] - weight for node, weight in mine.items() if node in its]
    return most + max(shared) + 1 if shared else 0


def _both(cell: Cell, up: Coordinate, down: Coordinate) -> Bound:
    """The number of values of the leading lower limit where the leading upper limit is below its cap."""
    rows = cell.closure.rows
    least = down.cap
    for x, up_weight in up.terms:
        for z, down_weight in down.terms:
            highest = min(rows[z][x] + up.cap - 1 - up_weight, rows[z][0])
            least = min(least, down_weight - highest)
    return down.cap - least + 1
