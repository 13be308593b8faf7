"""Conditions that are never NULL: IS [NOT] DISTINCT FROM, IS [NOT] TRUE and IS [NOT] FALSE.

They consist of comparisons, IS NULL, AND, OR and NOT, so that everything that reads conditions reads them.
"""

from __future__ import annotations

from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.query.scalars.operators import compare, condition, is_null, logic


def distinct(left: Expr, right: Expr) -> Expr:
    """`left IS DISTINCT FROM right`: the values differ, or just one of them is NULL."""
    if is_null(left) or is_null(right):
        return _present(right if is_null(left) else left)
    if isinstance(left, Literal) or isinstance(right, Literal):
        value, constant = (right, left) if isinstance(left, Literal) else (left, right)
        return logic("or", [compare("!=", value, constant), absent(value)])
    return Call("not", (same(left, right),), Type.BOOLEAN)


def same(left: Expr, right: Expr) -> Expr:
    """`left IS NOT DISTINCT FROM right`: the values are equal, or both are NULL."""
    if is_null(left) or is_null(right):
        return absent(right if is_null(left) else left)
    equal = compare("=", left, right)
    present = [_present(value) for value in (left, right) if not isinstance(value, Literal)]
    both = logic("and", [equal, *present])
    if len(present) < 2:
        return both
    return logic("or", [both, logic("and", [absent(left), absent(right)])])


def is_truth(value: Expr, truth: bool) -> Expr:
    """`value IS TRUE` or `value IS FALSE`."""
    part = condition(value, "the value before IS")
    wanted = part if truth else Call("not", (part,), Type.BOOLEAN)
    return logic("and", [wanted, _present(part)])


def absent(value: Expr) -> Expr:
    """`value IS NULL`."""
    return Call("is_null", (value,), Type.BOOLEAN)


def _present(value: Expr) -> Expr:
    return Call("not", (absent(value),), Type.BOOLEAN)
