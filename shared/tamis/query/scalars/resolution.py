"""Resolution of expressions: from sqlglot's syntax trees to typed expressions.

Names are resolved, functions inlined, types checked, and BETWEEN, IN and the like rewritten. A method returns
None after a mistake, which is reported or follows from a reported one. The expressions around it are still
resolved, so that all mistakes are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from tamis.expressions.nodes import Call, Expr, Type
from tamis.query.context import Context
from tamis.query.functions import AGGREGATE_FUNCTIONS, SIMILARITY_FUNCTIONS
from tamis.query.scalars import functions, operators
from tamis.query.scalars.calls import called_name, resolve_call
from tamis.query.scalars.casts import cast, named_type
from tamis.query.scalars.literals import (
    resolve_boolean,
    resolve_interval,
    resolve_literal,
    resolve_null,
    time_text,
)
from tamis.query.scalars.operators import checked
from tamis.query.scalars.scopes import AggregateCalls, Scope, SeriesCalls
from tamis.query.syntax.cursor import name_of
from tamis.query.syntax.dialect import NoReading
from tamis.query.syntax.limits import DEEPEST, LARGEST, oversize, too_deep
from tamis.query.unsupported import unsupported_expression

_WINDOW_FUNCTION = "write lag(x) OVER (PARTITION BY key ORDER BY time) in the WHERE or SELECT of a query"

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "mod",
    exp.Pow: "power",
}
_BITS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "xor",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.BitwiseNot: "~",
}


def operands(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of ANDs or of ORs, left to right, also inside parentheses. Not recursive,
    since a chain may be long.
    """
    parts, stack = [], [node]
    while stack:
        top = stack.pop()
        inner = top
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, kind):
            stack += [inner.expression, inner.this]
        else:
            parts.append(top)
    return parts


