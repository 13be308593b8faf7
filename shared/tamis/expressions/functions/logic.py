"""Comparisons, three-valued logic, and choices: CASE, COALESCE, LEAST and GREATEST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.functions.entry import (
    AND,
    COMPARISON,
    NOT,
    OR,
    ForDuckdb,
    Function,
    Kernel,
    Reference,
    Spelling,
    Types,
    as_doubles,
    called,
    common_type,
    written,
)
from tamis.expressions.functions.operands import Operand, any_null
from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Mask


def _comparable(args: Sequence[Operand]) -> list[NDArray[Any]]:
    """The data of `args` as arrays that NumPy compares as SQL does."""
    if any(arg.data.dtype == np.float64 for arg in args):
        return [arg.doubles() for arg in args]
    if all(arg.data.dtype != np.object_ for arg in args):
        return [arg.data for arg in args]
    # None can't be compared with a string; the result of the string in its place is never used.
    return [arg.data if arg.null is None else np.where(arg.null, "", arg.data) for arg in args]


def _comparison(ufunc: np.ufunc) -> Kernel:
    def compare(args: Sequence[Operand], _: Type) -> Operand:
        a, b = _comparable(args)
        return Operand(ufunc(a, b, dtype=np.bool_), any_null(args[0].null, args[1].null))

    return compare


def _equality(negated: bool) -> Kernel:
    def compare(args: Sequence[Operand], _: Type) -> Operand:
        equal = _equal(args)
        return Operand(~equal if negated else equal, any_null(args[0].null, args[1].null))

    return compare


def _equal(args: Sequence[Operand]) -> Mask:
    """Mask of the rows in which two operands are equal. An integer and a DOUBLE are compared by value, also
    beyond 2^53.
    """
    a, b = _comparable(args)
    equal: Mask = np.equal(a, b, dtype=np.bool_)
    if {arg.data.dtype.kind for arg in args} == {"i", "f"}:
        integers, reals = sorted((arg.data for arg in args), key=lambda data: data.dtype.kind != "i")
        integers, reals, equal = np.broadcast_arrays(integers, reals, equal)
        large = equal & (np.abs(reals) >= LARGEST_EXACT_INTEGER)
        if large.any():
            fits = large & (reals < 2.0**63)
            same = np.where(fits, reals, 0.0).astype(np.int64) == integers
            equal = (equal & ~large) | (fits & same)
    return equal


def _and(args: Sequence[Operand], _: Type) -> Operand:
    true, false = args[0].true(), args[0].false()
    for arg in args[1:]:
        true, false = true & arg.true(), false | arg.false()
    return _three_valued(true, false, args)


def _or(args: Sequence[Operand], _: Type) -> Operand:
    true, false = args[0].true(), args[0].false()
    for arg in args[1:]:
        true, false = true | arg.true(), false & arg.false()
    return _three_valued(true, false, args)


def _three_valued(true: Mask, false: Mask, args: Sequence[Operand]) -> Operand:
    return Operand(true, None if all(arg.null is None for arg in args) else ~(true | false))


def _not(args: Sequence[Operand], _: Type) -> Operand:
    return Operand(~args[0].data, args[0].null)


def _is_null(args: Sequence[Operand], _: Type) -> Operand:
    return Operand(_null_mask(args[0]))


def _choose(where: Mask, yes: Operand, no: Operand) -> Operand:
    null: Mask | None = None
    if yes.null is not None or no.null is not None:
        null = np.where(where, _null_mask(yes), _null_mask(no))
    return Operand(np.where(where, yes.data, no.data), null)


def _null_mask(operand: Operand) -> Mask:
    return np.zeros(1, np.bool_) if operand.null is None else operand.null


def _cast(operand: Operand, type_: Type) -> Operand:
    return replace(operand, data=operand.doubles()) if type_ is Type.DOUBLE else operand


def _extreme(ufunc: np.ufunc) -> Kernel:
    """LEAST or GREATEST. Of equal values it returns the first, so that the sign of a zero is defined."""

    def pick(args: Sequence[Operand], type_: Type) -> Operand:
        best = _cast(args[0], type_)
        for arg in args[1:]:
            other = _cast(arg, type_)
            a, b = _comparable([best, other])
            better = ufunc(b, a, dtype=np.bool_)
            if best.null is not None:
                better = better | best.null
            if other.null is not None:
                better = better & ~other.null
            best = _choose(better, other, best)
        return best

    return pick


def _coalesce(args: Sequence[Operand], type_: Type) -> Operand:
    result = _cast(args[-1], type_)
    for arg in args[-2::-1]:
        result = _choose(~_null_mask(arg), _cast(arg, type_), result)
    return result


def _case(args: Sequence[Operand], type_: Type) -> Operand:
    result = _cast(args[-1], type_)
    for position in range(len(args) - 3, -1, -2):
        result = _choose(args[position].true(), _cast(args[position + 1], type_), result)
    return result


def _conditions(least: int, most: int | None = None) -> Types:
    """Types of conditions alone, at least and at most this many."""

    def types(given: Sequence[Type]) -> Type | None:
        fitting = least <= len(given) <= (most or len(given)) and all(t is Type.BOOLEAN for t in given)
        return Type.BOOLEAN if fitting else None

    return types


def _compared(given: Sequence[Type]) -> Type | None:
    return Type.BOOLEAN if len(given) == 2 and common_type(given) is not None else None


def _case_type(given: Sequence[Type]) -> Type | None:
    paired = len(given) >= 3 and len(given) % 2 == 1 and all(t is Type.BOOLEAN for t in given[:-1:2])
    return common_type([*given[1::2], given[-1]]) if paired else None


def _joined(word: str) -> ForDuckdb:
    return lambda _, args: "(" + f" {word} ".join(args) + ")"


def _case_in_duckdb(expr: Call, args: Sequence[str]) -> str:
    texts = as_doubles(expr, args) if expr.type is Type.DOUBLE else args
    branches = [f"WHEN {when} THEN {then}" for when, then in zip(texts[:-1:2], texts[1::2], strict=True)]
    return f"(CASE {' '.join(branches)} ELSE {texts[-1]} END)"


def _compared_in_duckdb(expr: Call, args: Sequence[str]) -> str:
    """An integer and a DOUBLE are ordered as DOUBLEs, and equal by value: 2^53 + 1 is no DOUBLE."""
    if expr.op in ("=", "!=") and (whole := _inexact_integer(expr.args)) is not None:
        equal = _equal_in_duckdb(expr.args, args, whole)
        return equal if expr.op == "=" else f"(NOT {equal})"
    doubles = any(arg.type is Type.DOUBLE for arg in expr.args)
    a, b = as_doubles(expr, args) if doubles else args
    return f"({a} {expr.op} {b})"


def _inexact_integer(args: Sequence[Expr]) -> int | None:
    """The index of an integer argument that may not be a DOUBLE, if the other argument is a DOUBLE."""
    for index, other in ((0, 1), (1, 0)):
        arg = args[index]
        small = (
            isinstance(arg, Literal)
            and isinstance(arg.value, int)
            and abs(arg.value) <= LARGEST_EXACT_INTEGER
        )
        if arg.type.integral and args[other].type is Type.DOUBLE and not small:
            return index
    return None


def _equal_in_duckdb(exprs: Sequence[Expr], texts: Sequence[str], whole: int) -> str:
    """Equality of an integer and a DOUBLE by value; DuckDB's own equality rounds the integer."""
    test = "(CAST({0} AS DOUBLE) = {1} AND {0} = TRY_CAST({1} AS HUGEINT))"
    if all(isinstance(expr, Column) for expr in exprs):
        return test.format(texts[whole], texts[1 - whole])  # a condition that DuckDB can join by hashing
    # The text contains the operands once.
    pair = f"{{'whole': {texts[whole]}, 'real': {texts[1 - whole]}}}"
    inside = test.format("tamis_pair['whole']", "tamis_pair['real']")
    return f"list_transform([{pair}], lambda tamis_pair: {inside})[1]"


