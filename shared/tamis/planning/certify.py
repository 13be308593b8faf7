"""Which tuples of one source may stand for others: the scalar, the sides and the proof.

For the scalar x, with all else fixed, the values that do *not* raise the alarm must be an interval (double
brackets); where they are a ray in the same direction for all values of the rest, one side is enough. Both
are proved, by rules of composition and then by signs of derivatives over the declared domains, or not
claimed at all; where an alert asks for it, a grid may claim what it did not see refuted. Proofs are about
exact numbers: they hold up to floating-point rounding. Sides are named as in `tamis omit`: *above* keeps
the maxima.

A source whose values no condition names needs no proof: any of its tuples with the same key stands for the
others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tamis.expressions import opaque
from tamis.expressions.nodes import COMPARISONS, OPAQUE, Call, Column, Expr, Literal, Type, columns
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql
from tamis.planning.domains import domain
from tamis.planning.grid import NoGridError, gridded
from tamis.planning.intervals import MAX, Interval
from tamis.planning.jets import INT64, UndefinedError
from tamis.planning.nulls import may_hold
from tamis.planning.plan import Sides
from tamis.planning.regions import Prover
from tamis.planning.scalar import Scalar, candidates, entries
from tamis.planning.shapes import ALWAYS, Region
from tamis.planning.subdivide import Effort, whole
from tamis.query.model import StreamDef

_NOWHERE = Column("", "", Type.DOUBLE)
EXACT = 2**53  # omission compares values as DOUBLE: whole numbers beyond would run together


@dataclass(frozen=True)
class Certificate:
    """`value` (over the source's alias) may be bracketed on `sides`, together with equal `fixed` attributes.

    `rule` names what gave it; one that is no proof begins with "heuristic", one that rests on a declared
    shape with "trusted".

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
    *,
    heuristic: bool = False,
) -> Certificate | Unproven:
    """The best certificate of source `alias` in the conjuncts over several sources. With `heuristic`, where
    nothing is proved, what a grid says (see `grid`).

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
    reasons: list[str] = []
    for effort in (Effort(), None) if heuristic else (Effort(),):
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
    scalar: Scalar,
    box: dict[Column, Interval],
    stream: StreamDef,
    fixed: tuple[Column, ...],
    effort: Effort | None,
) -> Certificate | Unproven:
    """What is proved of one scalar with this effort; without any, what a grid says."""
    name = to_sql(scalar.value)
    span = whole(scalar.value, box, _NOWHERE).value
    if scalar.value.type.integral and span.magnitude > EXACT:
        return Unproven(f"{name} may be beyond 2^53; declare a CHECK that bounds it")
    if (overflow := _overflow(scalar, box)) is not None:
        return Unproven(f"{overflow} with {name} may overflow; declare CHECKs that bound its columns")
    condition = scalar.conditions[0] if len(scalar.conditions) == 1 else call("and", *scalar.conditions)
    drop_null = not _never_null(scalar.value, box, stream)
    if drop_null and may_hold(condition, scalar.variable):
        return Unproven(f"the condition can hold where {name} is NULL; declare its columns NOT NULL")
    whole_box = {**box, scalar.variable: span}
    if effort is None and any(opaque.calls(condition)):
        return Unproven("a function of Python is not called before it runs")
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
            where = to_sql(_restored(error.expr, scalar))
            return Unproven(f"{where} {error.why}; declare CHECKs that rule it out")
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
    trusted = sorted({opaque.name_of(c) for c in opaque.calls(condition) if scalar.variable in columns(c)})
    if trusted:
        rule = f"trusted, by what is declared of {', '.join(trusted)}: {rule}"
    return Certificate(scalar.value, sides, rule, fixed, drop_null)


def _overflow(scalar: Scalar, box: dict[Column, Interval]) -> str | None:
    """What was regrouped and may overflow, written in another order."""
    for terms in scalar.sums:
        exact = all(term.type.integral and factor.denominator == 1 for factor, term in terms)
        total = sum(
            float(abs(factor)) * float(whole(term, box, _NOWHERE).value.magnitude) for factor, term in terms
        )
        if not total < (INT64 if exact else MAX):
            return "a sum"
    for factors in scalar.products:
        sizes = [_size(whole(factor, box, _NOWHERE).value, sign) for factor, sign in factors]
        exact = all(factor.type.integral and sign > 0 for factor, sign in factors)
        if not math.prod(max(1.0, size) for size in sizes) < (INT64 if exact else MAX):
            return "a product"
    return None


def _proved(
    condition: Expr, variable: Column, box: dict[Column, Interval], effort: Effort
) -> tuple[Region, bool]:
    """The region, and whether derivatives were needed: rules of composition come first.

    Raises UndefinedError where a part may be NULL.
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
    if any(part.op in (*COMPARISONS, "case", OPAQUE) for part in _calls(value)):
        return False
    try:
        whole(value, box, _NOWHERE, strict=True)
    except UndefinedError:
        return False
    return True


def _calls(expr: Expr) -> list[Call]:
    if not isinstance(expr, Call):
        return []
    return [expr, *(part for arg in expr.args for part in _calls(arg))]
