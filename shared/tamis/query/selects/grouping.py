"""GROUP BY and HAVING, and the columns of SELECT over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tamis.expressions.nodes import Call, Column, Expr, columns
from tamis.query.context import Context
from tamis.query.functions import AGGREGATE_FUNCTIONS
from tamis.query.model import Grouping, Output
from tamis.query.scalars.calls import called_name
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.selects.calls.aggregates import Aggregates
from tamis.query.selects.scope import FromScope
from tamis.query.syntax.cursor import name_of


@dataclass(frozen=True)
class Grouped:
    """GROUP BY with the aggregates, and the columns of SELECT over them."""

    grouping: Grouping
    outputs: tuple[Output, ...]


def resolve_grouping(
    context: Context,
    resolver: ExpressionResolver,
    node: exp.Select,
    aggregates: Aggregates,
    outputs: Sequence[Output] | None,
) -> Grouped | None:
    """GROUP BY and HAVING, checked against the columns of SELECT; None if a mistake was reported.

    `outputs` is None if the columns of SELECT have mistakes; then only the mistakes inside these clauses are
    reported.
    """
    before = len(context.errors)
    items = group_items(context, resolver, node)
    by: dict[Expr, Column] = {}
    for item, expr in items:
        column = None if expr is None else aggregates.column(context, item, expr, "GROUP BY")
        if expr is not None and column is not None:
            by[expr] = column
    # A column of GROUP BY with a mistake may be the one that SELECT and HAVING name.
    checkable = len(context.errors) == before and outputs is not None
    having = None
    if node.args.get("having") is not None:
        having = resolver.condition(node.args["having"].this, "HAVING")
    grouped = tuple(Output(one.name, _over_groups(one.expr, by)) for one in outputs or ())
    having = None if having is None else _over_groups(having, by)
    if checkable:
        for output, item in zip(grouped, node.expressions, strict=False):
            _check_grouped(context, output.expr, by, item)
        if having is not None:
            _check_grouped(context, having, by, node.args["having"])
    if len(context.errors) > before:
        return None
    columns_ = tuple(dict.fromkeys(by.values()))
    return Grouped(Grouping(columns_, tuple(aggregates.found), having, tuple(aggregates.computed)), grouped)


def group_items(
    context: Context, resolver: ExpressionResolver, node: exp.Select
) -> list[tuple[exp.Expr, Expr | None]]:
    """The items of GROUP BY and their expressions; an expression is None if a mistake in it was reported.

    A name that AS gives to a column of SELECT stands for the expression there, as in Postgres: the columns of
    the streams come first. A whole number stands for the column of SELECT at this place, from 1.
    """
    clause = node.args.get("group")
    if clause is None:
        return []
    if any(value for key, value in clause.args.items() if key != "expressions"):
        context.error("GROUP BY takes only columns and expressions", clause, "write the names of columns")
    elif not clause.expressions:
        context.error("GROUP BY has no column", clause, "write the names of columns, or leave GROUP BY out")
    named = {
        name_of(one.args["alias"]).text: one.this for one in node.expressions if isinstance(one, exp.Alias)
    }
    found: list[tuple[exp.Expr, Expr | None]] = []
    for item in clause.expressions:
        plain = item.unnest()
        bare = isinstance(plain, exp.Column) and not plain.args.get("table")
        name = name_of(plain.this).text if bare and isinstance(plain.this, exp.Identifier) else ""
        known = isinstance(resolver.scope, FromScope) and resolver.scope.has(name)
        meant = item if known or name not in named else named[name]
        if isinstance(plain, exp.Literal) and plain.is_int and 0 < int(plain.this) <= len(node.expressions):
            column = node.expressions[int(plain.this) - 1].unalias()
            calls = (called_name(one) for one in column.find_all(exp.Anonymous))
            if any(name in AGGREGATE_FUNCTIONS for name in calls):
                what = f"column {plain.this} of SELECT is an aggregate, {context.source(column)}"
                context.error(what, item, "leave it out of GROUP BY: an aggregate is made of each group")
                found.append((item, None))
                continue
            meant = column
        expr = resolver.without_aggregates(meant)
        if expr is not None and not any(columns(expr)):
            hint = "write the names of columns, or expressions over them"
            context.error(f"GROUP BY takes no constants, such as {context.source(item)}", item, hint)
            expr = None
        found.append((item, expr))
    return found


def _over_groups(expr: Expr, by: Mapping[Expr, Column]) -> Expr:
    """`expr` with the expressions of GROUP BY replaced by the columns of the group."""
    if expr in by:
        return by[expr]
    if isinstance(expr, Call):
        return Call(expr.op, tuple(_over_groups(arg, by) for arg in expr.args), expr.type)
    return expr


def _check_grouped(context: Context, expr: Expr, by: Mapping[Expr, Column], place: exp.Expr) -> None:
    for column in columns(expr):
        if column.alias and column not in by.values():
            name = f"{column.alias}.{column.name}"
            hint = f"write GROUP BY {name}, or an aggregate of it such as max({name})"
            context.error(f"'{name}' must be in GROUP BY or inside an aggregate", place, hint)
            return
