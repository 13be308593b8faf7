"""Columns of a query's rows, and values of the keys of its alarms, that are times."""

from __future__ import annotations

from tamis.expressions.nodes import Type
from tamis.plan.model import Definition, Plan, StandingQuery
from tamis.plan.nodes import select_of


def time_columns(query: Definition | StandingQuery) -> tuple[str, ...]:
    """The names of the columns of the type TIMESTAMP."""
    select = query.select if isinstance(query, Definition) else select_of(query.node)
    return tuple(name for name, expr in select if expr.type is Type.TIMESTAMP)


def key_times(query: Definition | StandingQuery, plan: Plan) -> tuple[int, ...]:
    """The positions of the values in the keys of a query's alarms that are of the type TIMESTAMP."""
    if isinstance(query, StandingQuery):
        key, times = query.key, set(time_columns(query))  # the key has columns of the row
    elif query.inputs:
        first = query.inputs[0]
        key = first.partition_key
        times = {
            column.name
            for stream in plan.streams
            if stream.name == first.stream
            for column in stream.columns
            if column.type is Type.TIMESTAMP
        }
    else:
        return ()
    return tuple(place for place, name in enumerate(key) if name in times)
