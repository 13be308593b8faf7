"""Aggregates of windows by DuckDB, and whether the rows of Tamis are the same.

As in `reference`, the SQL and the recording are all that is shared. A tuple counts in the windows that the
watermark of its file hadn't passed when it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Call, Column, Expr, Type
from tamis.query.model import WINDOW_END, Aggregate, Output, Query
from tamis.recordings.typed import Recording
from tamis.verification.compare import Verdict
from tamis.verification.database import session
from tamis.verification.reference import NEAR, attribute, column_sql, connect, quote, windowed


class Values(Protocol):
    """A column of rows, as vectors are."""

    @property
    def data(self) -> NDArray[Any]:
        """The values."""

    @property
    def null(self) -> NDArray[np.bool_] | None:
        """Which of them are NULL, if any."""


def grouped(query: Query, recording: Recording) -> pa.Table:
    """A row for each window and group that has tuples: `k…` the columns of GROUP BY, `v…` of SELECT, `holds`
    whether HAVING does, and `near` whether that is a matter of rounding.
    """
    assert query.grouping is not None
    (source,) = query.sources
    stream = recording.stream
    assert stream.time is not None
    assert source.window is not None
    files = recording.files or (len(recording),)
    with connect(query, {source.stream: recording}) as connection:
        of = pa.table({"_row": np.arange(len(recording)), "file": np.repeat(np.arange(len(files)), files)})
        connection.register("files", of)
        before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        connection.execute(
            f"CREATE TEMP TABLE marks AS SELECT _row, max({attribute(stream.time)})"
            f" OVER (PARTITION BY file ORDER BY _row {before}) - {stream.delay} AS mark"
            f" FROM {quote(source.stream)} JOIN files USING (_row)"
        )
        alias, by = quote(source.alias), query.grouping.by
        where = [f"({to_duckdb(c.expr, column_sql)})" for c in query.conjuncts]
        where.append(f"coalesce({alias}.{attribute(WINDOW_END)} > mark, TRUE)")
        shown = [f"{column_sql(column)} AS k{i}" for i, column in enumerate(by)]
        shown += [f"{_aggregate(one)} AS a{i}" for i, one in enumerate(query.grouping.aggregates)]
        groups = (
            f"SELECT {', '.join(shown)} FROM {windowed(source.stream, stream.time, source.window)} AS {alias}"
            f" JOIN marks ON marks._row = {alias}._row WHERE {' AND '.join(where)}"
            f" GROUP BY {', '.join(column_sql(column) for column in by)}"
        )

        def place(column: Column) -> str:
            return f"k{by.index(column)}" if column.alias else f"a{column.name}"

        having = query.grouping.having
        outputs = [f"k{i}" for i in range(len(by))]
        outputs += [f"{to_duckdb(one.expr, place)} AS v{i}" for i, one in enumerate(query.select)]
        holds = "TRUE" if having is None else f"coalesce({to_duckdb(having, place)}, FALSE)"
        near = [
            f"coalesce(abs(({a}) - ({b})) <= {NEAR!r} * greatest(abs({a}), abs({b})), FALSE)"
            for a, b in (
                (to_duckdb(left, place), to_duckdb(right, place)) for left, right in _comparisons(having)
            )
        ]
        outputs += [f"{holds} AS holds", f"({' OR '.join(near) or 'FALSE'}) AS near"]
        return connection.sql(f"SELECT {', '.join(outputs)} FROM ({groups})").arrow().read_all()


def _aggregate(one: Aggregate) -> str:
    """An aggregate of DuckDB with the value that Tamis gives, up to rounding."""
    if one.column is None:
        return "count(*)"
    column = column_sql(one.column)
    double = one.column.type is Type.DOUBLE
    match one.function:
        case "count":
            return f"count(DISTINCT {column})" if one.distinct else f"count({column})"
        case "sum":
            return _finite(f"fsum({column})") if double else f"TRY_CAST(sum({column}) AS BIGINT)"
        case "avg":
            return _finite(f"favg({column})") if double else f"sum({column})::DOUBLE / count({column})"
        case "median":
            return f"median({column}::DOUBLE)"
        case _:
            return f"{one.function}({column})"


def _finite(text: str) -> str:
    return f"CASE WHEN isfinite({text}) THEN {text} END"


def _comparisons(expr: Expr | None) -> Iterator[tuple[Expr, Expr]]:
    """The comparisons of DOUBLEs in a condition."""
    if isinstance(expr, Call):
        compares = expr.op in ("<", "<=", ">", ">=", "=", "!=")
        if compares and Type.DOUBLE in (expr.args[0].type, expr.args[1].type):
            yield expr.args[0], expr.args[1]
        for arg in expr.args:
            yield from _comparisons(arg)


def keyed(query: Query) -> Query:
    """The query with the columns of GROUP BY as `k…`, and those of its SELECT as `v…`."""
    assert query.grouping is not None
    by = (Output(f"k{i}", column) for i, column in enumerate(query.grouping.by))
    shown = (Output(f"v{i}", one.expr) for i, one in enumerate(query.select))
    return replace(query, select=(*by, *shown))


def compare_grouped(name: str, query: Query, recording: Recording, rows: Mapping[str, Values]) -> Verdict:
    """Compare the rows of `keyed(query)` with DuckDB's.

    *Missed*: rows that DuckDB has and Tamis hasn't, or with another value; *extra*: the other way round.
    """
    assert query.grouping is not None
    alike = [f"x.k{i} IS NOT DISTINCT FROM y.k{i}" for i in range(len(query.grouping.by))]
    same = " AND ".join([*alike, *(_alike(i, one.expr.type) for i, one in enumerate(query.select))])
    with session() as connection:
        connection.register("expected", grouped(query, recording))
        given = {key: pa.array(one.data, mask=one.null, from_pandas=False) for key, one in rows.items()}
        connection.register("given", pa.table(given))

        def count(what: str) -> int:
            return int(connection.sql(f"SELECT count(*) FROM {what}").fetchall()[0][0])

        missed = f"expected x WHERE holds AND NOT near AND NOT EXISTS (SELECT 1 FROM given y WHERE {same})"
        extra = f"given y WHERE NOT EXISTS (SELECT 1 FROM expected x WHERE {same} AND (holds OR near))"
        return Verdict(
            query=name,
            tuples=len(recording),
            retained=len(recording),
            reference_alarms=count("expected WHERE holds"),
            alarms=count("given"),
            missed=count(missed),
            extra=count(extra),
            late=0,
            at_threshold=count("expected WHERE near"),
        )


def _alike(number: int, kind: Type) -> str:
    a, b = f"x.v{number}", f"y.v{number}"
    if kind is not Type.DOUBLE:
        return f"{a} IS NOT DISTINCT FROM {b}"
    return f"({a} IS NOT DISTINCT FROM {b} OR abs({a} - {b}) <= {NEAR!r} * greatest(abs({a}), abs({b})))"