class ExpressionResolver:
    """Resolves expressions in one scope."""

    def __init__(
        self,
        context: Context,
        scope: Scope,
        aggregates: AggregateCalls | None = None,
        largest: int = LARGEST,
        series: SeriesCalls | None = None,
    ) -> None:
        """`aggregates` is given where calls of aggregates are allowed, `series` where calls of similar
        and window functions are; `largest` is the most parts of an expression.
        """
        self.context = context
        self.scope = scope
        self.aggregates = aggregates
        self.largest = largest
        self.series = series

    def resolve(self, node: exp.Expr) -> Expr | None:
        """The typed expression of a syntax tree; None if a mistake was reported."""
        if too_deep(node):
            self.context.error(
                f"the expression is nested deeper than {DEEPEST} levels",
                node,
                "move a part into CREATE FUNCTION or CREATE STREAM",
            )
            return None
        result = self._resolve(node)
        if result is not None and oversize(result, self.largest):
            self.context.error(
                f"with its functions inlined, this expression has more than {self.largest} parts"
                f" or {DEEPEST} levels",
                node,
                "split it, or call fewer functions inside each other",
            )
            return None
        return result

    def without_aggregates(self, node: exp.Expr) -> Expr | None:
        """The typed expression of a syntax tree over single tuples, without aggregates: the argument of an
        aggregate, or an item of GROUP BY. None if a mistake was reported.
        """
        inner = ExpressionResolver(self.context, self.scope, series=self.series)
        return inner.resolve(node)

    def condition(self, node: exp.Expr, what: str) -> Expr | None:
        """The condition of a syntax tree, which messages call `what`; None if a mistake was reported."""
        expr = self.resolve(node)
        return None if expr is None else checked(self.context, node, operators.condition, expr, what)

    def _all(self, nodes: Sequence[exp.Expr]) -> list[Expr] | None:
        """The expressions of several syntax trees; None if a mistake was reported in one of them."""
        exprs = [self._resolve(node) for node in nodes]
        known = [expr for expr in exprs if expr is not None]
        return known if len(known) == len(nodes) else None

    def _resolve(self, node: exp.Expr) -> Expr | None:
        kind = type(node)
        if kind in _COMPARISONS or kind in _ARITHMETIC:
            return self._binary(node)
        method = _METHODS.get(kind)
        if method is not None:
            return method(self, node)
        self._refuse(node)
        return None

    def _refuse(self, node: exp.Expr) -> None:
        what, hint = unsupported_expression(node) or (
            f"'{self.context.source(node)[:60]}' is not supported",
            "use comparisons, AND, OR, NOT, arithmetic and CASE",
        )
        self.context.error_once(what, node, hint, f"{what}: {self.context.source(node)}")

    def _no_reading(self, node: exp.Expr) -> None:
        hint = "join it to the other conditions by AND; in place of OR, write an alert for each side"
        self.context.error_once("NO READING is supported only as a condition of its own", node, hint)

    def _binary(self, node: exp.Expr) -> Expr | None:
        if type(node) in _COMPARISONS and {type(node.this), type(node.expression)} & _COMPARISONS.keys():
            hint = "write x BETWEEN a AND b, join comparisons by AND, or put them in parentheses"
            if node.find(*_BITS):
                hint = "join conditions by AND or OR; & and | are operators of bits"
            self.context.error("comparisons can't be chained", node, hint)
            return None
        args = self._all([node.this, node.expression])
        if args is None:
            return None
        left, right = args
        kind = type(node)
        if kind in _COMPARISONS:
            return checked(self.context, node, operators.compare, _COMPARISONS[kind], left, right)
        return checked(self.context, node, operators.arithmetic, _ARITHMETIC[kind], left, right)

    def _bits(self, node: exp.Expr) -> Expr | None:
        args = self._all([one for one in (node.this, node.args.get("expression")) if one is not None])
        return (
            None if args is None else checked(self.context, node, functions.of_bits, _BITS[type(node)], args)
        )

    def _paren(self, node: exp.Expr) -> Expr | None:
        return self._resolve(node.this)

    def _connector(self, node: exp.Expr) -> Expr | None:
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        nodes = operands(node, kind)
        conditions: list[Expr] = []
        for part in nodes:
            expr = self._resolve(part)
            if expr is not None:
                expr = checked(
                    self.context, part, operators.condition, expr, operators.operand(kind.__name__)
                )
            if expr is not None:
                conditions.append(expr)
        if len(conditions) < len(nodes):
            return None
        return operators.logic(kind.__name__.lower(), conditions)

    def _not(self, node: exp.Expr) -> Expr | None:
        inner = node.this
        if isinstance(inner, exp.Between | exp.In):
            return (
                self._between(inner, negated=True)
                if isinstance(inner, exp.Between)
                else self._in(inner, True)
            )
        arg = self._resolve(inner)
        return None if arg is None else checked(self.context, node, operators.logic, "not", [arg])

    def _between(self, node: exp.Expr, negated: bool = False) -> Expr | None:
        args = self._all([node.this, node.args["low"], node.args["high"]])
        if args is None:
            return None
        value, low, high = args

        def build(low: Expr, high: Expr) -> Expr:
            lower = operators.compare("<" if negated else ">=", value, low)
            upper = operators.compare(">" if negated else "<=", value, high)
            return operators.logic("or" if negated else "and", [lower, upper])

        symmetric = bool(node.args.get("symmetric"))
        if symmetric and operators.in_order(high, low):
            (low, high), symmetric = (high, low), False
        between = checked(self.context, node, build, low, high)
        if not symmetric or between is None:
            return between
        turned = checked(self.context, node, build, high, low)
        return None if turned is None else operators.logic("and" if negated else "or", [between, turned])

    def _in(self, node: exp.Expr, negated: bool = False) -> Expr | None:
        values = node.args.get("expressions") or []
        if not values or node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            refusal = unsupported_expression(node) if node.args.get("query") else None
            what, hint = refusal or ("IN needs a list of values", "write IN (value, value, …)")
            self.context.error(what, node, hint)
            return None
        args = self._all([node.this, *values])
        if args is None:
            return None

        def build() -> Expr:
            tests = [operators.compare("!=" if negated else "=", args[0], value) for value in args[1:]]
            return tests[0] if len(tests) == 1 else operators.logic("and" if negated else "or", tests)

        return checked(self.context, node, build)

    def _is(self, node: exp.Expr) -> Expr | None:
        if not isinstance(node.expression, exp.Null | exp.Boolean):
            self.context.error(
                "only NULL, TRUE, FALSE and DISTINCT FROM can follow IS",
                node,
                "write the condition itself, or NOT and the condition",
            )
            return None
        arg = self._resolve(node.this)
        if arg is None:
            return None
        if isinstance(node.expression, exp.Boolean):
            return checked(self.context, node, operators.is_truth, arg, bool(node.expression.this))
        test = Call("is_null", (arg,), Type.BOOLEAN)
        return Call("not", (test,), Type.BOOLEAN) if node.args.get("negate") else test

    def _like(self, node: exp.Expr) -> Expr | None:
        inner, escape = node, ""
        if isinstance(node, exp.Escape):
            inner, escape = node.this, str(node.expression.name)
        if not isinstance(inner, exp.Like | exp.ILike):
            self.context.error(
                "ESCAPE is allowed only after LIKE and ILIKE", node, "write x LIKE '50!%' ESCAPE '!'"
            )
            return None
        if isinstance(inner.expression, exp.Any | exp.All):
            self._refuse(inner.expression)
            return None
        args = self._all([inner.this, inner.expression])
        if args is None:
            return None
        text, pattern = args
        found = checked(
            self.context, inner, functions.like, text, pattern, escape, fold=type(inner) is exp.ILike
        )
        if found is None or not inner.args.get("negate"):
            return found
        return operators.logic("not", [found])

    def _joined(self, node: exp.Expr) -> Expr | None:
        args = self._all([node.this, node.expression])
        return None if args is None else checked(self.context, node, functions.joined, *args)

    def _extract(self, node: exp.Expr) -> Expr | None:
        arg = self._resolve(node.expression)
        return None if arg is None else checked(self.context, node, functions.time_part, node.this.name, arg)

    def _distinct(self, node: exp.Expr) -> Expr | None:
        args = self._all([node.this, node.expression])
        build = operators.same if isinstance(node, exp.NullSafeEQ) else operators.distinct
        return None if args is None else checked(self.context, node, build, *args)

    def _negative(self, node: exp.Expr) -> Expr | None:
        arg = self._resolve(node.this)
        return None if arg is None else checked(self.context, node, operators.negative, arg)

    def _case(self, node: exp.Expr) -> Expr | None:
        subject = self._resolve(node.this) if node.this is not None else None
        broken = node.this is not None and subject is None
        parts: list[tuple[Expr, Expr]] = []
        for branch in node.args["ifs"]:
            pair = self._all([branch.this, branch.args["true"]])
            if pair is None:
                broken = True
                continue
            when, value = pair
            if subject is not None:
                test = checked(self.context, branch.this, operators.compare, "=", subject, when)
                broken = broken or test is None
                when = test or when
            parts.append((when, value))
        default = node.args.get("default")
        otherwise = self._resolve(default) if default is not None else None
        if broken or (default is not None and otherwise is None):
            return None
        return checked(self.context, node, operators.case, parts, otherwise)

    def _cast(self, node: exp.Expr) -> Expr | None:
        time = time_text(node)
        if time is not None:
            return checked(self.context, node, operators.converted, time, Type.TIMESTAMP)
        arg = self._resolve(node.this)
        try:
            wanted = named_type(node.args["to"])
        except operators.TypeMismatch as mismatch:
            self.context.error(mismatch.what, node, mismatch.hint or "")
            return None
        return None if arg is None else checked(self.context, node, cast, arg, wanted)

    def _column(self, node: exp.Expr) -> Expr | None:
        if node.args.get("db") or isinstance(node.this, exp.Star):
            what = (
                "expected a value, found *"
                if isinstance(node.this, exp.Star)
                else "this name has too many parts"
            )
            self.context.error(what, node, "write stream.column")
            return None
        table = node.args.get("table")
        return self.scope.column(
            self.context, node, name_of(table) if table is not None else None, name_of(node.this)
        )

    def _call(self, node: exp.Expr) -> Expr | None:
        name = called_name(node)
        users = self.context.catalog.functions.keys() | self.context.later_functions
        if name in SIMILARITY_FUNCTIONS and name not in users | self.context.broken_functions:
            if self.series is not None:
                return self.series.call(self.context, node, name, self.scope)
            hint = "write it in the WHERE or SELECT of a query over the stream"
            self.context.error(f"{name} is allowed only in queries", node, hint)
            return None
        if self.aggregates is None:
            return resolve_call(self.context, node, self._all)
        if name in AGGREGATE_FUNCTIONS and name not in self.context.catalog.functions:
            return self.aggregates.call(self.context, node, name, self.without_aggregates, None)
        return resolve_call(self.context, node, self._all, AGGREGATE_FUNCTIONS)

    def _window(self, node: exp.Expr) -> Expr | None:
        """A window function."""
        if self.series is not None:
            return self.series.window(self.context, node, self.scope)
        self.context.error_once("window functions are allowed only in queries", node, _WINDOW_FUNCTION)
        return None

    def _within_group(self, node: exp.Expr) -> Expr | None:
        """A call of an aggregate with WITHIN GROUP (ORDER BY …)."""
        name = called_name(node.this) if isinstance(node.this, exp.Anonymous) else ""
        if name not in AGGREGATE_FUNCTIONS or name in self.context.catalog.functions:
            hint = "write percentile_cont(0.95) WITHIN GROUP (ORDER BY value)"
            self.context.error("WITHIN GROUP is only for percentiles", node, hint)
            return None
        if self.aggregates is None:
            return resolve_call(self.context, node.this, self._all)
        return self.aggregates.call(self.context, node, name, self.without_aggregates, None)

    def _filtered(self, node: exp.Expr) -> Expr | None:
        """A call of an aggregate with FILTER (WHERE …)."""
        call = node.this
        function = call.this if isinstance(call, exp.WithinGroup) else call
        name = called_name(function) if isinstance(function, exp.Anonymous) else ""
        known = name in AGGREGATE_FUNCTIONS and name not in self.context.catalog.functions
        if self.aggregates is None or not known:
            before = len(self.context.errors)
            if self._resolve(call) is not None or len(self.context.errors) == before:
                hint = "write it after an aggregate, such as count(*) FILTER (WHERE x > 5)"
                self.context.error("FILTER is only for aggregates", node, hint)
            return None
        rows = ExpressionResolver(self.context, self.scope, series=self.series)
        only = rows.condition(node.expression.this, "FILTER")
        value = self.aggregates.call(self.context, call, name, rows.resolve, only)
        return None if only is None else value


