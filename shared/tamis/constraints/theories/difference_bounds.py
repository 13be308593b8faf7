"""Difference bounds: conjunctions of `x - y <= c`, `x <= c` and their strict forms, as a matrix of bounds.

A zone has a node for each variable that it constrains, and node 0 for the number zero. Its matrix has the
tightest bound on `node i - node j`, found by all-pairs shortest paths; equal sets of points have equal zones
(goldin-1997, Theorem 1 and section 4.4).

A bound is one int: `scale * c * UNIT`, less 1 if the bound is strict. So ints compare and add as the bounds
do, and `tamis.difference_bounds` closes the matrix. A sum of n strict bounds is less by n; no shortest path
has as many as UNIT. `scale` makes the constants whole, and is the least number that does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd, inf, lcm
from typing import NamedTuple, TypeAlias

from tamis.constraints.atoms import Linear, Value, compare, number
from tamis.constraints.theory import Interval
from tamis.difference_bounds import Bound as Distance
from tamis.difference_bounds import Closure
from tamis.errors import RefusedError

Row: TypeAlias = tuple[Distance, ...]
UNIT = 1 << 10  # more than a relation has variables
# Bounds of more digits make each step slow. Constants of measurements have less than 100.
MOST_SCALE_BITS = 4096


class Bound(NamedTuple):
    """`left - right <= constant`, or `<` unless `closed`; None stands for the number zero."""

    left: str | None
    right: str | None
    constant: Fraction
    closed: bool


@dataclass(frozen=True, slots=True)
class Zone:
    """A satisfiable conjunction of bounds in canonical form."""

    names: tuple[str, ...] = ()
    """The variables with a bound, in order; variable i is node i + 1."""
    scale: int = 1
    rows: tuple[Row, ...] = ((0,),)

    def bound(self, left: str | None, right: str | None) -> tuple[Fraction, bool] | None:
        """The tightest bound on left - right and True if it is closed; None if there is no bound."""
        if (left is not None and left not in self.names) or (right is not None and right not in self.names):
            return None
        raw = self.rows[self._node(left)][self._node(right)]
        return None if raw == inf else _decoded(raw, self.scale)

    def _node(self, name: str | None) -> int:
        return 0 if name is None else self.names.index(name) + 1


EVERYTHING = Zone()


def bounds_of(atom: Linear, whole: bool) -> list[Bound]:
    """The bounds of an atom of one variable, or of the difference of two.

    `whole`: the variables are integers, so that strict bounds become closed and constants whole.
    """
    left: str | None = None
    right: str | None = None
    for name, coefficient in atom.terms:
        if coefficient > 0:
            left = name
        else:
            right = name
    bounds = [Bound(left, right, atom.constant, atom.op != "<")]
    if atom.op == "=":
        bounds.append(Bound(right, left, -atom.constant, True))
    if not whole:
        return bounds
    return [
        Bound(b.left, b.right, Fraction(floor(b.constant) if b.closed else ceil(b.constant) - 1), True)
        for b in bounds
    ]


def zone(bounds: Collection[Bound]) -> Zone | None:
    """The canonical form of a conjunction of bounds; None if it is unsatisfiable.

    Raises `RefusedError` for constants without a short common denominator.
    """
    tightest: dict[tuple[str | None, str | None], tuple[Fraction, bool]] = {}
    for left, right, constant, closed in bounds:
        before = tightest.get((left, right))
        if before is None or (constant, closed) < before:
            tightest[left, right] = constant, closed
    names = sorted({name for pair in tightest for name in pair if name is not None})
    scale = _common(*(constant.denominator for constant, _ in tightest.values()))
    nodes: dict[str | None, int] = {None: 0} | {name: node for node, name in enumerate(names, 1)}
    closure = Closure.free(len(nodes))
    for (left, right), (constant, closed) in tightest.items():
        closure.rows[nodes[left]][nodes[right]] = int(constant * scale) * UNIT - (not closed)
    return _canonical(names, scale, closure) if closure.close() else None


def conjoin(one: Zone, other: Zone) -> Zone | None:
    """The common points; None if there are none. Raises `RefusedError` as `zone` does."""
    if len(other.names) > len(one.names):
        one, other = other, one
    names = list(one.names)
    if not set(other.names) <= set(names):
        names = sorted({*names, *other.names})
    scale = _common(one.scale, other.scale)
    closure = _spread(one, names, scale)
    nodes = [0, *(names.index(name) + 1 for name in other.names)]
    factor = scale // other.scale
    tighter = []
    for i, row in zip(nodes, other.rows, strict=True):
        mine = closure.rows[i]
        for j, raw in zip(nodes, row, strict=True):
            bound = raw if factor == 1 else _times(raw, factor)
            if bound < mine[j]:
                if closure.rows[j][i] < -bound:
                    return None
                tighter.append((i, j, bound))
    # A new bound costs n^2 steps, all shortest paths n^3.
    if len(tighter) <= len(names):
        if not all(closure.add(*each) for each in tighter):
            return None
    else:
        for i, j, bound in tighter:
            closure.rows[i][j] = bound
        if not closure.close():
            return None
    return _canonical(names, scale, closure) if tighter else one


def project(found: Zone, names: Collection[str]) -> Zone:
    """The projection on some variables: the restriction, since a zone is globally consistent
    (goldin-1997, section 4.3).
    """
    kept = [node for node, name in enumerate(found.names, 1) if name in names]
    if len(kept) == len(found.names):
        return found
    closure = Closure([[found.rows[i][j] for j in (0, *kept)] for i in (0, *kept)])
    return _canonical([found.names[node - 1] for node in kept], found.scale, closure)


def rename(found: Zone, names: Mapping[str, str]) -> Zone:
    """The zone with other names for variables, sorted by the new names."""
    renamed = [names.get(name, name) for name in found.names]
    order = sorted(range(len(renamed)), key=renamed.__getitem__)
    nodes = [0, *(index + 1 for index in order)]
    rows = tuple(tuple(found.rows[i][j] for j in nodes) for i in nodes)
    return Zone(tuple(renamed[index] for index in order), found.scale, rows)


def implies(one: Zone, other: Zone) -> bool:
    """Tell if every point of `one` is in `other`: each bound of `one` is at least as tight."""
    if one.names == other.names and one.scale == other.scale:
        return all(
            raw <= theirs
            for mine, row in zip(one.rows, other.rows, strict=True)
            for raw, theirs in zip(mine, row, strict=True)
        )
    if not set(other.names) <= set(one.names):
        return False
    nodes = [0, *(one.names.index(name) + 1 for name in other.names)]
    return all(
        theirs == inf or _times(one.rows[nodes[i]][nodes[j]], other.scale) <= _times(theirs, one.scale)
        for i, row in enumerate(other.rows)
        for j, theirs in enumerate(row)
    )


def contains(found: Zone, point: Mapping[str, Value]) -> bool:
    """Tell if a point is in the zone."""
    values = [Fraction(0), *(number(point[name]) for name in found.names)]
    for i, row in enumerate(found.rows):
        for j, raw in enumerate(row):
            if raw != inf:
                constant, closed = _decoded(raw, found.scale)
                if not compare(values[i] - values[j], "<=" if closed else "<", constant):
                    return False
    return True


def interval(found: Zone, name: str) -> Interval:
    """The interval of one variable's values."""
    upper, lower = found.bound(name, None), found.bound(None, name)
    return Interval(
        None if lower is None else -lower[0],
        lower is not None and lower[1],
        None if upper is None else upper[0],
        upper is not None and upper[1],
    )


