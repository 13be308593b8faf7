"""Columns of a query's rows that are times."""

from __future__ import annotations

from tamis.expressions.nodes import Type
from tamis.plan.model import Definition, StandingQuery
from tamis.query.parse import catalog_of


def time_columns(query: Definition | StandingQuery) -> tuple[str, ...]:
    """The names of the columns of the type TIMESTAMP. Those of a standing query are in its SQL."""
    if isinstance(query, StandingQuery):
        chosen = catalog_of(query.sql).alerts[query.alert].query.select
        return tuple(one.name for one in chosen if one.expr.type is Type.TIMESTAMP)
    return tuple(name for name, expr in query.select if expr.type is Type.TIMESTAMP)
