"""The parts and values by which one source enters a conjunction of conditions over several sources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tamis.bounded.representatives.limits import Limits
from tamis.bounded.representatives.linear import clipped
from tamis.bounded.timeless.translate import is_present
from tamis.certificates.interval_arithmetic.derivatives import NO_VARIABLE, UndefinedError, box_of
from tamis.certificates.interval_arithmetic.intervals import Interval, span
from tamis.certificates.interval_arithmetic.subdivision import derivatives_over
from tamis.certificates.nulls import may_hold
from tamis.certificates.scalars import subexpressions, substituted
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type, aliases, columns
from tamis.expressions.signatures import call

# The stand-ins of expressions with few values have this alias, which no source has.
_FEW = "few values"
# An expression with more values is no help: each value needs tuples of its own.
MOST_VALUES = 1_000_000


@dataclass(frozen=True)
class OwnParts:
    """The conjuncts over the source `alias` and others. `fixed` are its columns that are limited, and are
    shown or equal to values of others: tuples only stand for tuples with equal values of these.
    """

    alias: str
    parts: tuple[Expr, ...]
    fixed: tuple[Column, ...]
    conditions: tuple[Expr, ...]  # on tuples of the source alone

    def free(self, expr: Expr) -> bool:
        """True if the expression contains a column of the source that isn't fixed."""
        return any(one.alias == self.alias and one not in self.fixed for one in columns(expr))


@dataclass(frozen=True)
class FewValues:
    """An expression of one source with `count` values, of which tuples only stand for tuples with equal ones.

    For a proof, `column` has its value, and `by` takes the place of `replaced` in the conditions. Tuples that
    don't meet `conditions` are part of no row.
    """

    value: Expr
    count: int
    column: Column
    conditions: tuple[Expr, ...]
    replaced: Expr
    by: Expr

    def instead(self, parts: Sequence[Expr]) -> tuple[Expr, ...]:
        """The conditions with the column."""
        return tuple(substituted(one, self.replaced, self.by) for one in parts)


def own_parts(alias: str, parts: Sequence[Expr], shown: Sequence[Column], limits: Limits) -> OwnParts:
    """The conjuncts that concern a source."""
    over = tuple(one for one in parts if alias in aliases(one) and len(aliases(one)) > 1)
    own = tuple(one for one in parts if aliases(one) == {alias})
    fixed = [one for one in shown if one.alias == alias]
    fixed += [one for part in over for one in _equated(part, alias) if limits.limited(one)]
    return OwnParts(alias, over, tuple(dict.fromkeys(fixed)), own)


def _equated(part: Expr, alias: str) -> Iterator[Column]:
    """The columns of a source of which a conjunct compares a value by `=` with values of others."""
    if isinstance(part, Call) and part.op == "=":
        for side in part.args:
            if aliases(side) == {alias}:
                yield from columns(side)


def entering(own: OwnParts) -> list[Expr]:
    """The largest expressions of a source alone by which it enters the conditions, each once."""
    return list(dict.fromkeys(value for part in own.parts for value in _largest(part, own)))


def _largest(expr: Expr, own: OwnParts) -> Iterator[Expr]:
    if not own.free(expr):
        return
    if aliases(expr) == {own.alias}:
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from _largest(arg, own)


def few_values(value: Expr, place: int, own: OwnParts, context: Domains) -> FewValues | None:
    """The expression as one with few values; None if it may have more than `MOST_VALUES`.

    Of a value that stands in one condition alone only those matter that the other values of the condition can
    tell apart.
    """
    column = Column(_FEW, str(place), value.type)
    count = context.count(value)
    within = [part for part in own.parts if own.free(part) and value in subexpressions(part)]
    ends = clipped(within[0], value, context.box) if len(within) == 1 else None
    if ends is not None and ends[1] - ends[0] + 1 < count:
        least, most = ends
        if most < least or most - least >= MOST_VALUES:
            return None
        low = call(">=", value, Literal(least, Type.BIGINT))
        shown = call("least", value, Literal(most, Type.BIGINT))
        return FewValues(shown, most - least + 1, column, (low,), value, column)
    if not count <= MOST_VALUES:
        return None
    if not _nullable(value, context):
        return FewValues(value, int(count), column, (), value, column)
    replaced = [substituted(part, value, column) for part in own.parts]
    together = replaced[0] if len(replaced) == 1 else Call("and", tuple(replaced), Type.BOOLEAN)
    if may_hold(together, column):
        return FewValues(value, int(count) + 1, column, (), value, column)
    return FewValues(value, int(count), column, (is_present(value),), value, column)


def few_distances(value: Expr, other: Expr, place: int, context: Domains) -> FewValues | None:
    """The distance of a column from another one, if it has few values: the column is the other one and this
    distance. Columns that may be NULL have none.
    """
    if (
        not isinstance(value, Column)
        or not isinstance(other, Column)
        or Type.DOUBLE in (value.type, other.type)
    ):
        return None
    count = context.limits.distances(value, other)
    if not count <= MOST_VALUES or _nullable(value, context) or _nullable(other, context):
        return None
    column = Column(_FEW, str(place), value.type)
    distance = call("-", value, other)
    return FewValues(distance, int(count), column, (), value, call("+", other, column))


@dataclass(frozen=True)
class Domains:
    """The domains of the columns in the conditions of a source, and its declaration."""

    limits: Limits
    stream: StreamDef
    box: Mapping[Column, Interval]

    def count(self, value: Expr) -> float:
        """The number of values of an expression besides NULL; infinite if nothing limits it."""
        if isinstance(value, Column) and self.limits.limited(value):
            return self.limits.count(value)
        if value.type is Type.BOOLEAN:
            return 2
        if not value.type.integral:
            return math.inf
        try:
            found = derivatives_over(value, self.box, NO_VARIABLE).value
        except UndefinedError:
            return math.inf
        return float(found.hi) - float(found.lo) + 1


def _nullable(value: Expr, context: Domains) -> bool:
    definitions = [context.stream.column(one.name) for one in columns(value)]
    if any(one is None or not one.not_null for one in definitions):
        return True
    if value.type is Type.BOOLEAN:
        return not _plain(value)
    try:
        derivatives_over(value, context.box, NO_VARIABLE, strict=True)
    except UndefinedError:
        return True
    return False


def _plain(value: Expr) -> bool:
    """True for a condition that is never NULL without NULL: comparisons of columns and constants."""
    if not isinstance(value, Call):
        return True
    return value.op in ("and", "or", "not", *COMPARISONS) and all(map(_plain, value.args))


def domains(
    own: OwnParts,
    few: Sequence[FewValues],
    streams: Mapping[str, StreamDef],
    filters: Mapping[str, tuple[Expr, ...]],
) -> dict[Column, Interval]:
    """The domains of all columns of the conditions, with those of the columns that stand for few values."""
    box = box_of((*own.parts, *own.conditions), streams, filters)
    for one in few:
        if one.value.type.integral:
            box[one.column] = derivatives_over(one.value, box, NO_VARIABLE).value
        elif one.value.type is Type.BOOLEAN:
            box[one.column] = span(0, 1)
    return box
