"""Choice of the value that edges compare, because rounding may change the order of computed values.

Proofs are about exact numbers. A tuple may only be omitted if the exact values of the tuples that stand for
it are at least as high (or low) as its own exact value. Edges compare the first of these that is possible:

1. The value itself, if computing it involves no rounding. An example is an attribute.

2. The computed value, if the condition contains it in the form in which the edge computes it, and if its
   error is small: in relation to the value, or in relation to the threshold. The joiner then takes a retained
   value for any value within the error (`Margin`).

3. An attribute, if the value has only this attribute and rises or falls with it.

4. Exact values, if the value is a sum of products (`polynomials`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tamis.certificates.certificate import Certificate, Unproven
from tamis.certificates.curvature.properties import Curvature
from tamis.certificates.curvature.prover import Prover
from tamis.certificates.interval_arithmetic.derivatives import NO_VARIABLE, UndefinedError
from tamis.certificates.interval_arithmetic.intervals import Interval
from tamis.certificates.interval_arithmetic.subdivision import (
    Effort,
    derivatives_over,
    prove_curvature,
)
from tamis.certificates.scalars import constant, subexpressions, substituted
from tamis.expressions.exact.polynomials import polynomial
from tamis.expressions.exact.rounding import NOT_NEGATIVE, bound
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import (
    COMPARISONS,
    LARGEST_EXACT_INTEGER,
    OPAQUE,
    Call,
    Column,
    Expr,
    aliases,
    columns,
)
from tamis.expressions.sql_text import to_sql
from tamis.plan.model import Sides

_OPERATION, _LIBRARY = 2.0**-52, 2.0**-50  # as in `rounding`
_UNDERFLOW = 2.0**-1022
_WORK = 100_000  # of showing that a value rises or falls: hundredths of a second
# An error of at most this share of the threshold is negligible.
NEGLIGIBLE = 1e-9
_NOTHING = 2.0**-60  # a share of the threshold that is far below the error of a single operation
_SMALL = 2.0**-900  # products of larger results are rounded to 53 bits
_FLIPPED: dict[Sides, Sides] = {"above": "below", "below": "above", "both": "both"}
_MOST = 1e300  # a greater error counts as unknown
_MOST_POWER, _MOST_BITS = 64, 1_000
# Errors are computed for values, and bounds, of at most as many operators: a fraction of a second.
_LONGEST, _LONGEST_BOUND = 200, 5_000

Box = Mapping[Column, Interval]


def choose_comparison(
    found: Certificate, conditions: tuple[Expr, ...], box: Box, effort: Effort
) -> Certificate | Unproven:
    """The certificate with the value that edges compare, or the reason why there is none. `effort` limits the
    proof of case 3.
    """
    value = found.value
    if bound(value) is None:
        return found
    written = not any(stands_elsewhere(value, part, found.fixed) for part in conditions)
    error = greatest_size(bound(value), box)
    form = polynomial(value)
    if written and (margin := _margin(value, error, conditions, box, exactly=form is not None)):
        return replace(found, margin=margin)
    moving = [c for c in dict.fromkeys(columns(value)) if c not in found.fixed]
    if len(moving) == 1 and (direction := _direction(value, moving[0], box, effort)):
        sides = found.sides if direction > 0 else _FLIPPED[found.sides]
        return replace(found, value=moving[0], sides=sides)
    if form is not None:
        return replace(found, exact=True)
    name = to_sql(value)
    if not written:
        return Unproven(
            f"{name} stands in several terms, which are rounded separately; write them side by side"
        )
    much = f"by as much as {error:.2g}" if error < math.inf else "by any amount"
    return Unproven(
        f"{name} may be rounded {much} over the declared domains; declare CHECKs that bound its columns"
    )


def _margin(
    value: Expr, error: float, conditions: tuple[Expr, ...], box: Box, *, exactly: bool
) -> Margin | None:
    """The possible error of a value, if it is small. `exactly`: exact values could be compared instead, so
    the error must be small beside a constant.
    """
    part = relative_error(value, box, last=True) if _operators(value, _LONGEST) < _LONGEST else None
    limit = _threshold(value, conditions, box, exactly=exactly)
    if part is not None and part.least <= _NOTHING * limit:
        return Margin(value, 1.01 * part.share, 1.01 * part.least + _UNDERFLOW)
    return Margin(value, 0.0, error) if error <= NEGLIGIBLE * limit else None


def stands_elsewhere(value: Expr, condition: Expr, fixed: tuple[Column, ...]) -> bool:
    """True if the condition contains attributes of the value's stream outside the value."""
    (alias,) = aliases(value)
    rest = columns(substituted(condition, value, NO_VARIABLE))
    return any(c.alias == alias and c not in fixed for c in rest)


