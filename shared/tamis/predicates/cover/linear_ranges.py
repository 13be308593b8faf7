"""Ranges of linear forms and attributes in a box, narrowed by its other conditions.

The ranges of the attributes give the range of a form exactly, as it is computed. Other forms and differences
of the box narrow it further: they are linear constraints that also hold for rounded arithmetic, and linear
programs find the least and the greatest value (decision 60).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

from tamis.constraints.linear.conditions import LinearSystem
from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Call, Column, Expr, Literal, Type, columns
from tamis.predicates.boxes import Box, inside, intersect
from tamis.predicates.differences import ComputedDimension, Difference, Form
from tamis.predicates.linear_forms import LinearForm
from tamis.predicates.ranges import ANYTHING, HIGH, LOW, NOT_NULL, NULL, Cut, Range, above, below, bounds_text

# Linear programs over more conditions take tens of milliseconds.
_MOST_CONDITIONS = 12

_ORDER = {("<", 0): "<", ("<", 1): "<=", (">=", 0): ">=", (">=", 1): ">", ("=", 0): "="}


def forms(boxes: Iterable[Box]) -> set[LinearForm]:
    """The linear forms that the boxes bound."""
    return {name for box in boxes for name in box if isinstance(name, LinearForm)}


def narrowed(box: Box, by: Sequence[Box]) -> Box | None:
    """The box with narrower ranges of linear forms, and of what `by` bounds; None if no tuple is in it.

    The attributes of all forms aren't NULL in the box.
    """
    linear = forms((box, *by))
    found: Box | None = box
    for form in linear:
        found = None if found is None else intersect(found, {form: form.range_within(box)})
    if found is None or not linear or any(inside(found, other) for other in by):
        return found
    kinds = {column.name: column for form in linear for column in form.coefficients}
    for name in dict.fromkeys(name for other in by for name in other):
        expr = name.expr if isinstance(name, LinearForm) else kinds.get(name)
        conditions = () if expr is None else _connected(box, name)
        if expr is None or not conditions or len(conditions) > _MOST_CONDITIONS:
            continue
        limits = _range(expr, conditions)
        if limits is None:
            return None
        lower, upper = found.get(name, ANYTHING)
        # A value that isn't NULL is in the limits.
        lower, upper = lower if lower == NULL else max(lower, limits[0]), min(upper, limits[1])
        if lower >= upper:
            return None
        found = {**found, name: (lower, upper)}
    return found


def _connected(box: Box, target: str) -> tuple[tuple[str, Range], ...]:
    """The dimensions of a box with which linear constraints may narrow `target`: those connected with it by
    attributes. Empty if no form or difference is among them except `target` itself.
    """
    left = dict(box)
    found: dict[str, Range] = {}
    reached = set(_attributes(target))
    while more := [name for name in left if not reached.isdisjoint(_attributes(name))]:
        for name in more:
            found[name] = left.pop(name)
            reached.update(_attributes(name))
    made = [name for name in found if isinstance(name, ComputedDimension) and name != target]
    useful = len(made) > 1 or any(_may_limit(one, target, box) for one in made)
    return tuple(found.items()) if useful else ()


def _may_limit(one: str, target: str, box: Box) -> bool:
    """False if the range of one sum, with those of attributes, certainly says nothing of the target.

    The target is a multiple of the sum and a rest, and each attribute of the rest needs a limit.
    """
    mine, its = _coefficients(one), _coefficients(target)
    free = [name for name in {**mine, **its} if box.get(name, NOT_NULL) in (NOT_NULL, ANYTHING)]
    multiples = [its.get(name, 0.0) / mine[name] if name in mine else math.inf for name in free]
    same = all(math.isclose(multiple, multiples[0]) for multiple in multiples)
    return not multiples or (same and multiples[0] not in (0.0, math.inf))


def _coefficients(name: str) -> dict[str, float]:
    """The coefficients of a dimension by attribute, perhaps rounded."""
    if isinstance(name, LinearForm):
        return {column.name: value for column, value in name.coefficients.items()}
    return {name.left: 1.0, name.right: -1.0} if isinstance(name, Difference) else {name: 1.0}


def _attributes(name: str) -> tuple[str, ...]:
    return name.attributes if isinstance(name, ComputedDimension) else (name,)


@lru_cache(maxsize=10_000)
def _range(expr: Expr, box: tuple[tuple[str, Range], ...]) -> Range | None:
    """The range of a number that isn't NULL, under the conditions of a box; None if they contradict each
    other.
    """
    kinds = {column.name: column.type for column in columns(expr)}
    kinds |= {column: kind for name, _ in box for column, kind in _kinds(name)}
    system = LinearSystem(lambda column: _finite_ends(dict(box).get(column.name, ANYTHING)))
    for name, found in box:
        for condition in _conditions(name, found, kinds):
            system.add(condition)
    limits = system.range(expr)
    if limits is None:
        return ANYTHING if system.rows() is not None else None
    return (
        LOW if limits.lower is None else _least(limits.lower, limits.lower_closed, expr.type),
        HIGH if limits.upper is None else _past(limits.upper, limits.upper_closed, expr.type),
    )


def _kinds(name: str) -> Iterator[tuple[str, Type]]:
    if isinstance(name, LinearForm):
        yield from ((column.name, column.type) for column in name.coefficients)
    elif isinstance(name, Difference):
        yield from ((end, name.kind) for end in (name.left, name.right))


def _conditions(name: str, found: Range, kinds: dict[str, Type]) -> Iterator[Expr]:
    """The linear conditions that a dimension's range implies."""
    if isinstance(name, Difference):
        left, right = Column("", name.left, name.kind), Column("", name.right, name.kind)
        if name.form is Form.ORDER:
            added = Call("+", (right, Literal(name.offset, name.kind)), name.kind) if name.offset else right
            signs = (_ORDER.get((op, int(value))) for op, value in bounds_text(found, Type.BIGINT))
            yield from (Call(op, (left, added), Type.BOOLEAN) for op in signs if op is not None)
            return
        expr: Expr = Call("-", (left, right), name.type)
    else:
        expr = name.expr if isinstance(name, LinearForm) else Column("", name, kinds[name])
    for op, value in bounds_text((max(found[0], LOW), found[1]), expr.type):
        # Linear programs don't know that numbers are whole: `< 3` is weaker than `<= 2`.
        whole = op == "<" and expr.type.integral
        limit = Literal(int(value) - 1 if whole else value, expr.type)
        yield Call("<=" if whole else op, (expr, limit), Type.BOOLEAN)


