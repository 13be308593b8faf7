"""Functions that round a number, and CASTs between numbers: constant between steps, where they rise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from tamis.expressions.functions.entry import (
    NUMBERS,
    Doubles,
    Function,
    Kernel,
    Reference,
    Signature,
    Spelling,
    Steps,
    constant,
    on_numbers,
    written,
)
from tamis.expressions.functions.operands import Operand, any_null
from tamis.expressions.nodes import MOST_DIGITS, Call, Type


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


def _of_doubles(ufunc: Callable[[Doubles], Doubles]) -> Kernel:
    def run(args: Sequence[Operand], _: Type) -> Operand:
        return Operand(ufunc(args[0].doubles()), args[0].null, finite=args[0].finite)

    return run


def _round(args: Sequence[Operand], _: Type) -> Operand:
    digits = int(args[1].data[0]) if len(args) > 1 else 0
    return Operand(rounded(args[0].doubles(), digits), args[0].null)


def _sign(args: Sequence[Operand], _: Type) -> Operand:
    return Operand(np.sign(args[0].data).astype(np.int64), args[0].null)


def _to_integer(bits: int) -> Kernel:
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


def _half_away(value: Fraction) -> int:
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value > 0 else -size


def _refused_digits(node: Call) -> str | None:
    digits = constant(node, 1) if len(node.args) > 1 else 0
    if isinstance(digits, int) and abs(digits) <= MOST_DIGITS:
        return None
    return f"round needs a constant number of digits, from -{MOST_DIGITS} to {MOST_DIGITS}"


def _round_in_duckdb(_: Call, args: Sequence[str]) -> str:
    return f"round({args[0]}, CAST({args[1]} AS INTEGER))" if len(args) > 1 else f"round({args[0]})"


_NUMBER = Signature((NUMBERS,), Type.DOUBLE)
# An integer is the result itself.
_DOUBLE = (Type.DOUBLE,)
_ALSO_DOUBLE = "DOUBLE, even for an integer."
_ROUNDS = (
    "DOUBLE; an integer stays as it is. A half is rounded away from zero: `round(-2.5)` is -3. The number of"
    f" digits is a constant from -{MOST_DIGITS} to {MOST_DIGITS}."
)

ENTRIES = (
    Function(
        name="floor",
        types=_NUMBER,
        kernel=_of_doubles(np.floor),
        duckdb=on_numbers("floor({})"),
        spelling=Spelling(("floor",), (1, 1)),
        reference=Reference("`floor(x)`", _ALSO_DOUBLE),
        keeps_nonfinite=(0,),
        steps=Steps(np.floor, math.floor),
    ),
    Function(
        name="ceil",
        types=_NUMBER,
        kernel=_of_doubles(np.ceil),
        duckdb=on_numbers("ceil({})"),
        spelling=Spelling(("ceil", "ceiling"), (1, 1)),
        reference=Reference("`ceil(x)`, `ceiling(x)`", _ALSO_DOUBLE),
        keeps_nonfinite=(0,),
        steps=Steps(np.ceil, math.ceil),
    ),
    Function(
        name="round",
        types=Signature((_DOUBLE, (Type.INT,)), Type.DOUBLE, optional=1),
        kernel=_round,
        duckdb=_round_in_duckdb,
        spelling=Spelling(("round",), (1, 2), "{name}(x), or {name}(x, 2) for two digits"),
        reference=Reference(
            "`round(x)`, `round(x, 2)`",
            _ROUNDS,
            "Flink SQL `TRUNCATE`; ksqlDB rounds a half up, RisingWave a DOUBLE to the even number",
        ),
        refused=_refused_digits,
        steps=Steps(half_away, _half_away),  # without digits
    ),
    Function(
        name="trunc",
        types=Signature((_DOUBLE,), Type.DOUBLE),
        kernel=_of_doubles(np.trunc),
        duckdb=on_numbers("trunc({})"),
        spelling=Spelling(("trunc",), (1, 1)),
        reference=Reference("`trunc(x)`", _ROUNDS),
        keeps_nonfinite=(0,),
        steps=Steps(np.trunc, math.trunc),
    ),
    Function(
        name="sign",
        types=Signature((NUMBERS,), Type.INT),
        kernel=_sign,
        duckdb=written("CAST(sign({}) AS BIGINT)"),
        spelling=Spelling(("sign",), (1, 1)),
        reference=Reference("`sign(x)`", "-1, 0 or 1."),
        steps=Steps(np.sign, lambda value: (value > 0) - (value < 0)),
    ),
    Function(
        name="to_int",
        types=Signature((NUMBERS,), Type.INT),
        kernel=_to_integer(32),
        duckdb=written("CAST(TRY_CAST({} AS INTEGER) AS BIGINT)"),
        cast="INT",
        steps=Steps(np.rint, round, 2**31),
    ),
    Function(
        name="to_bigint",
        types=Signature((_DOUBLE,), Type.BIGINT),
        kernel=_to_integer(64),
        duckdb=written("TRY_CAST({} AS BIGINT)"),
        cast="BIGINT",
        steps=Steps(np.rint, round, 2**63),
    ),
)
