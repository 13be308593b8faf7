"""Difference bounds: conjunctions of `x - y <= c`, `x <= c` and their strict forms, as a matrix of bounds.

A zone has a node for each variable that it constrains, and node 0 for the number zero. Its matrix has the
tightest bound on `node i - node j`, found by all-pairs shortest paths; equal sets of points have equal zones
(goldin-1997, Theorem 1 and section 4.4).

A bound is one int, or None without a bound: `2 * scale * c`, plus 1 if the bound is closed. Ints compare as
the bounds do. `scale` makes the constants whole, and is the least number that does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import NamedTuple, TypeAlias

from tamis.constraints.atoms import Linear, Value, compare, number
from tamis.constraints.theory import Interval
from tamis.errors import RefusedError

Matrix: TypeAlias = list[list[int | None]]
ZERO = 1  # the closed bound 0
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
    rows: tuple[tuple[int | None, ...], ...] = ((ZERO,),)

    def bound(self, left: str | None, right: str | None) -> tuple[Fraction, bool] | None:
        """The tightest bound on left - right and True if it is closed; None if there is no bound."""
        if (left is not None and left not in self.names) or (right is not None and right not in self.names):
            return None
        raw = self.rows[self._node(left)][self._node(right)]
        return None if raw is None else (Fraction(raw >> 1, self.scale), bool(raw & 1))

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
    matrix = _unbounded(len(names))
    for (left, right), (constant, closed) in tightest.items():
        matrix[nodes[left]][nodes[right]] = 2 * int(constant * scale) + closed
    return _canonical(names, scale, matrix) if _close(matrix) else None


def conjoin(one: Zone, other: Zone) -> Zone | None:
    """The common points; None if there are none. Raises `RefusedError` as `zone` does."""
    if len(other.names) > len(one.names):
        one, other = other, one
    names = list(one.names)
    if not set(other.names) <= set(names):
        names = sorted({*names, *other.names})
    scale = _common(one.scale, other.scale)
    matrix = _spread(one, names, scale)
    nodes = [0, *(names.index(name) + 1 for name in other.names)]
    factor = scale // other.scale
    tighter = []
    for i, row in enumerate(other.rows):
        mine = matrix[nodes[i]]
        for j, raw in enumerate(row):
            if raw is None or i == j:
                continue
            scaled = raw if factor == 1 else 2 * (raw >> 1) * factor + (raw & 1)
            before = mine[nodes[j]]
            if before is None or scaled < before:
                tighter.append((nodes[i], nodes[j], scaled))
    # A new bound costs n^2 steps, all shortest paths n^3.
    if len(tighter) <= len(names):
        if not all(_tighten(matrix, *each) for each in tighter):
            return None
    else:
        for i, j, raw in tighter:
            matrix[i][j] = raw
        if not _close(matrix):
            return None
    return _canonical(names, scale, matrix) if tighter else one


def project(found: Zone, names: Collection[str]) -> Zone:
    """The projection on some variables: the restriction, since a zone is globally consistent
    (goldin-1997, section 4.3).
    """
    kept = [node for node, name in enumerate(found.names, 1) if name in names]
    if len(kept) == len(found.names):
        return found
    matrix = [[found.rows[i][j] for j in (0, *kept)] for i in (0, *kept)]
    return _canonical([found.names[node - 1] for node in kept], found.scale, matrix)


def rename(found: Zone, names: Mapping[str, str]) -> Zone:
    """The same zone with other names for variables."""
    renamed = [names.get(name, name) for name in found.names]
    order = sorted(range(len(renamed)), key=renamed.__getitem__)
    nodes = [0, *(index + 1 for index in order)]
    rows = tuple(tuple(found.rows[i][j] for j in nodes) for i in nodes)
    return Zone(tuple(renamed[index] for index in order), found.scale, rows)


def implies(one: Zone, other: Zone) -> bool:
    """Tell if every point of `one` is in `other`: each bound of `one` is at least as tight."""
    if one.names == other.names and one.scale == other.scale:
        return all(
            theirs is None or (raw is not None and raw <= theirs)
            for mine, row in zip(one.rows, other.rows, strict=True)
            for raw, theirs in zip(mine, row, strict=True)
        )
    if not set(other.names) <= set(one.names):
        return False
    nodes = [0, *(one.names.index(name) + 1 for name in other.names)]
    for i, row in enumerate(other.rows):
        mine = one.rows[nodes[i]]
        for j, theirs in enumerate(row):
            if theirs is None:
                continue
            raw = mine[nodes[j]]
            if raw is None:
                return False
            # Both sides times both scales, without the closed bit, which decides where they are equal.
            left, right = (raw >> 1) * other.scale, (theirs >> 1) * one.scale
            if left > right or (left == right and raw & 1 > theirs & 1):
                return False
    return True


def contains(found: Zone, point: Mapping[str, Value]) -> bool:
    """Tell if a point is in the zone."""
    values = [Fraction(0), *(number(point[name]) for name in found.names)]
    return all(
        raw is None
        or compare((values[i] - values[j]) * found.scale, "<=" if raw & 1 else "<", Fraction(raw >> 1))
        for i, row in enumerate(found.rows)
        for j, raw in enumerate(row)
    )


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
    first = [min(j for j in range(count) if _equal(rows, i, j)) for i in range(count)]
    out: list[Bound] = []
    for i in range(count):
        if first[i] != i:
            out += [_bound(found, i, first[i]), _bound(found, first[i], i)]
    nodes = [i for i in range(count) if first[i] == i]
    for i in nodes:
        for j in nodes:
            raw = rows[i][j]
            if i != j and raw is not None and not _redundant(rows, nodes, i, j, raw):
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
    raw = found.rows[i][j]
    assert raw is not None
    left, right = (None if node == 0 else found.names[node - 1] for node in (i, j))
    return Bound(left, right, Fraction(raw >> 1, found.scale), bool(raw & 1))


def _equal(rows: tuple[tuple[int | None, ...], ...], i: int, j: int) -> bool:
    """Tell if the difference of two nodes is constant."""
    there, back = rows[i][j], rows[j][i]
    return there is not None and back is not None and _plus(there, back) == ZERO


def _redundant(rows: tuple[tuple[int | None, ...], ...], nodes: list[int], i: int, j: int, raw: int) -> bool:
    """Tell if two other bounds imply a bound. No two of the nodes are at a constant distance, so that all
    such bounds can be left out together.
    """
    for k in nodes:
        if k not in (i, j):
            first, second = rows[i][k], rows[k][j]
            if first is not None and second is not None and _plus(first, second) <= raw:
                return True
    return False


def _plus(one: int, other: int) -> int:
    """The sum of two bounds: closed if both are."""
    return one + other - ((one | other) & 1)


def _unbounded(variables: int) -> Matrix:
    matrix: Matrix = [[None] * (variables + 1) for _ in range(variables + 1)]
    for i, row in enumerate(matrix):
        row[i] = ZERO
    return matrix


def _spread(found: Zone, names: list[str], scale: int) -> Matrix:
    """The matrix of a zone over more variables, at a multiple of its scale."""
    factor = scale // found.scale
    if len(names) == len(found.names) and factor == 1:
        return [list(row) for row in found.rows]
    matrix = _unbounded(len(names))
    nodes = [0, *(names.index(name) + 1 for name in found.names)]
    for i, row in zip(nodes, found.rows, strict=True):
        for j, raw in zip(nodes, row, strict=True):
            matrix[i][j] = raw if raw is None or factor == 1 else 2 * (raw >> 1) * factor + (raw & 1)
    return matrix


def _close(matrix: Matrix) -> bool:
    """Tighten all bounds by the shortest paths between all pairs of nodes (Floyd and Warshall); False if the
    bounds are unsatisfiable.
    """
    for k, through in enumerate(matrix):
        steps = [(j, raw) for j, raw in enumerate(through) if raw is not None]
        for row in matrix:
            first = row[k]
            if first is None:
                continue
            for j, second in steps:
                total = first + second - ((first | second) & 1)
                before = row[j]
                if before is None or total < before:
                    row[j] = total
        if any(row[i] != ZERO for i, row in enumerate(matrix)):
            return False
    return True


def _tighten(matrix: Matrix, left: int, right: int, raw: int) -> bool:
    """Add a bound on left - right to a closed matrix, and close it again; False if that is unsatisfiable."""
    before, back = matrix[left][right], matrix[right][left]
    if before is not None and before <= raw:
        return True
    if back is not None and _plus(back, raw) < ZERO:
        return False
    steps = [(j, second) for j, second in enumerate(matrix[right]) if second is not None]
    for row in matrix:
        to_left = row[left]
        if to_left is None:
            continue
        first = _plus(to_left, raw)
        for j, second in steps:
            total = first + second - ((first | second) & 1)
            known = row[j]
            if known is None or total < known:
                row[j] = total
    return True


def _canonical(names: list[str], scale: int, matrix: Matrix) -> Zone:
    """The zone of a closed matrix: only variables with a bound, and the least scale."""
    count = len(matrix)
    bounded = [
        i
        for i in range(1, count)
        if any(matrix[i][j] is not None or matrix[j][i] is not None for j in range(count) if j != i)
    ]
    kept = [0, *bounded]
    divisor = scale
    if scale > 1:
        for i in kept:
            for j in kept:
                raw = matrix[i][j]
                if raw is not None:
                    divisor = gcd(divisor, raw >> 1)
    if divisor == 1:
        rows = tuple(tuple(matrix[i][j] for j in kept) for i in kept)
    else:
        rows = tuple(
            tuple(
                None if (raw := matrix[i][j]) is None else 2 * ((raw >> 1) // divisor) + (raw & 1)
                for j in kept
            )
            for i in kept
        )
    return Zone(tuple(names[i - 1] for i in bounded), scale // divisor, rows)