def _comparisons(kernels: dict[str, Kernel]) -> tuple[Function, ...]:
    return tuple(
        Function(name=op, types=_compared, kernel=kernel, duckdb=_compared_in_duckdb, binding=COMPARISON)
        for op, kernel in kernels.items()
    )


_EXTREMES = "NULL arguments are skipped."
_ONE_NULL = "in Flink SQL, one NULL makes the result NULL"
_PRESENT = "The first argument that isn't NULL."

ENTRIES = (
    *_comparisons(
        {
            "=": _equality(negated=False),
            "!=": _equality(negated=True),
            "<": _comparison(np.less),
            "<=": _comparison(np.less_equal),
            ">": _comparison(np.greater),
            ">=": _comparison(np.greater_equal),
        }
    ),
    Function(name="and", types=_conditions(1), kernel=_and, duckdb=_joined("AND"), binding=AND),
    Function(name="or", types=_conditions(1), kernel=_or, duckdb=_joined("OR"), binding=OR),
    Function(name="not", types=_conditions(1, 1), kernel=_not, duckdb=written("(NOT {})"), binding=NOT),
    Function(
        name="is_null",
        types=lambda given: Type.BOOLEAN if len(given) == 1 else None,
        kernel=_is_null,
        duckdb=written("({} IS NULL)"),
        binding=COMPARISON,
    ),
    Function(
        name="least",
        types=common_type,
        kernel=_extreme(np.less),
        duckdb=called("least"),
        spelling=Spelling(("least",), (1, 100)),
        reference=Reference("`least(x, …)`", _EXTREMES, _ONE_NULL),
    ),
    Function(
        name="greatest",
        types=common_type,
        kernel=_extreme(np.greater),
        duckdb=called("greatest"),
        spelling=Spelling(("greatest",), (1, 100)),
        reference=Reference("`greatest(x, …)`", _EXTREMES),
    ),
    Function(
        name="coalesce",
        types=lambda given: common_type(given) if len(given) > 1 else None,
        kernel=_coalesce,
        duckdb=called("coalesce"),
        spelling=Spelling(("coalesce",), (1, 100)),
        reference=Reference("`coalesce(x, …)`", _PRESENT),
    ),
    Function(name="case", types=_case_type, kernel=_case, duckdb=_case_in_duckdb),
    Spelling(("ifnull",), (2, 2), "{name}(value, other)", reference=Reference("`ifnull(x, y)`", _PRESENT)),
    Spelling(
        ("nullif",),
        (2, 2),
        "{name}(value, other)",
        reference=Reference("`nullif(x, y)`", "NULL if x = y, otherwise x."),
    ),
)
