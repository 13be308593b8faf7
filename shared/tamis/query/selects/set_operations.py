"""A query: one SELECT, or UNION and UNION ALL of several."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import assert_never

from sqlglot import exp

from tamis.expressions.nodes import Type
from tamis.query.context import Context
from tamis.query.model import (
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Query,
    SelectQuery,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    UnionQuery,
    WindowGroupBy,
    is_distinct,
)
from tamis.query.scalars.operators import NULL, typed
from tamis.query.selects.select import resolve_select
from tamis.query.selects.subqueries import named_subqueries
from tamis.query.syntax.dialect import span

_SEPARATE_ALERTS = "write an alert of its own for each SELECT"
_CLAUSES = ("order", "limit", "offset", "by_name")


def resolve_query(context: Context, node: exp.Expr, offset: int) -> Query | None:
    """The query of a syntax tree; None if a mistake was reported. `offset` is where its text begins."""
    if not isinstance(node, exp.SetOperation):
        return resolve_select(context, node, offset, resolve_query)
    if not isinstance(node, exp.Union):
        kind = type(node).__name__.upper()
        context.error(f"{kind} is not supported yet", offset, _SEPARATE_ALERTS)
        return None
    with named_subqueries(context, node, resolve_query):
        return _union(context, node, offset)


def _union(context: Context, node: exp.Union, offset: int) -> Query | None:
    """The query of a UNION."""
    operands = _operands(context, node, offset)
    if operands is None:
        return None
    selects, distinct = operands
    offsets = [offset, *(span(select)[0] for select in selects[1:])]
    before = len(context.errors)
    pairs = zip(selects, offsets, strict=True)
    queries = [resolve_select(context, one, at, resolve_query) for one, at in pairs]
    members = [query for query in queries if query is not None]
    if len(members) < len(queries) or len(context.errors) > before:
        return None
    members = _with_types(members)
    for member, at in zip(members, offsets, strict=True):
        if (refusal := _refusal(member)) is not None:
            context.error(refusal, at, _SEPARATE_ALERTS)
            return None
        if _column_types(member) != _column_types(members[0]):
            hint = "select the same number of columns, with the same types, in each SELECT"
            context.error("the SELECTs of a UNION have different columns", at, hint)
            return None
    return _together(members, distinct)


def _operands(context: Context, node: exp.Union, offset: int) -> tuple[list[exp.Expr], bool] | None:
    """The SELECTs of a UNION in the order of the text, and True if duplicates are eliminated; None if a
    mistake was reported.
    """
    selects: list[exp.Expr] = []
    distincts = set()
    rest: exp.Expr = node
    while isinstance(rest, exp.Union):
        distincts.add(bool(rest.args.get("distinct")))
        # The WITH of the whole query is resolved before.
        clauses = _CLAUSES if rest is node else (*_CLAUSES, "with_")
        clause = next((key for key in clauses if rest.args.get(key)), None)
        if clause is not None:
            what = f"{clause.strip('_').replace('_', ' ').upper()} of a UNION is not supported"
            context.error(what, offset, "leave it out")
            return None
        selects.insert(0, rest.expression)
        rest = rest.this
    if len(distincts) > 1:
        context.error(
            "a query can't mix UNION and UNION ALL", offset, "use the same one between all of its SELECTs"
        )
        return None
    return [rest, *selects], distincts.pop()


def _refusal(query: SelectQuery) -> str | None:
    """The refusal of a query that can't be a member of a UNION; None if it can."""
    match query:
        case WindowGroupBy() | SessionGroupBy() | NestedQuery():
            return "UNION over windows is not supported"
        case JoinByTime() if query.windowed:
            return "UNION over windows is not supported"
        case LatestValueJoin():
            return "UNION of queries with ASOF JOIN is not supported"
        case JoinByTime() if query.exists or query.absences:
            return "UNION with EXISTS or NO READING is not supported"
        case TimelessGroupBy():
            return "UNION of aggregates is not supported"
        case JoinByTime() | TimelessSelect() | ApplicationTimeSelect():
            return None
        case _:
            assert_never(query)


def _with_types(members: list[SelectQuery]) -> list[SelectQuery]:
    """The SELECTs of a UNION with a typed NULL for each word NULL: the type is that of the column in another
    SELECT.
    """
    found = [
        next((one.expr.type for one in column if one.expr is not NULL), None)
        for column in zip(*(member.select for member in members), strict=False)
    ]
    return [
        replace(
            member,
            select=tuple(
                one if kind is None else replace(one, expr=typed(one.expr, kind))
                for one, kind in zip_longest(member.select, found[: len(member.select)])
            ),
        )
        for member in members
    ]


def _column_types(query: SelectQuery) -> list[Type]:
    """The types of a query's columns; INT counts as BIGINT."""
    types = [output.expr.type for output in query.select]
    return [Type.BIGINT if type_ is Type.INT else type_ for type_ in types]


def _together(members: list[SelectQuery], distinct: bool) -> UnionQuery:
    """The union of queries. All are evaluated in the same way: timeless if each of them is, else in
    application time.
    """
    sources = tuple(source for member in members for source in member.sources)
    select = members[0].select
    watched = tuple({one.name: one for member in members for one in member.watched}.values())
    timeless = tuple(
        replace(member, distinct=member.distinct or distinct)
        for member in members
        if isinstance(member, TimelessSelect)
    )
    if len(timeless) == len(members):
        return TimelessUnion(sources, (), select, watched=watched, members=timeless, distinct=distinct)
    in_time = tuple(
        ApplicationTimeSelect(
            member.sources,
            member.conjuncts,
            member.select,
            watched=member.watched,
            distinct=is_distinct(member) or distinct,
        )
        for member in members
    )
    return ApplicationTimeUnion(sources, (), select, watched=watched, members=in_time, distinct=distinct)
