"""Calls of similar, similarity, scale, shift and pattern: watches that a SELECT adds to its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import NamedPattern, Range, Watch
from tamis.errors import InputError
from tamis.expressions.nodes import Call, Column, Expr, Type, columns, substitute
from tamis.query.context import Context
from tamis.query.functions import AGGREGATE_FUNCTIONS, SIMILARITY_FUNCTIONS
from tamis.query.scalars.calls import called_name
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.selects.calls.raw_streams import raw_stream
from tamis.query.selects.scope import FromScope
from tamis.similarity.pattern import Pattern, epsilon_limit
from tamis.wording.names import suggest

SIMILAR = "similar"
ANY = "ANY"
_USAGE = "write {}(value, 'pattern', epsilon), and optionally scale => (low, high) and shift => (low, high)"
_SHORT_USAGE = (
    "write {0}(value, 'pattern'), or {0}(value, 'pattern', epsilon, …) with the arguments of similar"
)
_RANGE = "write a range such as {} => (0.5, 2); NULL is no limit"


@dataclass(frozen=True)
class _Value:
    """The first argument: the source, its raw stream, and the expression over the stream's columns."""

    alias: str
    stream: StreamDef
    expr: Expr


@dataclass
class Similarities:
    """The calls in one SELECT. `tree` is its syntax tree. `add` adds a watch to the source of an alias."""

    scope: FromScope
    tree: exp.Expr
    add: Callable[[str, Watch], None]

    def call(self, context: Context, node: exp.Expr, name: str) -> Expr | None:
        """Add the watch of a call to its source, and return the column for its value; for `similar` the
        condition that its distance isn't NULL. None if a mistake was reported.
        """
        found = self._watch(context, node, name)
        if found is None:
            return None
        alias, watch = found
        self.add(alias, watch)
        column = {
            "scale": watch.scale_column,
            "shift": watch.shift_column,
            "pattern": watch.pattern_column,
        }.get(name, watch.distance)
        shown = replace(column, alias=alias)
        if name != SIMILAR:
            return shown
        return Call("not", (Call("is_null", (shown,), Type.BOOLEAN),), Type.BOOLEAN)

    def _watch(self, context: Context, node: exp.Expr, name: str) -> tuple[str, Watch] | None:
        """The watch that a call means, and the alias of its source; None if a mistake was reported."""
        given = [one for one in node.expressions if not isinstance(one, exp.Kwarg)]
        named = [one for one in node.expressions if isinstance(one, exp.Kwarg)]
        short = name != SIMILAR and len(given) == 2 and not named
        if not short and len(given) != 3:
            usage = (_USAGE if name == SIMILAR else _SHORT_USAGE).format(name)
            plural = "" if len(given) == 1 else "s"
            what = f"{name} takes a value, a pattern and epsilon, not {len(given)} argument{plural}"
            context.error(what, node, usage)
            return None
        value = self._value(context, given[0], name)
        asked = _asked(context, given[1])
        if short:
            return None if value is None or asked is None else self._meant(context, node, name, value, asked)
        epsilon = _number(context, given[2], "epsilon", "write a number such as 0.5")
        ranges = _ranges(context, named, node)
        members = None if asked is None else _members(context, given[1], asked)
        if value is None or asked is None or members is None or epsilon is None or ranges is None:
            return None
        watch = Watch(value.expr, asked, members, epsilon, ranges.get("scale"), ranges.get("shift"))
        return (value.alias, watch) if _possible(context, given[2], watch) else None

    def _value(self, context: Context, node: exp.Expr, name: str) -> _Value | None:
        calls: Iterator[exp.Expr] = node.find_all(exp.Anonymous)
        users = context.catalog.functions
        inner = next((called_name(c) for c in calls if called_name(c) in SIMILARITY_FUNCTIONS), None)
        if inner is not None and inner not in users:
            what = f"the value of {name} can't contain {inner}(…)"
            context.error(what, node, "compare a column of the stream")
            return None
        names = (called_name(c) for c in node.find_all(exp.Anonymous))
        aggregate = next((one for one in names if one in AGGREGATE_FUNCTIONS and one not in users), None)
        if aggregate is not None:
            what = f"{name} compares readings with a pattern, and {aggregate}(…) is a value of many readings"
            context.error(what, node, "compare a column of the stream, in WHERE of a query without windows")
            return None
        expr = ExpressionResolver(context, self.scope).resolve(node)
        if expr is None:
            return None
        named = dict.fromkeys(c.alias for c in columns(expr))
        if len(named) != 1:
            what = "columns of several streams" if named else "no column of a stream"
            context.error(f"the value of {name} has {what}", node, "compare the readings of one stream")
            return None
        if not expr.type.numeric:
            hint = "compare a number, such as a column of type DOUBLE"
            context.error(f"the value of {name} must be a number, not {expr.type}", node, hint)
            return None
        if any(c.name in WINDOW_COLUMNS for c in columns(expr)):
            context.error(f"the value of {name} is a time of windows", node, "compare a column of the stream")
            return None
        (alias,) = named
        stream = raw_stream(context, self.scope, node, alias, f"{name} compares readings")
        if stream is None:
            return None
        return _Value(alias, stream, substitute(expr, lambda column: Column("", column.name, column.type)))

    def _meant(
        self, context: Context, node: exp.Expr, name: str, value: _Value, asked: str
    ) -> tuple[str, Watch] | None:
        """The watch of the only `similar` in the query with this value and pattern."""
        found: dict[Watch, None] = {}
        for one in replace(self, scope=self.scope.up_to(len(self.scope.items)))._similar(context):
            if one is None:
                return None
            if (one[0], one[1].value, one[1].asked) == (value.alias, value.expr, asked):
                found[one[1]] = None
        if len(found) == 1:
            return value.alias, next(iter(found))
        many = "several different calls" if found else "no call"
        what = f"the query has {many} of similar with this value and pattern, so that {name} needs epsilon"
        context.error(what, node, _USAGE.format(name))
        return None

    def _is_subquery(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Query) and node is not self.tree

    def _similar(self, context: Context) -> Iterator[tuple[str, Watch] | None]:
        """Each `similar` of the query; None for one with a mistake, which is reported where it stands."""
        for call in self.tree.walk(prune=self._is_subquery):
            if not isinstance(call, exp.Anonymous) or called_name(call) != SIMILAR:
                continue
            before, reported = len(context.errors), dict(context.reported)
            missing = set(context.missing_watermarks)
            watch = self._watch(context, call, SIMILAR)
            wrong = len(context.errors) > before
            del context.errors[before:]
            context.reported, context.missing_watermarks = reported, missing
            yield None if wrong else watch


