"""Calls of window functions, function(…) OVER (PARTITION BY key ORDER BY time), in a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import VALUES, Frame, Function, WindowFunction
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, aliases, columns, substitute
from tamis.query.context import Context
from tamis.query.functions import AGGREGATE_FUNCTIONS, SIMILARITY_FUNCTIONS
from tamis.query.scalars import operators
from tamis.query.scalars.calls import called_name
from tamis.query.scalars.operators import checked
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.selects.calls.frames import filter_hint, frame_of, lag_rows, over_hint
from tamis.query.selects.calls.raw_streams import raw_stream
from tamis.query.selects.scope import FromScope
from tamis.query.syntax.cursor import name_of
from tamis.query.unsupported import unsupported_window_function
from tamis.wording.names import suggest

_SPREADS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
_FUNCTIONS: dict[str, Function] = {
    "lag": "lag",
    "first_value": "first_value",
    "last_value": "last_value",
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
    "bool_and": "min",  # FALSE comes before TRUE
    "bool_or": "max",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "stddev": "stddev_samp",
}
_OVER_GROUPS = (
    "the rows of GROUP BY is not supported",
    "leave it out; over a stream, window functions see single readings",
)
_TRUE = Literal(True, Type.BOOLEAN)


@dataclass(frozen=True)
class _Over:
    """The parts of OVER, with those of the named window that it begins with."""

    partition: tuple[exp.Expr, ...]
    order: exp.Expr | None
    spec: exp.Expr | None


@dataclass(frozen=True)
class _Series:
    """The source whose readings a window function sees."""

    alias: str
    stream: StreamDef


@dataclass(frozen=True)
class _Call:
    """A call: its syntax tree, the function's name in SQL and its own name, and the condition of FILTER."""

    node: exp.Expr
    name: str
    function: Function
    only: exp.Expr | None
    over: _Over
    series: _Series

    @property
    def arguments(self) -> list[exp.Expr]:
        """The arguments in parentheses."""
        return list(self.node.expressions)