def minimal_bounds(found: Zone) -> list[Bound]:
    """The smallest set of bounds with the same points, except that of variables at a constant distance from
    each other, the first one stands for all.
    """
    rows, count = found.rows, len(found.rows)
    closure = Closure([list(row) for row in rows])
    first = [min(j for j in range(count) if closure.fixed(i, j)) for i in range(count)]
    out: list[Bound] = []
    for i in range(count):
        if first[i] != i:
            out += [_bound(found, i, first[i]), _bound(found, first[i], i)]
    nodes = [i for i in range(count) if first[i] == i]
    for i in nodes:
        for j in nodes:
            if i != j and closure.finite(i, j) and not _redundant(closure, nodes, i, j):
                out.append(_bound(found, i, j))
    return out


def atoms_of(bounds: Iterable[Bound]) -> list[Linear]:
    """The bounds as atoms; a pair of opposite ones becomes an equality."""
    found = dict.fromkeys(bounds)
    out: list[Linear] = []
    for bound in found:
        left, right, constant, closed = bound
        opposite = Bound(right, left, -constant, True)
        terms = sorted((name, sign) for name, sign in ((left, 1), (right, -1)) if name is not None)
        if closed and opposite in found:
            if terms[0][1] > 0:  # the other one of the pair has the opposite sign
                out.append(Linear(tuple(terms), "=", constant))
        else:
            out.append(Linear(tuple(terms), "<=" if closed else "<", constant))
    return out


