"""FROM and JOIN: the streams and tables of a query, with derived streams inlined.

The WHERE of a derived stream becomes conjuncts of the query that reads it, and its columns stand for the
expressions of its SELECT. If it joins, its streams get the aliases `alias.inner_alias`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from tamis.declarations.definitions import TableDef
from tamis.declarations.streams import StreamDef
from tamis.errors import Position
from tamis.expressions.nodes import Column, Expr, substitute
from tamis.query.context import Context
from tamis.query.model import Conjunct, DerivedDef, Source, last_query
from tamis.query.selects import windows
from tamis.query.selects.aggregated_streams import aggregated_item
from tamis.query.selects.joined_streams import joined_item
from tamis.query.selects.joins.asof import asof_clause
from tamis.query.selects.scope import FromItem, FromScope
from tamis.query.selects.subqueries import ResolveQuery, subquery_in_from
from tamis.query.syntax.cursor import LONGEST_NAME, Name, name_of
from tamis.query.syntax.dialect import span
from tamis.query.unsupported import unsupported_expression, unsupported_function
from tamis.wording.names import suggest

S = TypeVar("S", bound=FromScope)


def equalities(context: Context, join: exp.Expr, scope: S) -> tuple[S, list[exp.Expr]]:
    """The conditions that USING of the last item of FROM stands for, and the scope from then on: an
    unqualified name of these columns means that of the earlier stream. Names that aren't known are reported.
    """
    *earlier, joined = scope.items
    found: list[exp.Expr] = []
    seen: set[str] = set()
    for column in join.args.get("using") or []:
        name = name_of(column).text
        if name in seen:
            context.error_once(f"'{name}' stands twice in USING", column, "leave one of them out")
            continue
        seen.add(name)
        if any(item.columns is None for item in scope.items):
            continue
        having = [item for item in earlier if name in (item.columns or {})]
        having = [item for item in having if (item.alias, name) not in scope.merged]
        if not having or name not in (joined.columns or {}):
            where = "the stream that is joined" if having else "no stream before this JOIN"
            what = f"{where} has no column '{name}'" if having else f"{where} has a column '{name}'"
            known = (
                joined.columns or {} if having else [one for item in earlier for one in item.columns or {}]
            )
            context.error_once(what, column, suggest(name, known))
        elif len(having) > 1:
            choices = " or ".join(f"{item.alias}.{name} = {joined.alias}.{name}" for item in having)
            what = f"'{name}' is ambiguous: several streams before this JOIN have this column"
            context.error(what, column, f"write ON {choices}")
        else:
            scope = replace(scope, merged=scope.merged | {(joined.alias, name)})
            found.append(_equality(column, having[0].alias, joined.alias, name))
    return scope, found


def _equality(place: exp.Expr, left: str, right: str, name: str) -> exp.Expr:
    sides = [
        exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))
        for alias in (left, right)
    ]
    node = exp.EQ(this=sides[0], expression=sides[1])
    for part in (node, *sides):
        part.meta["span"] = span(place)
    node.meta["shown"] = f"{left}.{name} = {right}.{name}"
    return node


# A join of more streams has no practical use, and the shortest paths of its time bounds take cubic time.
MOST_SOURCES = 16
# Of a compound alias `a.b.c` of joining derived streams: the plans, which every service reads, contain it.
LONGEST_ALIAS = 1_000


@dataclass(frozen=True)
class Condition:
    """The condition of an ON or WHERE. It can name the first `visible` items of FROM."""

    clause: str
    node: exp.Expr
    visible: int


def resolve_from(
    context: Context,
    node: exp.Select,
    scope: S,
    offset: int,
    resolve: ResolveQuery,
    *,
    apart: Callable[[exp.Expr, S], S | None] = lambda join, scope: None,
) -> tuple[S, list[Condition]]:
    """The scope with the items and the ASOF JOINs of FROM, and the conditions of WHERE and of ON of other
    joins. `resolve` is for its subqueries. A join for which `apart` returns the next scope is left out.
    """
    conditions: list[Condition] = []
    clause = node.args.get("from_")
    if clause is None:
        if not context.recovered:
            context.error("this SELECT has no FROM", offset, "write SELECT … FROM stream")
        scope = replace(scope, items=(FromItem("", "", None),), visible=1)
    else:
        scope = add_item(context, clause.this, scope, resolve)
    for join in node.args.get("joins") or []:
        asof = asof_clause(context, join, len(scope.items))
        if asof is None and (after := apart(join, scope)) is not None:
            scope = after
            continue
        if asof is None:
            _check_join(context, join)
        scope = add_item(context, join.this, scope, resolve)
        if asof is not None:
            scope = replace(scope, asof=(*scope.asof, asof))
        elif join.args.get("on") is not None:
            conditions.append(Condition("ON", join.args["on"], len(scope.items)))
        else:
            scope, equal = equalities(context, join, scope)
            conditions += [Condition("USING", one, len(scope.items)) for one in equal]
    if node.args.get("where") is not None:
        conditions.append(Condition("WHERE", node.args["where"].this, len(scope.items)))
    return scope, conditions


def _check_join(context: Context, join: exp.Expr) -> None:
    """Refuse all joins except inner joins with ON or USING, cross joins and commas."""
    method, side, kind = (str(join.args.get(key) or "") for key in ("method", "side", "kind"))
    if side or kind == "OUTER":
        what = f"outer joins ({side or kind} JOIN) are not supported"
        hint = "write JOIN … ON, which is an inner join; for missing readings, write NOT EXISTS (SELECT …)"
        context.error(what, join, hint)
    elif method:
        context.error(f"{method} JOIN is not supported", join, "write JOIN … ON with each condition")
    elif join.args.get("using"):
        return
    elif kind == "CROSS" and join.args.get("on") is not None:
        context.error("CROSS JOIN takes no ON", join, "write JOIN … ON")
    elif kind != "CROSS" and join.args.get("on") is None and context.text.text[span(join)[0]] != ",":
        context.error("this JOIN has no ON", join, "write JOIN … ON condition")


def add_item(context: Context, table: exp.Expr, scope: S, resolve: ResolveQuery) -> S:
    """The scope with one more item of FROM."""
    items = scope.items
    duplicate = False
    item = _item(context, table, resolve)
    if item is None:
        alias = table.args.get("alias")
        identifier = None if alias is None else alias.this
        item = FromItem("" if identifier is None else name_of(identifier).text, "", None)
    elif {item.alias, *(source.alias for source in item.sources)} & scope.aliases:
        hint = f"give one of them another name: {item.stream} AS other"
        context.error(f"two streams in FROM have the name '{item.alias}'", table, hint)
        duplicate = True
        alike = item.alias
        items = tuple(replace(one, columns=None) if one.alias == alike else one for one in items)
        item = replace(item, columns=None)
    _check_alias(context, table, item)
    items = (*items, replace(item, offset=span(table)[0]))
    count = sum(max(1, len(other.sources)) for other in items)
    if count > MOST_SOURCES >= count - max(1, len(item.sources)):
        context.error(f"a query can read at most {MOST_SOURCES} streams", table, "join fewer streams")
    for join in table.args.get("joins") or []:
        context.error("nested joins are not supported", join, "write one JOIN … ON after the other")
    return replace(scope, items=items, visible=len(items), duplicate_alias=scope.duplicate_alias or duplicate)


def _check_alias(context: Context, table: exp.Expr, item: FromItem) -> None:
    if len(item.alias) > LONGEST_NAME:
        what = f"the name of a stream in FROM can have at most {LONGEST_NAME} characters"
    elif any(len(source.alias) > LONGEST_ALIAS for source in item.sources):
        what = f"together with the names in its derived streams, this name exceeds {LONGEST_ALIAS} characters"
    else:
        return
    context.error(what, table, "choose a shorter name after AS")


def _item(context: Context, table: exp.Expr, resolve: ResolveQuery) -> FromItem | None:
    """The stream, table or subquery of one item of FROM; None if it is none of them, which is reported."""
    if isinstance(table, exp.Subquery):
        found = subquery_in_from(context, table, resolve)
        return None if found is None else _derived(found.name, found)
    if not isinstance(table, exp.Table):
        refused = unsupported_expression(table)
        what, hint = refused or ("this isn't a stream", "write the name of a stream")
        context.error(what, table, hint)
        return None
    window = None
    identifier: exp.Expr | None = table.this
    if isinstance(identifier, exp.Anonymous):
        function = str(identifier.this).lower()
        if function not in windows.USAGE:
            refusal = unsupported_function(function)
            calls = [name.upper() for name in windows.USAGE]
            meant = suggest(function.upper(), calls, "write the name of a stream")
            what, hint = refusal or (f"{function}(…) isn't a stream", meant)
            context.error(what, table, hint)
            return None
        window = windows.window_call(context, identifier)
        identifier = window.stream
        if identifier is None:
            return None
    alias = table.args.get("alias")
    others = [key for key, value in table.args.items() if value and key not in ("this", "alias", "joins")]
    renames_columns = alias is not None and alias.args.get("columns")
    if others or not isinstance(identifier, exp.Identifier) or renames_columns:
        what = f"'{context.source(table)[:60]}' isn't a stream"
        context.error(what, table, "write the name of a stream, with or without AS and another name")
        return None
    name = name_of(identifier)
    item = _defined(context, table, name_of(alias.this).text if alias is not None else name.text, name)
    return item if window is None else _windowed(context, table, item, window)


def _defined(context: Context, table: exp.Expr, alias: str, name: Name) -> FromItem:
    """The stream or table of the catalogue with a name. If there is none, that is reported."""
    catalog = context.catalog
    if name.text in context.subqueries:
        subquery = context.subqueries[name.text]
        return FromItem(alias, name.text, None) if subquery is None else _derived(alias, subquery)
    if name.text in context.broken_streams:
        return FromItem(alias, name.text, None)
    stream = catalog.raw_stream(name.text)
    if stream is not None:
        return _base(alias, stream)
    if name.text in catalog.tables:
        return _base(alias, catalog.tables[name.text])
    if name.text in catalog.derived:
        return _derived(alias, catalog.derived[name.text], context.text.position(span(table)[0]))
    if "stream" not in context.incomplete:
        known = [*context.subqueries, *catalog.raw_streams, *catalog.derived, *catalog.tables]
        context.error(f"there is no stream '{name.text}'", name.offset, suggest(name.text, known))
        context.broken_streams.add(name.text)
    return FromItem(alias, name.text, None)


def _windowed(context: Context, table: exp.Expr, item: FromItem, window: windows.WindowCall) -> FromItem:
    """An item of FROM in windows; without columns if it can't have windows, which is reported."""
    if item.sources and all(context.stream(one) is None for one in item.sources):
        what = f"windows need event time, and '{item.stream}' is a table"
        context.error(what, table, "join the table without a window")
        return FromItem(item.alias, item.stream, None)
    if len(item.sources) > 1:
        item = joined_item(context, table, item, window.time)
    if item.sources:
        (source,) = item.sources
        base = context.stream(source)
        assert base is not None, "tables are refused above"
        columns = item.columns or {}
        windowed = windows.windowed_source(context, window, source, columns, base)
        return replace(
            item,
            sources=() if windowed is None else (windowed,),
            columns=windows.with_window_columns(columns, item.alias),
        )
    return item


