"""Rounding margins: the greatest error of a comparison over the declared domains, for the user.

Rounding can only change an alarm if the compared value is near the threshold. Then the result of the last sum
or difference is about as large as the threshold, so the rounding of this last operation is negligible, even
if the domains are wide. So the margin is the error of its terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tamis.certificates.comparison_order import greatest_size, relative_error
from tamis.certificates.interval_arithmetic.derivatives import NO_VARIABLE, UndefinedError
from tamis.certificates.interval_arithmetic.intervals import Interval
from tamis.certificates.interval_arithmetic.subdivision import derivatives_over
from tamis.certificates.scalars import added, constant
from tamis.expressions.exact.rounding import bound
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Type, aliases, columns
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql

Box = Mapping[Column, Interval]

# The user is told of an error that is more than this share of what the number is compared with.
_WORTH = 1e-6
# A column should be bounded if its domain is at least this share of the widest one.
_WIDE = 1e-3


def rounding_note(conditions: tuple[Expr, ...], alias: str, box: Box) -> str | None:
    """The effect of rounding on the comparisons with the source `alias`, and how to avoid it; None if it
    is negligible.
    """
    for test in (test for part in conditions for test in _comparisons(part)):
        for side, other in (test.args, test.args[::-1]):
            if alias not in aliases(side):
                continue
            limit = _limit(side, other, box)
            error = _error(side, limit, box) / 2  # bounds are twice what an operation errs
            if _WORTH * limit < error < math.inf:
                note = f"{_note(side, error, other, limit)}. {_advice(side, box)}"
                beside = _side_by_side(side, error, limit, box)
                return note if beside is None else f"{note}, or write {to_sql(beside)}"
    return None


def _comparisons(expr: Expr) -> Iterator[Call]:
    if isinstance(expr, Call):
        numbers = all(arg.type.numeric for arg in expr.args)
        if expr.op in COMPARISONS and numbers and len(aliases(expr)) > 1:
            yield expr
        for arg in expr.args:
            yield from _comparisons(arg)


def _error(side: Expr, limit: float, box: Box) -> float:
    """The greatest error of a side whose value is near `limit`; infinity where no bound is known."""
    if isinstance(side, Call) and _keeps_size(side.op):
        return _error(side.args[0], limit, box)
    if isinstance(side, Call) and side.op in ("+", "-") and side.type is Type.DOUBLE:
        return sum(_whole_error(arg, box) for arg in side.args)
    if isinstance(side, Call) and side.op == "sqrt" and limit:
        return _whole_error(side.args[0], box) / limit
    if isinstance(side, Call) and all(bound(arg) is None for arg in side.args):
        return 0.0
    return _whole_error(side, box)


def _keeps_size(op: str) -> bool:
    """True if an error of the argument is one of the result: a step is far from most values."""
    return op in ("abs", "neg", "mod") or FUNCTIONS[op].steps is not None


def _whole_error(expr: Expr, box: Box) -> float:
    """The greatest error of a number, whatever its value is."""
    error = greatest_size(bound(expr), box)
    part = relative_error(expr, box) if 0.0 < error < math.inf else None
    return error if part is None else min(error, part.share * _magnitude(expr, box) + part.least)


def _limit(side: Expr, other: Expr, box: Box) -> float:
    """The size of what a side is compared with: a constant, or the smaller of the greatest sizes of both
    sides.
    """
    value = constant(other)
    if value:
        return abs(float(value))
    sizes = [_magnitude(one, box) for one in ((side,) if value is not None else (side, other))]
    return min(sizes)


def _magnitude(expr: Expr, box: Box) -> float:
    try:
        return float(derivatives_over(expr, box, NO_VARIABLE).value.magnitude)
    except UndefinedError:
        return math.inf


def _note(side: Expr, error: float, other: Expr, limit: float) -> str:
    compared = f"the threshold {limit:.3g}" if constant(other) else f"the compared values, up to {limit:.3g}"
    return (
        f"Rounding may change {to_sql(side)} by up to {error:.2g} over the declared domains, which is not"
        f" small against {compared}"
    )


def _advice(side: Expr, box: Box) -> str:
    sizes = {c: _magnitude(c, box) for c in dict.fromkeys(columns(side))}
    most = max(sizes.values())
    wide = [to_sql(c) for c, size in sizes.items() if size >= _WIDE * most]
    return f"Declare narrower CHECKs for {', '.join(wide)}"


def _side_by_side(side: Expr, error: float, limit: float, box: Box) -> Expr | None:
    """A sum with the terms of each stream together, if its error is far smaller; otherwise None.

    Near `limit`, the sum of one stream's terms is at most as large as the other terms and the limit together.
    """
    if not isinstance(side, Call) or side.op not in ("+", "-"):
        return None
    order: dict[frozenset[str], list[Expr]] = {}
    parts = _summands(side)
    for sign, term in parts:
        order.setdefault(aliases(term), []).append(term if sign > 0 else call("neg", term))
    if len(order) < 2 or max(map(len, order.values())) < 2:
        return None
    groups = [added(group) for group in order.values()]
    sizes = [_magnitude(group, box) for group in groups]
    together = [min(size, limit + sum(sizes) - size) for size in sizes]
    terms = sum(_error(group, size, box) for group, size in zip(groups, sizes, strict=True))
    left = terms + len(parts) * 2.0**-52 * sum(together)
    return added(groups) if left <= _WORTH * error else None


def _summands(expr: Expr, sign: int = 1) -> list[tuple[int, Expr]]:
    if isinstance(expr, Call) and expr.op in ("+", "-"):
        other = sign if expr.op == "+" else -sign
        return [*_summands(expr.args[0], sign), *_summands(expr.args[1], other)]
    if isinstance(expr, Call) and expr.op == "neg":
        return _summands(expr.args[0], -sign)
    return [(sign, expr)]