def _common(*denominators: int) -> int:
    """The least common multiple. Raises `RefusedError` if it is too long."""
    scale = lcm(*denominators)
    if scale.bit_length() > MOST_SCALE_BITS:
        raise RefusedError(
            f"the common denominator of the constants has more than {MOST_SCALE_BITS} bits",
            hint="write constants with fewer digits, or with equal denominators",
        )
    return scale


def _bound(found: Zone, i: int, j: int) -> Bound:
    left, right = (None if node == 0 else found.names[node - 1] for node in (i, j))
    return Bound(left, right, *_decoded(found.rows[i][j], found.scale))


def _redundant(closure: Closure, nodes: list[int], i: int, j: int) -> bool:
    """Tell if two other bounds imply a bound. No two of the nodes are at a constant distance, so that all
    such bounds can be left out together.
    """
    return any(
        closure.finite(i, k)
        and closure.finite(k, j)
        and closure.between(i, k) + closure.between(k, j) <= closure.between(i, j)
        for k in nodes
        if k not in (i, j)
    )


def _decoded(raw: Distance, scale: int) -> tuple[Fraction, bool]:
    """The constant of a bound, and True if the bound is closed."""
    whole, strict = divmod(-int(raw), UNIT)
    return Fraction(-whole, scale), not strict


def _times(raw: Distance, factor: int) -> Distance:
    """A bound at a multiple of its scale."""
    if raw == inf or factor == 1:
        return raw
    return raw * factor + (factor - 1) * (raw % UNIT != 0)


def _spread(found: Zone, names: list[str], scale: int) -> Closure:
    """The matrix of a zone over more variables, at a multiple of its scale."""
    factor = scale // found.scale
    if len(names) == len(found.names) and factor == 1:
        return Closure([list(row) for row in found.rows])
    closure = Closure.free(len(names) + 1)
    nodes = [0, *(names.index(name) + 1 for name in found.names)]
    for i, row in zip(nodes, found.rows, strict=True):
        for j, raw in zip(nodes, row, strict=True):
            closure.rows[i][j] = _times(raw, factor)
    return closure


def _canonical(names: list[str], scale: int, closure: Closure) -> Zone:
    """The zone of a closed matrix: only variables with a bound, and the least scale."""
    rows, count = closure.rows, len(closure.rows)
    bounded = [
        i
        for i in range(1, count)
        if any(rows[i][j] != inf or rows[j][i] != inf for j in range(count) if j != i)
    ]
    kept = [0, *bounded]
    divisor = scale
    if scale > 1:
        divisor = gcd(scale, *(int(rows[i][j]) // -UNIT for i in kept for j in kept if rows[i][j] != inf))
    exact = tuple(tuple(_divided(rows[i][j], divisor) for j in kept) for i in kept)
    return Zone(tuple(names[i - 1] for i in bounded), scale // divisor, exact)


def _divided(raw: Distance, divisor: int) -> Distance:
    """A bound at the scale divided by a factor of its constant, strict if a sum of bounds is."""
    if raw == inf:
        return inf
    strict = -raw % UNIT
    if divisor == 1:
        return raw if strict <= 1 else raw + strict - 1
    return (raw + strict) // divisor - (strict > 0)
