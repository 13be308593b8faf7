"""Vectorised arithmetic: one function of float64 for DOUBLEs, and one of int64 that also finds overflows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.expressions import python_functions
from tamis.expressions.nodes import Type
from tamis.expressions.vectorized import libm
from tamis.expressions.vectorized.operands import Operand, any_null
from tamis.expressions.vectors import Mask

_Doubles: TypeAlias = Callable[..., NDArray[Any]]
_Integers: TypeAlias = Callable[..., tuple[NDArray[Any], Mask]]


def _add(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    r = a + b
    return r, ((a ^ r) & (b ^ r)) < 0  # after an overflow the sign differs from both operands' signs


def _subtract(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    r = a - b
    return r, ((a ^ b) & (a ^ r)) < 0


def _multiply(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    # A product that overflows is wrong by a multiple of 2**64. The rounding error of the DOUBLE product is
    # far less than 2**63, so that the difference tells the two apart.
    r = a * b
    return r, np.abs(r.astype(np.float64) - a.astype(np.float64) * b.astype(np.float64)) > 2.0**63


def _negate(a: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    return -a, a == np.iinfo(np.int64).min


def _absolute(a: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    return np.abs(a), a == np.iinfo(np.int64).min


ARITHMETIC: dict[str, tuple[_Doubles, _Integers | None]] = {
    "+": (np.add, _add),
    "-": (np.subtract, _subtract),
    "*": (np.multiply, _multiply),
    "neg": (np.negative, _negate),
    "abs": (np.abs, _absolute),
    "/": (np.divide, None),
    "sqrt": (np.sqrt, None),
    "exp": (libm.exp, None),
    "ln": (libm.ln, None),
    "log10": (libm.log10, None),
    "power": (libm.power, None),
}


def arithmetic(op: str, type_: Type, args: Sequence[Operand]) -> Operand:
    """An operator of `ARITHMETIC` with a result of type `type_`. An integer that overflows is NULL; a
    DOUBLE may not be finite.
    """
    null: Mask | None = None
    for arg in args:
        null = any_null(null, arg.null)
    of_doubles, of_integers = ARITHMETIC[op]
    if of_integers is None or type_ is Type.DOUBLE:
        return Operand(of_doubles(*(arg.doubles() for arg in args)), null, finite=False)
    data, overflow = of_integers(*(arg.data for arg in args))
    return Operand(data, any_null(null, overflow) if overflow.any() else null)


def python_function(name: str, args: Sequence[Operand]) -> Operand:
    """A Python function of the rows in which no argument is NULL; NULL in the others."""
    shape = np.broadcast_shapes(*(arg.data.shape for arg in args))
    null = np.zeros(shape, np.bool_)
    for arg in args:
        if arg.null is not None:
            null = null | arg.null
    rows = np.flatnonzero(~null)
    out = np.full(shape, np.nan)
    if len(rows):
        out[rows] = python_functions.results(
            name, [np.broadcast_to(arg.doubles(), shape)[rows] for arg in args]
        )
    return Operand(out, null if len(rows) < len(null) else None, finite=False)
