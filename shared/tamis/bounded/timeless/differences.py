"""Difference form: one condition of SQL as bounds on differences of whole numbers, where that is possible.

- INT, BIGINT and TIMESTAMP are whole numbers. BOOLEAN is 0 or 1.
- VARCHAR is only tested for equality: each constant text has a number.
- DOUBLE is compared with DOUBLE and with constants, without offsets. Its number is its place in the order of
  all DOUBLEs.

The form is exact. A condition with NULL isn't true, so compared columns are not NULL. Arithmetic that
overflows is NULL; `guards` has the expressions that must therefore not be NULL. Arithmetic between streams is
only taken apart if each side fits into 32 bits, so that it can't overflow.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tamis.expressions.double_order import number_of
from tamis.expressions.nodes import (
    FLIPPED,
    LARGEST_EXACT_INTEGER,
    OPPOSITE,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    aliases,
    columns,
)
from tamis.plan.conjunction import NULL

COMPARISONS_OF_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
_SMALL = 2**40  # sums of a few such numbers and INT columns don't overflow


@dataclass(frozen=True)
class DifferenceBound:
    """`left - right <= bound`; None is the number 0."""

    left: Column | None
    right: Column | None
    bound: int


@dataclass(frozen=True)
class Inequation:
    """`left - right != offset`; None is the number 0."""

    left: Column
    right: Column | None
    offset: int


@dataclass(frozen=True)
class DifferenceForm:
    """The parts of a condition. Where the condition is true, all parts are true. Where all parts are true and
    no expression in `guards` is NULL, the condition is true.

    `compares` is False for a form that may also be true for NULL: a declared domain, and the form of `IS
    NULL` (`null`), whose bounds give the column the number that stands for NULL.
    """

    bounds: tuple[DifferenceBound, ...] = ()
    inequations: tuple[Inequation, ...] = ()
    guards: tuple[Expr, ...] = ()
    compares: bool = True
    null: bool = False


@dataclass(frozen=True)
class _Linear:
    terms: Mapping[Column, int] = field(default_factory=dict)
    constant: int = 0


def differences(expr: Expr, code: Callable[[str], int]) -> DifferenceForm | None:
    """The form of a condition without AND and OR; None if it has none. `code` numbers constant texts."""
    if isinstance(expr, Column) and expr.type is Type.BOOLEAN:
        return _equal(expr, None, 1)
    if not isinstance(expr, Call):
        return None
    if expr.op == "is_null" and isinstance(expr.args[0], Column):
        return DifferenceForm(_equal(expr.args[0], None, NULL).bounds, compares=False, null=True)
    if expr.op == "not" and isinstance(expr.args[0], Column):
        return _equal(expr.args[0], None, 0)
    if expr.op == "not" and isinstance(expr.args[0], Call) and expr.args[0].op == "is_null":
        (column,) = expr.args[0].args
        return DifferenceForm((DifferenceBound(column, column, 0),)) if isinstance(column, Column) else None
    if expr.op == "not" and isinstance(expr.args[0], Call) and expr.args[0].op in OPPOSITE:
        inner = expr.args[0]
        return differences(Call(OPPOSITE[inner.op], inner.args, Type.BOOLEAN), code)
    if expr.op not in OPPOSITE:
        return None
    left, right = expr.args
    if _null(left) or _null(right):
        return _never(left, right)
    if _is_text(left) and _is_text(right):
        return _texts(expr.op, left, right, code)
    if Type.DOUBLE in (left.type, right.type) and Column in (type(left), type(right)):
        found = _with_double(expr.op, left, right)
        if found is not None:
            return found
    if expr.op in ("<", "<=") and _inside_abs(left) is not None:
        return _absolute(expr.op, left, right)
    return _numbers(expr.op, left, right)


def one_to_one(expr: Expr) -> Column | None:
    """The column of which each value gives a different value of the expression; None if that isn't known."""
    if isinstance(expr, Column):
        return expr
    form = _linear(expr)
    columns_ = [] if form is None else [column for column, factor in form.terms.items() if factor]
    return columns_[0] if len(columns_) == 1 else None


