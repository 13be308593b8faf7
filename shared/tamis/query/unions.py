"""UNION and UNION ALL of SELECTs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from tamis.expressions.nodes import Type
from tamis.query.context import Context
from tamis.query.dialect import span
from tamis.query.model import Query

Resolve = Callable[[Context, exp.Expr, int], Query | None]

_APART = "write an alert of its own for each SELECT"


def resolve_union(context: Context, node: exp.Expr, offset: int, resolve: Resolve) -> Query | None:
    """The union that a set operation stands for; None where mistakes were reported."""
    kind = type(node).__name__.upper()
    if not isinstance(node, exp.Union):
        context.error(f"{kind} isn't executed yet", offset, _APART)
        return None
    selects: list[exp.Expr] = []
    ways = set()
    rest: exp.Expr = node
    while isinstance(rest, exp.Union):
        ways.add(bool(rest.args.get("distinct")))
        clauses = [key for key in ("order", "limit", "offset", "with_", "by_name") if rest.args.get(key)]
        if clauses:
            what = f"{clauses[0].strip('_').upper()} of a UNION isn't executed"
            context.error(what, offset, "leave it out")
            return None
        selects.insert(0, rest.expression)
        rest = rest.this
    selects.insert(0, rest)
    if len(ways) > 1:
        context.error(
            "UNION and UNION ALL in one query aren't executed", offset, "write one of them throughout"
        )
        return None
    before = len(context.errors)
    found = [resolve(context, one, offset if one is selects[0] else span(one)[0]) for one in selects]
    members = [one for one in found if one is not None]
    if len(members) < len(found) or len(context.errors) > before:
        return None
    for member, select in zip(members, selects, strict=True):
        _check(context, member, members[0], offset if select is selects[0] else span(select)[0])
        if len(context.errors) > before:
            return None
    (distinct,) = ways
    timeless = all(member.timeless for member in members)
    return Query(
        tuple(source for member in members for source in member.sources),
        (),
        members[0].select,
        distinct,
        timeless,
        None,
        tuple(
            replace(
                member,
                distinct=member.distinct or distinct,
                timeless=timeless,
                in_time=not timeless,
            )
            for member in members
        ),
        not timeless,
    )


def _check(context: Context, member: Query, first: Query, offset: int) -> None:
    if member.window is not None:
        context.error("UNION isn't executed over windows", offset, _APART)
    elif member.grouping is not None:
        context.error("UNION of aggregates isn't executed", offset, _APART)
    elif [_kind(one.expr.type) for one in member.select] != [_kind(one.expr.type) for one in first.select]:
        hint = "select as many columns in each SELECT, of the same types"
        context.error("the SELECTs of a UNION have different columns", offset, hint)


def _kind(type_: Type) -> Type:
    return Type.BIGINT if type_ is Type.INT else type_
