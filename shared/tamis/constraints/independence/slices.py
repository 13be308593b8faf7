"""Slices of a relation at values of some variables, and the test whether finitely many differ.

The slice at x is the set of points over the other variables with which x is in the relation. The variables of
x and the others are independent (goldin-1997, Definition 24) if and only if finitely many slices differ: the
relation is then a union of products, one for each slice. The source tests the tuples within the cells of a
grid through all vertices (section 6.6, Theorem 8), which holds for two variables. From three on an edge may
pass through a cell without a vertex in it, so that the part of the relation in the cell isn't convex.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tamis.constraints.atoms import Equality, Linear, Value
from tamis.constraints.independence.points import Point, hyperplanes, part_at, spanning_points
from tamis.constraints.relation import Relation
from tamis.constraints.theory import Numbers
from tamis.errors import RefusedError


@dataclass(frozen=True)
class Product:
    """All points over some variables at which a relation has one slice, and that slice."""

    points: Relation
    slice: Relation


@dataclass(frozen=True)
class Related:
    """Two points over some variables between which the slice of a relation takes infinitely many values."""

    one: Mapping[str, Value]
    other: Mapping[str, Value]


def slice_at(relation: Relation, point: Mapping[str, Value]) -> Relation:
    """The points over the other variables with which a point over some variables is in a relation."""
    theory = relation.theory
    names = [name for name in relation.variables if name not in point]
    parts = [part for each in relation.tuples if (part := part_at(theory, each, point)) is not None]
    return Relation(relation.variables, theory, parts, relation.kinds).project(names)


def products(relation: Relation, names: Sequence[str]) -> list[Product] | Related:
    """The products over the variables `names` and the others whose union is a relation.

    No two of them have a point over `names` in common, or the same slice. If infinitely many slices differ,
    returns two points that show it.

    The test takes a tuple of points with the most dimensions and looks at as many of its points, all between
    the same hyperplanes. If their slices are equal, then so is that of all points there, since the slice
    depends linearly on the point. All points with this slice are found by difference and projection, and
    removed. Raises `RefusedError` for integers and for too many constraints.
    """
    if relation.theory.numbers is Numbers.INTEGER:
        raise RefusedError(
            "independence is tested for relations over real numbers only: over integers every bounded set of "
            "points is a finite union of products",
            hint="use real numbers",
        )
    atoms = [atom for each in relation.tuples for atom in relation.theory.atoms(each)]
    planes = hyperplanes((atom for atom in atoms if isinstance(atom, Linear)), names)
    symbols = [atom.right for atom in atoms if isinstance(atom, Equality) and atom.constant]
    fresh = "?" * (1 + max(map(len, symbols), default=0))
    rest, points = relation, relation.project(names)
    known: dict[Any, list[Point]] = {}
    found: list[Product] = []
    while points.tuples:
        for each in points.tuples:
            if each not in known:
                known[each] = spanning_points(points, each, planes, fresh)
        first, *others = max((known[each] for each in points.tuples), key=len)
        here = slice_at(relation, first)
        for other in others:
            if not slice_at(relation, other).equivalent(here):
                return Related(first, other)
        product = points.join(here)
        differing = rest.difference(product).union(product.difference(rest)).project(names)
        same = points.difference(differing)
        found.append(Product(same, here))
        points = points.difference(same)
        rest = rest.difference(same.join(here))
    return found


def independent(relation: Relation, one: Collection[str], other: Collection[str]) -> bool:
    """Tell if two disjoint sets of variables are independent in a relation (goldin-1997, Definition 24).

    The test is complete if the two sets are all variables of the relation. Otherwise they are independent if
    they are in each tuple, or if one of them is independent of all other variables; they are related if they
    are in the projection on both. Raises `RefusedError` if neither is so, and as `products` does.
    """
    common = sorted(set(one) & set(other))
    if common:
        raise RefusedError(
            f"the test is for disjoint sets of variables, and '{common[0]}' is in both",
            hint="remove it from one of them",
        )
    ones, others = ([name for name in relation.variables if name in names] for names in (one, other))
    if len(ones) + len(others) == len(relation.variables):
        return not isinstance(products(relation, min(ones, others, key=len)), Related)
    if all(_independent_in_tuple(relation, each, ones, others) for each in relation.tuples):
        return True
    if not independent(relation.project([*ones, *others]), ones, others):
        return False
    for names in (ones, others):
        if independent(relation, names, [name for name in relation.variables if name not in names]):
            return True
    raise RefusedError(
        f"it can't be told whether {_list(ones)} and {_list(others)} are independent: the projection on both "
        "is a union of products, but the relation was not found to be a union of tuples in which they are "
        "independent",
        hint="test two sets that together are all variables of the relation",
    )


def _independent_in_tuple(relation: Relation, found: Any, ones: Sequence[str], others: Sequence[str]) -> bool:
    alone = Relation(relation.variables, relation.theory, [found], relation.kinds)
    both = alone.project(ones).join(alone.project(others))
    return both.implies(alone.project([*ones, *others]))


def _list(names: Sequence[str]) -> str:
    return "{" + ", ".join(names) + "}"
