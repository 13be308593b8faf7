"""Arithmetic, MOD, functions of the C library, and Python functions.

A kernel of arithmetic has a function of float64 for DOUBLEs, and one of int64 that also finds overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.expressions import python_functions
from tamis.expressions.functions.entry import (
    NUMBERS,
    PRODUCT,
    SIGN,
    SUM,
    Function,
    Kernel,
    RealFunction,
    Reference,
    Signature,
    Spelling,
    Types,
    as_doubles,
    common_type,
    on_numbers,
)
from tamis.expressions.functions.operands import Operand, any_null
from tamis.expressions.nodes import OPAQUE, Call, Expr, Literal, Type
from tamis.expressions.vectors import Mask

_Doubles: TypeAlias = Callable[..., NDArray[Any]]
_Integers: TypeAlias = Callable[..., tuple[NDArray[Any], Mask]]
IN_C_LIBRARY = "As in the C library."


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


def computed(of_doubles: _Doubles, of_integers: _Integers | None = None) -> Kernel:
    """A kernel of arithmetic. An integer that overflows is NULL; a DOUBLE may not be finite."""

    def kernel(args: Sequence[Operand], type_: Type) -> Operand:
        null: Mask | None = None
        for arg in args:
            null = any_null(null, arg.null)
        if of_integers is None or type_ is Type.DOUBLE:
            return Operand(of_doubles(*(arg.doubles() for arg in args)), null, finite=False)
        data, overflow = of_integers(*(arg.data for arg in args))
        return Operand(data, any_null(null, overflow) if overflow.any() else null)

    return kernel


def _whole_remainder(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    by_zero = b == 0
    # The remainder of a division by -1 is 0, but the quotient of the least integer overflows.
    return np.fmod(a, np.where(by_zero | (b == -1), 1, b)), by_zero


def _python_function(args: Sequence[Operand], _: Type) -> Operand:
    """A Python function of the rows in which no argument is NULL; NULL in the others."""
    name, args = str(args[0].data[0]), args[2:]
    shape = np.broadcast_shapes(*(arg.data.shape for arg in args))
    null = np.zeros(shape, np.bool_)
    for arg in args:
        if arg.null is not None:
            null = null | arg.null
    rows = np.flatnonzero(~null)
    out = np.full(shape, np.nan)
    if len(rows):
        doubles = [np.broadcast_to(arg.doubles(), shape)[rows] for arg in args]
        out[rows] = python_functions.results(name, doubles)
    return Operand(out, null if len(rows) < len(null) else None, finite=False)


_WITH_TIME = {
    ("+", Type.TIMESTAMP, Type.INTERVAL): Type.TIMESTAMP,
    ("+", Type.INTERVAL, Type.TIMESTAMP): Type.TIMESTAMP,
    ("-", Type.TIMESTAMP, Type.INTERVAL): Type.TIMESTAMP,
    ("-", Type.TIMESTAMP, Type.TIMESTAMP): Type.INTERVAL,
    ("+", Type.INTERVAL, Type.INTERVAL): Type.INTERVAL,
    ("-", Type.INTERVAL, Type.INTERVAL): Type.INTERVAL,
    **{("*", Type.INTERVAL, kind): Type.INTERVAL for kind in (Type.INT, Type.BIGINT)},
    **{("*", kind, Type.INTERVAL): Type.INTERVAL for kind in (Type.INT, Type.BIGINT)},
}


def _of_two(op: str) -> Types:
    def types(given: Sequence[Type]) -> Type | None:
        if len(given) != 2:
            return None
        if all(type_.numeric for type_ in given):
            return common_type(given)
        return _WITH_TIME.get((op, given[0], given[1]))

    return types


def _opaque_type(given: Sequence[Type]) -> Type | None:
    named = len(given) > 2 and all(type_ is Type.VARCHAR for type_ in given[:2])
    return Type.DOUBLE if named and all(type_.numeric for type_ in given[2:]) else None


def _remainder_in_duckdb(expr: Call, args: Sequence[str]) -> str:
    """A division of integers by 0 raises an error in DuckDB, and of DOUBLEs it gives NaN."""
    if expr.type is Type.DOUBLE:
        return "({} % {})".format(*as_doubles(expr, args))
    a, b = (f"CAST({arg} AS HUGEINT)" for arg in args)
    return f"TRY_CAST(({a} % nullif({b}, 0)) AS BIGINT)"


def _opaque_in_duckdb(expr: Call, args: Sequence[str]) -> str:
    name = python_functions.name_in_duckdb(expr).replace('"', '""')
    return f'"{name}"({", ".join(as_doubles(expr, args)[2:])})'


_OF_ONE = Signature(((*NUMBERS, Type.INTERVAL),), None)


def _in_c_library(name: str) -> _Doubles:
    """A compiled function, loaded at its first call. It is named and not imported, because the alerts service
    reads plans without ever calling a function, and its image has no Numba.
    """

    def function(*args: NDArray[Any]) -> NDArray[Any]:
        return getattr(import_module("tamis.expressions.functions.libm"), name)(*args)  # type: ignore[no-any-return]

    return function


_NUMBER = Signature((NUMBERS,), Type.DOUBLE)
_NOT_POSITIVE = "may be the logarithm of 0 or a negative number"


def _number(value: float) -> Literal:
    return Literal(value, Type.DOUBLE)


def _of(op: str, *args: Expr) -> Call:
    return Call(op, args, Type.DOUBLE)


def _ln_10() -> Call:
    return _of("ln", _number(10.0))


ENTRIES = (
    *(
        Function(
            name=op,
            types=_of_two(op),
            kernel=computed(of_doubles, of_integers),
            duckdb=on_numbers(f"({{}} {op} {{}})"),
            binding=binding,
            keeps_nonfinite=(0, 1),
        )
        for op, of_doubles, of_integers, binding in (
            ("+", np.add, _add, SUM),
            ("-", np.subtract, _subtract, SUM),
            ("*", np.multiply, _multiply, PRODUCT),
        )
    ),
    Function(
        name="/",
        types=Signature((NUMBERS, NUMBERS), Type.DOUBLE),
        kernel=computed(np.divide),
        duckdb=on_numbers("({} / {})"),
        binding=PRODUCT,
        keeps_nonfinite=(0,),
    ),
    Function(
        name="neg",
        types=_OF_ONE,
        kernel=computed(np.negative, _negate),
        duckdb=on_numbers("(- {})"),
        binding=SIGN,
        symbol="-",
        keeps_nonfinite=(0,),
    ),
    Function(
        name="abs",
        types=_OF_ONE,
        kernel=computed(np.abs, _absolute),
        duckdb=on_numbers("abs({})"),
        spelling=Spelling(("abs",), (1, 1)),
        reference=Reference("`abs(x)`", IN_C_LIBRARY),
        keeps_nonfinite=(0,),
    ),
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
        kernel=computed(_in_c_library("exp")),
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
        kernel=computed(_in_c_library("ln")),
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
        kernel=computed(_in_c_library("log10")),
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
        kernel=computed(_in_c_library("power")),
        duckdb=on_numbers("pow({}, {})"),
        spelling=Spelling(("power",), (2, 2), "{name}(base, exponent)"),
        reference=Reference("`power(x, y)`", IN_C_LIBRARY, "RisingWave `pow`"),
    ),
    Function(
        name="mod",
        types=_of_two("mod"),
        kernel=computed(np.fmod, _whole_remainder),
        duckdb=_remainder_in_duckdb,
        spelling=Spelling(("mod",), (2, 2), "{name}(number, divisor), or number % divisor"),
        reference=Reference(
            "`mod(x, y)`, `x % y`",
            "The result has the sign of x, and is NULL if y is 0. For DOUBLEs it is the exact remainder.",
        ),
        binding=PRODUCT,
        symbol="%",
    ),
    Function(
        name=OPAQUE, types=_opaque_type, kernel=_python_function, duckdb=_opaque_in_duckdb, computed=True
    ),
)
