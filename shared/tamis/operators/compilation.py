"""Compilation of a query to a standing query of the right kind, also of a query over rows of others.

A query over rows of aggregates is a chain of evaluators with one state. The rows of an inner query are tuples
of the query that reads them, and are taken in order of event time. The inner query promises that no later row
will be earlier, which is the watermark of the outer one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Protocol, assert_never, runtime_checkable

import numpy as np
import orjson

from tamis.bounded.application_time.verdict import open_ended
from tamis.declarations.file_access import UNRESTRICTED, FileAccess
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.vectors import Vector
from tamis.operators.application_time.query import ApplicationTimeQuery
from tamis.operators.contract import Batch, CountsLate, Rows, StandingEvaluator
from tamis.operators.latest_values import LatestValues
from tamis.operators.row_store import DistinctRows
from tamis.operators.state import pack_state, unpack_state
from tamis.operators.time_join.rows_by_time import TimedJoin
from tamis.operators.timeless.groups import Groups
from tamis.operators.timeless.rows import SelectProjectJoin, Union
from tamis.operators.windows.groups import WindowedGroups
from tamis.operators.windows.sessions import SessionGroups
from tamis.query.model import (
    AlertDef,
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    Catalog,
    DerivedDef,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
)
from tamis.query.parse import catalog_of


@runtime_checkable
class RowsInOrder(Protocol):
    """An evaluator whose rows come in order of event time."""

    @property
    def passed(self) -> int | None:
        """No later row has an event time before this one, in microseconds; None if nothing is known yet."""


class NestedEvaluator:
    """See `StandingEvaluator`. `late` counts the tuples that arrived too late for one of its queries."""

    def __init__(self, nested: NestedQuery, catalog: Catalog) -> None:
        self._inner: list[tuple[StreamDef, StandingEvaluator]] = []
        for stream in nested.streams:
            self._inner.append((stream, _standing(stream.query, catalog)))
        self._outer = _standing(nested.query, catalog.with_streams(nested.streams))
        raw = frozenset().union(*(one.streams for _, one in self._inner))
        first = nested.streams[0]
        none = {column.name: Vector.from_list([], column.type) for column in first.columns}
        self._nothing = self._outer.take(first.name, none, 0)
        self.streams: frozenset[str] = raw | (self._outer.streams - {one.name for one in nested.streams})

    @property
    def late(self) -> int:
        """See `CountsLate`."""
        every = (*(one for _, one in self._inner), self._outer)
        return sum(one.late for one in every if isinstance(one, CountsLate))

    @property
    def passed(self) -> int | None:
        """See `RowsInOrder`."""
        return self._outer.passed if isinstance(self._outer, RowsInOrder) else None

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `StandingEvaluator`. Rows of aggregates come only with the watermark."""
        for _, inner in self._inner:
            if stream in inner.streams:
                inner.take(stream, batch, rows)
        return self._outer.take(stream, batch, rows) if stream in self._outer.streams else self._nothing

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `StandingEvaluator`."""
        parts: list[Rows] = []
        for made, inner in self._inner:
            if stream not in inner.streams:
                continue
            found = inner.advance(stream, watermark)
            parts.append(self._outer.take(made.name, tuples_of(made, found), len(found)))
            passed = inner.passed if isinstance(inner, RowsInOrder) else None
            if passed is not None:
                parts.append(self._outer.advance(made.name, passed))
        if stream in self._outer.streams:
            parts.append(self._outer.advance(stream, watermark))
        return Rows.concat([one for one in parts if len(one)] or parts[:1])

    def entries(self) -> int:
        """See `StandingEvaluator`: those of all queries."""
        return self._outer.entries() + sum(one.entries() for _, one in self._inner)

    def dump(self) -> bytes:
        """See `StandingEvaluator`."""
        every = (*(one for _, one in self._inner), self._outer)
        return pack_state(["nested"], [orjson.Fragment(one.dump()) for one in every])

    def load(self, state: bytes) -> None:
        """See `StandingEvaluator`."""
        every = (*(one for _, one in self._inner), self._outer)
        for one, kept in zip(every, unpack_state(state, ["nested"]), strict=True):
            one.load(orjson.dumps(kept))


def tuples_of(stream: StreamDef, rows: Rows) -> dict[str, Vector]:
    """Rows of aggregates as tuples of the stream that they are."""
    assert stream.time is not None
    times = np.empty(0, np.int64) if rows.times is None else rows.times
    named = {
        column.name: rows.columns[column.name] for column in stream.columns if column.name != stream.time
    }
    return {**named, stream.time: Vector(np.asarray(times, np.int64))}


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
    match query:
        case JoinByTime() if query.timed_by is not None:
            return TimedJoin(query, catalog)
        case JoinByTime():
            return ApplicationTimeQuery(query, catalog) if open_ended(query, catalog) else None
        case LatestValueJoin():
            return LatestValues(query, catalog)
        case WindowGroupBy():
            return WindowedGroups(query, catalog)
        case SessionGroupBy():
            return SessionGroups(query, catalog)
        case TimelessSelect():
            return SelectProjectJoin(query, catalog, DistinctRows() if query.distinct else None)
        case TimelessGroupBy():
            return Groups(query, query.grouping, catalog)
        case TimelessUnion():
            return Union(query, catalog)
        case ApplicationTimeSelect() | ApplicationTimeUnion():
            return ApplicationTimeQuery(query, catalog)
        case NestedQuery():
            return NestedEvaluator(query, catalog)
        case _:
            assert_never(query)


def _standing(query: Query, catalog: Catalog) -> StandingEvaluator:
    """One of the queries of a nested query, which are all standing queries."""
    found = compile_query(query, catalog)
    assert found is not None, "rows of aggregates are taken in application time or in windows"
    return found
