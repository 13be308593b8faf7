"""The keys of a query's alarms, and which of their values, and of its rows' columns, are times."""

from __future__ import annotations

from tamis.expressions.nodes import Type
from tamis.plan.model import Definition, Plan, StandingQuery
from tamis.plan.nodes import select_of


def time_columns(query: Definition | StandingQuery) -> tuple[str, ...]:
    """The names of the columns of the type TIMESTAMP."""
    select = query.select if isinstance(query, Definition) else select_of(query.node)
    return tuple(name for name, expr in select if expr.type is Type.TIMESTAMP)


def key_columns(query: Definition | StandingQuery) -> tuple[str, ...]:
    """The columns whose values are the keys of a query's alarms."""
    if isinstance(query, StandingQuery):
        return query.key
    return query.inputs[0].partition_key if query.inputs else ()


def key_times(query: Definition | StandingQuery, plan: Plan) -> tuple[int, ...]:
    """The positions of the values in the keys of a query's alarms that are of the type TIMESTAMP."""
    if isinstance(query, StandingQuery):
        times = set(time_columns(query))  # the key has columns of the row
    else:
        times = {
            column.name
            for stream in plan.streams
            if query.inputs and stream.name == query.inputs[0].stream
            for column in stream.columns
            if column.type is Type.TIMESTAMP
        }
    return tuple(place for place, name in enumerate(key_columns(query)) if name in times)
