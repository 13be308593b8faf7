"""From sqlglot's expressions to Tamis's: names resolved, functions inlined, types checked, sugar taken out.

Every method returns None where a mistake was reported (or a name is broken elsewhere); what stands around it
is still read, so that all the mistakes of an expression are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol

from sqlglot import exp

from tamis.errors import InputError
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.query import operators, refusals
from tamis.query.context import Context, Name, name_of, suggest
from tamis.query.model import FunctionDef
from tamis.query.operators import Mismatch
from tamis.query.units import parse_duration

# Everything that walks an expression recurses over its depth, and the proofs cost time by its size.
DEEPEST = 100
LARGEST = 10_000

BUILTINS = {
    "abs": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "ln": (1, 1),
    "log10": (1, 1),
    "power": (2, 2),
    "least": (1, 100),
    "greatest": (1, 100),
}

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


def too_deep(node: exp.Expr) -> bool:
    """Whether an expression nests deeper than `DEEPEST`; a chain of ANDs or ORs counts as one."""
    stack = [(node, 1)]
    while stack:
        top, depth = stack.pop()
        if depth > DEEPEST:
            return True
        for child in top.iter_expressions():
            same = type(child) is type(top) and isinstance(child, exp.And | exp.Or)
            stack.append((child, depth if same else depth + 1))
    return False


def oversize(expr: Expr) -> bool:
    """Whether a tree has more than `LARGEST` nodes or is deeper than `DEEPEST`."""
    count, stack = 0, [(expr, 1)]
    while stack:
        top, depth = stack.pop()
        count += 1
        if count > LARGEST or depth > DEEPEST:
            return True
        if isinstance(top, Call):
            stack += [(arg, depth + 1) for arg in top.args]
    return False


def substitute(expr: Expr, replace: Callable[[Column], Expr]) -> Expr:
    """`expr` with every column replaced."""
    if isinstance(expr, Column):
        return replace(expr)
    if isinstance(expr, Call):
        return Call(expr.op, tuple(substitute(arg, replace) for arg in expr.args), expr.type)
    return expr


class Reader:
    """Reads expressions in one scope."""

    def __init__(self, context: Context, scope: Scope) -> None:
        self.context = context
        self.scope = scope

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
        if result is not None and oversize(result):
            self.context.error(
                f"with functions inlined this expression has more than {LARGEST} parts or {DEEPEST} levels",
                node,
                "call fewer functions inside each other",
            )
            return None
        return result

    def condition(self, node: exp.Expr, what: str) -> Expr | None:
        """The same for a condition."""
        expr = self.read(node)
        return None if expr is None else self._typed(node, operators.condition, expr, what)

    def _typed(
        self, node: exp.Expr, build: Callable[P, Expr], *args: P.args, **kwargs: P.kwargs
    ) -> Expr | None:
        """What `build` makes of its arguments; where they don't fit, that is reported at `node`."""
        try:
            return build(*args, **kwargs)
        except Mismatch as mismatch:
            self.context.error(mismatch.what, node, mismatch.hint or "")
            return None

    def _all(self, nodes: Sequence[exp.Expr]) -> list[Expr] | None:
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
        args = self._all([node.this, node.expression])
        if args is None:
            return None
        left, right = args
        kind = type(node)
        if kind in _COMPARISONS:
            return self._typed(node, operators.compare, _COMPARISONS[kind], left, right)
        return self._typed(node, operators.arithmetic, _ARITHMETIC[kind], left, right)

    def _paren(self, node: exp.Expr) -> Expr | None:
        return self._read(node.this)

    def _connector(self, node: exp.Expr) -> Expr | None:
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        nodes = flat(node, kind)
        conditions: list[Expr] = []
        for part in nodes:
            expr = self._read(part)
            if expr is not None:
                expr = self._typed(part, operators.condition, expr, f"what {kind.__name__.upper()} joins")
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
        return None if arg is None else self._typed(node, operators.logic, "not", [arg])

    def _between(self, node: exp.Expr, negated: bool = False) -> Expr | None:
        if node.args.get("symmetric") is not None:
            self.context.error("BETWEEN SYMMETRIC isn't executed", node, "write BETWEEN low AND high")
            return None
        args = self._all([node.this, node.args["low"], node.args["high"]])
        if args is None:
            return None
        value, low, high = args

        def build() -> Expr:
            lower = operators.compare("<" if negated else ">=", value, low)
            upper = operators.compare(">" if negated else "<=", value, high)
            return operators.logic("or" if negated else "and", [lower, upper])

        return self._typed(node, build)

    def _in(self, node: exp.Expr, negated: bool = False) -> Expr | None:
        values = node.args.get("expressions") or []
        if not values or node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            what, hint = refusals.EXPRESSIONS[exp.Subquery]
            if not node.args.get("query"):
                what, hint = "IN needs a list of values", "write IN (value, value, …)"
            self.context.error(what, node, hint)
            return None
        args = self._all([node.this, *values])
        if args is None:
            return None

        def build() -> Expr:
            tests = [operators.compare("!=" if negated else "=", args[0], value) for value in args[1:]]
            return tests[0] if len(tests) == 1 else operators.logic("and" if negated else "or", tests)

        return self._typed(node, build)

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
        return None if arg is None else self._typed(node, operators.negative, arg)

    def _case(self, node: exp.Expr) -> Expr | None:
        subject = self._read(node.this) if node.this is not None else None
        broken = node.this is not None and subject is None
        parts: list[tuple[Expr, Expr]] = []
        for branch in node.args["ifs"]:
            pair = self._all([branch.this, branch.args["true"]])
            if pair is None:
                broken = True
                continue
            when, value = pair
            if subject is not None:
                test = self._typed(branch.this, operators.compare, "=", subject, when)
                broken = broken or test is None
                when = test or when
            parts.append((when, value))
        default = node.args.get("default")
        otherwise = self._read(default) if default is not None else None
        if broken or (default is not None and otherwise is None):
            return None
        return self._typed(node, operators.case, parts, otherwise)

    def _literal(self, node: exp.Expr) -> Expr | None:
        text = str(node.this)
        if node.args.get("is_string"):
            return Literal(text, Type.VARCHAR)
        if text.isascii() and text.isdigit() and len(text) <= 400:
            return operators.integer(int(text)) if len(text) <= 300 else Literal(float(text), Type.DOUBLE)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if value - value != 0:
            self.context.error(
                "this isn't a number that a DOUBLE can hold", node, "write a number such as 0.5 or 1e3"
            )
            return None
        return Literal(value, Type.DOUBLE)

    def _boolean(self, node: exp.Expr) -> Expr | None:
        return Literal(bool(node.this), Type.BOOLEAN)

    def _null(self, node: exp.Expr) -> Expr | None:
        return Literal(None, Type.VARCHAR)

    def _interval(self, node: exp.Expr) -> Expr | None:
        unit = node.args.get("unit")
        value = node.this
        if not isinstance(value, exp.Literal) or (unit is not None and not isinstance(unit, exp.Var)):
            self.context.error(
                "an INTERVAL is a constant", node, "write INTERVAL '30' SECOND or INTERVAL '5 minutes'"
            )
            return None
        text = f"{value.this} {unit.name if unit is not None else ''}".strip()
        try:
            length = parse_duration(text)
        except InputError as error:
            self.context.error(error.what, node, "write INTERVAL '30' SECOND or INTERVAL '5 minutes'")
            return None
        return Literal(length, Type.INTERVAL)

    def _cast(self, node: exp.Expr) -> Expr | None:
        value, target = node.this, node.args["to"]
        if (
            target.sql().upper() in ("TIMESTAMP", "TIMESTAMPTZ")
            and isinstance(value, exp.Literal)
            and value.is_string
        ):
            literal = Literal(str(value.this), Type.VARCHAR)
            return self._typed(node, operators.fitted, literal, Type.TIMESTAMP)
        self.context.error(
            "CAST isn't executed",
            node,
            "leave it out: INT, BIGINT and DOUBLE mix freely; times are TIMESTAMP '…'",
        )
        self._read(value)
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

    def _call(self, node: exp.Expr) -> Expr | None:
        quoted = isinstance(node.this, exp.Identifier)
        name = node.this.name if quoted else str(node.this).lower()
        nodes = node.expressions
        function = self.context.catalog.functions.get(name)
        if function is None and name not in BUILTINS:
            self._unknown(node, name)
            return None
        args = self._all(nodes)
        low, high = BUILTINS.get(name, (0, 0))
        if function is not None:
            low = high = len(function.parameters)
        if not low <= len(nodes) <= high:
            count = str(low) if low == high else f"{low} to {high}"
            plural = "" if count == "1" else "s"
            self.context.error(
                f"{name} takes {count} argument{plural}, not {len(nodes)}", node, self._usage(name, function)
            )
            return None
        if args is None:
            return None
        if name == "power":
            return self._typed(node, operators.arithmetic, name, args[0], args[1])
        if function is None:
            return self._typed(node, operators.function, name, args)
        return self._inlined(function, nodes, args)

    def _unknown(self, node: exp.Expr, name: str) -> None:
        if name in self.context.broken_functions:
            return
        refusal = refusals.function(name)
        if refusal is not None:
            self.context.error(refusal[0], node, refusal[1])
            return
        if name in self.context.later_functions:
            hint = f"move CREATE FUNCTION {name} in front of this statement"
        else:
            hint = suggest(name, [*BUILTINS, *self.context.catalog.functions])
        self.context.error(f"there is no function '{name}'", node, hint)

    @staticmethod
    def _usage(name: str, function: FunctionDef | None) -> str:
        if function is None:
            return {"power": "write power(base, exponent)"}.get(name, f"write {name}(x)")
        return f"write {name}({', '.join(parameter for parameter, _ in function.parameters)})"

    def _inlined(self, function: FunctionDef, nodes: Sequence[exp.Expr], args: Sequence[Expr]) -> Expr | None:
        self.context.used_functions.add(function.name)
        bound: dict[str, Expr] = {}
        for (parameter, kind), node, arg in zip(function.parameters, nodes, args, strict=True):
            what = f"the parameter {parameter} of {function.name}"
            fitted = self._typed(node, operators.assigned, arg, kind, what)
            if fitted is not None:
                bound[parameter] = fitted
        if len(bound) < len(args):
            return None
        result = substitute(function.body, lambda column: bound[column.name])
        if nodes and oversize(result):
            self.context.error(
                f"inlined, {function.name} has more than {LARGEST} parts or {DEEPEST} levels here",
                nodes[0],
                "call fewer functions inside each other",
            )
            return None
        return result


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
    exp.Literal: Reader._literal,
    exp.Boolean: Reader._boolean,
    exp.Null: Reader._null,
    exp.Interval: Reader._interval,
    exp.Cast: Reader._cast,
    exp.Column: Reader._column,
    exp.Anonymous: Reader._call,
}