def same_for_all(expr: Expr) -> bool | None:
    """True or False if a condition is so for all values of its columns but NULL, where no arithmetic
    overflows; None if it depends on the values.

    >>> from tamis.expressions.nodes import Call, Column, Literal, Type
    >>> a = Column("s", "a", Type.INT)
    >>> more = Call("+", (a, Literal(1, Type.INT)), Type.BIGINT)
    >>> same_for_all(Call("<", (a, more), Type.BOOLEAN)), same_for_all(Call(">", (a, more), Type.BOOLEAN))
    (True, False)
    """
    if not isinstance(expr, Call):
        return None
    if expr.op == "not":
        (inner,) = expr.args
        if isinstance(inner, Call) and inner.op == "is_null":
            return True if _linear(inner.args[0]) is not None else None
        found = same_for_all(inner)
        return None if found is None else not found
    if expr.op not in OPPOSITE:
        return None
    left, right = expr.args
    if left == right and isinstance(left, Column):
        return expr.op in ("=", "<=", ">=")
    inside = _inside_abs(left)
    first, second = _linear(left if inside is None else inside), _linear(right)
    if first is None or second is None or first.terms != second.terms:
        return _never_whole(expr.op, left, right)
    if inside is not None and first.terms:
        return None
    distance = abs(first.constant) if inside is not None else first.constant
    return COMPARISONS_OF_NUMBERS[expr.op](distance, second.constant)


def _never_whole(op: str, left: Expr, right: Expr) -> bool | None:
    """A whole number is never equal to a constant with a fraction."""
    if isinstance(left, Literal):
        left, right = right, left
    fraction = isinstance(right, Literal) and isinstance(right.value, float) and not right.value.is_integer()
    whole = isinstance(left, Column) and left.type in (Type.INT, Type.BIGINT)
    return op == "!=" if fraction and whole and op in ("=", "!=") else None


def factor_of(expr: Expr, column: Column) -> int:
    """The factor of a column in a sum of whole numbers; 0 for any other expression."""
    form = _linear(expr)
    return 0 if form is None else form.terms.get(column, 0)


def _null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _never(*sides: Expr) -> DifferenceForm | None:
    """A comparison with NULL, which is never true."""
    column = next((side for side in sides if isinstance(side, Column)), None)
    return (
        None
        if column is None
        else DifferenceForm((DifferenceBound(column, None, 0), DifferenceBound(None, column, -1)))
    )


def _equal(left: Column, right: Column | None, offset: int) -> DifferenceForm:
    return DifferenceForm((DifferenceBound(left, right, offset), DifferenceBound(right, left, -offset)))


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Column | Literal) and expr.type is Type.VARCHAR


def _texts(op: str, left: Expr, right: Expr, code: Callable[[str], int]) -> DifferenceForm | None:
    if isinstance(left, Literal):
        left, right = right, left
    if op not in ("=", "!=") or not isinstance(left, Column):
        return None
    other, offset = (right, 0) if isinstance(right, Column) else (None, None)
    if isinstance(right, Literal):
        if not isinstance(right.value, str):
            return None
        offset = code(right.value)
    assert offset is not None
    return (
        _equal(left, other, offset)
        if op == "="
        else DifferenceForm(inequations=(Inequation(left, other, offset),))
    )


def _with_double(op: str, left: Expr, right: Expr) -> DifferenceForm | None:
    """A DOUBLE column compared with another one, or with a constant."""
    if isinstance(left, Literal):
        op, left, right = FLIPPED[op], right, left
    if not isinstance(left, Column) or left.type is not Type.DOUBLE:
        return None
    if isinstance(right, Column) and right.type is Type.DOUBLE and right != left:
        return _two_columns(op, {left: 1, right: -1}, 0)
    if (
        isinstance(right, Literal)
        and isinstance(right.value, int | float)
        and float(right.value) == right.value
    ):
        return _one_column(op, left, 1, number_of(float(right.value)))
    return None


def _inside_abs(expr: Expr) -> Expr | None:
    """The argument of ABS; None for another expression."""
    return expr.args[0] if isinstance(expr, Call) and expr.op == "abs" else None


def _absolute(op: str, left: Expr, right: Expr) -> DifferenceForm | None:
    """`ABS(x) <= c` as two comparisons."""
    inner = _inside_abs(left)
    assert inner is not None
    above = _numbers(op, inner, right)
    below = _numbers(op, Call("neg", (inner,), inner.type), right)
    if above is None or below is None:
        return None
    return DifferenceForm(above.bounds + below.bounds, (), above.guards + below.guards)


def _numbers(op: str, left: Expr, right: Expr) -> DifferenceForm | None:
    rounded = _with_whole_constant(op, left, right)
    if rounded is not None:
        op, left, right = rounded
    first, second = _linear(left), _linear(right)
    if first is None or second is None or _may_overflow(left) or _may_overflow(right):
        return None
    terms = dict(first.terms)
    for column, factor in second.terms.items():
        terms[column] = terms.get(column, 0) - factor
    terms = {column: factor for column, factor in terms.items() if factor}
    constant = second.constant - first.constant  # terms op constant
    form = _two_columns(op, terms, constant)
    guards = tuple(side for side in (left, right) if isinstance(side, Call))
    return None if form is None else DifferenceForm(form.bounds, form.inequations, guards)