@dataclass
class WindowCalls:
    """The window functions of one SELECT. `tree` is its syntax tree, and `add` adds a watch to the source of
    an alias. `clause` is the one that is being resolved.
    """

    scope: FromScope
    tree: exp.Expr
    add: Callable[[str, WindowFunction], None]
    clause: str = "SELECT"
    clauses: dict[str, exp.Expr] = field(default_factory=dict)  # clauses with window functions, and the first
    narrowing: list[Expr] = field(default_factory=list)  # the conditions of ON and WHERE
    keys: list[frozenset[Column]] = field(default_factory=list)  # PARTITION BY of each call

    def call(self, context: Context, node: exp.Expr) -> Expr | None:
        """Add the watch of a window function, function(…) OVER (…), to its source, and return the column for
        its value; None if a mistake was reported.
        """
        self.clauses.setdefault(self.clause, node)
        function, only = node.this, None
        if isinstance(function, exp.Filter):
            function, only = function.this, function.expression.this
        inner = function.this if isinstance(function, exp.IgnoreNulls | exp.RespectNulls) else function
        name = called_name(inner) if isinstance(inner, exp.Anonymous) else ""
        known = _FUNCTIONS.get(name)
        if known is None or name in context.catalog.functions:
            self._refuse_function(context, node, name)
            return None
        if _ignores_nulls(node):
            hint = "leave it out: a reading with NULL counts as a reading; or declare the column NOT NULL"
            context.error(f"{name} takes no IGNORE NULLS and RESPECT NULLS", node, hint)
            return None
        if _aggregates(context, function, inner):
            context.error_once(f"{name} OVER {_OVER_GROUPS[0]}", node, _OVER_GROUPS[1])
            return None
        over = self._over(context, node)
        if over is None:
            return None
        series = self._series(context, node, over, name)
        if series is None:
            return None
        found = self._function(context, _Call(function, name, known, only, over, series))
        if found is None:
            return None
        self.add(series.alias, found)
        return replace(found.column, alias=series.alias)

    def see_all_rows(self, context: Context, scope: FromScope) -> bool:
        """Tell if the window functions see the same readings in SQL as here; if not, that is reported.

        In SQL, window functions see the rows that ON and WHERE let pass, while a window function in WHERE
        itself, which only Tamis allows, sees all readings of its key. So a query with conditions, or with
        several streams, is refused unless there is such a call. Conditions on the keys make no difference.
        """
        if not self.clauses or {"ON", "WHERE"} & self.clauses.keys():
            return True
        (node, *_) = self.clauses.values()
        hint = (
            "write it in a subquery, such as FROM (SELECT *, lag(x) OVER (…) AS before FROM stream) AS s,"
            " or in WHERE, where it sees all readings"
        )
        if len(scope.sources) > 1:
            what = "in SQL, this window function sees the rows of the join, and here all readings of its key"
        elif not all(key.issuperset(columns(one)) for one in self.narrowing for key in self.keys):
            what = (
                "in SQL, this window function sees the rows that WHERE lets pass, and here all readings of"
                " its key"
            )
        else:
            return True
        context.error(what, node, hint)
        return False

    # ---- OVER

    def _over(self, context: Context, node: exp.Expr) -> _Over | None:
        """The parts of OVER; None if a mistake was reported."""
        partition = tuple(node.args.get("partition_by") or ())
        order, spec = node.args.get("order"), node.args.get("spec")
        alias = node.args.get("alias")
        if alias is None:
            return _Over(partition, order, spec)
        named = name_of(alias)
        windows = {name_of(one.this).text: one for one in self.tree.args.get("windows") or ()}
        if named.text not in windows:
            hint = suggest(named.text, list(windows), "write WINDOW name AS (PARTITION BY … ORDER BY …)")
            context.error_once(f"there is no window '{named.text}'", named.offset, hint)
            return None
        definition = windows[named.text]
        if definition.args.get("alias") is not None:
            hint = "write PARTITION BY and ORDER BY in each window of WINDOW"
            context.error_once("a window of WINDOW can't begin with another one", definition, hint)
            return None
        given = tuple(definition.args.get("partition_by") or ())
        if partition or (order is not None and definition.args.get("order") is not None):
            context.error(
                f"the window '{named.text}' already has this clause", node, f"write OVER ({named.text})"
            )
            return None
        return _Over(given, order or definition.args.get("order"), spec or definition.args.get("spec"))

    def _series(self, context: Context, node: exp.Expr, over: _Over, name: str) -> _Series | None:
        """The source of the readings, if OVER has its KEY columns and its event time."""
        usage = over_hint(context, self.scope, over.spec, name)
        resolver = ExpressionResolver(context, self.scope)
        order = over.order.expressions if over.order is not None else []
        if len(order) != 1:
            what = "needs an ORDER BY" if not order else "is ordered by the event time alone"
            context.error(f"{name} OVER {what}", node, usage)
            return None
        time = resolver.resolve(order[0].this)
        if isinstance(time, Column) and time.name in WINDOW_COLUMNS and self.tree.args.get("group"):
            context.error_once(f"{name} OVER {_OVER_GROUPS[0]}", node, _OVER_GROUPS[1])
            return None
        if any(source.aggregated is not None for source, _ in self.scope.sources):
            rows = self.scope.items[0].stream
            hint = (
                f"join the rows with earlier ones: FROM {rows} a JOIN {rows} b ON a.key = b.key"
                " AND b.window_end = a.window_end - INTERVAL '1' MINUTE"
            )
            context.error(f"{name} OVER rows of aggregates is not supported yet", node, hint)
            return None
        partition = [resolver.resolve(one) for one in over.partition]
        if time is None or None in partition:
            return None
        if not isinstance(time, Column):
            context.error(f"{name} OVER is ordered by an expression", order[0], usage)
            return None
        reads = f"{name} sees earlier readings"
        stream = raw_stream(context, self.scope, node, time.alias, reads, through=True)
        if stream is None:
            return None
        usage = over_hint(context, self.scope, over.spec, name, time.alias)
        if time.name != stream.time:
            what = f"{name} OVER must be ordered by the event time {stream.time}, not by {time.name}"
            context.error(what, order[0], usage)
            return None
        if order[0].args.get("desc"):
            what = f"{name} OVER is ordered by DESC: readings after this one aren't known yet"
            context.error(what, order[0], "leave DESC out; lag gives the reading before")
            return None
        wanted = frozenset(Column(time.alias, one, _type(stream, one)) for one in stream.key)
        if frozenset(one for one in partition if one is not None) != wanted:
            key = ", ".join(stream.key)
            what = f"{name} OVER must be partitioned by the KEY columns of '{stream.name}': {key}"
            if not stream.key:
                what = f"'{stream.name}' has no KEY columns by which {name} OVER can be partitioned"
                usage += f", or declare the column as KEY in CREATE STREAM {stream.name}"
            context.error(what, over.partition[0] if over.partition else node, usage)
            return None
        self.keys.append(wanted)
        return _Series(time.alias, stream)

    # ---- the function

    def _function(self, context: Context, call: _Call) -> WindowFunction | None:
        """The function over its frame; None if a mistake was reported."""
        arguments, history = call.arguments, call.series.stream.history
        if call.name == "lag":
            rows = self._lag(context, call)
            frame = None if rows is None else Frame(rows, rows, history)
        elif len(arguments) != 1:
            what = f"{call.name} takes one value, not {len(arguments)}"
            context.error(what, call.node, f"write {call.name}(x)")
            return None
        else:
            frame = frame_of(context, call.node, call.over.spec, call.name, history)
        value = self._value(context, call) if arguments else None
        default = self._default(context, call, value)
        if frame is None or value is None or (len(arguments) == 3 and default is None):
            return None
        return WindowFunction(call.function, value, frame, _result(call.function, value.type), default)

    def _lag(self, context: Context, call: _Call) -> int | None:
        """The number of rows of LAG; None if a mistake was reported."""
        count = len(call.arguments)
        if not 1 <= count <= 3:
            what = f"lag takes 1 to 3 arguments, not {count}"
            context.error(what, call.node, "write lag(x), lag(x, rows) or lag(x, rows, default)")
            return None
        if call.over.spec is not None:
            hint = "leave ROWS or RANGE out: lag(x, 3) is the value three readings before"
            context.error("lag takes no frame", call.over.spec, hint)
            return None
        return 1 if count == 1 else lag_rows(context, call.arguments[1])

    def _value(self, context: Context, call: _Call) -> Expr | None:
        """The argument, over Column("", name) of the stream; None if a mistake was reported."""
        node, name = call.arguments[0], call.name
        if isinstance(node, exp.Distinct):
            context.error(f"{name}(DISTINCT …) OVER is not supported", node, "leave DISTINCT out")
            return None
        star = isinstance(node, exp.Star)
        if star and name != "count":
            context.error(f"{name}(*) needs a column", node, f"write {name}(x)")
            return None
        value = _TRUE if star else self._over_stream(context, call, node)
        if value is None:
            return None
        wanted = _wanted(name, value.type)
        if wanted is not None:
            context.error(f"{name} OVER needs {wanted}, not {value.type}", node, _type_hint(name, value.type))
            return None
        return value if call.only is None else self._filtered(context, call, value, call.only)

    def _filtered(self, context: Context, call: _Call, value: Expr, only: exp.Expr) -> Expr | None:
        """The argument where the condition of FILTER is met, and NULL elsewhere."""
        if call.name in VALUES:
            hint = filter_hint(context, self.scope, call.node, call.series.stream, only)
            context.error(f"{call.name} takes no FILTER", only, hint)
            return None
        condition = self._over_stream(context, call, only)
        if condition is not None:
            condition = checked(context, only, operators.condition, condition, "FILTER")
        if condition is None:
            return None
        return Call("case", (condition, value, Literal(None, value.type)), value.type)

    def _default(self, context: Context, call: _Call, value: Expr | None) -> Expr | None:
        """The third argument of LAG."""
        if len(call.arguments) != 3:
            return None
        node = call.arguments[2]
        found = self._over_stream(context, call, node)
        if found is None or value is None:
            return None
        return checked(context, node, operators.assigned, found, value.type, "the default of lag")

    def _over_stream(self, context: Context, call: _Call, node: exp.Expr) -> Expr | None:
        """An expression over the columns of the raw stream; None if a mistake was reported."""
        name, series = call.name, call.series
        inner = next(_series_calls(context, node), None)
        if inner is not None:
            context.error(f"the value of {name} can't contain {inner}", node, "use a column of the stream")
            return None
        expr = ExpressionResolver(context, self.scope).resolve(node)
        if expr is None:
            return None
        what, hint = None, "use a column of the stream"
        if aliases(expr) - {series.alias}:
            what = f"the value of {name} has columns of another stream than its ORDER BY"
        elif any(one.name in WINDOW_COLUMNS for one in columns(expr)):
            what = f"the value of {name} is a time of windows"
        elif any(series.stream.column(one.name) is None for one in columns(expr)):
            what = f"the value of {name} is itself computed from earlier readings"
        if what is not None:
            context.error(what, node, hint)
            return None
        return substitute(expr, lambda column: Column("", column.name, column.type))

    def _refuse_function(self, context: Context, node: exp.Expr, name: str) -> None:
        by = node.args.get("partition_by") or ()
        in_windows = any(isinstance(one, exp.Column) and one.name.lower() in WINDOW_COLUMNS for one in by)
        what, hint = unsupported_window_function(name, sorted(_FUNCTIONS), in_windows)
        context.error_once(what, node, hint, f"{what}: {context.source(node)}")


