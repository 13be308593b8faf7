"""ASOF JOIN, and Flink's temporal joins: each tuple of the first stream with the last tuple of another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, aliases
from tamis.query.context import Context
from tamis.query.linear_times import difference_limits, is_time
from tamis.query.model import AsOfJoin, Conjunct
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.scalars.scopes import SeriesCalls
from tamis.query.selects.scope import AsOfClause, FromItem, FromScope
from tamis.query.syntax.dialect import span

_USAGE = "write ASOF JOIN b ON a.key = b.key AND a.ts >= b.ts"
_LATEST_ONLY = "an ASOF JOIN takes the last tuple at or before each tuple of the first stream"


def asof_clause(context: Context, join: exp.Expr, item: int) -> AsOfClause | None:
    """The clause of an ASOF JOIN or of a temporal join, whose syntax is checked; None for another join.

    `item` is the number of the item of FROM that it joins.
    """
    asof = join.args.get("method") == "ASOF"
    version = join.this.args.get("version") if isinstance(join.this, exp.Table) else None
    if not asof and version is None:
        return None
    as_of = None
    if version is not None:
        join.this.set("version", None)
        as_of = version.expression if version.args.get("kind") == "AS OF" else None
        if as_of is None or str(version.this) != "TIMESTAMP":
            what = "a temporal join takes the tuple AS OF one event time"
            context.error(what, join, "write JOIN b FOR SYSTEM_TIME AS OF a.ts ON a.key = b.key")
    side, kind = (str(join.args.get(key) or "") for key in ("side", "kind"))
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        what = f"{side or kind} ASOF JOIN is not supported"
        hint = f"{_LATEST_ONLY}: write ASOF JOIN, or LEFT ASOF JOIN for NULL where there is none"
        context.error(what, join, hint)
    complete = any(join.args.get(key) for key in ("on", "match_condition"))
    if version is not None:  # it compares the times already, and needs no ON
        complete = as_of is not None
    if join.args.get("using"):
        what = "ASOF JOIN … USING is not supported"
        context.error(what, join, f"{_USAGE}, or with the conditions of your columns")
    elif not complete and version is None:
        context.error("this ASOF JOIN has no ON", join, _USAGE)
    return AsOfClause(join, item, as_of, complete and not join.args.get("using"))


@dataclass
class _Parts:
    """The classified conditions of one ASOF JOIN."""

    keys: list[tuple[Column, Column]] = field(default_factory=list)
    filters: list[Conjunct] = field(default_factory=list)
    conjuncts: list[Conjunct] = field(default_factory=list)
    least: int | None = None
    most: int | None = None
    complete: bool = True


@dataclass(frozen=True)
class AsOf:
    """The ASOF JOINs of a query, the conditions of their ONs on earlier streams alone, and the items of FROM,
    whose columns may be NULL for want of a partner.
    """

    joins: tuple[AsOfJoin, ...] = ()
    conjuncts: tuple[Conjunct, ...] = ()
    items: tuple[FromItem, ...] = ()


NO_ASOF = AsOf()


def resolve_asof(context: Context, scope: FromScope, series: SeriesCalls) -> AsOf | None:
    """The ASOF JOINs of FROM; None if a mistake was reported."""
    complete = all([_check_item(context, scope, number) for number in range(len(scope.items))])
    if not complete:
        return None
    found, conjuncts = [], []
    items = list(scope.items)
    for clause in scope.asof:
        parts = _classified(context, scope, clause, series)
        if parts is None:
            complete = False
            continue
        assert parts.least is not None
        alias = scope.items[clause.item].sources[0].alias
        filters = (*scope.items[clause.item].conjuncts, *parts.filters)
        found.append(
            AsOfJoin(alias, tuple(parts.keys), parts.least, parts.most, clause.outer, tuple(filters))
        )
        conjuncts += parts.conjuncts
        if clause.outer:
            items[clause.item] = _null_without_partner(context, items[clause.item])
            scope = replace(scope, items=tuple(items))
    return AsOf(tuple(found), tuple(conjuncts), tuple(items)) if complete else None


def refused_beside_asof(context: Context, node: exp.Expr, aggregate: exp.Expr | None) -> bool:
    """Report DISTINCT, aggregates and GROUP BY in a query with ASOF JOINs; True if there are any.

    `aggregate` is the first call of an aggregate.
    """
    distinct = node.args.get("distinct")
    if distinct is not None:
        hint = "leave DISTINCT out: each tuple of the first stream has at most one row"
        context.error("SELECT DISTINCT with ASOF JOIN is not supported", distinct, hint)
    aggregate = next((node.args[key] for key in ("group", "having") if node.args.get(key)), aggregate)
    if aggregate is not None:
        hint = "aggregate one stream in an alert of its own, without the ASOF JOIN"
        context.error("aggregates over an ASOF JOIN are not supported yet", aggregate, hint)
    return distinct is not None or aggregate is not None


def _check_item(context: Context, scope: FromScope, number: int) -> bool:
    """Check one item of FROM of a query with ASOF JOINs; False if its mistake is or was reported."""
    item = scope.items[number]
    if item.columns is None or not item.sources:
        return False
    stream = context.stream(item.sources[0])
    what = hint = ""
    if number and number not in {clause.item for clause in scope.asof}:
        what = "ASOF JOIN beside other joins is not supported yet"
        hint = "write ASOF JOIN for each stream; beside a table, join all streams within a time"
        if stream is not None:
            hint = "write ASOF JOIN for each stream, or an alert of its own for the other join"
    elif len(item.sources) > 1:
        what = f"ASOF JOIN needs single streams, and '{item.stream}' joins several"
        hint = "write the ASOF JOINs over the streams themselves"
    elif item.sources[0].window is not None:
        what, hint = "windows beside ASOF JOIN are not supported yet", "write the stream without its windows"
    elif stream is None:
        what = f"ASOF JOIN needs event time, and '{item.stream}' is a table"
        hint = "write a query with JOIN … ON: a table has no earlier or later rows"
    elif stream.time is not None:
        return True
    else:
        what = f"ASOF JOIN needs event time, and stream '{stream.shown_name}' has no WATERMARK"
        hint = f"add WATERMARK FOR column AS column - INTERVAL '5' SECOND to stream {stream.shown_name}"
    context.error(what, item.offset, hint)
    return False


def _null_without_partner(context: Context, item: FromItem) -> FromItem:
    """The item with the computed columns of a derived stream NULL where a LEFT ASOF JOIN has no tuple of it.

    Its plain columns are NULL then. An expression over them need not be: `coalesce(x, 0)` would be 0.
    """
    (source,) = item.sources
    time = context.catalog.streams[source.stream].time or ""
    absent = Call("is_null", (Column(source.alias, time, Type.TIMESTAMP),), Type.BOOLEAN)
    shown = {
        name: expr
        if isinstance(expr, Column)
        else Call("case", (absent, Literal(None, expr.type), expr), expr.type)
        for name, expr in (item.columns or {}).items()
    }
    return replace(item, columns=shown)


def _classified(context: Context, scope: FromScope, clause: AsOfClause, series: SeriesCalls) -> _Parts | None:
    """The conditions of an ASOF JOIN; None if a mistake was reported."""
    parts = _Parts()
    scope = scope.up_to(clause.item + 1)
    resolver = ExpressionResolver(context, scope, series=series)
    before = len(context.errors)
    if clause.as_of is not None:
        _as_of(context, scope, resolver, clause.as_of, parts)
    for node in clause.conditions():
        expr = resolver.condition(node, "each part of ON")
        for part in [] if expr is None else _flattened(expr):
            _add(context, scope, clause, parts, (node, part))
    if len(context.errors) > before:
        return None
    left, right = (_time(context, scope.items[number]) for number in (0, clause.item))
    if not clause.complete:
        return None
    if parts.least is None and parts.most is None:
        what = "this ASOF JOIN doesn't compare the event times"
        context.error(what, clause.join, f"add {left} >= {right} to its ON")
    elif parts.least is None or parts.least < 0:
        what = f"this ASOF JOIN may need tuples after {left}, which have not come yet"
        context.error(what, clause.join, f"{_LATEST_ONLY}: write {left} >= {right}")
    elif parts.most is not None and parts.most < parts.least:
        what = f"the bounds of {right} contradict each other"
        context.error(what, clause.join, f"write {left} >= {right} AND {right} >= {left} - INTERVAL …")
    return None if len(context.errors) > before else parts


def _as_of(
    context: Context, scope: FromScope, resolver: ExpressionResolver, node: exp.Expr, parts: _Parts
) -> None:
    """The time after AS OF, which must be the event time of the first stream."""
    expr = resolver.resolve(node)
    first = scope.items[0].sources[0]
    time = context.catalog.streams[first.stream].time
    if expr is not None and not (isinstance(expr, Column) and (expr.alias, expr.name) == (first.alias, time)):
        what = f"AS OF {context.source(node)}: this isn't the event time of the first stream"
        context.error(what, node, f"write AS OF {_time(context, scope.items[0])}")
    parts.least = 0


def _flattened(expr: Expr) -> list[Expr]:
    """The parts of a condition that BETWEEN made of two."""
    if isinstance(expr, Call) and expr.op == "and":
        return [part for arg in expr.args for part in _flattened(arg)]
    return [expr]


def _add(
    context: Context, scope: FromScope, clause: AsOfClause, parts: _Parts, given: tuple[exp.Expr, Expr]
) -> None:
    """Classify one condition, or report that ASOF JOIN can't have it."""
    node, expr = given
    (first,), (source,) = scope.items[0].sources, scope.items[clause.item].sources
    streams = context.catalog.streams
    items = scope.items[: clause.item + 1]
    times = {one.alias: streams[one.stream].time or "" for item in items for one in item.sources}
    of = aliases(expr)
    conjunct = Conjunct(expr, context.source(node), context.text.position(span(node)[0]))
    if of == {source.alias}:
        parts.filters.append(conjunct)
    elif source.alias not in of:
        if clause.outer:
            what = f"{context.source(node)} is no condition on '{scope.items[clause.item].alias}'"
            hint = "write it in WHERE: a LEFT ASOF JOIN keeps each tuple of the first stream"
            context.error(what, node, hint)
        parts.conjuncts.append(conjunct)
    elif (pair := _equated(expr, source.alias, times)) is not None:
        parts.keys.append(pair)
    elif (limits := difference_limits(expr, times)) is not None:
        if {limits.left, limits.right} != {first.alias, source.alias}:
            what = "an ASOF JOIN compares with the event time of the first stream"
            hint = f"write {_time(context, scope.items[0])} in place of the other event time"
            context.error(what, node, hint)
            return
        lo, hi = limits.lo, limits.hi
        if limits.left == source.alias:
            lo, hi = (None if hi is None else -hi), (None if lo is None else -lo)
        if lo is not None:
            parts.least = lo if parts.least is None else max(lo, parts.least)
        if hi is not None:
            parts.most = hi if parts.most is None else min(hi, parts.most)
    else:
        what = f"{context.source(node)} is no condition that chooses the tuple of an ASOF JOIN"
        hint = (
            "write it in WHERE, where it applies to the chosen tuple; ON has equalities of columns and times"
        )
        context.error(what, node, hint)


def _equated(expr: Expr, alias: str, times: dict[str, str]) -> tuple[Column, Column] | None:
    """The columns of an equality of two sources, that of `alias` last; None for another condition."""
    if not isinstance(expr, Call) or expr.op != "=":
        return None
    left, right = expr.args
    if not isinstance(left, Column) or not isinstance(right, Column):
        return None
    if is_time(left, times) or is_time(right, times):
        return None
    return (right, left) if left.alias == alias else (left, right)


def _time(context: Context, item: FromItem) -> str:
    """The event time of an item of FROM as the query can write it."""
    source = item.sources[0]
    time = context.catalog.streams[source.stream].time
    names = (
        name for name, expr in (item.columns or {}).items() if isinstance(expr, Column) and expr.name == time
    )
    return f"{item.alias}.{next(names, time)}"
