"""HAVING that no group can meet: the values of aggregates are limited by the values that they aggregate.

Extremes, averages, medians and percentiles lie between the least and the greatest value. A group has at least
one row. A sum of values that are not negative is at least the least of them. A standard deviation of the
whole group is at most half of the range, that of a sample at most the range by the root of 2 (two values).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from tamis.analysis.conjuncts import flatten_and
from tamis.analysis.contradictions import compares_with_null, fewest
from tamis.analysis.possible_values import ANYTHING, Values, possible
from tamis.analysis.value_constraints import narrowed
from tamis.declarations.aggregate_text import over_aggregates
from tamis.declarations.aggregates import Aggregate
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import FLIPPED, OPPOSITE, Call, Column, Expr, Literal, Type, columns
from tamis.query.computed_columns import meaning
from tamis.query.model import Grouping, Query, grouping_of

_WITHIN = ("min", "max", "avg", "median", "percentile_cont", "percentile_disc", "arg_min", "arg_max")
# The greatest spread as a share of the range, and the share's power.
_SPREADS = {
    "stddev_pop": (0.5, 1),
    "stddev_samp": (math.sqrt(0.5), 1),
    "var_pop": (0.25, 2),
    "var_samp": (0.5, 2),
}
# Interpolated and derived values are rounded.
_SLACK = 1e-9


def contradictory_having(query: Query, streams: Mapping[str, StreamDef]) -> str | None:
    """The reason why no group ever meets HAVING; None if one may. `streams` are by alias."""
    grouping = grouping_of(query)
    if grouping is None or grouping.having is None:
        return None
    where = [one.expr for one in query.conjuncts]
    read = [
        c
        for one in grouping.aggregates
        if one.column is not None
        for c in columns(meaning(one.column, query))
    ]
    # The condition c = c only says that c is not NULL: a NULL isn't aggregated.
    known = narrowed([*where, *(_itself(c) for c in dict.fromkeys(read))], streams)
    if known is None:
        return None
    given: dict[Expr, Values] = {
        grouping.value(number): _aggregated(
            one, _values(one, query, known), _none(one, query, where, streams)
        )
        for number, one in enumerate(grouping.aggregates)
    }
    given |= {
        column: possible(meaning(column, query), known)
        for column in grouping.by
        if meaning(column, query) != column
    }
    orders = _orders(grouping)

    def never(some: Sequence[Expr]) -> bool:
        return narrowed([*where, *some, *orders], streams, given) is None or any(
            _reversed(part, orders) for part in some
        )

    parts = flatten_and(grouping.having)
    if not never(parts):
        return None
    few = fewest(parts, never)
    texts = [_text(one, query) for one in few]
    if len(few) > 1:
        return f"no group meets all of {', '.join(texts)} in HAVING"
    if compares_with_null(few[0]):
        return f"HAVING {texts[0]} is never true, as every comparison with NULL"
    return f"HAVING {texts[0]} is never true{_limits(few[0], query, given)}"


def _itself(column: Column) -> Expr:
    return Call("=", (column, column), Type.BOOLEAN)


def _values(one: Aggregate, query: Query, known: Mapping[Expr, Values]) -> Values:
    """The values that are aggregated."""
    return ANYTHING if one.column is None else possible(meaning(one.column, query), known)


def _none(one: Aggregate, query: Query, where: Sequence[Expr], streams: Mapping[str, StreamDef]) -> bool:
    """True if an aggregate has a FILTER that no tuple meets."""
    value = None if one.column is None else meaning(one.column, query)
    if not isinstance(value, Call) or value.op != "case" or value.args[2:] != (Literal(None, value.type),):
        return False
    return narrowed([*where, value.args[0]], streams) is None


def _aggregated(one: Aggregate, values: Values, none: bool) -> Values:
    """The possible values of an aggregate of `values`, or of no value if `none`."""
    if one.function == "count":
        return Values(low=float(one.column is None), high=0.0 if none else math.inf, null=False)
    low, high = values.low, values.high
    if one.function in _WITHIN:
        exact = one.function in ("min", "max", "arg_min", "arg_max")
        found = replace(values, null=True) if exact else Values(low, high)
        return found if exact or one.function != "percentile_cont" else _widened(found)
    if one.function == "sum":
        return Values(low if low >= 0 else -math.inf, high if high <= 0 else math.inf)
    if one.function in _SPREADS:
        share, power = _SPREADS[one.function]
        width = high - low if math.isfinite(high - low) else math.inf
        # A product is infinite beyond the greatest DOUBLE, where a power raises OverflowError.
        most = math.prod([width] * power) * share
        return _widened(Values(0.0, most))
    return ANYTHING


def _widened(found: Values) -> Values:
    """With the error of rounding; zero stays a limit."""
    return replace(found, low=found.low - _SLACK * abs(found.low), high=found.high + _SLACK * abs(found.high))


def _orders(grouping: Grouping) -> list[Expr]:
    """Conditions between aggregates of one column: the least value is at most the average, and so on.

    An aggregate of no values is NULL. A condition of comparisons that is true then is true for others.
    """
    if grouping.having is None or not _comparisons(grouping.having):
        return []
    read = set(columns(grouping.having))
    found: list[Expr] = []
    for low, one in enumerate(grouping.aggregates):
        for high, other in enumerate(grouping.aggregates):
            pair = grouping.value(low), grouping.value(high)
            ranks = _rank(one), _rank(other)
            same = one.column == other.column and one.column is not None and set(pair) <= read
            if same and None not in ranks and ranks[0] < ranks[1]:  # type: ignore[operator]
                found.append(Call("<=", pair, Type.BOOLEAN))
    return found


def _reversed(part: Expr, orders: Sequence[Expr]) -> bool:
    """True for a condition that an aggregate is greater than one that is at least as great."""
    if not isinstance(part, Call) or part.op not in (">", "<"):
        return False
    low, high = part.args if part.op == ">" else part.args[::-1]
    return Call("<=", (low, high), Type.BOOLEAN) in orders


def _comparisons(expr: Expr) -> bool:
    """True if an expression has no operator that knows NULL from other values."""
    if not isinstance(expr, Call):
        return True
    strict = expr.op in ("and", "or", "not", "+", "-", "*", "neg", "abs", *OPPOSITE)
    return strict and all(map(_comparisons, expr.args))


def _rank(one: Aggregate) -> int | None:
    return {"min": 0, "avg": 1, "median": 1, "percentile_disc": 1, "max": 2}.get(one.function)


def _text(part: Expr, query: Query) -> str:
    """A condition with the aggregates as users write them."""
    grouping = grouping_of(query)
    assert grouping is not None
    return over_aggregates(part, grouping.aggregates, partial(meaning, query=query))


def _limits(part: Expr, query: Query, given: Mapping[Expr, Values]) -> str:
    """The greatest or least possible value of an aggregate that is compared with a constant."""
    if not isinstance(part, Call) or part.op not in (*FLIPPED, "="):
        return ""
    op, (left, right) = part.op, part.args
    if isinstance(left, Literal):
        op, left, right = FLIPPED.get(op, op), right, left
    if not isinstance(right, Literal) or not left.type.numeric:
        return ""
    values, constant = possible(left, given), right.value
    if not isinstance(constant, int | float):
        return ""
    name = _text(left, query)
    if op in (">", ">=", "=") and values.high <= constant:
        return f": {name} is at most {values.high:.9g}"
    if op in ("<", "<=", "=") and values.low >= constant:
        return f": {name} is at least {values.low:.9g}"
    return ""
