"""The reference: an alert's full, unfiltered join, run by DuckDB as the SQL stands.

It shares the parsed SQL with the rest of Tamis and nothing else: no analysis of conjuncts, no omission, no
join of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Call, Column, Expr, Type, aliases
from tamis.expressions.opaque import calls
from tamis.query.model import WINDOW_END, WINDOW_START, Query, Window
from tamis.recordings.typed import Recording
from tamis.verification.database import register, session
from tamis.verification.prune import windows

# Two ways of rounding may differ for a combination this close (relative) to its threshold.
NEAR = 1e-9

_ROW, _LATE, _BUCKET, _START = "_row", "_late", "_bucket", "_start"


@dataclass(frozen=True)
class Reference:
    """The alarms of the plain join: per source the row of its recording; all arrays of one length.

    `starts`: of the windows, where the query has any; a combination is an alarm in each that it lies in.
    `late`: a tuple of the combination was late; `near`: a comparison of several sources is within `NEAR`.
    """

    rows: Mapping[str, NDArray[np.int64]]
    late: NDArray[np.bool_]
    near: NDArray[np.bool_]
    starts: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.late)


def plain_join(query: Query, recordings: Mapping[str, Recording]) -> Reference:
    """All combinations that raise an alarm; `recordings` are by stream."""
    names = [source.alias for source in query.sources]
    with connect(query, recordings) as connection:
        times = {name: recording.stream.time for name, recording in recordings.items()}
        found = connection.sql(_full_join(query, times)).fetchnumpy()
    return Reference(
        rows={a: np.asarray(found[f"r{i}"], np.int64) for i, a in enumerate(names)},
        late=np.asarray(found["late"], np.bool_),
        near=np.asarray(found["near"], np.bool_),
        starts=np.asarray(found["start"], np.int64) if query.window is not None else None,
    )


def _full_join(query: Query, times: Mapping[str, str | None]) -> str:
    """The query as it stands, and equal buckets of time for DuckDB to hash (`prune`). `times`: by stream."""
    names = [source.alias for source in query.sources]
    tied = windows([c.expr for c in query.conjuncts], names)
    tables, where = [], [f"({_sql(c.expr)})" for c in query.conjuncts]
    for source in query.sources:
        stream, at = quote(source.stream), times[source.stream]
        if source.window is not None and at is not None:
            stream = windowed(source.stream, at, source.window)
        window = tied.get(source.alias)
        if window is None:
            tables.append(f"{stream} AS {quote(source.alias)}")
            continue
        time, size = attribute(window.y.name), window.bucket
        first, last = (
            f"CAST(floor_div({time} + {shift}, {size}) AS BIGINT)" for shift in (window.lo, window.hi)
        )
        tables.append(
            f"(SELECT *, unnest(range({first}, {last} + 1)) AS {_BUCKET} FROM {stream})"
            f" AS {quote(source.alias)}"
        )
        where.append(f"floor_div({column_sql(window.x)}, {size}) = {quote(source.alias)}.{_BUCKET}")
    rows = ", ".join(f"{quote(a)}.{_ROW} AS r{i}" for i, a in enumerate(names))
    late = " OR ".join(f"{quote(a)}.{_LATE}" for a in names)
    if query.window is not None:
        rows += f", {quote(names[0])}.{attribute(WINDOW_START)} AS start"
    return (
        f"SELECT {rows}, {late} AS late, {near_sql(query)} AS near FROM {', '.join(tables)}"
        f" WHERE {' AND '.join(where) or 'TRUE'}"
    )


def windowed(stream: str, time: str, window: Window) -> str:
    """The stream with a row for each tuple and each window that holds it."""
    at, slide, size = attribute(time), window.slide, window.size
    first = f"floor_div({at}, {slide}) * {slide} - {size - slide}"
    each = f"SELECT *, unnest(range({first}, {at} + 1, {slide})) AS {_START} FROM {quote(stream)}"
    start, end = attribute(WINDOW_START), attribute(WINDOW_END)
    return f"(SELECT *, {_START} AS {start}, {_START} + {size} AS {end} FROM ({each}))"


def near_threshold(
    query: Query, recordings: Mapping[str, Recording], rows: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Which of the given combinations are within `NEAR` of a threshold."""
    names = [source.alias for source in query.sources]
    count = len(rows[names[0]])
    if count == 0:
        return np.zeros(0, np.bool_)
    with connect(query, recordings) as connection:
        wanted = pa.table({"n": np.arange(count), **{f"r{i}": rows[a] for i, a in enumerate(names)}})
        connection.register("wanted", wanted)
        joins = " ".join(
            f"JOIN {quote(s.stream)} AS {quote(s.alias)} ON {quote(s.alias)}.{_ROW} = wanted.r{i}"
            for i, s in enumerate(query.sources)
        )
        found = connection.sql(f"SELECT n, {near_sql(query)} AS near FROM wanted {joins}").fetchnumpy()
    near = np.zeros(count, np.bool_)
    near[np.asarray(found["n"], np.int64)] = np.asarray(found["near"], np.bool_)
    return near


def near_sql(query: Query) -> str:
    """SQL that holds where a comparison of DOUBLEs over several sources is within `NEAR` of equality."""
    return near_of([c.expr for c in query.conjuncts])


def near_of(conditions: Sequence[Expr]) -> str:
    """The same for some conditions."""
    tests = []
    for left, right in _comparisons(conditions):
        a, b = _sql(left), _sql(right)
        tests.append(f"coalesce(abs(({a}) - ({b})) <= {NEAR!r} * greatest(abs({a}), abs({b})), FALSE)")
    return f"({' OR '.join(tests)})" if tests else "FALSE"


def _comparisons(conjuncts: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
    for expr in conjuncts:
        if not isinstance(expr, Call):
            continue
        ordered = expr.op in ("<", "<=", ">", ">=")
        if ordered and len(aliases(expr)) > 1 and Type.DOUBLE in (expr.args[0].type, expr.args[1].type):
            yield expr.args[0], expr.args[1]
        else:
            yield from _comparisons(expr.args)


def _sql(expr: Expr) -> str:
    return to_duckdb(expr, column_sql)


def column_sql(column: Column) -> str:
    """A column of a source."""
    return f"{quote(column.alias)}.{attribute(column.name)}"


def attribute(name: str) -> str:
    """A column of a recording; the dot keeps it apart from the columns that are ours."""
    return quote(f"c.{name}")


def quote(name: str) -> str:
    """A name as an identifier of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def connect(query: Query, recordings: Mapping[str, Recording]) -> duckdb.DuckDBPyConnection:
    """A session with the streams of a query as tables, the number of each row as `_row`."""
    connection = session()
    for called in calls(*(conjunct.expr for conjunct in query.conjuncts)):
        register(called)
    # Whole numbers rounded down, also below zero; times are within 2^53, so nothing overflows.
    connection.execute("CREATE TEMP MACRO floor_div(a, b) AS (a - ((a % b) + b) % b) // b")
    for name in {source.stream for source in query.sources}:
        recording = recordings[name]
        arrays = {
            f"c.{column}": pa.array(vector.data, mask=vector.null, from_pandas=False)
            for column, vector in recording.columns.items()
        }
        table = pa.table({_ROW: np.arange(len(recording)), _LATE: recording.late, **arrays})
        connection.register(f"_input_{name}", table)
        # A table of DuckDB's own: a registered Arrow table would be scanned anew for each use.
        connection.execute(f"CREATE TEMP TABLE {quote(name)} AS SELECT * FROM {quote(f'_input_{name}')}")
    return connection
