"""Certificates: the proof that some tuples of a source can stand for others.

The proof is about one scalar x of the source, while all other values in the condition are fixed.

- If the values of x that raise *no* alarm form an interval, a tuple may be omitted between a tuple with a
  greater x and a tuple with a smaller x (*both* sides).
- If these values form a ray, and the ray has the same direction for all values of the rest, one side is
  enough: *above* keeps the maxima, *below* the minima, as in `tamis omit`.

A certificate is only given if this is proved: first by rules of composition, then by the signs of derivatives
over the declared domains. If the alert asks for it, a grid may replace the proof. Proofs are about exact
numbers; `rounding.comparison_order` chooses the value that edges compare.

No proof is needed if no condition names a value of the source. Then any of its tuples with the same key can
stand for the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tamis.certificates.certificate import Certificate, Unproven
from tamis.certificates.comparison_order import choose_comparison
from tamis.certificates.curvature.level_sets import ALWAYS, Region
from tamis.certificates.curvature.prover import Prover
from tamis.certificates.grid import NoGridError, gridded
from tamis.certificates.interval_arithmetic.derivatives import NO_VARIABLE, UndefinedError, box_of
from tamis.certificates.interval_arithmetic.intervals import MAX, Interval
from tamis.certificates.interval_arithmetic.operator_derivatives import INT64
from tamis.certificates.interval_arithmetic.subdivision import Effort, derivatives_over
from tamis.certificates.nulls import may_hold
from tamis.certificates.scalars import (
    Scalar,
    candidates,
    entries,
    subexpressions,
    substituted,
)
from tamis.declarations.streams import StreamDef
from tamis.expressions import python_functions
from tamis.expressions.nodes import (
    COMPARISONS,
    LARGEST_EXACT_INTEGER,
    OPAQUE,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    columns,
)
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql
from tamis.plan.model import Sides

__all__ = ["Certificate", "Unproven", "certificates_among", "certify"]


def certify(
    conditions: tuple[Expr, ...],
    alias: str,
    streams: Mapping[str, StreamDef],
    filters: Mapping[str, tuple[Expr, ...]],
    *,
    heuristic: bool = False,
    work: Effort | None = None,
) -> Certificate | Unproven:
    """The best certificate of the source `alias` for the conditions over several sources.

    With `heuristic`, a grid is tried where nothing is proved (see `grid`). `work` limits the effort.

    Attributes that have no order by size (VARCHAR, BOOLEAN) go into the omission key. If that is not enough,
    whole numbers that are compared but never computed with go into the key too. A DOUBLE in the key would
    keep nearly every tuple.
    """
    own = [c for c in dict.fromkeys(c for part in conditions for c in columns(part)) if c.alias == alias]
    mine = tuple(part for part in conditions if any(c.alias == alias for c in columns(part)))
    if any(c.name == streams[alias].time for c in own):
        return Unproven("the condition contains its event time")
    fixed = [c for c in own if not (c.type.numeric or c.type is Type.TIMESTAMP)]
    computed = {c for part in mine for c in _computed(part)}
    wider = [c for c in own if c in fixed or (c.type is not Type.DOUBLE and c not in computed)]
    reasons: list[str] = []
    work = work or Effort()
    for effort in (work, None) if heuristic else (work,):
        first: Unproven | None = None
        for key in (fixed, wider) if wider != fixed else (fixed,):
            try:
                verdict = _with_key(mine, alias, streams, filters, fixed=tuple(key), effort=effort)
            except OverflowError:
                verdict = Unproven("a constant of the condition is too large")
            if isinstance(verdict, Certificate):
                return verdict
            first = first or verdict
        assert first is not None
        reasons.append(first.reason)
    return Unproven("; and by a grid: ".join(dict.fromkeys(reasons)))


def certificates_among(
    conditions: tuple[Expr, ...],
    alias: str,
    stream: StreamDef,
    box: dict[Column, Interval],
    *,
    fixed: frozenset[Column],
    work: Effort,
) -> Iterator[Certificate | Unproven]:
    """For each value of the source `alias`, its certificate for tuples with equal values in `fixed`, or why
    there is none. They are about exact numbers: it isn't considered how computed values are compared. `box`
    has the domains of all columns.

    Unlike in `certify`, no other column of the source is added to the key, because nothing says that these
    have few values.
    """
    try:
        for scalar in candidates(conditions, alias, fixed):
            if not (scalar.value.type.numeric or scalar.value.type is Type.TIMESTAMP):
                continue  # texts have no order here
            yield _prove(scalar, box, stream, tuple(fixed), work)
    except OverflowError:  # a constant of the condition is too large
        return


def _computed(expr: Expr) -> list[Column]:
    """The attributes that stand in arithmetic, and not only as a side of a comparison."""
    if not isinstance(expr, Call):
        return [expr] if isinstance(expr, Column) else []
    if expr.op in COMPARISONS or expr.op in ("and", "or", "not", "is_null"):
        return [c for arg in expr.args if isinstance(arg, Call) for c in _computed(arg)]
    return list(columns(expr))


def _with_key(
    conditions: tuple[Expr, ...],
    alias: str,
    streams: Mapping[str, StreamDef],
    filters: Mapping[str, tuple[Expr, ...]],
    *,
    fixed: tuple[Column, ...],
    effort: Effort | None,
) -> Certificate | Unproven:
    key = frozenset(fixed)
    if not any(c.alias == alias and c not in key for part in conditions for c in columns(part)):
        none = Literal(0.0, Type.DOUBLE)
        return Certificate(none, "above", "any tuple stands for the others", fixed, False, none)
    box = box_of(conditions, streams, filters)
    scalars = candidates(conditions, alias, key)
    if not scalars:
        named = entries(conditions, alias, key)
        return Unproven("the condition depends on more than one of its values: " + " and ".join(named[:2]))
    first: Unproven | None = None
    for scalar in scalars:
        verdict = _prove(scalar, box, streams[alias], fixed, effort)
        if isinstance(verdict, Certificate):
            verdict = choose_comparison(verdict, conditions, box, effort or Effort())
        if isinstance(verdict, Certificate):
            return verdict
        first = first or verdict
    assert first is not None
    return first


def _prove(
    scalar: Scalar,
    box: dict[Column, Interval],
    stream: StreamDef,
    fixed: tuple[Column, ...],
    effort: Effort | None,
) -> Certificate | Unproven:
    """The certificate of one scalar: by a proof with at most this effort, or by a grid if it is None."""
    name = to_sql(scalar.value)
    span = derivatives_over(scalar.value, box, NO_VARIABLE).value
    if scalar.value.type.integral and span.magnitude > LARGEST_EXACT_INTEGER:
        return Unproven(f"{name} may be beyond 2^53; declare a CHECK that bounds it")
    if (overflow := _overflow(scalar, box)) is not None:
        return Unproven(f"{overflow} with {name} may overflow; declare CHECKs that bound its columns")
    condition = scalar.conditions[0] if len(scalar.conditions) == 1 else call("and", *scalar.conditions)
    drop_null = not _never_null(scalar.value, box, stream)
    if drop_null and may_hold(condition, scalar.variable):
        return Unproven(
            f"the condition can be true where {name} is NULL; {_null_advice(scalar.value, stream)}"
        )
    whole_box = {**box, scalar.variable: span}
    if effort is None and any(python_functions.calls(condition)):
        return Unproven("a grid can't try a Python function: it is only called when the alert runs")
    if effort is None:
        try:
            region, count = gridded(condition, scalar.variable, whole_box)
        except NoGridError as error:
            return Unproven(str(error))
        how = f"heuristic, not proved: %s on a grid of {count} points"
    else:
        try:
            region, derived = _proved(condition, scalar.variable, whole_box, effort)
        except UndefinedError as error:
            where = to_sql(substituted(error.expr, scalar.variable, scalar.value))
            return Unproven(f"{where} {error.why}; {error.advice}")
        how = (
            "%s by sign of derivatives over the declared domain" if derived else "%s by rules of composition"
        )
    if region == ALWAYS:
        sides: Sides = "above"
        what = "constant"
    elif region & (Region.UPWARD | Region.DOWNWARD):
        sides, what = ("above" if Region.UPWARD in region else "below"), "monotone"
    elif Region.OUTSIDE in region:
        sides, what = "both", "quasiconvex"
    else:
        return Unproven(f"no proof that the values of {name} which raise no alarm are an interval")
    rule = how % what
    trusted = sorted(
        {
            python_functions.name_of(c)
            for c in python_functions.calls(condition)
            if scalar.variable in columns(c)
        }
    )
    if trusted:
        rule = f"trusted, by what is declared of {', '.join(trusted)}: {rule}"
    return Certificate(scalar.value, sides, rule, fixed, drop_null, scalar.value)


def _overflow(scalar: Scalar, box: dict[Column, Interval]) -> str | None:
    """The kind of regrouped expression ("a sum", "a product") that may overflow if it is computed in another
    order; None for none.
    """
    for terms in scalar.sums:
        exact = all(term.type.integral and factor.denominator == 1 for factor, term in terms)
        total = sum(
            float(abs(factor)) * float(derivatives_over(term, box, NO_VARIABLE).value.magnitude)
            for factor, term in terms
        )
        if not total < (INT64 if exact else MAX):
            return "a sum"
    for factors in scalar.products:
        sizes = [_size(derivatives_over(factor, box, NO_VARIABLE).value, sign) for factor, sign in factors]
        exact = all(factor.type.integral and sign > 0 for factor, sign in factors)
        if not math.prod(max(1.0, size) for size in sizes) < (INT64 if exact else MAX):
            return "a product"
    return None


def _proved(
    condition: Expr, variable: Column, box: dict[Column, Interval], effort: Effort
) -> tuple[Region, bool]:
    """The region, and whether derivatives were needed for it. Rules of composition come first.

    Raises UndefinedError if a part may be NULL.
    """
    best: tuple[Region, bool] | None = None
    failure: UndefinedError | None = None
    effort.used = False
    for spent in (None, effort):
        try:
            region = Prover(box, variable, spent).regions(condition).true
        except UndefinedError as error:
            failure = error
            continue
        if best is None or region & (Region.UPWARD | Region.DOWNWARD):
            best = (region, effort.used)
        elif Region.OUTSIDE in region and Region.OUTSIDE not in best[0]:
            best = (region, True)
        if region & (Region.UPWARD | Region.DOWNWARD):
            break
    if best is None:
        assert failure is not None
        raise failure
    return best


def _size(span: Interval, sign: int) -> float:
    """The greatest size of a factor in the numerator (1), or of its reciprocal in the denominator (-1)."""
    if sign > 0:
        return float(span.magnitude)
    return math.inf if span.holds(0.0) else 1 / float(min(abs(span.lo), abs(span.hi)))


def _never_null(value: Expr, box: Mapping[Column, Interval], stream: StreamDef) -> bool:
    """True if every column is NOT NULL and every operation is defined over the whole domain."""
    if _nullable(value, stream) or _has_unproved_operators(value):
        return False
    try:
        derivatives_over(value, box, NO_VARIABLE, strict=True)
    except UndefinedError:
        return False
    return True


def _nullable(value: Expr, stream: StreamDef) -> list[str]:
    """The names of the columns that aren't declared NOT NULL."""
    definitions = {c.name: stream.column(c.name) for c in columns(value)}
    return [name for name, found in definitions.items() if found is None or not found.not_null]


def _has_unproved_operators(value: Expr) -> bool:
    """True if a part of the value is an operator whose result isn't proved to have a value."""
    operators = (*COMPARISONS, "case", OPAQUE)
    return any(isinstance(part, Call) and part.op in operators for part in subexpressions(value))


def _null_advice(value: Expr, stream: StreamDef) -> str:
    """The change by which a value is never NULL, or by which its NULL doesn't matter."""
    if names := _nullable(value, stream):
        return f"declare {', '.join(names)} NOT NULL"
    if _has_unproved_operators(value):
        return "write the condition so that it isn't true for NULL"
    return "declare CHECKs with which it is never NULL"
