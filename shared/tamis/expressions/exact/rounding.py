"""Bounds of rounding errors as expressions, and the rows in which rounding can decide a condition.

A bound is an expression over the same columns as its number, so that each evaluator of the condition
(NumPy, DuckDB, interval arithmetic) evaluates the bound in the same way. The bounds are running error
bounds (Higham, Accuracy and Stability of Numerical Algorithms, 3.3). `+ - * /` and `sqrt` are rounded to
nearest, with an error of at most 2^-53 of the result. The C library's `exp`, `ln`, `log10` and `power` err
by a few units in the last place. A bound is twice as large, for its own rounding and for terms of second
order.

Columns, constants, choices between exact numbers, and integers (which are NULL if they overflow) have no
error. Python functions and those with `computed` are exact by definition. A function that rounds a number is
exact if the number is; otherwise the steps within the number's error are its error. If a bound is NULL and
its number isn't, nothing is known about the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import (
    COMPARISONS,
    LARGEST_EXACT_INTEGER,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    conjunction,
)
from tamis.expressions.signatures import call

_OPERATION = 2.0**-52  # twice the largest relative error of one operation
_LIBRARY = 2.0**-50  # 4 units in the last place: glibc's functions err by less than one
# Results below 2^-1022 are rounded to multiples of 2^-1074.
_UNDERFLOW = 2.0**-1022
_SLACK = 1.0 + 2.0**-20  # for the rounding errors of the bounds
_FEW_TERMS = 8
_MOST_NESTED = 3  # functions that round: the bound of each contains that of its argument twice
_ROUNDED_ONCE = ("+", "-", "*", "/", "sqrt")
_ZERO = Literal(0.0, Type.DOUBLE)
_ANY_INTEGER = Literal(2.0**65, Type.DOUBLE)  # no two integers of 64 bits differ by more
_UNKNOWN = Literal(None, Type.DOUBLE)  # the bound of an error of which nothing is known
# Recognised by its identity: the second argument of a GREATEST that keeps the divisor of a bound from being
# negative.
NOT_NEGATIVE = Literal(0.0, Type.DOUBLE)


def certain(
    condition: Expr, margins: tuple[Margin, ...] = (), errors: Mapping[Expr, Expr] | None = None
) -> Expr | None:
    """A condition that is true only if exact arithmetic gives every comparison in `condition` the computed
    outcome; None if it always does. The condition may be false or NULL in such rows, too.

    A comparison whose operand is NULL as computed is certain: by definition the operand is NULL in exact
    arithmetic, too. `errors` has the error bounds of numbers that are inputs here, such as sums.
    """
    known = {margin.value: _margin(margin) for margin in margins} | dict(errors or {})
    found = tuple(dict.fromkeys(_certain(condition, known)))
    return conjunction(found)


def bound(expr: Expr, errors: Mapping[Expr, Expr] | None = None) -> Expr | None:
    """An upper bound of |computed - exact| of the number `expr`; None if that is always 0. `errors` as in
    `certain`.
    """
    return _bound(expr, dict(errors or {}))


def _margin(margin: Margin) -> Expr:
    spread = _times(margin.relative, _size(margin.value))
    return call("+", spread, _double(margin.absolute)) if margin.absolute else spread


def _certain(expr: Expr, known: dict[Expr, Expr]) -> Iterator[Expr]:
    if not isinstance(expr, Call) or (known and expr in known):
        return
    for arg in expr.args:
        yield from _certain(arg, known)
    if expr.op in COMPARISONS and all(arg.type.numeric for arg in expr.args):
        yield from _comparison(expr, known)


def _comparison(expr: Call, known: dict[Expr, Expr]) -> Iterator[Expr]:
    left, right = expr.args
    mixed = Type.DOUBLE in (left.type, right.type)
    a, b = (_bound(arg, known, converted=mixed) for arg in expr.args)
    if a is None and b is None:
        return
    if (b is None and _rounded_once(left, known)) or (a is None and _rounded_once(right, known)):
        # Rounding is monotone: the result of a single operation is on the right side of a number, or equal
        # to it.
        apart = call("!=", left, right)
    else:
        distance = call("abs", call("-", _as_double(left), _as_double(right)))
        apart = call(">", distance, _times(_SLACK, _sum(a, b)))
    nulls = [call("is_null", side) for side in (left, right) if not isinstance(side, Literal)]
    yield call("or", apart, *nulls)


def _rounded_once(expr: Expr, known: dict[Expr, Expr]) -> bool:
    """Tell if a number is the result of one correctly rounded operation on exact numbers."""
    return (
        isinstance(expr, Call)
        and expr not in known
        and expr.op in _ROUNDED_ONCE
        and expr.type is Type.DOUBLE
        and all(_bound(arg, known, converted=True) is None for arg in expr.args)
    )


def _bound(expr: Expr, known: dict[Expr, Expr], *, converted: bool = False) -> Expr | None:
    """The error bound of `expr`; with `converted`, after its conversion to DOUBLE."""
    if known and expr in known:
        return known[expr]
    if expr.type.integral and (error := _integer(expr, known)) is not None:
        return error
    if expr.type.integral:
        return _times(_OPERATION, _size(expr)) if converted and _inexact_integer(expr) else None
    if not isinstance(expr, Call) or FUNCTIONS[expr.op].computed or expr.type is not Type.DOUBLE:
        return None
    if expr.op in ("case", "coalesce"):
        return _chosen(expr, known)
    if FUNCTIONS[expr.op].steps:
        return _step(expr, known)
    if expr.op in ("+", "-") and (found := _long_sum(expr, known)) is not None:
        return found
    parts = [_bound(arg, known, converted=True) for arg in expr.args]
    match expr.op:
        case "neg" | "abs":
            return parts[0]
        case "least" | "greatest":
            return _sum(*parts) if any(part is not None for part in parts) else None
        case "mod":
            return _remainder(expr, parts)
        case "+" | "-":
            return _sum(*parts, _last_error(expr))
        case "*":
            return _product(expr, parts)
        case "/":
            return _quotient(expr, parts)
        case "power":
            return _power(expr, parts)
    return _of_real(expr, parts[0]) if FUNCTIONS[expr.op].real else _UNKNOWN


def _of_real(expr: Call, error: Expr | None) -> Expr:
    """The error bound of a function of one number, by the rules of its entry."""
    rules = FUNCTIONS[expr.op].real
    assert rules is not None
    moved = None
    if error is not None:
        if rules.moved is None:
            return _UNKNOWN
        moved = rules.moved(expr, error, _size(expr), _least_size(expr.args[0], error))
    unit = _OPERATION if rules.correctly_rounded else _LIBRARY
    return _sum(moved, _last_error(expr, unit), _double(_UNDERFLOW) if rules.underflows else None)


def _long_sum(expr: Call, known: dict[Expr, Expr]) -> Expr | None:
    """The error bound of a sum of many terms, as an expression no larger than the sum; None for few terms."""
    terms = _summands(expr)
    if len(terms) <= _FEW_TERMS:
        return None
    bounds = [part for term in terms if (part := _bound(term, known, converted=True)) is not None]
    sizes = _sum(*(_size(term) for term in terms))
    return _sum(*bounds, _times(len(terms) * _OPERATION, sizes))


def _summands(expr: Expr) -> list[Expr]:
    found, left = [], [expr]
    while left:
        one = left.pop()
        if isinstance(one, Call) and one.op in ("+", "-") and one.type is Type.DOUBLE:
            left += one.args
        else:
            found.append(one)
    return found


def _product(expr: Call, parts: list[Expr | None]) -> Expr:
    (x, y), (a, b) = expr.args, parts
    both = None if a is None or b is None else call("*", a, b)
    return _sum(_scaled(_size(y), a), _scaled(_size(x), b), both, _last_error(expr), _double(_UNDERFLOW))


def _quotient(expr: Call, parts: list[Expr | None]) -> Expr:
    a, b = parts
    moved = None
    if a is not None or b is not None:
        divisor = expr.args[1]
        moved = call(
            "/", _sum(a, _scaled(_size(expr), b)), _size(divisor) if b is None else _least_size(divisor, b)
        )
    return _sum(moved, _last_error(expr), _double(_UNDERFLOW))


def _remainder(expr: Call, parts: list[Expr | None]) -> Expr | None:
    """The error bound of MOD: that of the number, if all numbers within its error have the same quotient, and
    otherwise twice the size of the divisor.
    """
    (x, y), (a, b) = expr.args, parts
    if a is None and b is None:
        return None
    if a is None or b is not None:
        return _UNKNOWN
    # Wider by the rounding of the ends and of the quotients.
    reach = _sum(a, _times(4 * _OPERATION, _sum(_size(x), a)), _double(_UNDERFLOW))
    x, y = _as_double(x), _as_double(y)
    low, high = (call("trunc", call("/", call(op, x, reach), y)) for op in ("-", "+"))
    return call("case", call("=", low, high), _sum(a, _last_error(x)), _times(2.0, _size(y)))


def _power(expr: Call, parts: list[Expr | None]) -> Expr:
    (x, y), (a, b) = expr.args, parts
    exponent = _size(y) if b is None else call("+", _size(y), b)
    by_base = None if a is None else call("/", call("*", exponent, a), _least_size(x, a))
    by_exponent = None if b is None else _scaled(_size(call("ln", _size(x))), b)
    relative = None if by_base is None and by_exponent is None else _sum(by_base, by_exponent)
    return _sum(_exponential_error(expr, relative), _last_error(expr, _LIBRARY), _double(_UNDERFLOW))


def _integer(expr: Expr, known: dict[Expr, Expr]) -> Expr | None:
    """The error bound of an integer; None if that is 0. Only the functions that round DOUBLEs give integers
    that aren't exact.
    """
    if not isinstance(expr, Call) or FUNCTIONS[expr.op].computed:
        return None
    if FUNCTIONS[expr.op].steps:
        return _step(expr, known)
    parts = [_bound(arg, known) for arg in expr.args if arg.type is not Type.BOOLEAN]
    exact = conjunction(tuple(call("=", part, _ZERO) for part in parts if part is not None))
    return None if exact is None else call("case", exact, _ZERO, _ANY_INTEGER)


def _step(expr: Call, known: dict[Expr, Expr]) -> Expr | None:
    """The error bound of a function that never falls: the difference of its values at the ends of an interval
    that contains the exact argument.
    """
    number, *rest = expr.args
    error = _bound(number, known, converted=expr.type is Type.DOUBLE)
    if error is None:
        return None
    if _nesting(number) >= _MOST_NESTED:
        return _UNKNOWN
    # Wider by the rounding of the ends.
    error = _sum(error, _last_error(number), _double(_UNDERFLOW))
    number = _as_double(number)
    high, low = (call(expr.op, call(op, number, error), *rest) for op in ("+", "-"))
    return _as_double(call("-", high, low))


def _nesting(expr: Expr) -> int:
    """The most functions that round inside each other."""
    if not isinstance(expr, Call):
        return 0
    return max(map(_nesting, expr.args)) + (FUNCTIONS[expr.op].steps is not None)


def _chosen(expr: Call, known: dict[Expr, Expr]) -> Expr | None:
    """The bound of a CASE or COALESCE: that of the chosen value. `certain` checks the conditions of a CASE
    separately.
    """
    if expr.op == "coalesce":
        present = [call("not", call("is_null", arg)) for arg in expr.args[:-1]]
        args = [x for pair in zip(present, expr.args[:-1], strict=True) for x in pair]
        expr = call("case", *args, expr.args[-1])
    values = (*expr.args[1:-1:2], expr.args[-1])
    parts = [_bound(value, known, converted=True) for value in values]
    if all(part is None for part in parts):
        return None
    given = [_ZERO if part is None else part for part in parts]
    args = [x for pair in zip(expr.args[:-1:2], given[:-1], strict=True) for x in pair]
    return call("case", *args, given[-1])


def _exponential_error(expr: Call, relative: Expr | None) -> Expr | None:
    """An upper bound of |expr| * (e^relative - 1)."""
    if relative is None:
        return None
    return call("*", _size(expr), call("*", relative, call("exp", relative)))


def _least_size(expr: Expr, error: Expr) -> Expr:
    """The least size that the exact `expr` can have; 0 if it can be 0, so that a division by it is NULL."""
    return call("greatest", call("-", _size(expr), error), NOT_NEGATIVE)


def _inexact_integer(expr: Expr) -> bool:
    """Tell if an integer may not be a DOUBLE."""
    if isinstance(expr, Literal):
        return isinstance(expr.value, int) and abs(expr.value) > LARGEST_EXACT_INTEGER
    return not (isinstance(expr, Column) and expr.type is Type.INT)


def _last_error(expr: Expr, unit: float = _OPERATION) -> Expr:
    """The error of the last operation of `expr`."""
    return _times(unit, _size(expr))


def _size(expr: Expr) -> Expr:
    if isinstance(expr, Literal) and isinstance(expr.value, (int, float)):
        return _double(abs(expr.value))
    return _as_double(call("abs", expr)) if not expr.type.integral else call("abs", _as_double(expr))


def _as_double(expr: Expr) -> Expr:
    if isinstance(expr, Literal) and isinstance(expr.value, int) and abs(expr.value) <= LARGEST_EXACT_INTEGER:
        return _double(expr.value)
    return call("*", _double(1.0), expr) if expr.type.integral else expr


def _scaled(factor: Expr, part: Expr | None) -> Expr | None:
    return None if part is None else call("*", factor, part)


def _times(factor: float, expr: Expr) -> Expr:
    if isinstance(expr, Literal) and isinstance(expr.value, (int, float)):
        return _double(factor * expr.value)
    return call("*", _double(factor), expr)


def _sum(*parts: Expr | None) -> Expr:
    given = [part for part in parts if part is not None]
    total = given[0]
    for part in given[1:]:
        total = call("+", total, part)
    return total


def _double(value: float) -> Literal:
    return Literal(float(value), Type.DOUBLE)