def _literal(
    resolve: Callable[[Context, exp.Expr], Expr | None],
) -> Callable[[ExpressionResolver, exp.Expr], Expr | None]:
    return lambda resolver, node: resolve(resolver.context, node)


_METHODS: dict[type[exp.Expr], Callable[[ExpressionResolver, exp.Expr], Expr | None]] = {
    exp.Paren: ExpressionResolver._paren,
    exp.And: ExpressionResolver._connector,
    exp.Or: ExpressionResolver._connector,
    exp.Not: ExpressionResolver._not,
    exp.Between: ExpressionResolver._between,
    exp.In: ExpressionResolver._in,
    exp.Is: ExpressionResolver._is,
    exp.Neg: ExpressionResolver._negative,
    exp.Case: ExpressionResolver._case,
    **dict.fromkeys(_BITS, ExpressionResolver._bits),
    exp.Literal: _literal(resolve_literal),
    exp.Boolean: _literal(resolve_boolean),
    exp.Null: _literal(resolve_null),
    exp.Interval: _literal(resolve_interval),
    exp.Cast: ExpressionResolver._cast,
    exp.TryCast: ExpressionResolver._cast,
    exp.Like: ExpressionResolver._like,
    exp.ILike: ExpressionResolver._like,
    exp.Escape: ExpressionResolver._like,
    exp.DPipe: ExpressionResolver._joined,
    exp.Extract: ExpressionResolver._extract,
    exp.NullSafeEQ: ExpressionResolver._distinct,
    exp.NullSafeNEQ: ExpressionResolver._distinct,
    exp.Column: ExpressionResolver._column,
    exp.Anonymous: ExpressionResolver._call,
    exp.Filter: ExpressionResolver._filtered,
    exp.WithinGroup: ExpressionResolver._within_group,
    exp.Window: ExpressionResolver._window,
    NoReading: ExpressionResolver._no_reading,
}
