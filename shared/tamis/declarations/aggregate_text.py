"""Aggregates, and expressions over their values, as SQL for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.declarations.aggregates import Aggregate
from tamis.expressions.nodes import Call, Column, Expr, Literal, substitute
from tamis.expressions.sql_text import to_sql


def aggregate_text(one: Aggregate, meaning: Callable[[Column], Expr]) -> str:
    """An aggregate as users write it. `meaning` gives the expression that a computed column stands for.

    >>> from tamis.expressions.nodes import Type
    >>> aggregate_text(Aggregate("avg", Column("a", "x", Type.DOUBLE), False, Type.DOUBLE), lambda c: c)
    'avg(a.x)'
    """
    if one.column is None:
        return "count(*)"
    value, only = meaning(one.column), ""
    if isinstance(value, Call) and value.op == "case" and value.args[2:] == (Literal(None, value.type),):
        only = f" FILTER (WHERE {to_sql(value.args[0])})"
        value = value.args[1]
    inner = "*" if isinstance(value, Literal) else to_sql(value)
    if one.function.startswith("percentile"):
        fraction = float(one.fraction) if one.fraction is not None else 0.5
        return f"{one.function}({fraction:g}) WITHIN GROUP (ORDER BY {inner}){only}"
    if one.order is not None:
        return f"{one.function}({inner}, {to_sql(one.order)}){only}"
    return f"{one.function}({'DISTINCT ' if one.distinct else ''}{inner}){only}"


def over_aggregates(expr: Expr, aggregates: Sequence[Aggregate], meaning: Callable[[Column], Expr]) -> str:
    """An expression over aggregates, whose k-th one is `Column("", str(k))`, as users write it.

    >>> from tamis.expressions.nodes import Type
    >>> few = Call("<", (Column("", "0", Type.BIGINT), Literal(3, Type.INT)), Type.BOOLEAN)
    >>> over_aggregates(few, [Aggregate("count", None, False, Type.BIGINT)], lambda column: column)
    'count(*) < 3'
    """
    named = {
        Column("", str(number), one.type): aggregate_text(one, meaning)
        for number, one in enumerate(aggregates)
    }
    text = to_sql(substitute(expr, lambda c: Column("", f"<{c.name}>", c.type) if c in named else c))
    for column, name in named.items():
        text = text.replace(f'"<{column.name}>"', name)
    return text
