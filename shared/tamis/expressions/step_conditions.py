"""Comparisons of a function that rounds with a constant, as comparisons of its argument.

`floor(x) > 3` is true for the same DOUBLEs as `x >= 4`. Functions with `steps` never fall. So the
least DOUBLE with a result of at least the constant is found by bisection in the order of DOUBLEs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache

from tamis.expressions.double_order import GREATEST, double_at, number_of
from tamis.expressions.evaluate import evaluate
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import (
    COMPARISONS,
    FLIPPED,
    LARGEST_EXACT_INTEGER,
    Call,
    Column,
    Expr,
    Literal,
    Type,
)
from tamis.expressions.vectors import Vector

_MOST = 1e200  # rounding to digits may fall only beyond this size
_X = Column("", "x", Type.DOUBLE)


def on_argument(condition: Expr, *, exact: bool = False) -> Expr | None:
    """The condition on the argument that is true where `condition` is true; None for conditions of another
    form. Where `condition` is false, the result may be NULL, and vice versa.

    With `exact`, the argument may be any number between two DOUBLEs, and the result is a condition that
    follows from `condition`.
    """
    if not isinstance(condition, Call) or condition.op not in COMPARISONS:
        return None
    op, (left, right) = condition.op, condition.args
    if isinstance(left, Literal):
        op, left, right = FLIPPED[op], right, left
    if not isinstance(left, Call) or not isinstance(right, Literal):
        return None
    steps = FUNCTIONS[left.op].steps
    if steps is None:
        return None
    number, *digits = left.args
    constant = right.value
    if number.type is not Type.DOUBLE or not isinstance(constant, int | float) or isinstance(constant, bool):
        return None
    size = LARGEST_EXACT_INTEGER if isinstance(constant, int) else _MOST if digits else sys.float_info.max
    if abs(constant) > size or any(map(_before_the_point, digits)):
        return None
    function = Call(left.op, (_X, *digits), left.type)
    reached, passed = _least(function, constant, False), _least(function, constant, True)
    parts = {
        ">=": [_from(number, reached, exact)],
        ">": [_from(number, passed, exact)],
        "<": [_below(number, reached)],
        "<=": [_below(number, passed)],
        "=": [_from(number, reached, exact), _below(number, passed)],
        "!=": [_joined("or", [_below(number, reached), _from(number, passed, exact)])],
    }[op]
    if steps.limit is not None:  # NULL beyond their ends
        parts += [
            _from(number, _least(function, -math.inf, True), exact),
            _below(number, _least(function, math.inf, False)),
        ]
    return _joined("and", parts)


def _before_the_point(digits: Expr) -> bool:
    """True for a negative number of digits, where the largest numbers are rounded to 0."""
    return isinstance(digits, Literal) and isinstance(digits.value, int) and digits.value < 0


def _joined(op: str, parts: list[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else Call(op, tuple(parts), Type.BOOLEAN)


def _from(number: Expr, least: float | None, exact: bool) -> Expr:
    """number >= least; never true if there is no such number."""
    if least is None:
        return _compared(number, ">", sys.float_info.max)
    # No finite number is below the least DOUBLE.
    below = double_at(max(number_of(least) - 1, -GREATEST))
    return _compared(number, ">=", below if exact else least)


def _below(number: Expr, least: float | None) -> Expr:
    """number < least; true for all numbers if none is that large."""
    return _compared(number, "<=", sys.float_info.max) if least is None else _compared(number, "<", least)


def _compared(number: Expr, op: str, value: float) -> Expr:
    return Call(op, (number, Literal(value, Type.DOUBLE)), Type.BOOLEAN)


@lru_cache(maxsize=10_000)
def _least(function: Call, constant: float, beyond: bool) -> float | None:
    """The least DOUBLE whose result is at least the constant, or with `beyond` greater than it; None if there
    is none.
    """
    reached: Callable[[float], bool] = (lambda y: y > constant) if beyond else (lambda y: y >= constant)
    low, high = -GREATEST, GREATEST + 1
    while low < high:
        middle = (low + high) // 2
        if reached(_result(function, double_at(middle))):
            high = middle
        else:
            low = middle + 1
    return None if low > GREATEST else double_at(low)


def _result(function: Call, x: float) -> float:
    """The function's value; an infinity where it is NULL since the number is too large."""
    (value,) = evaluate(function, {("", "x"): Vector.from_list([x], Type.DOUBLE)}, 1).to_list()
    return math.copysign(math.inf, x) if value is None else float(value)