def _base(alias: str, stream: StreamDef | TableDef) -> FromItem:
    columns: dict[str, Expr] = {c.name: Column(alias, c.name, c.type) for c in stream.columns}
    return FromItem(alias, stream.name, columns, (Source(alias, stream.name),))


def _derived(alias: str, derived: DerivedDef, position: Position | None = None) -> FromItem:
    """A derived stream, whose conditions are shown at `position`, or a subquery, which has no position: its
    conditions are shown where they are.
    """
    if derived.aggregates:
        return aggregated_item(alias, derived, named=position is not None)
    query = last_query(derived.query)
    inner = query.sources
    name = () if position is None else (derived.name,)

    def compound(inner_alias: str) -> str:
        return alias if len(inner) == 1 else f"{alias}.{inner_alias}"

    def renamed(expr: Expr) -> Expr:
        return substitute(expr, lambda column: Column(compound(column.alias), column.name, column.type))

    return FromItem(
        alias,
        derived.name,
        {output.name: renamed(output.expr) for output in query.select},
        tuple(replace(one, alias=compound(one.alias), via=(*name, *one.via)) for one in inner),
        tuple(
            Conjunct(renamed(c.expr), c.text, c.position if position is None else position)
            for c in query.conjuncts
        ),
        inlined=True,
    )
