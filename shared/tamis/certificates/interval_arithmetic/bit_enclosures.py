"""Enclosures of the operators of bits: ranges that follow from the signs of the operands."""

from __future__ import annotations

import numpy as np

from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.derivatives import Derivatives, PossibleNulls
from tamis.certificates.interval_arithmetic.intervals import Interval
from tamis.certificates.interval_arithmetic.step_derivatives import computed
from tamis.expressions.nodes import Call

_INT64 = 2.0**63
_MINUS_ONE = iv.point(-1.0)


def bits(expr: Call, args: tuple[Derivatives, ...], nulls: PossibleNulls) -> Derivatives:
    """An operator of bits. `~x` is -1 - x; of the others at most the range is known."""
    if expr.op == "~":
        (a,) = args
        value = iv.add(_MINUS_ONE, iv.neg(a.value))
        return Derivatives(value, iv.neg(a.first), iv.neg(a.second), a.varies)
    out = computed(expr, args, nulls)
    return Derivatives(_range(expr.op, *(a.value for a in args)), out.first, out.second, out.varies)


def _range(op: str, a: Interval, b: Interval) -> Interval:
    """All values of the operator that aren't NULL."""
    if op == "<<":
        return iv.span(0.0, _INT64)
    if op == ">>":
        return Interval(np.minimum(a.lo, 0.0), np.maximum(a.hi, 0.0))
    positive = (a.lo >= 0) & (b.lo >= 0)
    if op == "&":
        # Not above an operand that isn't negative; of two negative numbers, below both.
        one = (a.lo >= 0) | (b.lo >= 0)
        most = np.where(a.lo >= 0, a.hi, np.where(b.lo >= 0, b.hi, np.maximum(a.hi, b.hi)))
        return Interval(np.where(one, 0.0, -_INT64), np.where(positive, np.minimum(a.hi, b.hi), most))
    # At most the sum, where no operand is negative.
    whole = iv.span(-_INT64, _INT64)
    return iv.where(positive, Interval(np.zeros_like(a.lo), iv.add(a, b).hi), whole)
