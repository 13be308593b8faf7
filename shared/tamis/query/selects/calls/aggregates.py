"""Calls of aggregates, over streams without event time and over windows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.definitions import WINDOW_COLUMNS, ColumnDef
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, aliases, columns
from tamis.expressions.sql_text import to_sql
from tamis.query.computed_columns import KnownValues, computed_column
from tamis.query.context import Context
from tamis.query.functions import (
    AGGREGATE_FUNCTIONS,
    APPROXIMATE_PERCENTILES,
    PERCENTILES,
    VALUES_AT_EXTREMES,
)
from tamis.query.selects.calls import approximate
from tamis.query.selects.scope import FromScope
from tamis.query.unsupported import AGGREGATES_USAGE

_FRACTION = "write a number from 0 to 1 with at most 9 decimals, such as 0.95"
_DECIMALS = 9  # so that places among the values of a group are computed in 64 bits
_WITHIN = "write {}(0.95) WITHIN GROUP (ORDER BY value)"
_ORDERED = "write {}(value ORDER BY time)"
_SPREADS = ("stddev_pop", "stddev_samp", "var_pop", "var_samp")
_NUMERIC = ("sum", "avg", "median", *_SPREADS)  # the aggregates that need numbers
# Other names of aggregates. FALSE comes before TRUE.
_SAME = {"stddev": "stddev_samp", "variance": "var_samp", "bool_and": "min", "bool_or": "max"}

# The least error of an approximate percentile that a query can ask for.
_LEAST_ERROR = 0.008

Resolve = Callable[[exp.Expr], Expr | None]


class Aggregates:
    """The aggregates of one query, each once, in the order of their first calls, and the columns that the
    query computes for them and for GROUP BY.
    """

    def __init__(self, scope: FromScope) -> None:
        self.scope = scope
        self.found: list[Aggregate] = []
        self.computed: list[tuple[str, ColumnDef]] = []
        self.first_call: exp.Expr | None = None  # also if it has a mistake

    def call(
        self, context: Context, node: exp.Expr, name: str, argument: Resolve, only: Expr | None
    ) -> Expr | None:
        """The expression for the value of an aggregate, which is added to those of the query; None if a
        mistake was reported. `node` is the call, or its WITHIN GROUP; `argument` resolves its argument over
        single tuples; `only` is the condition of its FILTER.
        """
        self.first_call = self.first_call or node
        for inner in node.find_all(exp.Anonymous):
            known = str(inner.this).lower()
            own = known in AGGREGATE_FUNCTIONS and known not in context.catalog.functions
            if own and inner is not node and inner is not node.this:
                context.error("nested aggregates are not supported", inner, "aggregate a column instead")
                return None
        if name in APPROXIMATE_PERCENTILES:
            return self._approximate(context, node, name, argument, only)
        if name in PERCENTILES:
            return self._percentile(context, node, name, argument, only)
        if isinstance(node, exp.WithinGroup):
            hint = f"leave it out, or {_WITHIN.format('percentile_cont')}"
            context.error(f"{name} takes no WITHIN GROUP", node, hint)
            return None
        if name in VALUES_AT_EXTREMES:
            return self._value_at_extreme(context, node, name, argument, only)
        nodes = list(node.expressions)
        distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
        if distinct:
            nodes = list(nodes[0].expressions)
        if len(nodes) != 1:
            context.error(f"{name} takes one value, not {len(nodes)}", node, AGGREGATES_USAGE)
            return None
        (argument_node,) = nodes
        if isinstance(argument_node, exp.Order):
            hint = "leave ORDER BY out: the order of tuples doesn't matter"
            context.error(f"{name} takes no ORDER BY", argument_node, hint)
            return None
        if isinstance(argument_node, exp.Star) and name == "count" and not distinct:
            return self._count(context, node, only)
        if isinstance(argument_node, exp.Star):
            what = f"{name}(DISTINCT *)" if distinct else f"{name}(*)"
            context.error(f"{what} needs a column", argument_node, AGGREGATES_USAGE)
            return None
        value = argument(argument_node)
        if value is None:
            return None
        function = _SAME.get(name, name)
        if distinct and function in _NUMERIC:
            context.error(f"{name}(DISTINCT …) is not supported", node, "leave DISTINCT out")
            return None
        if function in _NUMERIC and not value.type.numeric:
            context.error(f"{name} needs numbers, not {value.type}", argument_node, AGGREGATES_USAGE)
            return None
        if name in ("bool_and", "bool_or") and value.type is not Type.BOOLEAN:
            hint = f"write {name}(condition), such as {name}(value > 5)"
            context.error(f"{name} needs a condition, not {value.type}", argument_node, hint)
            return None
        if name == "count" and isinstance(value, Literal) and value.value is not None and not distinct:
            return self._count(context, node, only)
        column = self._filtered(context, node, value, only, name)
        if column is None:
            return None
        # The least and the greatest value are the same with and without DISTINCT.
        counts_values = name == "count" and distinct
        return self._value(Aggregate(function, column, counts_values, _type(function, column.type)))

    def _filtered(
        self, context: Context, node: exp.Expr, value: Expr, only: Expr | None, name: str
    ) -> Column | None:
        """The column for the argument of an aggregate, NULL where the condition `only` isn't met."""
        extreme = _SAME.get(name, name) in ("min", "max")
        return self.column(context, node, _only(value, only), f"the argument of {name}", several=extreme)

    def _approximate(
        self, context: Context, node: exp.Expr, name: str, argument: Resolve, only: Expr | None
    ) -> Expr | None:
        """APPROX_QUANTILE: the percentile of numbers that stand for values (`approximate`)."""
        usage = f"write {name}(value, 0.95)"
        if isinstance(node, exp.WithinGroup):
            # As in RisingWave: the fraction, and the error that is allowed.
            given, order = list(node.this.expressions), node.expression.expressions
            if len(order) != 1 or len(given) not in (1, 2) or order[0].args.get("desc"):
                context.error(f"{name} takes a fraction, an error, and one value after ORDER BY", node, usage)
                return None
            if len(given) == 2 and not _is_coarse(given[1]):
                hint = f"write at least {_LEAST_ERROR}, or percentile_disc for the exact value"
                context.error(f"the error of {name} is up to {100 * approximate.ERROR:.2g} %", given[1], hint)
                return None
            nodes = [order[0].this, given[0]]
        else:
            nodes = list(node.expressions)
        if len(nodes) != 2:
            context.error(f"{name} takes a value and a fraction", node, usage)
            return None
        fraction = _fraction(nodes[1])
        if fraction is None:
            context.error(f"the fraction of {name} must be a number from 0 to 1", nodes[1], _FRACTION)
        value = argument(nodes[0])
        if value is None or fraction is None:
            return None
        if not value.type.numeric:
            context.error(f"{name} needs numbers, not {value.type}", nodes[0], usage)
            return None
        bins = KnownValues(f"bins of {to_sql(_only(value, only), qualify=False)}", approximate.limits)
        numbers = _only(approximate.code(value), only)
        column = self.column(context, node, numbers, f"the argument of {name}", bins)
        if column is None:
            return None
        found = Aggregate("percentile_disc", column, False, column.type, fraction=fraction)
        return approximate.of_code(self._value(found))

    def _percentile(
        self, context: Context, node: exp.Expr, name: str, argument: Resolve, only: Expr | None
    ) -> Expr | None:
        """PERCENTILE_CONT and PERCENTILE_DISC."""
        usage = _WITHIN.format(name)
        if not isinstance(node, exp.WithinGroup):
            context.error(f"{name} needs WITHIN GROUP", node, usage)
            return None
        given, order = node.this.expressions, node.expression.expressions
        fraction = _fraction(given[0]) if len(given) == 1 else None
        if fraction is None:
            what = "must be a number from 0 to 1" if given else "is missing"
            context.error(f"the fraction of {name} {what}", given[0] if given else node, _FRACTION)
        if len(order) != 1:
            context.error(f"{name} is ordered by one value, not {len(order)}", node, usage)
            return None
        if order[0].args.get("desc"):
            hint = "leave DESC out, and write 1 minus the fraction"
            context.error(f"{name} takes no DESC", order[0], hint)
            return None
        value = argument(order[0].this)
        if value is None or fraction is None:
            return None
        if not value.type.numeric and (name == "percentile_cont" or value.type is not Type.TIMESTAMP):
            context.error(f"{name} needs numbers, not {value.type}", order[0], usage)
            return None
        column = self._filtered(context, node, value, only, name)
        if column is None:
            return None
        type_ = Type.DOUBLE if name == "percentile_cont" else column.type
        return self._value(Aggregate(name, column, False, type_, fraction=fraction))

    def _value_at_extreme(
        self, context: Context, node: exp.Expr, name: str, argument: Resolve, only: Expr | None
    ) -> Expr | None:
        """FIRST, LAST, ARG_MIN and ARG_MAX: the value of the tuple where another value is extreme."""
        usage = f"write {name}(value, time)" if name.startswith("arg_") else _ORDERED.format(name)
        nodes, greatest = list(node.expressions), name in ("last", "arg_max")
        if not name.startswith("arg_") and len(nodes) == 1 and isinstance(nodes[0], exp.Order):
            order = nodes[0].expressions
            nodes = [nodes[0].this, *(one.this for one in order)]
            greatest ^= bool(order[0].args.get("desc"))
        timed = len(nodes) == 1 and not name.startswith("arg_")  # the order is that of event time
        if len(nodes) != 2 - timed or any(
            one is None or isinstance(one, exp.Star | exp.Order | exp.Distinct) for one in nodes
        ):
            what = (
                "takes a value and a time" if name.startswith("arg_") else "takes one value and one ORDER BY"
            )
            context.error(f"{name} {what}", node, usage)
            return None
        value, *orders = (argument(one) for one in nodes)
        if value is None or None in orders:
            return None
        if not any(source.windowed for source, _ in self.scope.sources):
            # Otherwise FROM has a mistake, which may be in a window.
            if all(item.sources for item in self.scope.items):
                hint = "read the stream in windows, such as FROM TUMBLE(stream, time, INTERVAL '1' MINUTE)"
                context.error(f"{name} is supported only over windows", node, hint)
            return None
        column = self._filtered(context, node, value, only, name)
        if column is None:
            return None
        by = self._event_time(context, column.alias) if timed else orders[0]
        ordered = None if by is None else self.column(context, node, by, f"the order of {name}")
        if ordered is None:
            return None
        function = "arg_max" if greatest else "arg_min"
        return self._value(Aggregate(function, column, False, column.type, order=ordered))

    def _event_time(self, context: Context, alias: str) -> Column | None:
        """The event time of a source, or of the stream that is joined with it if it is a table; None if a
        mistake in FROM was reported.
        """
        windowed = [source for source, _ in self.scope.sources if source.windowed]
        source = next((one for one in windowed if one.alias == alias), windowed[0])
        stream = context.stream(source)
        if stream is None or stream.time is None:
            return None
        return Column(source.alias, stream.time, Type.TIMESTAMP)

    def column(
        self,
        context: Context,
        node: exp.Expr,
        value: Expr,
        what: str,
        known: KnownValues | None = None,
        *,
        several: bool = False,
    ) -> Column | None:
        """The column for an expression over single tuples, which messages call `what`: one of a stream, or
        one that the query computes. None if a mistake was reported. `known`: what is known of the
        expression's values. `several`: without windows it may have columns of several streams.
        """
        windowed = {source.alias for source, _ in self.scope.sources if source.windowed}
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
        read = aliases(value) or frozenset(source.alias for source, _ in self.scope.sources[:1])
        if len(read) > 1 and (windowed or several):
            # The combinations of a window are computed together, so a column of them is one of any of them.
            # Without windows the same holds of the combinations whose least or greatest value is wanted.
            read = frozenset(sorted(windowed or read)[:1])
        if len(read) > 1:
            named = " and ".join(sorted(read))
            hint = "write an expression over the columns of one stream"
            context.error(f"{what} has columns of {named}", node, hint)
            return None
        streams = {source.alias: source.stream for source, _ in self.scope.sources}
        if not read or not read <= streams.keys():
            return None  # a mistake in FROM, which is reported
        (alias,) = read
        name = streams[alias]
        source = next(source for source, _ in self.scope.sources if source.alias == alias)
        stream = context.stream(source) or context.catalog.tables[name]
        taken: dict[str, Expr | None] = {one.name: None for one in stream.columns}
        taken |= {one.name: one.computed for other, one in self.computed if streams[other] == name}
        made = computed_column(value, taken, known)
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


def _only(value: Expr, only: Expr | None) -> Expr:
    """A value, NULL where a condition isn't met."""
    return value if only is None else Call("case", (only, value, Literal(None, value.type)), value.type)


def _type(name: str, of: Type) -> Type:
    if name == "count":
        return Type.BIGINT
    if name in ("avg", "median", *_SPREADS):
        return Type.DOUBLE
    return Type.BIGINT if name == "sum" and of is Type.INT else of


def _fraction(node: exp.Expr) -> Fraction | None:
    """The exact value of a literal from 0 to 1; None for any other expression."""
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    try:
        found = Fraction(str(node.this))
    except ValueError:
        return None
    fits = 10**_DECIMALS % found.denominator == 0
    return found if fits and 0 <= found <= 1 else None


def _is_coarse(node: exp.Expr) -> bool:
    """True for a number from the least error on."""
    try:
        return isinstance(node, exp.Literal) and Fraction(str(node.this)) >= Fraction(str(_LEAST_ERROR))
    except ValueError:
        return False