def _series_calls(context: Context, node: exp.Expr) -> Iterator[str]:
    for call in node.find_all(exp.Window, exp.Anonymous):
        if isinstance(call, exp.Window):
            yield "OVER"
        elif called_name(call) in SIMILARITY_FUNCTIONS and called_name(call) not in context.catalog.functions:
            yield f"{called_name(call)}(…)"


def _aggregates(context: Context, function: exp.Expr, own: exp.Expr) -> bool:
    """Tell if the values of a window function have calls of aggregates. `own` is the call before OVER."""
    return any(
        called_name(one) in AGGREGATE_FUNCTIONS and called_name(one) not in context.catalog.functions
        for one in function.find_all(exp.Anonymous)
        if one is not own and not isinstance(one.parent, exp.Window)
    )


def _ignores_nulls(node: exp.Expr) -> bool:
    return node.this.find(exp.IgnoreNulls, exp.RespectNulls) is not None


def _type(stream: StreamDef, name: str) -> Type:
    column = stream.column(name)
    assert column is not None
    return column.type


def _wanted(name: str, type_: Type) -> str | None:
    """The kind of values that a function needs; None if it takes values of this type."""
    if name in VALUES:
        return "values of columns" if type_ is Type.INTERVAL else None
    if name.startswith("bool_"):
        return None if type_ is Type.BOOLEAN else "conditions"
    if name in ("min", "max") and type_ is Type.TIMESTAMP:
        return None
    return None if name == "count" or type_.numeric else "numbers"


def _type_hint(name: str, type_: Type) -> str:
    if type_ is Type.INTERVAL:
        return (
            f"write {name} of seconds: {name}(extract(epoch FROM a.ts - b.ts)), or subtract lag(ts) from ts"
        )
    if name.startswith("bool_"):
        return f"write {name}(x > 5)"
    return f"write {name} of a number, such as a column of type DOUBLE"


def _result(function: Function, of: Type) -> Type:
    if function == "count":
        return Type.BIGINT
    if function == "avg" or function in _SPREADS:
        return Type.DOUBLE
    return Type.BIGINT if function == "sum" and of is Type.INT else of
