"""Compilation of a query to a standing query of the right kind."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tamis.bounded.application_time.verdict import open_ended
from tamis.errors import InputError
from tamis.evaluation.standing.application_time.query import ApplicationTimeQuery
from tamis.evaluation.standing.contract import StandingEvaluator
from tamis.evaluation.standing.distinct_rows import DistinctRows
from tamis.evaluation.standing.latest_values.query import LatestValues
from tamis.evaluation.standing.nested_query import NestedEvaluator
from tamis.evaluation.standing.timed_join import TimedJoin
from tamis.evaluation.standing.timeless.groups import Groups
from tamis.evaluation.standing.timeless.rows import SelectProjectJoin
from tamis.evaluation.standing.timeless.unions import Union
from tamis.evaluation.standing.window_aggregates.groups import WindowedGroups
from tamis.evaluation.standing.window_aggregates.sessions import SessionGroups
from tamis.query.file_access import UNRESTRICTED, FileAccess
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query
from tamis.query.parse import catalog_of


def standing_evaluator(sql: str, name: str, file_access: FileAccess = UNRESTRICTED) -> StandingEvaluator:
    """The alert or derived stream `name` of self-contained statements, with empty state.

    `file_access` limits the paths of its tables. Raises SqlErrors for mistakes in the statements; InputError
    if they define no query of this name, or if it is a join by time; RefusedError if a table is outside of
    the permitted directories.
    """
    catalog = _catalog(sql, file_access)
    queries: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
    if name not in queries:
        raise InputError(f"no query {name!r} is defined", where="standing query")
    found = compile_query(queries[name].query, catalog)
    if found is None:
        raise InputError(f"query {name!r} is a join by time, which keeps no synopses", where="standing query")
    return found


# A joiner compiles the same query once for each of its partitions.
@lru_cache(maxsize=1_000)
def _catalog(sql: str, file_access: FileAccess) -> Catalog:
    return replace(catalog_of(sql), file_access=file_access)


def compile_query(query: Query, catalog: Catalog) -> StandingEvaluator | None:
    """The standing query of a query, with empty state; None for a join by time."""
    if query.nested is not None:
        return NestedEvaluator(query, catalog, _standing)
    if query.timeless:
        return _timeless(query, catalog)
    if query.asof:
        return LatestValues(query, catalog)
    if query.timed_by is not None:
        return TimedJoin(query, catalog)
    if query.session is not None:
        return SessionGroups(query, catalog)
    if query.grouping is not None:
        return WindowedGroups(query, catalog)
    if query.in_time or open_ended(query, catalog):
        return ApplicationTimeQuery(query, catalog)
    return None


def _standing(query: Query, catalog: Catalog) -> StandingEvaluator:
    """One of the queries of a nested query, which are all standing queries."""
    found = compile_query(query, catalog)
    assert found is not None, "rows of aggregates are taken in application time or in windows"
    return found


def _timeless(query: Query, catalog: Catalog) -> StandingEvaluator:
    if query.members:
        return Union(query, catalog)
    if query.grouping is not None:
        return Groups(query, query.grouping, catalog)
    return SelectProjectJoin(query, catalog, DistinctRows() if query.distinct else None)
