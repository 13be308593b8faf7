"""The lower half of a window aggregate, which edges can run: its groups and partial aggregates.

HAVING and SELECT stay at the joiner, because no shard knows the readings of the others. The columns of the
result have the empty alias, and everything has an order of its own: queries that group and aggregate the same
expressions have the same lower half.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import orjson

from tamis.declarations.aggregates import Aggregate
from tamis.expressions.json_form import to_json
from tamis.expressions.nodes import OPAQUE, Call, Column, Expr
from tamis.expressions.sql_text import to_sql
from tamis.operators.windows.shared_panes import expression_of, group_expressions
from tamis.plan import nodes
from tamis.plan.nodes import Computed, Grouping

# An aggregate without columns, and the expressions of its column and of its order.
_Calls = dict[tuple[Aggregate, Expr | None, Expr | None], None]


def mergeable(node: nodes.Windows) -> Grouping | None:
    """The grouping of the partial aggregates of a query; None if edges can't compute them: the query joins
    tables, or reads values of Python functions, which may differ when a reading is read again.
    """
    calls = _calls(node.grouping)
    by = group_expressions(node.grouping)
    read = [*node.scan.filter, *by, *(expr for call in calls for expr in call[1:] if expr is not None)]
    if node.tables or not node.scan.time or any(map(_opaque, read)):
        return None
    return _grouping(by, calls)


def united(groupings: Sequence[Grouping]) -> Grouping:
    """The grouping that serves all of these, whatever their order: at least one, of the same groups.

    Raises ValueError if they have different groups.
    """
    first = group_expressions(groupings[0])
    if any(set(group_expressions(one)) != set(first) for one in groupings):
        raise ValueError("the groupings have different groups")
    return _grouping(first, {call: None for one in groupings for call in _calls(one)})


def _calls(grouping: Grouping) -> _Calls:
    def read(column: Column | None) -> Expr | None:
        return None if column is None else expression_of(column, grouping.computed)

    return {
        (replace(one, column=None, order=None), read(one.column), read(one.order)): None
        for one in grouping.aggregates
    }


def _grouping(by: Sequence[Expr], calls: _Calls) -> Grouping:
    by = sorted(set(by), key=_key)
    read = {expr for expr in (*by, *(e for call in calls for e in call[1:])) if expr is not None}
    columns = _columns(read)
    aggregates = [
        replace(
            aggregate,
            column=None if value is None else columns[value],
            order=None if order is None else columns[order],
        )
        for aggregate, value, order in sorted(calls, key=_call_key)
    ]
    computed = [
        Computed("", columns[expr].name, expr) for expr in sorted(read, key=_key) if expr != columns[expr]
    ]
    return Grouping(tuple(columns[expr] for expr in by), tuple(aggregates), (), computed=tuple(computed))


def _columns(read: Iterable[Expr]) -> dict[Expr, Column]:
    """The column of each expression: a column itself, or one under the SQL of the expression."""
    columns: dict[Expr, Column] = {expr: expr for expr in read if isinstance(expr, Column)}
    taken = {column.name for column in columns.values()}
    for expr in sorted(set(read) - set(columns), key=_key):
        name = f"({to_sql(expr, qualify=False)})"
        # Constants of two types may be written alike.
        while name in taken:
            name = f"({name})"
        taken.add(name)
        columns[expr] = Column("", name, expr.type)
    return columns


def _key(expr: Expr | None) -> bytes:
    return orjson.dumps(None if expr is None else to_json(expr))


def _call_key(call: tuple[Aggregate, Expr | None, Expr | None]) -> tuple[str, bytes, bytes, bool, str, str]:
    aggregate, value, order = call
    return (
        aggregate.function,
        _key(value),
        _key(order),
        aggregate.distinct,
        str(aggregate.fraction),
        aggregate.type,
    )


def _opaque(expr: Expr) -> bool:
    """True if an expression has a Python function."""
    return isinstance(expr, Call) and (expr.op == OPAQUE or any(map(_opaque, expr.args)))
