"""Evaluates an expression over columns: every operator once over the whole batch, in compiled code.

An expression is first flattened to a program of steps in which equal subexpressions are one (inlined
functions repeat them), then run step by step; what no later step reads is let go. All branches of a CASE are
computed and one is chosen: no operator can fail, so none needs guarding. (A function of Python may: what it
raises leaves `evaluate` as a FunctionError.)

DOUBLE results are checked for NaN and infinities as late as possible. `+ - * neg abs sqrt ln log10` and the
numerator of `/` turn what isn't finite into something that isn't finite, so such a value may run through them
and stand for NULL (it is *unsettled*); every other operator and the result need it settled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.expressions import libm, opaque
from tamis.expressions.nodes import OPAQUE, Column, Expr, Literal, Type
from tamis.expressions.vectors import Columns, Mask, Vector

_PASS_ON = ("+", "-", "*", "neg", "abs", "sqrt", "ln", "log10")  # what isn't finite stays so through these
_EXACT = 2**53  # beyond it a DOUBLE may stand for several whole numbers


def evaluate(expr: Expr, columns: Columns, rows: int) -> Vector:
    """The value of `expr` in each row: a vector of length `rows`, which may share memory with a column.

    Raises KeyError where a column of `expr` is not in `columns`, ValueError where one has not `rows` values.
    """
    steps, last_read = _program(_Same(expr))
    values: list[_Value | None] = []
    # Non-finite results become NULL and integers wrap on purpose: nothing here is worth a warning.
    with np.errstate(all="ignore"):
        for position, step in enumerate(steps):
            values.append(_run(step, values, columns, rows))
            for argument in step.args:
                if last_read[argument] == position:
                    values[argument] = None
        result = _settle(_present(values[-1]))
    if len(result.data) == rows and (result.null is None or len(result.null) == rows):
        return Vector(result.data, result.null)
    null = None if result.null is None else np.broadcast_to(result.null, rows).copy()
    return Vector(np.broadcast_to(result.data, rows).copy(), null)


def holds(expr: Expr, columns: Columns, rows: int) -> Mask:
    """Where the condition `expr` is true (neither false nor NULL): a mask of shape (rows,)."""
    return _true(_of(evaluate(expr, columns, rows)))


@dataclass(frozen=True)
class _Value:
    """Data and NULLs of a step. Either has one item where all rows have the same: NumPy broadcasts it."""

    data: NDArray[Any]
    null: Mask | None = None
    settled: bool = True


@dataclass(frozen=True)
class _Step:
    """A column, a constant, or an operator over the results of earlier steps, by position."""

    leaf: Column | _Value | None
    op: str
    type: Type
    args: tuple[int, ...]


_Key: TypeAlias = tuple[object, ...]


class _Same:
    """An expression as a key by identity: equality would walk it, and takes 0.0 for -0.0."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __hash__(self) -> int:
        return id(self.expr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.expr is self.expr


# Small batches come often, and what plans hold stays the same object: a few for each of thousands of alerts.
@lru_cache(maxsize=20_000)
def _program(key: _Same) -> tuple[list[_Step], list[int]]:
    return _flatten(key.expr)


def _flatten(expr: Expr) -> tuple[list[_Step], list[int]]:
    """The program for `expr`, and for each step the position of the last one that reads it."""
    steps: list[_Step] = []
    last_read: list[int] = []
    known: dict[_Key, int] = {}

    def place(node: Expr) -> int:
        args: list[int] = []
        if isinstance(node, Column):
            key: _Key = ("column", node.alias, node.name)
            step = _Step(node, "", node.type, ())
        elif isinstance(node, Literal):
            key = ("literal", node.type, repr(node.value))  # 0.0 and -0.0 are equal and yet not one value
            step = _Step(_of(Vector.full(node, 1)), "", node.type, ())
        else:
            for arg in node.args:
                args.append(place(arg))
            key = (node.op, node.type, *args)
            step = _Step(None, node.op, node.type, tuple(args))
        if key not in known:
            known[key] = len(steps)
            for read in args:
                last_read[read] = len(steps)
            steps.append(step)
            last_read.append(-1)
        return known[key]

    place(expr)
    return steps, last_read


def _run(step: _Step, values: list[_Value | None], columns: Columns, rows: int) -> _Value:
    if isinstance(step.leaf, Column):
        column = columns[step.leaf.alias, step.leaf.name]
        if len(column) != rows:
            raise ValueError(f"column {step.leaf.name} has {len(column)} values, not {rows}")
        return _of(column)
    if step.leaf is not None:
        return step.leaf
    for index, argument in enumerate(step.args):
        # Kept settled for the other steps that read it.
        if step.op not in _PASS_ON and not (step.op == "/" and index == 0):
            values[argument] = _settle(_present(values[argument]))
    args = [_present(values[argument]) for argument in step.args]
    if step.op == OPAQUE:
        return _python(str(args[0].data[0]), args[2:])
    if step.op in _ARITHMETIC:
        return _arithmetic(step, args)
    return _OTHERS[step.op](args, step.type)


def _of(vector: Vector) -> _Value:
    return _Value(vector.data, vector.null)


def _present(value: _Value | None) -> _Value:
    assert value is not None, "a step is let go only after the last one that reads it"
    return value


def _settle(value: _Value) -> _Value:
    """Makes what isn't finite NULL."""
    if value.settled:
        return value
    finite = np.isfinite(value.data)
    if finite.all():
        return replace(value, settled=True)
    return _Value(np.where(finite, value.data, 0.0), _either(~finite, value.null))


def _either(a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None or b is None:
        return b if a is None else a
    return a | b


def _double(value: _Value) -> NDArray[Any]:
    return value.data.astype(np.float64, copy=False)


# --- arithmetic: a function of data for DOUBLE, one for integers that also tells where it overflows

_Doubles: TypeAlias = Callable[..., NDArray[Any]]
_Integers: TypeAlias = Callable[..., tuple[NDArray[Any], Mask]]


def _add(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    r = a + b
    return r, ((a ^ r) & (b ^ r)) < 0  # the sign of the result is neither's


def _subtract(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    r = a - b
    return r, ((a ^ b) & (a ^ r)) < 0


def _multiply(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    # A product that overflows is off by a multiple of 2**64; the rounding of the double product is far less
    # than 2**63 wherever the two could be confused.
    r = a * b
    return r, np.abs(r.astype(np.float64) - a.astype(np.float64) * b.astype(np.float64)) > 2.0**63


def _negate(a: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    return -a, a == np.iinfo(np.int64).min


def _absolute(a: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    return np.abs(a), a == np.iinfo(np.int64).min


_ARITHMETIC: dict[str, tuple[_Doubles, _Integers | None]] = {
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


def _arithmetic(step: _Step, args: Sequence[_Value]) -> _Value:
    null: Mask | None = None
    for arg in args:
        null = _either(null, arg.null)
    of_doubles, of_integers = _ARITHMETIC[step.op]
    if of_integers is None or step.type is Type.DOUBLE:
        return _Value(of_doubles(*map(_double, args)), null, settled=False)
    data, overflow = of_integers(*(arg.data for arg in args))
    return _Value(data, _either(null, overflow) if overflow.any() else null)


# --- functions of Python


def _python(name: str, args: Sequence[_Value]) -> _Value:
    """It never sees a row in which an argument is NULL."""
    shape = np.broadcast_shapes(*(arg.data.shape for arg in args))
    null = np.zeros(shape, np.bool_)
    for arg in args:
        if arg.null is not None:
            null = null | arg.null
    given = np.flatnonzero(~null)
    out = np.full(shape, np.nan)
    if len(given):
        out[given] = opaque.results(name, [np.broadcast_to(_double(arg), shape)[given] for arg in args])
    return _Value(out, null if len(given) < len(null) else None, settled=False)


# --- comparisons, logic and choice


def _comparable(args: Sequence[_Value]) -> list[NDArray[Any]]:
    """The data of `args` as arrays that NumPy compares as SQL does."""
    if any(arg.data.dtype == np.float64 for arg in args):
        return [_double(arg) for arg in args]
    if all(arg.data.dtype != np.object_ for arg in args):
        return [arg.data for arg in args]
    # None has no order; what stands in for it is never looked at.
    return [arg.data if arg.null is None else np.where(arg.null, "", arg.data) for arg in args]


def _comparison(ufunc: np.ufunc) -> Callable[[Sequence[_Value], Type], _Value]:
    def compare(args: Sequence[_Value], _: Type) -> _Value:
        a, b = _comparable(args)
        return _Value(ufunc(a, b, dtype=np.bool_), _either(args[0].null, args[1].null))

    return compare


def _equality(negated: bool) -> Callable[[Sequence[_Value], Type], _Value]:
    def compare(args: Sequence[_Value], _: Type) -> _Value:
        equal = _equal(args)
        return _Value(~equal if negated else equal, _either(args[0].null, args[1].null))

    return compare


def _equal(args: Sequence[_Value]) -> Mask:
    """Where two values are equal: a whole number and a DOUBLE are so by value, also beyond 2^53."""
    a, b = _comparable(args)
    equal: Mask = np.equal(a, b, dtype=np.bool_)
    if {arg.data.dtype.kind for arg in args} == {"i", "f"}:
        whole, real = sorted((arg.data for arg in args), key=lambda data: data.dtype.kind != "i")
        whole, real, equal = np.broadcast_arrays(whole, real, equal)
        large = equal & (np.abs(real) >= _EXACT)
        if large.any():
            held = large & (real < 2.0**63)
            same = np.where(held, real, 0.0).astype(np.int64) == whole
            equal = (equal & ~large) | (held & same)
    return equal


def _true(value: _Value) -> Mask:
    return value.data if value.null is None else value.data & ~value.null


def _false(value: _Value) -> Mask:
    return ~value.data if value.null is None else ~(value.data | value.null)


def _and(args: Sequence[_Value], _: Type) -> _Value:
    true, false = _true(args[0]), _false(args[0])
    for arg in args[1:]:
        true, false = true & _true(arg), false | _false(arg)
    return _logical(true, false, args)


def _or(args: Sequence[_Value], _: Type) -> _Value:
    true, false = _true(args[0]), _false(args[0])
    for arg in args[1:]:
        true, false = true | _true(arg), false & _false(arg)
    return _logical(true, false, args)


def _logical(true: Mask, false: Mask, args: Sequence[_Value]) -> _Value:
    return _Value(true, None if all(arg.null is None for arg in args) else ~(true | false))


def _not(args: Sequence[_Value], _: Type) -> _Value:
    return _Value(~args[0].data, args[0].null)


def _is_null(args: Sequence[_Value], _: Type) -> _Value:
    null = args[0].null
    return _Value(np.zeros(1, np.bool_) if null is None else null)


def _choose(where: Mask, yes: _Value, no: _Value) -> _Value:
    null: Mask | None = None
    if yes.null is not None or no.null is not None:
        null = np.where(where, _nulls(yes), _nulls(no))
    return _Value(np.where(where, yes.data, no.data), null)


def _nulls(value: _Value) -> Mask:
    return np.zeros(1, np.bool_) if value.null is None else value.null


def _cast(value: _Value, type_: Type) -> _Value:
    return replace(value, data=_double(value)) if type_ is Type.DOUBLE else value


def _extreme(ufunc: np.ufunc) -> Callable[[Sequence[_Value], Type], _Value]:
    """Of equal values the first, so that the sign of a zero is certain."""

    def pick(args: Sequence[_Value], type_: Type) -> _Value:
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


def _case(args: Sequence[_Value], type_: Type) -> _Value:
    result = _cast(args[-1], type_)
    for position in range(len(args) - 3, -1, -2):
        result = _choose(_true(args[position]), _cast(args[position + 1], type_), result)
    return result


_OTHERS: dict[str, Callable[[Sequence[_Value], Type], _Value]] = {
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
    "case": _case,
}