def greatest_size(expr: Expr | None, box: Box) -> float:
    """The greatest size of an error bound over the box; infinity where nothing is known."""
    if expr is None:
        return 0.0
    if _operators(expr, _LONGEST_BOUND) >= _LONGEST_BOUND:
        return math.inf
    try:
        found = float(derivatives_over(_unguarded(expr, box), box, NO_VARIABLE).value.hi)
    except UndefinedError:
        return math.inf
    return found if found < _MOST else math.inf


def _operators(expr: Expr, most: int) -> int:
    """The number of operators, or `most` where there are more."""
    found, left = 0, [expr]
    while left and found < most:
        one = left.pop()
        if isinstance(one, Call):
            found += 1
            left += one.args
    return found


def _unguarded(expr: Expr, box: Box) -> Expr:
    """An error bound whose divisors aren't protected by GREATEST.

    An error bound uses GREATEST so that its divisors aren't negative. Enclosures of GREATEST don't show this
    for arguments that may be NULL, so GREATEST is removed where the divisor can't be negative anyway. Raises
    UndefinedError if a divisor may be negative.
    """
    if not isinstance(expr, Call):
        return expr
    if expr.op == "greatest" and expr.args[-1] is NOT_NEGATIVE:
        divisor = _unguarded(expr.args[0], box)
        if not float(_span(divisor, box).lo) > 0.0:
            raise UndefinedError(expr, "may be 0")
        return divisor
    return Call(expr.op, tuple(_unguarded(arg, box) for arg in expr.args), expr.type)


def _direction(value: Expr, column: Column, box: Box, effort: Effort) -> int:
    """1 if `value` never falls with the column, -1 if it never rises, 0 if neither is shown."""
    if column not in box or (column.type.integral and float(box[column].magnitude) > LARGEST_EXACT_INTEGER):
        return 0
    own = {c: box[c] for c in columns(value) if c in box}
    given = min(_WORK, effort.left)
    work = Effort(given, trials=effort.trials)
    curvature = Curvature.NONE
    try:
        curvature = Prover(own, column, work).fact(value).curvature
        if not curvature & (Curvature.RISING | Curvature.FALLING):
            curvature = prove_curvature(value, own, column, work)
    except (UndefinedError, OverflowError):
        return 0
    finally:
        effort.left -= given - work.left
        effort.trials = work.trials
    return 1 if Curvature.RISING in curvature else -1 if Curvature.FALLING in curvature else 0


@dataclass(frozen=True)
class RelativeError:
    """The error of a computed value: at most `share` of its size and `least` besides. The latter comes from
    results that are so small that they are rounded to a multiple of 2^-1074.
    """

    share: float = 0.0
    least: float = 0.0


_EXACT = RelativeError()


