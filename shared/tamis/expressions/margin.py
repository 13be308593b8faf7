"""Errors of values that omission compares: plans say them, and `exact.rounding` uses them."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.expressions.nodes import Expr


@dataclass(frozen=True)
class Margin:
    """An error of a value that omission compares. For an omitted tuple, the exact value of `value` may
    differ by up to `relative` * |value| + `absolute` from the computed one.
    """

    value: Expr
    relative: float
    absolute: float
