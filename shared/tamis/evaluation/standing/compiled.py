"""Which kind of standing query a query is."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tamis.errors import InputError
from tamis.evaluation.standing.contract import Standing
from tamis.evaluation.standing.in_time import InTime
from tamis.evaluation.standing.timeless import timeless
from tamis.evaluation.standing.windowed import WindowedGroups
from tamis.planning.application_time import open_ended
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query
from tamis.query.parse import catalog_of
from tamis.query.reach import ANYWHERE, Reach


def standing(sql: str, name: str, reach: Reach = ANYWHERE) -> Standing:
    """The alert or derived stream `name` of self-contained statements, fresh. `reach`: of its tables' paths.

    Raises SqlErrors for the statements, InputError where they define no such query or it keeps no synopses,
    RefusedError where a table is out of reach.
    """
    catalog = _read(sql, reach)
    queries: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
    if name not in queries:
        raise InputError(f"no query {name!r} is defined", where="standing query")
    found = compiled(queries[name].query, catalog)
    if found is None:
        raise InputError(f"query {name!r} is a join by time, which keeps no synopses", where="standing query")
    return found


# A joiner begins the same query once for each of its partitions.
@lru_cache(maxsize=1_000)
def _read(sql: str, reach: Reach) -> Catalog:
    return replace(catalog_of(sql), reach=reach)


def compiled(query: Query, catalog: Catalog) -> Standing | None:
    """A query as a standing one, fresh; None for a join by time. Each kind has one line here."""
    if query.timeless:
        return timeless(query, catalog)
    if query.grouping is not None:
        return WindowedGroups(query, catalog)
    if query.in_time or open_ended(query, catalog):
        return InTime(query, catalog)
    return None
