"""Example values of columns that meet conditions of one source, which prove that there is no contradiction.

Most filters are comparisons of columns with numbers. A value for each column is chosen between the greatest
lower and the least upper of its numbers, and all conditions are evaluated for these values. If one isn't
true, or is of another form, nothing is proved.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence

from tamis.expressions.nodes import FLIPPED, LARGEST_EXACT_INTEGER, Call, Column, Expr, Literal

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def met_by_example(conditions: Sequence[Expr]) -> bool:
    """True if all conditions on one source are true for some values of its columns; False if not known.

    >>> from tamis.expressions.nodes import Type
    >>> x = Column("", "x", Type.DOUBLE)
    >>> limits = [Call(op, (x, Literal(2, Type.INT)), Type.BOOLEAN) for op in (">", "<")]
    >>> met_by_example(limits[:1]), met_by_example(limits)
    (True, False)
    """
    ends: dict[str, list[float]] = {}
    for condition in conditions:
        _collect(condition, ends)
    values = {name: _between(low, high) for name, (low, high) in ends.items()}
    return all(_true(condition, values) for condition in conditions)


def _comparison(expr: Call) -> tuple[Column, str, float] | None:
    """The column, the operator and the number of a comparison; None for other conditions."""
    if expr.op not in _COMPARED:
        return None
    (left, right), op = expr.args, expr.op
    if isinstance(left, Literal):
        left, right, op = right, left, FLIPPED[op]
    if not isinstance(left, Column) or not isinstance(right, Literal) or not left.type.numeric:
        return None
    value = right.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not right.type.numeric:
        return None
    # Larger whole numbers may be no DOUBLEs, with which a comparison would have to be converted.
    return (left, op, value) if abs(value) <= LARGEST_EXACT_INTEGER else None


def _collect(condition: Expr, ends: dict[str, list[float]]) -> None:
    """Narrow the ends of columns by comparisons with numbers, as if OR were AND."""
    if not isinstance(condition, Call):
        return
    if condition.op in ("and", "or"):
        for arg in condition.args:
            _collect(arg, ends)
    elif (found := _comparison(condition)) is not None:
        column, op, value = found
        own = ends.setdefault(column.name, [-math.inf, math.inf])
        step = 1 if column.type.integral else 0
        if op in (">", ">=", "="):
            own[0] = max(own[0], math.floor(value) + 1 if step and op == ">" else value)
        if op in ("<", "<=", "="):
            own[1] = min(own[1], math.ceil(value) - 1 if step and op == "<" else value)
        if step:
            own[0] = own[0] if math.isinf(own[0]) else math.ceil(own[0])
            own[1] = own[1] if math.isinf(own[1]) else math.floor(own[1])


def _between(low: float, high: float) -> float:
    if math.isinf(low) or math.isinf(high):
        return (
            low + 1 if math.isinf(high) and not math.isinf(low) else high - 1 if not math.isinf(high) else 0
        )
    if isinstance(low, int) and isinstance(high, int):
        return (low + high) // 2
    return low + (high - low) / 2


def _true(condition: Expr, values: Mapping[str, float]) -> bool:
    """True if a condition is true for these values, none of which is NULL; False if that isn't known."""
    if not isinstance(condition, Call):
        return False
    match condition.op:
        case "and":
            return all(_true(arg, values) for arg in condition.args)
        case "or":
            return any(_true(arg, values) for arg in condition.args)
        case "not":
            (inner,) = condition.args
            return isinstance(inner, Call) and inner.op == "is_null" and _known(inner.args[0], values)
    found = _comparison(condition)
    if found is None or found[0].name not in values:
        return False
    column, op, value = found
    return _COMPARED[op](values[column.name], value)


def _known(expr: Expr, values: Mapping[str, float]) -> bool:
    return isinstance(expr, Column) and expr.name in values
