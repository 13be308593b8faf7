"""Approximate quantiles: numbers rounded to seven binary digits, as whole numbers in the same order.

The number of a value is monotone in the value. So the percentile of the numbers is the number of the
percentile, and an approximate quantile is exactly the percentile rounded to seven binary digits. It doesn't
depend on the order of values, on batches or on merges, and there are only so many numbers. This is the
histogram of DDSketch (Masson, Rim and Lee, *DDSketch*, VLDB 2019, section 2) with the bins of binary floating
point in place of logarithmic ones.

A value of at least 2^e and less than 2^(e+1) is q * 2^(e-6), with q rounded to a whole number from 64 to 128.
Its number is 64 * (e + 41) + q - 64, and that of the negative value is the negative number. Values of less
than 2^-40 have the number 0.
"""

from __future__ import annotations

from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.signatures import call
from tamis.query.scalars import operators
from tamis.query.scalars.casts import cast
from tamis.query.scalars.functions import rounded

# The greatest error of an approximate quantile, as a share of its value.
ERROR = 2**-7
_BINS = 64  # of the values from one power of two to the next
_LEAST = -40
_SHIFT = 1 - _LEAST
# The numbers of the greatest DOUBLEs.
GREATEST = _BINS * (1024 + _SHIFT)
_LOG2_E = 1.4426950408889634


def code(value: Expr) -> Expr:
    """The whole number of a value, which is a number."""
    number = cast(value, Type.DOUBLE)
    size = call("abs", number)
    # An exponent that is wrong by one near a power of two gives the same number.
    exponent = rounded("floor", [_times(call("ln", size), _double(_LOG2_E))])
    unit = operators.arithmetic("power", _double(2.0), _plus(exponent, _double(-6.0)))
    digits = rounded("round", [operators.arithmetic("/", size, unit)])
    placed = _plus(_times(_plus(exponent, _double(_SHIFT - 1.0)), _double(_BINS)), digits)
    signed = cast(_times(rounded("sign", [number]), placed), Type.BIGINT)
    small = operators.compare("<", size, _double(2.0**_LEAST))
    return operators.case([(small, Literal(0, Type.BIGINT))], signed)


def of_code(number: Expr) -> Expr:
    """The value that a whole number stands for, a DOUBLE."""
    size = call("abs", number)
    exponent = rounded("floor", [operators.arithmetic("/", size, Literal(_BINS, Type.INT))])
    rest = operators.arithmetic("-", size, _times(exponent, _double(_BINS)))
    unit = operators.arithmetic("power", _double(2.0), _plus(exponent, _double(-6.0 - _SHIFT)))
    return _times(_times(rounded("sign", [number]), _plus(rest, _double(_BINS))), unit)


def limits(column: Expr) -> Expr:
    """The condition that all numbers of values meet."""
    ends = (Call(op, (column, Literal(end, Type.BIGINT)), Type.BOOLEAN) for op, end in _ENDS)
    return Call("and", tuple(ends), Type.BOOLEAN)


_ENDS = ((">=", -GREATEST), ("<=", GREATEST))


def _double(value: float) -> Literal:
    return Literal(float(value), Type.DOUBLE)


def _times(left: Expr, right: Expr) -> Expr:
    return operators.arithmetic("*", left, right)


def _plus(left: Expr, right: Expr) -> Expr:
    return operators.arithmetic("+", left, right)
