"""`sqrt`, and `exp`, `ln`, `log10` and `power` over arrays of doubles, bit for bit as in the C library.

On some processors NumPy uses its own vectorised versions, which differ in the last bit, and an alarm at the
threshold must not depend on the machine. Outside of their domains the functions return NaN or an infinity.

A function is compiled, or loaded from numba's cache, at its first call.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis.expressions.functions.arithmetic import IN_C_LIBRARY, computed
from tamis.expressions.functions.entry import (
    NUMBERS,
    Function,
    RealFunction,
    Reference,
    Signature,
    Spelling,
    on_numbers,
)
from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.kernels import njit

Doubles = NDArray[np.float64]


def exp(x: ArrayLike) -> Doubles:
    """e to the power x; an infinity if that overflows."""
    x = np.asarray(x, np.float64)
    out = np.empty(x.shape)
    _exp(x.ravel(), out.reshape(-1))
    return out[()]


def ln(x: ArrayLike) -> Doubles:
    """Natural logarithm; NaN below zero, -infinity at zero."""
    x = np.asarray(x, np.float64)
    out = np.empty(x.shape)
    _ln(x.ravel(), out.reshape(-1))
    return out[()]


def log10(x: ArrayLike) -> Doubles:
    """Decimal logarithm; NaN below zero, -infinity at zero."""
    x = np.asarray(x, np.float64)
    out = np.empty(x.shape)
    _log10(x.ravel(), out.reshape(-1))
    return out[()]


def power(x: ArrayLike, y: ArrayLike) -> Doubles:
    """x to the power y; NaN for a fraction of a negative x, an infinity for a negative power of zero."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    shape = np.broadcast_shapes(xs.shape, ys.shape)
    out = np.empty(shape)
    _power(_repeated(xs, shape).ravel(), _repeated(ys, shape).ravel(), out.reshape(-1))
    return out[()]


def _repeated(x: Doubles, shape: tuple[int, ...]) -> Doubles:
    """`x` in a shape, copied if it is broadcast: compiled code takes no array that repeats elements."""
    return x if x.shape == shape else np.broadcast_to(x, shape).copy()


@njit(cache=True)
def _exp(x: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.exp(x[i])


@njit(cache=True)
def _ln(x: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.log(x[i])


@njit(cache=True)
def _log10(x: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.log10(x[i])


@njit(cache=True)
def _power(x: Doubles, y: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.pow(x[i], y[i])


_NUMBER = Signature((NUMBERS,), Type.DOUBLE)
_NOT_POSITIVE = "may be the logarithm of 0 or a negative number"


def _number(value: float) -> Literal:
    return Literal(value, Type.DOUBLE)


def _of(op: str, *args: Expr) -> Call:
    return Call(op, args, Type.DOUBLE)


def _ln_10() -> Call:
    return _of("ln", _number(10.0))


ENTRIES = (
    Function(
        name="sqrt",
        types=_NUMBER,
        kernel=computed(np.sqrt),
        duckdb=on_numbers("sqrt({})"),
        spelling=Spelling(("sqrt",), (1, 1)),
        reference=Reference("`sqrt(x)`", IN_C_LIBRARY),
        keeps_nonfinite=(0,),
        real=RealFunction(
            scalar=math.sqrt,
            ball=lambda x: x.sqrt(),
            least=0.0,
            closed=True,
            undefined="may be the root of a negative number",
            slope=lambda _, y: _of("/", _number(1.0), _of("*", _number(2.0), y)),
            bend=lambda x, y: _of("/", _number(-1.0), _of("*", _number(4.0), _of("*", x, y))),
            curvature=-1,
            correctly_rounded=True,
            underflows=False,
            moved=lambda value, error, *_: _of("/", error, value),
        ),
    ),
    Function(
        name="exp",
        types=_NUMBER,
        kernel=computed(exp),
        duckdb=on_numbers("exp({})"),
        spelling=Spelling(("exp",), (1, 1)),
        reference=Reference("`exp(x)`", IN_C_LIBRARY),
        real=RealFunction(
            scalar=math.exp,
            ball=lambda x: x.exp(),
            slope=lambda _, y: y,
            bend=lambda _, y: y,
            curvature=1,
            lowest=0.0,
            moved=lambda _, error, size, __: _of("*", size, _of("*", error, _of("exp", error))),
        ),
    ),
    Function(
        name="ln",
        types=_NUMBER,
        kernel=computed(ln),
        duckdb=on_numbers("ln({})"),
        spelling=Spelling(("ln",), (1, 1)),
        reference=Reference("`ln(x)`", IN_C_LIBRARY),
        keeps_nonfinite=(0,),
        real=RealFunction(
            scalar=math.log,
            ball=lambda x: x.log(),
            least=0.0,
            undefined=_NOT_POSITIVE,
            slope=lambda x, _: _of("/", _number(1.0), x),
            bend=lambda x, _: _of("/", _number(-1.0), _of("*", x, x)),
            curvature=-1,
            underflows=False,
            moved=lambda _, error, __, least: _of("/", error, least),
        ),
    ),
    Function(
        name="log10",
        types=_NUMBER,
        kernel=computed(log10),
        duckdb=on_numbers("log10({})"),
        spelling=Spelling(("log10",), (1, 1)),
        reference=Reference("`log10(x)`", IN_C_LIBRARY),
        keeps_nonfinite=(0,),
        real=RealFunction(
            scalar=math.log10,
            ball=lambda x: x.log() / type(x)(10).log(),
            least=0.0,
            undefined=_NOT_POSITIVE,
            slope=lambda x, _: _of("/", _number(1.0), _of("*", x, _ln_10())),
            bend=lambda x, _: _of("/", _number(-1.0), _of("*", _of("*", x, x), _ln_10())),
            curvature=-1,
            underflows=False,
            moved=lambda _, error, __, least: _of("/", error, least),
        ),
    ),
    Function(
        name="power",
        types=Signature((NUMBERS, NUMBERS), Type.DOUBLE),
        kernel=computed(power),
        duckdb=on_numbers("pow({}, {})"),
        spelling=Spelling(("power",), (2, 2), "{name}(base, exponent)"),
        reference=Reference("`power(x, y)`", IN_C_LIBRARY, "RisingWave `pow`"),
    ),
)