def relative_error(expr: Expr, box: Box, *, last: bool = False) -> RelativeError | None:
    """The greatest error of a computed value in relation to its size; None if none is known. With `last`, its
    last operation doesn't count in `least`: the absolute part of the margin covers it.
    """
    exact = bound(expr) is None
    if exact and not expr.type.integral:
        return _EXACT
    if expr.type.integral and not exact:
        return None
    if expr.type.integral:
        wide = float(_span(expr, box).magnitude) > LARGEST_EXACT_INTEGER
        return RelativeError(_OPERATION) if wide else _EXACT
    if not isinstance(expr, Call) or expr.op == OPAQUE:
        return None
    parts = [relative_error(arg, box) for arg in expr.args]
    x, y = parts[0], parts[-1]
    if x is None:
        return None
    real = FUNCTIONS[expr.op].real
    if real is not None and not real.correctly_rounded:
        small = 0.0 if last or not real.underflows else _smallest(expr, box)
        return RelativeError(_LIBRARY, small) if x == _EXACT else None
    if expr.op == "power" and (n := constant(expr.args[1])) is not None:
        return _power_error(expr, x, float(n), 0.0 if last else _smallest(expr, box), box)
    if y is None:
        return None
    match expr.op:
        case "neg" | "abs":
            return x
        case "sqrt":
            return None if x.least else RelativeError(x.share + _OPERATION)
        case "+" | "-" if x == y == _EXACT or _same_sign(expr, box):
            return RelativeError(max(x.share, y.share) + _OPERATION, x.least + y.least)
        case "*" | "/":
            least, small = _moved(expr, x, y, box), 0.0 if last else _smallest(expr, box)
            return None if least is None else RelativeError(x.share + y.share + _OPERATION, least + small)
    return None


def _power_error(expr: Call, x: RelativeError, n: float, small: float, box: Box) -> RelativeError | None:
    if abs(n) > _MOST_POWER or (x.least and n < 1):
        return None
    size = max(1.0, _size(expr.args[0], box))
    if x.least and (n - 1) * math.log2(size) > _MOST_BITS:
        return None
    slope = n * size ** (n - 1) if x.least else 0.0
    return RelativeError(abs(n) * x.share + _LIBRARY, 2 * slope * x.least + small)


def _moved(expr: Call, x: RelativeError, y: RelativeError, box: Box) -> float | None:
    """The change of a product or a quotient by the absolute errors of its arguments, times two to be sure;
    None if that isn't known.
    """
    if not x.least and not y.least:
        return 0.0
    left, right = expr.args
    if expr.op == "*":
        return 2 * (_size(right, box) * x.least + _size(left, box) * y.least)
    divisor = _least(_span(right, box))
    if not divisor:
        return None
    return 2 * (x.least + _size(left, box) / divisor * y.least) / divisor


def _smallest(expr: Expr, box: Box) -> float:
    """The absolute error of a result that may be so small that it isn't rounded to 53 bits; 0 if it can't."""
    return 0.0 if _least(_span(expr, box)) >= _SMALL else _UNDERFLOW


def _size(expr: Expr, box: Box) -> float:
    return float(_span(expr, box).magnitude)


def _same_sign(expr: Call, box: Box) -> bool:
    """True if both terms have the same sign, so that nothing cancels."""
    left, right = (_span(arg, box) for arg in expr.args)
    same = (left.lo >= 0 and right.lo >= 0) or (left.hi <= 0 and right.hi <= 0)
    apart = (left.lo >= 0 and right.hi <= 0) or (left.hi <= 0 and right.lo >= 0)
    return bool(same if expr.op == "+" else apart)


def _least(span: Interval) -> float:
    if span.lo <= 0.0 <= span.hi:
        return 0.0
    return float(min(abs(span.lo), abs(span.hi)))


def _span(expr: Expr, box: Box) -> Interval:
    return derivatives_over(expr, box, NO_VARIABLE).value


def _threshold(value: Expr, conditions: tuple[Expr, ...], box: Box, *, exactly: bool) -> float:
    """The number in relation to which an error must be small: the least constant with which an expression
    with `value` is compared.

    If there are no constants, it is the widest other value in the comparison, unless `value` could be
    compared `exactly`.
    """
    tests = [
        t for part in conditions for t in subexpressions(part) if isinstance(t, Call) and t.op in COMPARISONS
    ]
    tests = [test for test in tests if value in subexpressions(test)]
    constants = [abs(float(c)) for test in tests for side in test.args if (c := constant(side))]
    if constants or exactly:
        return min(constants, default=0.0)
    others = {c for test in tests for c in columns(test) if c in box} - set(columns(value))
    return min((float(box[c].magnitude) for c in others), default=0.0)
