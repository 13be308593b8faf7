"""Which tuples of one source may stand for others: the scalar, the sides and the proof.

For the scalar x, with all else fixed, the values that do *not* raise the alarm must be an interval (double
brackets); where they are a ray in the same direction for all values of the rest, one side is enough. Both
are proved, by rules of composition and then by signs of derivatives over the declared domains, or not
claimed at all. Proofs are about exact numbers: they hold up to floating-point rounding. Sides are named as
in `tamis omit`: *above* keeps the maxima.

A source whose values no condition names needs no proof: any of its tuples with the same key stands for the
others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type, columns
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql
from tamis.planning.domains import domain
from tamis.planning.intervals import MAX, Interval
from tamis.planning.jets import INT64, UndefinedError
from tamis.planning.nulls import may_hold
from tamis.planning.plan import Sides
from tamis.planning.regions import Prover
from tamis.planning.scalar import Scalar, candidates, entries
from tamis.planning.shapes import ALWAYS, Region
from tamis.planning.subdivide import Effort, whole
from tamis.query.model import StreamDef

EXACT = 2**53  # omission compares values as DOUBLE: whole numbers beyond would run together


@dataclass(frozen=True)
class Certificate:
    """`value` (over the source's alias) may be bracketed on `sides`, together with equal `fixed` attributes.

    `drop_null`: a tuple without value raises no alarm, and the entry's filter must keep it out.
    """

    value: Expr
    sides: Sides
    rule: str
    fixed: tuple[Column, ...]
    drop_null: bool


@dataclass(frozen=True)
class Unproven:
    """Why nothing may be omitted."""

    reason: str


def certify(
    conditions: tuple[Expr, ...],
    alias: str,
    streams: Mapping[str, StreamDef],
    filters: Mapping[str, tuple[Expr, ...]],
) -> Certificate | Unproven:
    """The best certificate of source `alias` in the conjuncts over several sources.

    Attributes that can't be compared by size (VARCHAR, BOOLEAN) go into the omission key; where that does
    not do, so do whole numbers that are only compared, never computed with. A DOUBLE in the key would keep
    nearly everything.
    """
    own = [c for c in dict.fromkeys(c for part in conditions for c in columns(part)) if c.alias == alias]
    mine = tuple(part for part in conditions if any(c.alias == alias for c in columns(part)))
    if any(c.name == streams[alias].time for c in own):
        return Unproven("its event time stands in the condition")
    fixed = [c for c in own if not (c.type.numeric or c.type is Type.TIMESTAMP)]
    computed = {c for part in mine for c in _computed(part)}
    wider = [c for c in own if c in fixed or (c.type is not Type.DOUBLE and c not in computed)]
    effort = Effort()
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
    return first


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
    effort: Effort,
) -> Certificate | Unproven:
    key = frozenset(fixed)
    if not any(c.alias == alias and c not in key for part in conditions for c in columns(part)):
        return Certificate(
            Literal(0.0, Type.DOUBLE), "above", "any tuple stands for the others", fixed, False
        )
    box = {
        c: domain(definition, c.alias, filters.get(c.alias, ()))
        for c in dict.fromkeys(c for part in conditions for c in columns(part))
        if (definition := streams[c.alias].column(c.name)) and (c.type.numeric or c.type is Type.TIMESTAMP)
    }
    scalars = candidates(conditions, alias, key)
    if not scalars:
        named = entries(conditions, alias, key)
        return Unproven("it enters the condition through more than one value: " + " and ".join(named[:2]))
    first: Unproven | None = None
    for scalar in scalars:
        verdict = _prove(scalar, box, streams[alias], fixed, effort)
        if isinstance(verdict, Certificate):
            return verdict
        first = first or verdict
    assert first is not None
    return first


def _prove(
    scalar: Scalar, box: dict[Column, Interval], stream: StreamDef, fixed: tuple[Column, ...], effort: Effort
) -> Certificate | Unproven:
    name = to_sql(scalar.value)
    nowhere = Column("", "", Type.DOUBLE)
    span = whole(scalar.value, box, nowhere).value
    if scalar.value.type.integral and span.magnitude > EXACT:
        return Unproven(f"{name} may be beyond 2^53; declare a CHECK that bounds it")
    for terms in scalar.sums:
        exact = all(term.type.integral and factor.denominator == 1 for factor, term in terms)
        total = sum(
            float(abs(factor)) * float(whole(term, box, nowhere).value.magnitude) for factor, term in terms
        )
        if not total < (INT64 if exact else MAX):
            return Unproven(f"a sum with {name} may overflow; declare CHECKs that bound its columns")
    for factors in scalar.products:
        sizes = [_size(whole(factor, box, nowhere).value, sign) for factor, sign in factors]
        exact = all(factor.type.integral for factor, _ in factors) and all(sign > 0 for _, sign in factors)
        if not math.prod(max(1.0, size) for size in sizes) < (INT64 if exact else MAX):
            return Unproven(f"a product with {name} may overflow; declare CHECKs that bound its columns")
    condition = scalar.conditions[0] if len(scalar.conditions) == 1 else call("and", *scalar.conditions)
    drop_null = not _never_null(scalar.value, box, stream)
    if drop_null and may_hold(condition, scalar.variable):
        return Unproven(f"the condition can hold where {name} is NULL; declare its columns NOT NULL")
    whole_box = {**box, scalar.variable: span}
    best: tuple[Region, bool] | None = None
    failure: UndefinedError | None = None
    effort.used = False
    for spent in (None, effort):
        try:
            region = Prover(whole_box, scalar.variable, spent).regions(condition).true
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
        where = to_sql(_restored(failure.expr, scalar))
        return Unproven(f"{where} {failure.why}; declare CHECKs that rule it out")
    region, derived = best
    how = "sign of derivatives over the declared domain" if derived else "rules of composition"
    if region == ALWAYS:
        sides: Sides = "above"
        what = "constant"
    elif region & (Region.UPWARD | Region.DOWNWARD):
        sides, what = ("above" if Region.UPWARD in region else "below"), "monotone"
    elif Region.OUTSIDE in region:
        sides, what = "both", "quasiconvex"
    else:
        return Unproven(f"no proof that the values of {name} which raise no alarm are an interval")
    return Certificate(scalar.value, sides, f"{what} by {how}", fixed, drop_null)


def _size(span: Interval, sign: int) -> float:
    """The greatest size of a factor above the line (1) or below (-1)."""
    if sign > 0:
        return float(span.magnitude)
    return math.inf if span.holds(0.0) else 1 / float(min(abs(span.lo), abs(span.hi)))


def _restored(expr: Expr, scalar: Scalar) -> Expr:
    """`expr` with the stream's own expression in place of the variable."""
    if expr == scalar.variable:
        return scalar.value
    if not isinstance(expr, Call):
        return expr
    return Call(expr.op, tuple(_restored(arg, scalar) for arg in expr.args), expr.type)


def _never_null(value: Expr, box: Mapping[Column, Interval], stream: StreamDef) -> bool:
    """Is every column NOT NULL and every operation defined over the whole domain?"""
    definitions = [stream.column(c.name) for c in columns(value)]
    if not all(d is not None and d.not_null for d in definitions):
        return False
    if any(part.op in COMPARISONS or part.op == "case" for part in _calls(value)):
        return False
    try:
        whole(value, box, Column("", "", Type.DOUBLE), strict=True)
    except UndefinedError:
        return False
    return True


def _calls(expr: Expr) -> list[Call]:
    if not isinstance(expr, Call):
        return []
    return [expr, *(part for arg in expr.args for part in _calls(arg))]
