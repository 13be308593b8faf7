"""GROUP BY, HAVING and calls of aggregates, over streams without event time and over windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, aliases, columns
from tamis.query.computed_columns import computed_column
from tamis.query.context import Context
from tamis.query.functions import AGGREGATE_FUNCTIONS
from tamis.query.model import WINDOW_COLUMNS, Aggregate, ColumnDef, Grouping, Output
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.selects.scope import FromScope
from tamis.query.syntax.identifiers import name_of
from tamis.query.unsupported import AGGREGATES_USAGE

_NUMERIC = ("sum", "avg", "median")  # the aggregates that need numbers


class Aggregates:
    """The aggregates of one query, each once, in the order of their first calls, and the columns that the
    query computes for them and for GROUP BY.
    """

    def __init__(self, scope: FromScope) -> None:
        self._scope = scope
        self.found: list[Aggregate] = []
        self.computed: list[tuple[str, ColumnDef]] = []
        self.first_call: exp.Expr | None = None  # also if it has a mistake

    def call(
        self,
        context: Context,
        node: exp.Expr,
        name: str,
        argument: Callable[[exp.Expr], Expr | None],
        only: Expr | None,
    ) -> Expr | None:
        """See `tamis.query.scalars.scopes.AggregateCalls`."""
        self.first_call = self.first_call or node
        nodes = list(node.expressions)
        distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
        if distinct:
            nodes = list(nodes[0].expressions)
        if len(nodes) != 1:
            context.error(f"{name} takes one value, not {len(nodes)}", node, AGGREGATES_USAGE)
            return None
        (argument_node,) = nodes
        if isinstance(argument_node, exp.Star) and name == "count" and not distinct:
            return self._count(context, node, only)
        if isinstance(argument_node, exp.Star):
            what = f"{name}(DISTINCT *)" if distinct else f"{name}(*)"
            context.error(f"{what} needs a column", argument_node, AGGREGATES_USAGE)
            return None
        for inner in argument_node.find_all(exp.Anonymous):
            if str(inner.this).lower() in AGGREGATE_FUNCTIONS:
                context.error("nested aggregates are not supported", inner, "aggregate a column instead")
                return None
        value = argument(argument_node)
        if value is None:
            return None
        if distinct and name in _NUMERIC:
            context.error(f"{name}(DISTINCT …) is not supported", node, "leave DISTINCT out")
            return None
        if name in _NUMERIC and not value.type.numeric:
            context.error(f"{name} needs numbers, not {value.type}", argument_node, AGGREGATES_USAGE)
            return None
        if name == "count" and isinstance(value, Literal) and value.value is not None and not distinct:
            return self._count(context, node, only)
        if only is not None:
            value = Call("case", (only, value, Literal(None, value.type)), value.type)
        column = self.column(context, node, value, f"the argument of {name}")
        if column is None:
            return None
        # The least and the greatest value are the same with and without DISTINCT.
        counts_values = name == "count" and distinct
        return self._value(Aggregate(name, column, counts_values, _type(name, column.type)))

    def column(self, context: Context, node: exp.Expr, value: Expr, what: str) -> Column | None:
        """The column for an expression over single tuples, which messages call `what`: one of a stream, or
        one that the query computes. None if a mistake was reported.
        """
        windowed = {source.alias for source, _ in self._scope.sources if source.window is not None}
        window = next((c for c in columns(value) if c.alias in windowed and c.name in WINDOW_COLUMNS), None)
        if window is not None and what != "GROUP BY":
            reason = f"'{window.name}' can't be aggregated: it is the same for all tuples of a group"
            context.error(reason, node, f"write {window.name} without an aggregate")
            return None
        if isinstance(value, Column):
            return value
        if window is not None:
            hint = f"write GROUP BY {window.name}, and the expression in SELECT"
            context.error("GROUP BY takes no expressions over the columns of windows", node, hint)
            return None
        read = aliases(value) or frozenset(source.alias for source, _ in self._scope.sources[:1])
        if len(read) > 1:
            named = " and ".join(sorted(read))
            hint = "write an expression over the columns of one stream"
            context.error(f"{what} has columns of {named}", node, hint)
            return None
        streams = {source.alias: source.stream for source, _ in self._scope.sources}
        if not read or not read <= streams.keys():
            return None  # a mistake in FROM, which is reported
        (alias,) = read
        catalog, name = context.catalog, streams[alias]
        stream = catalog.streams.get(name) or catalog.tables[name]
        taken: dict[str, Expr | None] = {one.name: None for one in stream.columns}
        taken |= {one.name: one.computed for other, one in self.computed if streams[other] == name}
        made = computed_column(value, taken)
        if (alias, made) not in self.computed:
            self.computed.append((alias, made))
        return Column(alias, made.name, made.type)

    def _count(self, context: Context, node: exp.Expr, only: Expr | None) -> Expr | None:
        """COUNT(*), of the tuples that meet the condition `only`."""
        if only is None:
            return self._value(Aggregate("count", None, False, Type.BIGINT))
        met = Call("case", (only, Literal(True, Type.BOOLEAN), Literal(None, Type.BOOLEAN)), Type.BOOLEAN)
        column = self.column(context, node, met, "the FILTER of count(*)")
        return None if column is None else self._value(Aggregate("count", column, False, Type.BIGINT))

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
    the streams come first.
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
    found = []
    for item in clause.expressions:
        plain = item.unnest()
        bare = isinstance(plain, exp.Column) and not plain.args.get("table")
        name = name_of(plain.this).text if bare and isinstance(plain.this, exp.Identifier) else ""
        known = isinstance(resolver.scope, FromScope) and resolver.scope.has(name)
        meant = item if known or name not in named else named[name]
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
