"""Vectorised comparisons, three-valued logic, and choices: CASE, LEAST and GREATEST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Type
from tamis.expressions.vectorized.operands import Operand, any_null
from tamis.expressions.vectors import Mask

_Operation: TypeAlias = Callable[[Sequence[Operand], Type], Operand]


def _comparable(args: Sequence[Operand]) -> list[NDArray[Any]]:
    """The data of `args` as arrays that NumPy compares as SQL does."""
    if any(arg.data.dtype == np.float64 for arg in args):
        return [arg.doubles() for arg in args]
    if all(arg.data.dtype != np.object_ for arg in args):
        return [arg.data for arg in args]
    # None can't be compared with a string; the result of the string in its place is never used.
    return [arg.data if arg.null is None else np.where(arg.null, "", arg.data) for arg in args]


def _comparison(ufunc: np.ufunc) -> _Operation:
    def compare(args: Sequence[Operand], _: Type) -> Operand:
        a, b = _comparable(args)
        return Operand(ufunc(a, b, dtype=np.bool_), any_null(args[0].null, args[1].null))

    return compare


def _equality(negated: bool) -> _Operation:
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


def _extreme(ufunc: np.ufunc) -> _Operation:
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


OPERATIONS: dict[str, _Operation] = {
    "=": _equality(negated=False),
    "!=": _equality(negated=True),
    "<": _comparison(np.less),
    "<=": _comparison(np.less_equal),
    ">": _comparison(np.greater),
    ">=": _comparison(np.greater_equal),
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": _is_null,
    "least": _extreme(np.less),
    "greatest": _extreme(np.greater),
    "coalesce": _coalesce,
    "case": _case,
}
