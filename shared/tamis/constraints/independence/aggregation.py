"""Restricted aggregation: the measure of some variables for each value of independent ones (section 6.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tamis.constraints.atoms import Linear, Value, linear
from tamis.constraints.independence.measures import measure
from tamis.constraints.independence.slices import Related, products
from tamis.constraints.normal_form import Kind
from tamis.constraints.relation import Relation
from tamis.errors import InputError, RefusedError


def aggregate(relation: Relation, by: Sequence[str], into: str) -> Relation:
    """The measure of the other variables for each value of the variables in `by`, as a new variable.

    The result has the variables in `by` and `into`. Its points are the projection on `by`, each with the
    measure of the slice there (goldin-1997, Definition 22); a slice without interior has measure 0. Raises
    `RefusedError` if `by` and the other variables are related, since the result is then no relation of the
    same constraints in general, and as `products` and `measure` do; `InputError` for wrong names.

    >>> first = Relation.parse("0 < t AND t < 2 AND 0 < x AND x < y AND y < 4", ["t", "x", "y"])
    >>> then = Relation.parse("2 <= t AND t < 9 AND 0 < x AND x < 1 AND 0 < y AND y < 1", ["t", "x", "y"])
    >>> aggregate(first.union(then), ["t"], "area").text()
    '(area = 8 AND t > 0 AND t < 2) OR (area = 1 AND t >= 2 AND t < 9)'
    """
    if into in relation.variables:
        raise InputError(f"'{into}' is a variable already", hint="give the measure another name")
    grouped = relation.project(by)
    measured = [name for name in relation.variables if name not in by]
    found = products(relation, by)
    if isinstance(found, Related):
        raise RefusedError(
            f"the measure of {', '.join(measured)} takes infinitely many values: it depends on "
            f"{', '.join(by)}, for example between {_point(found.one)} and {_point(found.other)}",
            hint="group by independent variables only",
        )
    kinds = {**grouped.kinds, into: Kind.NUMBER}
    out = Relation([*by, into], relation.theory, [], kinds)
    for product in found:
        out = out.union(product.points.join(_constant(relation, into, measure(product.slice))))
    return out


def _constant(relation: Relation, name: str, value: Fraction) -> Relation:
    """The relation of one point."""
    atom = linear([(name, 1)], "=", value)
    assert isinstance(atom, Linear)  # there is a variable
    found = relation.theory.conjunction([atom])
    return Relation([name], relation.theory, [found], {name: Kind.NUMBER})


def _point(point: Mapping[str, Value]) -> str:
    return "(" + ", ".join(f"{name} = {value}" for name, value in point.items()) + ")"