def _with_whole_constant(op: str, left: Expr, right: Expr) -> tuple[str, Expr, Expr] | None:
    """A whole number compared with a DOUBLE constant, as a comparison with a whole constant."""
    if isinstance(left, Literal):
        op, left, right = FLIPPED[op], right, left
    if not isinstance(right, Literal) or right.type is not Type.DOUBLE or not isinstance(right.value, float):
        return None
    value = right.value
    if abs(value) > LARGEST_EXACT_INTEGER or not left.type.integral:
        return None
    if op in ("<", ">="):
        return op, left, Literal(math.ceil(value), Type.BIGINT)
    if op in ("<=", ">") or value.is_integer():
        return op, left, Literal(math.floor(value), Type.BIGINT)
    return None


def _linear(expr: Expr) -> _Linear | None:
    if isinstance(expr, Column):
        whole = expr.type.integral or expr.type is Type.BOOLEAN
        return _Linear({expr: 1}) if whole else None
    if isinstance(expr, Literal):
        if isinstance(expr.value, int) and (expr.type.integral or expr.type is Type.BOOLEAN):
            return _Linear({}, int(expr.value))
        return None
    if expr.op == "neg":
        inner = _linear(expr.args[0])
        return None if inner is None else _scaled(inner, -1)
    if expr.op not in ("+", "-", "*") or not expr.type.integral:
        return None
    left, right = _linear(expr.args[0]), _linear(expr.args[1])
    if left is None or right is None:
        return None
    if expr.op == "*":
        if left.terms and right.terms:
            return None
        return _scaled(left, right.constant) if left.terms else _scaled(right, left.constant)
    sign = 1 if expr.op == "+" else -1
    terms = dict(left.terms)
    for column, factor in right.terms.items():
        terms[column] = terms.get(column, 0) + sign * factor
    return _Linear(terms, left.constant + sign * right.constant)


def _scaled(form: _Linear, factor: int) -> _Linear:
    return _Linear({column: f * factor for column, f in form.terms.items()}, form.constant * factor)


def _may_overflow(expr: Expr) -> bool:
    """True if arithmetic mixes streams and a difference of 64 bits might overflow."""
    if not isinstance(expr, Call) or len(aliases(expr)) < 2:
        return False
    small = all(column.type is Type.INT for column in columns(expr))
    return not (small and all(abs(number) < _SMALL for number in _constants(expr)))


def _constants(expr: Expr) -> list[int]:
    if isinstance(expr, Literal):
        return [int(expr.value)] if isinstance(expr.value, int) else []
    return [n for arg in expr.args for n in _constants(arg)] if isinstance(expr, Call) else []


def _two_columns(op: str, terms: Mapping[Column, int], constant: int) -> DifferenceForm | None:
    """`sum of terms op constant` as differences."""
    if len(terms) == 1:
        ((column, factor),) = terms.items()
        return _one_column(op, column, factor, constant)
    if len(terms) != 2 or set(terms.values()) != {1, -1}:
        return None
    left = next(column for column, factor in terms.items() if factor == 1)
    right = next(column for column, factor in terms.items() if factor == -1)
    if Type.BOOLEAN in (left.type, right.type) and left.type is not right.type:
        return None
    match op:
        case "<" | "<=":
            return DifferenceForm((DifferenceBound(left, right, constant - (op == "<")),))
        case ">" | ">=":
            return DifferenceForm((DifferenceBound(right, left, -constant - (op == ">")),))
        case "=":
            return _equal(left, right, constant)
        case _:
            return DifferenceForm(inequations=(Inequation(left, right, constant),))


def _one_column(op: str, column: Column, factor: int, constant: int) -> DifferenceForm | None:
    """`factor * column op constant`."""
    if factor < 0:
        op = FLIPPED[op]
        factor, constant = -factor, -constant
    whole = constant % factor == 0
    match op:
        case "<" | "<=":
            return DifferenceForm((DifferenceBound(column, None, (constant - (op == "<")) // factor),))
        case ">" | ">=":
            return DifferenceForm((DifferenceBound(None, column, -(constant + (op == ">")) // factor),))
        case "=" if whole:
            return _equal(column, None, constant // factor)
        case "=":
            return _never(column)
        case _:
            return DifferenceForm(
                inequations=(Inequation(column, None, constant // factor),) if whole else ()
            )
