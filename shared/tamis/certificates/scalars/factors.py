"""Factors of a product, divided into those of one stream and others: `a.x * b.x * a.y` has a.x * a.y."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.signatures import call

Factor = tuple[Expr, int]  # 1 in the numerator, -1 in the denominator


@dataclass(frozen=True)
class Product:
    """constant * own factors * the other factors. The order of the factors does not depend on how the product
    was written.
    """

    constant: Fraction
    own: tuple[Factor, ...]
    rest: tuple[Factor, ...]


def product(expr: Expr, own: Callable[[Expr], bool], constant: Callable[[Expr], Fraction | None]) -> Product:
    """Take a product apart. `own` says which factors are the stream's."""
    total = Fraction(1)
    mine: list[Factor] = []
    rest: list[Factor] = []
    for factor, sign in factors(expr):
        value = constant(factor)
        if value:
            total = total * value if sign > 0 else total / value
        else:
            (mine if own(factor) else rest).append((factor, sign))
    return Product(total, _ordered(mine), _ordered(rest))


def _ordered(parts: list[Factor]) -> tuple[Factor, ...]:
    return tuple(sorted(parts, key=lambda part: (-part[1], repr(part[0]))))


def factors(expr: Expr) -> list[Factor]:
    """The factors of nested products and quotients. A product of integers inside one of doubles stays one
    factor, because it can overflow where the product of doubles does not.
    """
    if not isinstance(expr, Call) or expr.op not in ("*", "/"):
        return [(expr, 1)]
    if expr.op == "*" and expr.type is not Type.DOUBLE and any(_is_product(arg) for arg in expr.args):
        return [(expr, 1)]
    left, right = (factors(arg) if arg.type is expr.type else [(arg, 1)] for arg in expr.args)
    if expr.op == "/" and any(sign < 0 for _, sign in right):
        # a / (b / x) is NULL where x is 0, and a * x / b isn't.
        right = [(expr.args[1], 1)]
    return [*left, *((factor, -sign if expr.op == "/" else sign) for factor, sign in right)]


def _is_product(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "*"


def multiplied(parts: tuple[Factor, ...], start: Expr | None = None) -> Expr:
    """start * the factors, divided by those in the denominator; 1 if there is nothing."""
    out = start
    for factor, sign in parts:
        if out is None:
            out = factor if sign > 0 else call("/", Literal(1.0, Type.DOUBLE), factor)
        else:
            out = call("*" if sign > 0 else "/", out, factor)
    return Literal(1.0, Type.DOUBLE) if out is None else out
