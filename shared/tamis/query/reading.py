"""From sqlglot's expressions to Tamis's: names resolved, functions inlined, types checked, sugar taken out.

Every method returns None where a mistake was reported (or a name is broken elsewhere); what stands around it
is still read, so that all the mistakes of an expression are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol

from sqlglot import exp

from tamis.expressions.nodes import Call, Expr, Type
from tamis.query import operators, refusals
from tamis.query.aggregates import Aggregates
from tamis.query.calls import read_call
from tamis.query.context import Context, Name, name_of
from tamis.query.limits import DEEPEST, LARGEST, oversize, too_deep
from tamis.query.literals import read_boolean, read_interval, read_literal, read_null, time_text
from tamis.query.operators import Mismatch

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
    exp.Pow: "power",
}
P = ParamSpec("P")


class Scope(Protocol):
    """What a column name stands for. Reports what is wrong with the name and returns None then."""

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """The expression that a possibly qualified name stands for."""
        ...


def flat(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of ANDs or of ORs, through parentheses, left to right; not recursive."""
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


class Reader:
    """Reads expressions in one scope."""

    def __init__(
        self,
        context: Context,
        scope: Scope,
        aggregates: Aggregates | None = None,
        largest: int = LARGEST,
    ) -> None:
        self.context = context
        self.scope = scope
        self.aggregates = aggregates  # where calls of aggregates belong
        self.largest = largest  # parts of an expression

    def read(self, node: exp.Expr) -> Expr | None:
        """The expression, or None where a mistake was reported."""
        if too_deep(node):
            self.context.error(
                f"this expression nests deeper than {DEEPEST} levels",
                node,
                "split it into functions or streams",
            )
            return None
        result = self._read(node)
        if result is not None and oversize(result, self.largest):
            self.context.error(
                f"this expression has more than {self.largest} parts or {DEEPEST} levels, functions inlined",
                node,
                "split it, or call fewer functions inside each other",
            )
            return None
        return result

    def of_tuples(self, node: exp.Expr) -> Expr | None:
        """The same for what stands inside an aggregate or in GROUP BY: over single tuples."""
        return Reader(self.context, self.scope).read(node)

    def condition(self, node: exp.Expr, what: str) -> Expr | None:
        """The same for a condition."""
        expr = self.read(node)
        return None if expr is None else self.typed(node, operators.condition, expr, what)

    def typed(
        self, node: exp.Expr, build: Callable[P, Expr], *args: P.args, **kwargs: P.kwargs
    ) -> Expr | None:
        """What `build` makes of its arguments; where they don't fit, that is reported at `node`."""
        try:
            return build(*args, **kwargs)
        except Mismatch as mismatch:
            self.context.error(mismatch.what, node, mismatch.hint or "")
            return None

    def all_of(self, nodes: Sequence[exp.Expr]) -> list[Expr] | None:
        """The expressions, or None where a mistake was reported in one of them."""
        read = [self._read(node) for node in nodes]
        known = [expr for expr in read if expr is not None]
        return known if len(known) == len(nodes) else None

    def _read(self, node: exp.Expr) -> Expr | None:
        kind = type(node)
        if kind in _COMPARISONS or kind in _ARITHMETIC:
            return self._binary(node)
        method = _METHODS.get(kind)
        if method is not None:
            return method(self, node)
        what, hint = refusals.EXPRESSIONS.get(
            kind,
            (
                f"'{self.context.source(node)[:60]}' isn't executed",
                "use comparisons, AND, OR, NOT, arithmetic and CASE",
            ),
        )
        self.context.error(what, node, hint)
        return None

    def _binary(self, node: exp.Expr) -> Expr | None:
        if type(node) in _COMPARISONS and {type(node.this), type(node.expression)} & _COMPARISONS.keys():
            hint = "write x BETWEEN a AND b, join comparisons by AND, or put them in parentheses"
            self.context.error("comparisons can't be chained", node, hint)
            return None
        args = self.all_of([node.this, node.expression])
        if args is None:
            return None
        left, right = args
        kind = type(node)
        if kind in _COMPARISONS:
            return self.typed(node, operators.compare, _COMPARISONS[kind], left, right)
        return self.typed(node, operators.arithmetic, _ARITHMETIC[kind], left, right)

    def _paren(self, node: exp.Expr) -> Expr | None:
        return self._read(node.this)

    def _connector(self, node: exp.Expr) -> Expr | None:
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        nodes = flat(node, kind)
        conditions: list[Expr] = []
        for part in nodes:
            expr = self._read(part)
            if expr is not None:
                expr = self.typed(part, operators.condition, expr, f"what {kind.__name__.upper()} joins")
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
        arg = self._read(inner)
        return None if arg is None else self.typed(node, operators.logic, "not", [arg])

    def _between(self, node: exp.Expr, negated: bool = False) -> Expr | None:
        if node.args.get("symmetric") is not None:
            self.context.error("BETWEEN SYMMETRIC isn't executed", node, "write BETWEEN low AND high")
            return None
        args = self.all_of([node.this, node.args["low"], node.args["high"]])
        if args is None:
            return None
        value, low, high = args

        def build() -> Expr:
            lower = operators.compare("<" if negated else ">=", value, low)
            upper = operators.compare(">" if negated else "<=", value, high)
            return operators.logic("or" if negated else "and", [lower, upper])

        return self.typed(node, build)

    def _in(self, node: exp.Expr, negated: bool = False) -> Expr | None:
        values = node.args.get("expressions") or []
        if not values or node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            what, hint = refusals.EXPRESSIONS[exp.Subquery]
            if not node.args.get("query"):
                what, hint = "IN needs a list of values", "write IN (value, value, …)"
            self.context.error(what, node, hint)
            return None
        args = self.all_of([node.this, *values])
        if args is None:
            return None

        def build() -> Expr:
            tests = [operators.compare("!=" if negated else "=", args[0], value) for value in args[1:]]
            return tests[0] if len(tests) == 1 else operators.logic("and" if negated else "or", tests)

        return self.typed(node, build)

    def _is(self, node: exp.Expr) -> Expr | None:
        if not isinstance(node.expression, exp.Null):
            self.context.error(
                "only IS NULL and IS NOT NULL are executed",
                node,
                "write the condition itself, or NOT and the condition",
            )
            return None
        arg = self._read(node.this)
        if arg is None:
            return None
        test = Call("is_null", (arg,), Type.BOOLEAN)
        return Call("not", (test,), Type.BOOLEAN) if node.args.get("negate") else test

    def _negative(self, node: exp.Expr) -> Expr | None:
        arg = self._read(node.this)
        return None if arg is None else self.typed(node, operators.negative, arg)

    def _case(self, node: exp.Expr) -> Expr | None:
        subject = self._read(node.this) if node.this is not None else None
        broken = node.this is not None and subject is None
        parts: list[tuple[Expr, Expr]] = []
        for branch in node.args["ifs"]:
            pair = self.all_of([branch.this, branch.args["true"]])
            if pair is None:
                broken = True
                continue
            when, value = pair
            if subject is not None:
                test = self.typed(branch.this, operators.compare, "=", subject, when)
                broken = broken or test is None
                when = test or when
            parts.append((when, value))
        default = node.args.get("default")
        otherwise = self._read(default) if default is not None else None
        if broken or (default is not None and otherwise is None):
            return None
        return self.typed(node, operators.case, parts, otherwise)

    def _cast(self, node: exp.Expr) -> Expr | None:
        time = time_text(node)
        if time is not None:
            return self.typed(node, operators.fitted, time, Type.TIMESTAMP)
        self.context.error(
            "CAST isn't executed",
            node,
            "leave it out: INT, BIGINT and DOUBLE mix freely; times are TIMESTAMP '…'",
        )
        self._read(node.this)
        return None

    def _column(self, node: exp.Expr) -> Expr | None:
        if node.args.get("db") or isinstance(node.this, exp.Star):
            what = (
                "* stands where a value belongs"
                if isinstance(node.this, exp.Star)
                else "this name has too many parts"
            )
            self.context.error(what, node, "write stream.column")
            return None
        table = node.args.get("table")
        return self.scope.column(
            self.context, node, name_of(table) if table is not None else None, name_of(node.this)
        )


def _constant(read: Callable[[Context, exp.Expr], Expr | None]) -> Callable[[Reader, exp.Expr], Expr | None]:
    return lambda reader, node: read(reader.context, node)


_METHODS: dict[type[exp.Expr], Callable[[Reader, exp.Expr], Expr | None]] = {
    exp.Paren: Reader._paren,
    exp.And: Reader._connector,
    exp.Or: Reader._connector,
    exp.Not: Reader._not,
    exp.Between: Reader._between,
    exp.In: Reader._in,
    exp.Is: Reader._is,
    exp.Neg: Reader._negative,
    exp.Case: Reader._case,
    exp.Literal: _constant(read_literal),
    exp.Boolean: _constant(read_boolean),
    exp.Null: _constant(read_null),
    exp.Interval: _constant(read_interval),
    exp.Cast: Reader._cast,
    exp.Column: Reader._column,
    exp.Anonymous: read_call,
}
