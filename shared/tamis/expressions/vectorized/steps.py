"""Vectorised functions that round a number, MOD, and CASTs between numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectorized.operands import Operand, any_null
from tamis.expressions.vectors import Mask

_Operation: TypeAlias = Callable[[Sequence[Operand], Type], Operand]

Doubles: TypeAlias = NDArray[np.float64]


def half_away(x: Doubles) -> Doubles:
    """The nearest whole numbers; a half is rounded away from zero, as by `round` of C."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def rounded(x: Doubles, digits: int) -> Doubles:
    """ROUND(x, digits) as DuckDB computes it: a result that overflows is `x`, or 0 for digits before the
    point.
    """
    if digits == 0:
        return half_away(x)
    scale = 10.0 ** abs(digits)
    out = half_away(x * scale) / scale if digits > 0 else half_away(x / scale) * scale
    return np.where(np.isfinite(out), out, x if digits > 0 else 0.0)


def _of_doubles(ufunc: Callable[[Doubles], Doubles]) -> _Operation:
    def run(args: Sequence[Operand], _: Type) -> Operand:
        return Operand(ufunc(args[0].doubles()), args[0].null, finite=args[0].finite)

    return run


def _round(args: Sequence[Operand], _: Type) -> Operand:
    digits = int(args[1].data[0]) if len(args) > 1 else 0
    return Operand(rounded(args[0].doubles(), digits), args[0].null)


def _sign(args: Sequence[Operand], _: Type) -> Operand:
    return Operand(np.sign(args[0].data).astype(np.int64), args[0].null)


def _to_integer(bits: int) -> _Operation:
    limit = 2.0 ** (bits - 1)

    def run(args: Sequence[Operand], _: Type) -> Operand:
        data = args[0].data
        if data.dtype == np.float64:
            data = np.rint(data)
            fits = (data >= -limit) & (data < limit)
            data = np.where(fits, data, 0.0).astype(np.int64)
        else:
            fits = np.ones(data.shape, np.bool_) if bits == 64 else (data >= -limit) & (data < limit)
        return Operand(data, args[0].null if fits.all() else any_null(~fits, args[0].null))

    return run


def _mod(args: Sequence[Operand], type_: Type) -> Operand:
    null = any_null(args[0].null, args[1].null)
    if type_ is Type.DOUBLE:
        return Operand(np.fmod(args[0].doubles(), args[1].doubles()), null, finite=False)
    data, by_zero = _whole_remainder(args[0].data, args[1].data)
    return Operand(data, any_null(null, by_zero) if by_zero.any() else null)


def _whole_remainder(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    by_zero = b == 0
    # The remainder of a division by -1 is 0, but the quotient of the least integer overflows.
    return np.fmod(a, np.where(by_zero | (b == -1), 1, b)), by_zero


OPERATIONS: dict[str, _Operation] = {
    "floor": _of_doubles(np.floor),
    "ceil": _of_doubles(np.ceil),
    "trunc": _of_doubles(np.trunc),
    "round": _round,
    "sign": _sign,
    "to_int": _to_integer(32),
    "to_bigint": _to_integer(64),
    "mod": _mod,
}