def _finite_ends(found: Range) -> tuple[float, float]:
    """The ends of a range of numbers, for the size of rounding errors; infinite if no DOUBLE is exact."""
    low, high = (cut[1] if len(cut) == 2 else None for cut in found)
    return (
        -math.inf if low is None or abs(low) > LARGEST_EXACT_INTEGER else float(low),
        math.inf if high is None or abs(high) > LARGEST_EXACT_INTEGER else float(high),
    )


def _least(limit: Fraction, closed: bool, kind: Type) -> Cut:
    """The cut below the least value from a limit on."""
    if kind.integral:
        whole = math.ceil(limit)
        return below(whole if closed or whole > limit else whole + 1, kind)
    try:
        value = float(limit)
    except OverflowError:
        return LOW
    # At most one step from the nearest DOUBLE.
    if Fraction(value) > limit or (closed and value == limit):
        return below(value, kind)
    return above(value, kind)


def _past(limit: Fraction, closed: bool, kind: Type) -> Cut:
    """The cut above the greatest value up to a limit."""
    if kind.integral:
        whole = math.floor(limit)
        return above(whole if closed or whole < limit else whole - 1, kind)
    try:
        value = float(limit)
    except OverflowError:
        return HIGH
    if Fraction(value) < limit or (closed and value == limit):
        return above(value, kind)
    return below(value, kind)
