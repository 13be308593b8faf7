"""Subqueries in FROM and in WITH: derived streams without a statement of their own.

They are inlined into the query that reads them, as derived streams are, and nothing else can see them. Their
mistakes and conditions keep their own places in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from tamis.query.context import Context
from tamis.query.model import (
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    DerivedDef,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Output,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
)
from tamis.query.syntax.cursor import name_of
from tamis.query.syntax.dialect import span
from tamis.query.unsupported import USE_WINDOWS
from tamis.wording.names import counted

ResolveQuery = Callable[[Context, exp.Expr, int], Query | None]
"""Resolves a SELECT or UNION, which begins at an offset; None if a mistake was reported."""

UNNAMED = "subquery"  # the name of a subquery in FROM without one
_USAGE = "write FROM (SELECT …) AS name"


@contextmanager
def named_subqueries(context: Context, node: exp.Expr, resolve: ResolveQuery) -> Iterator[None]:
    """The subqueries of the WITH of `node` can be named within this block. Each sees those before it. A name
    hides a stream with the same name.
    """
    clause = node.args.get("with_")
    outer = context.subqueries
    context.subqueries = dict(outer)
    own: set[str] = set()
    for one in [] if clause is None else clause.expressions:
        alias = one.args["alias"]
        name = name_of(alias.this)
        found = subquery(context, one.this, name.text, alias.args.get("columns") or (), resolve)
        if name.text in own:
            hint = "give one of them another name"
            context.error(f"two subqueries of WITH have the name '{name.text}'", name.offset, hint)
            found = None
        own.add(name.text)
        context.subqueries[name.text] = found
    try:
        yield
    finally:
        context.subqueries = outer


def subquery_in_from(context: Context, table: exp.Expr, resolve: ResolveQuery) -> DerivedDef | None:
    """The SELECT in parentheses of an item of FROM; None if a mistake was reported."""
    if isinstance(table.this, exp.Table):
        context.error("nested joins are not supported", table, "write one JOIN … ON after the other")
        return None
    alias = table.args.get("alias")
    others = [key for key, value in table.args.items() if value and key not in ("this", "alias", "joins")]
    if others:
        what = f"'{context.source(table)[:60]}' isn't a subquery"
        context.error(what, table, _USAGE)
        return None
    name = UNNAMED if alias is None or alias.this is None else name_of(alias.this).text
    columns = () if alias is None else alias.args.get("columns") or ()
    return subquery(context, table.this, name, columns, resolve)


def subquery(
    context: Context, node: exp.Expr, name: str, columns: Sequence[exp.Expr], resolve: ResolveQuery
) -> DerivedDef | None:
    """A subquery as a derived stream; None if a mistake was reported. `columns` are names for its columns."""
    offset = span(node)[0]
    context.around += 1
    query = resolve(context, node, offset)
    context.around -= 1
    if query is None:
        return None
    refusal = _unsupported(query)
    if refusal is not None:
        context.error(refusal[0], offset, refusal[1])
        return None
    if len({output.name for output in query.select}) < len(query.select):
        return None
    if columns and len(columns) != len(query.select):
        what = f"'{name}' has {counted(len(query.select), 'column')}, and {counted(len(columns), 'name')}"
        context.error(what, columns[0], "write one name for each column of its SELECT")
        return None
    if columns:
        names = [name_of(one).text for one in columns]
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            context.error(
                f"two columns of '{name}' have the name '{twice}'", columns[0], "rename one of them"
            )
            return None
        renamed = (Output(new, one.expr) for new, one in zip(names, query.select, strict=True))
        query = replace(query, select=tuple(renamed))
    for stream in query.watched:
        # As after a statement: the query that reads the subquery looks its streams up by name.
        context.catalog.streams.setdefault(stream.name, stream)
    return DerivedDef(name, query, position=context.text.position(offset))


def _unsupported(query: Query) -> tuple[str, str] | None:
    """The refusal of a query that a subquery can't be, and a hint; None if the query is supported."""
    match query:
        case NestedQuery():
            return _unsupported(query.query)
        case TimelessUnion() | ApplicationTimeUnion():
            return "a subquery with a UNION is not supported yet", "write an alert of its own for each SELECT"
        case TimelessGroupBy():
            hint = "write the aggregates in the query itself: their rows change, and a stream's tuples can't;"
            hint += f" for rows of windows, {USE_WINDOWS}"
            return "a subquery with aggregates and without windows is not supported yet", hint
        case SessionGroupBy():
            hint = "write SESSION in the FROM of the query itself"
            return "a subquery with SESSION is not supported yet", hint
        case JoinByTime() if query.windowed:
            hint = (
                "write the windows in the FROM of the query itself: TUMBLE takes the name of a subquery in"
                " WITH"
            )
            return "a subquery with windows is not supported yet", hint
        case LatestValueJoin():
            hint = "write the ASOF JOIN in the query itself"
            return "a subquery with ASOF JOIN is not supported yet", hint
        case TimelessSelect() | ApplicationTimeSelect() if query.distinct:
            return "a subquery with DISTINCT is not supported yet", "write DISTINCT in the query itself"
        case JoinByTime() if query.exists or query.absences:
            hint = "write EXISTS or NO READING in the WHERE of the query itself"
            return "a subquery with EXISTS or NO READING is not supported yet", hint
        case JoinByTime() | TimelessSelect() | ApplicationTimeSelect() | WindowGroupBy():
            return None
        case _:
            assert_never(query)
