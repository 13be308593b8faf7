"""From a query to the node of its operator."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tamis.bounded.application_time.verdict import open_ended
from tamis.bounded.timeless.verdict import chosen_representatives, counted_form
from tamis.declarations.file_access import UNRESTRICTED, FileAccess
from tamis.errors import InputError
from tamis.operators.build import operator
from tamis.operators.contract import StandingEvaluator
from tamis.plan import nodes
from tamis.planning.physical.application_time import application_time
from tamis.planning.physical.time_joins import latest_values, time_join
from tamis.planning.physical.timeless import groups, representatives, represented_groups, rows, union
from tamis.planning.physical.windows import sessions, windows
from tamis.query.model import (
    AlertDef,
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    Catalog,
    DerivedDef,
    InnerQuery,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    OuterQuery,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
)
from tamis.query.parse import catalog_of


def lowered(query: Query, catalog: Catalog) -> nodes.Node | None:
    """The node of a query; None for a join by time, which keeps tuples in place of synopses.

    Raises InputError if the file of a table can't be read, and RefusedError if it is outside of the permitted
    directories.
    """
    match query:
        case JoinByTime() if query.timed_by is not None:
            return time_join(query, query.timed_by, catalog)
        case JoinByTime():
            return application_time(query, catalog) if open_ended(query, catalog) else None
        case LatestValueJoin():
            return latest_values(query, catalog)
        case WindowGroupBy():
            return windows(query, catalog)
        case SessionGroupBy():
            return sessions(query, catalog)
        case TimelessSelect():
            found = chosen_representatives(query, catalog)
            return rows(query, catalog) if found is None else representatives(query, found, catalog)
        case TimelessGroupBy():
            found = chosen_representatives(query, catalog)
            if found is not None:
                return represented_groups(query, found, catalog)
            return groups(counted_form(query, catalog), catalog)
        case TimelessUnion():
            return union(query, catalog)
        case ApplicationTimeSelect() | ApplicationTimeUnion():
            return application_time(query, catalog)
        case NestedQuery():
            return _nested(query, catalog)
        case _:
            assert_never(query)


def _nested(query: NestedQuery, catalog: Catalog) -> nodes.Nested:
    inner = tuple(
        nodes.InnerRows(
            stream.name,
            str(stream.time),
            tuple((column.name, column.type) for column in stream.columns if column.name != stream.time),
            _standing(stream.query, catalog),
        )
        for stream in query.streams
    )
    return nodes.Nested(inner, _standing(query.query, catalog.with_streams(query.streams)))


def _standing(query: InnerQuery | OuterQuery, catalog: Catalog) -> nodes.Node:
    """The node of one of the queries of a nested query, which all keep synopses."""
    node = lowered(query, catalog)
    assert node is not None, "rows of aggregates are taken in application time or in windows"
    return node


def standing_node(sql: str, name: str, file_access: FileAccess = UNRESTRICTED) -> nodes.Node:
    """The node of the alert or derived stream `name` of self-contained statements.

    `file_access` limits the paths of its tables. Raises SqlErrors for mistakes in the statements; InputError
    if they define no query of this name, or if it is a join by time; RefusedError if a table is outside of
    the permitted directories.
    """
    catalog = replace(catalog_of(sql), file_access=file_access)
    queries: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
    if name not in queries:
        raise InputError(f"no query {name!r} is defined", where="standing query")
    node = lowered(queries[name].query, catalog)
    if node is None:
        raise InputError(f"query {name!r} is a join by time, which keeps no synopses", where="standing query")
    return node


def standing_evaluator(sql: str, name: str, file_access: FileAccess = UNRESTRICTED) -> StandingEvaluator:
    """The operator of `standing_node`, with empty state."""
    return operator(standing_node(sql, name, file_access), file_access)