def _asked(context: Context, node: exp.Expr) -> str | None:
    """The name of the second argument; ANY for the word."""
    if isinstance(node, exp.Literal) and node.args.get("is_string"):
        return str(node.this)
    word = node.this if isinstance(node, exp.Column) and not node.args.get("table") else None
    if isinstance(word, exp.Identifier) and not word.args.get("quoted"):
        if word.name.upper() == ANY:
            return ANY
        hint = f"write the name in single quotes: '{word.name.lower()}'; or ANY for all patterns"
    else:
        hint = "write the name of a pattern in single quotes, or ANY for all patterns"
    context.error("the second argument must be the name of a pattern", node, hint)
    return None


def _members(context: Context, node: exp.Expr, asked: str) -> tuple[NamedPattern, ...] | None:
    """The patterns that a name or ANY stands for."""
    patterns = context.catalog.patterns
    everything = {one.name: one for pattern in patterns.values() for one in pattern.members}
    is_word = not isinstance(node, exp.Literal)
    if is_word:
        found = tuple(everything.values())
    elif asked in patterns:
        found = patterns[asked].members
    else:
        found = (everything[asked],) if asked in everything else ()
    if found:
        return found
    if context.broken_patterns & {asked, asked.partition("/")[0]} or "pattern" in context.incomplete:
        return None
    if is_word:
        if not context.broken_patterns:
            context.error_once("there is no pattern", node, "write CREATE PATTERN in front of this statement")
        return None
    hint = suggest(asked, [*patterns, *everything], _known(patterns))
    context.error_once(f"there is no pattern '{asked}'", node, hint)
    return None


def _known(patterns: Mapping[str, object]) -> str:
    if not patterns:
        return "write CREATE PATTERN in front of this statement"
    return f"known patterns: {', '.join(sorted(patterns)[:20])}"


def _ranges(context: Context, named: Sequence[exp.Expr], node: exp.Expr) -> dict[str, Range | None] | None:
    """The ranges of scale and shift by name; None if a mistake was reported."""
    before = len(context.errors)
    found: dict[str, Range | None] = {}
    for one in named:
        name = one.this.name.lower()
        if name not in ("scale", "shift"):
            hint = suggest(name, ("scale", "shift"), "the named arguments are scale and shift")
            context.error(f"there is no argument '{name}'", one.expression, hint)
        elif name in found:
            context.error(f"the argument '{name}' is given twice", one.expression, "write it once")
        else:
            found[name] = _range(context, one.expression, name)
    return found if len(context.errors) == before else None


def _range(context: Context, node: exp.Expr, name: str) -> Range | None:
    if isinstance(node, exp.Null):
        return None
    if not isinstance(node, exp.Tuple) or len(node.expressions) != 2:
        context.error(f"{name} must be a range", node, _RANGE.format(name))
        return None
    before = len(context.errors)
    low, high = (
        None if isinstance(end, exp.Null) else _number(context, end, f"an end of {name}", _RANGE.format(name))
        for end in node.expressions
    )
    if len(context.errors) > before or (low is None and high is None):
        return None
    if low is not None and high is not None and low > high:
        context.error(f"the range of {name} is empty", node, "write the smaller end first")
    elif name == "scale" and high is not None and high <= 0:
        context.error("no scale in this range is above 0", node, "write a range such as scale => (0.5, 2)")
    return low, high


def _number(context: Context, node: exp.Expr, what: str, hint: str) -> float | None:
    """A constant number; None if it is another expression, which is reported."""
    literal, sign = node, 1.0
    while isinstance(literal, exp.Paren | exp.Neg):
        sign = -sign if isinstance(literal, exp.Neg) else sign
        literal = literal.this
    if isinstance(literal, exp.Literal) and not literal.args.get("is_string"):
        number = float(str(literal.this))
        if number - number == 0:
            return sign * number
        context.error("this number doesn't fit into a DOUBLE", node, hint)
        return None
    context.error(f"{what} must be a constant number", node, hint)
    return None


def _possible(context: Context, node: exp.Expr, watch: Watch) -> bool:
    """Tell if epsilon is possible for each pattern; if not, that is reported at `node`."""
    try:
        for one in watch.patterns:
            _pattern(one, watch)
    except InputError:
        # The pattern that allows the least epsilon, so that the hint has a number that does for all.
        worst = min(watch.patterns, key=lambda one: epsilon_limit(one.values, watch.scale, watch.shift))
        try:
            _pattern(worst, watch)
        except InputError as error:
            context.error(f"{error.where}: {error.what}", node, error.hint or "write another epsilon")
            return False
    return True


def _pattern(one: NamedPattern, watch: Watch) -> Pattern:
    return Pattern(one.name, one.values, epsilon=watch.epsilon, scale=watch.scale, shift=watch.shift)
