"""GROUP BY, HAVING and calls of aggregates, over streams without event time and over windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.query.context import Context
from tamis.query.functions import AGGREGATE_FUNCTIONS
from tamis.query.model import Aggregate, Grouping, Output
from tamis.query.scalars.resolution import ExpressionResolver

_USAGE = "write count(*), or count, count(DISTINCT), sum, avg, min, max or median of a column"
_NUMERIC = ("sum", "avg", "median")  # the aggregates that need numbers


class Aggregates:
    """The aggregates of one query, each once, in the order of their first calls."""

    def __init__(self) -> None:
        self.found: list[Aggregate] = []
        self.first_call: exp.Expr | None = None  # also if it has a mistake

    def call(
        self, context: Context, node: exp.Expr, name: str, argument: Callable[[exp.Expr], Expr | None]
    ) -> Expr | None:
        """See `tamis.query.scalars.scopes.AggregateCalls`."""
        self.first_call = self.first_call or node
        nodes = list(node.expressions)
        distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
        if distinct:
            nodes = list(nodes[0].expressions)
        if len(nodes) != 1:
            context.error(f"{name} takes one column, not {len(nodes)}", node, _USAGE)
            return None
        (argument_node,) = nodes
        if isinstance(argument_node, exp.Star) and name == "count" and not distinct:
            return self._value(Aggregate("count", None, False, Type.BIGINT))
        if isinstance(argument_node, exp.Star):
            what = f"{name}(DISTINCT *)" if distinct else f"{name}(*)"
            context.error(f"{what} needs a column", argument_node, _USAGE)
            return None
        for inner in argument_node.find_all(exp.Anonymous):
            if str(inner.this).lower() in AGGREGATE_FUNCTIONS:
                context.error("nested aggregates are not supported", inner, "aggregate a column instead")
                return None
        column = argument(argument_node)
        if column is None:
            return None
        if not isinstance(column, Column):
            what = f"the argument of {name} must be a column"
            context.error(_with_reason(what, argument_node), argument_node, _USAGE)
            return None
        if distinct and name in _NUMERIC:
            context.error(f"{name}(DISTINCT …) is not supported", node, "leave DISTINCT out")
            return None
        if name in _NUMERIC and not column.type.numeric:
            context.error(f"{name} needs numbers, not {column.type}", argument_node, _USAGE)
            return None
        # The least and the greatest value are the same with and without DISTINCT.
        counts_values = name == "count" and distinct
        return self._value(Aggregate(name, column, counts_values, _type(name, column.type)))

    def _value(self, aggregate: Aggregate) -> Expr:
        if aggregate not in self.found:
            self.found.append(aggregate)
        return Column("", str(self.found.index(aggregate)), aggregate.type)


def _type(name: str, of: Type) -> Type:
    if name == "count":
        return Type.BIGINT
    if name in ("avg", "median"):
        return Type.DOUBLE
    return Type.BIGINT if name == "sum" and of is Type.INT else of


def resolve_grouping(
    context: Context,
    resolver: ExpressionResolver,
    node: exp.Select,
    aggregates: Aggregates,
    outputs: Sequence[Output] | None,
) -> Grouping | None:
    """GROUP BY and HAVING, checked against the columns of SELECT; None if a mistake was reported.

    `outputs` is None if the columns of SELECT have mistakes; then only the mistakes inside these clauses are
    reported.
    """
    before = len(context.errors)
    by = _grouping_columns(context, resolver, node.args.get("group"))
    # A column of GROUP BY with a mistake may be the one that SELECT and HAVING name.
    checkable = len(context.errors) == before and outputs is not None
    having = None
    if node.args.get("having") is not None:
        having = resolver.condition(node.args["having"].this, "HAVING")
    if checkable:
        for output, item in zip(outputs or (), node.expressions, strict=False):
            _check_grouped(context, output.expr, by, item)
        if having is not None:
            _check_grouped(context, having, by, node.args["having"])
    if len(context.errors) > before:
        return None
    return Grouping(tuple(by), tuple(aggregates.found), having)


def _grouping_columns(
    context: Context, resolver: ExpressionResolver, clause: exp.Expr | None
) -> list[Column]:
    """The columns of GROUP BY, each once."""
    if clause is None:
        return []
    if any(value for key, value in clause.args.items() if key != "expressions"):
        context.error("GROUP BY takes only columns", clause, "write the names of columns")
    elif not clause.expressions:
        context.error("GROUP BY has no column", clause, "write the names of columns, or leave GROUP BY out")
    by: list[Column] = []
    for item in clause.expressions:
        expr = resolver.without_aggregates(item)
        if expr is not None and not isinstance(expr, Column):
            what = _with_reason("GROUP BY takes only columns", item)
            context.error(what, item, "write the names of the columns in the expression")
        elif isinstance(expr, Column) and expr not in by:
            by.append(expr)
    return by


def _with_reason(what: str, node: exp.Expr) -> str:
    """The message `what`. If `node` looks like a column but is an expression, the message also gives the
    reason.
    """
    derived = isinstance(node, exp.Column)
    return f"{what}, and '{node.sql()}' is computed by an expression in its stream" if derived else what


def _check_grouped(context: Context, expr: Expr, by: Sequence[Column], place: exp.Expr) -> None:
    for column in columns(expr):
        if column.alias and column not in by:
            name = f"{column.alias}.{column.name}"
            hint = f"write GROUP BY {name}, or an aggregate of it such as max({name})"
            context.error(f"'{name}' must be in GROUP BY or inside an aggregate", place, hint)
            return
