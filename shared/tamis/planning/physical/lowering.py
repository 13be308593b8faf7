"""From a query to the node of its operator."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tamis.bounded.application_time.verdict import open_ended
from tamis.declarations.file_access import UNRESTRICTED, FileAccess
from tamis.errors import InputError
from tamis.operators.build import operator
from tamis.operators.contract import StandingEvaluator
from tamis.plan import nodes
from tamis.planning.physical.application_time import application_time
from tamis.planning.physical.time_joins import latest_values, time_join
from tamis.planning.physical.timeless import groups, rows, union
from tamis.planning.physical.windows import sessions, windows
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query
from tamis.query.parse import catalog_of


def lowered(query: Query, catalog: Catalog) -> nodes.Node | None:
    """The node of a query; None for a join by time, which keeps tuples in place of synopses.

    Raises InputError if the file of a table can't be read, and RefusedError if it is outside of the permitted
    directories.
    """
    if query.nested is not None:
        inner = tuple(
            nodes.InnerRows(
                stream.name,
                str(stream.time),
                tuple((column.name, column.type) for column in stream.columns if column.name != stream.time),
                _standing(stream.query, catalog),
            )
            for stream in query.nested.streams
        )
        return nodes.Nested(inner, _standing(query.nested.query, catalog.with_streams(query.nested.streams)))
    if query.timeless:
        if query.members:
            return union(query, catalog)
        return rows(query, catalog) if query.grouping is None else groups(query, query.grouping, catalog)
    if query.asof:
        return latest_values(query, catalog)
    if query.timed_by is not None:
        return time_join(query, query.timed_by, catalog)
    if query.session is not None:
        return sessions(query, query.session, catalog)
    if query.grouping is not None:
        return windows(query, catalog)
    if query.in_time or open_ended(query, catalog):
        return application_time(query, catalog)
    return None


def _standing(query: Query, catalog: Catalog) -> nodes.Node:
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
    catalog = _catalog(sql, file_access)
    queries: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
    if name not in queries:
        raise InputError(f"no query {name!r} is defined", where="standing query")
    node = lowered(queries[name].query, catalog)
    if node is None:
        raise InputError(f"query {name!r} is a join by time, which keeps no synopses", where="standing query")
    return node


# A joiner compiles the same query once for each of its partitions.
@lru_cache(maxsize=1_000)
def _catalog(sql: str, file_access: FileAccess) -> Catalog:
    return replace(catalog_of(sql), file_access=file_access)


def standing_evaluator(sql: str, name: str, file_access: FileAccess = UNRESTRICTED) -> StandingEvaluator:
    """The operator of `standing_node`, with empty state."""
    return operator(standing_node(sql, name, file_access), file_access)
