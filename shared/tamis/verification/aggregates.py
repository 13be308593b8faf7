"""Aggregates by DuckDB, and whether the rows of Tamis are the same.

As in `reference`, the SQL and the recordings are all that is shared. Over windows a tuple counts in those
that the watermark of its file hadn't passed when it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import duckdb
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
    """The groups of each window, as of `groups`."""
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
        alias = quote(source.alias)
        where = [f"({to_duckdb(c.expr, column_sql)})" for c in query.conjuncts]
        where.append(f"coalesce({alias}.{attribute(WINDOW_END)} > mark, TRUE)")
        joined = (
            f"{windowed(source.stream, stream.time, source.window)} AS {alias}"
            f" JOIN marks ON marks._row = {alias}._row WHERE {' AND '.join(where)}"
        )
        return groups(connection, query, joined, "TRUE", "FALSE")


def groups(
    connection: duckdb.DuckDBPyConnection, query: Query, joined: str, holds: str, near: str
) -> pa.Table:
    """A row for each group of what `joined`, a FROM and WHERE, has: `k…` the columns of GROUP BY, `v…` of
    SELECT, `holds` whether HAVING does, `near` whether that is a matter of rounding, and `doubtful` whether
    it is one which rows count. `holds` and `near`: conditions on these rows.
    """
    assert query.grouping is not None
    by, having = query.grouping.by, query.grouping.having
    only = "" if holds == "TRUE" else f" FILTER (WHERE {holds})"
    shown = [f"{column_sql(column)} AS k{i}" for i, column in enumerate(by)]
    shown += [f"{_aggregate(one, only)} AS a{i}" for i, one in enumerate(query.grouping.aggregates)]
    shown += [f"count(*){only} > 0 AS counted", f"coalesce(bool_or({near}), FALSE) AS doubtful"]
    of = f" GROUP BY {', '.join(column_sql(column) for column in by)}" if by else ""

    def place(column: Column) -> str:
        return f"k{by.index(column)}" if column.alias else f"a{column.name}"

    outputs = [f"k{i}" for i in range(len(by))]
    outputs += [f"{to_duckdb(one.expr, place)} AS v{i}" for i, one in enumerate(query.select)]
    kept = "TRUE" if having is None else f"coalesce({to_duckdb(having, place)}, FALSE)"
    close = [
        f"coalesce(abs(({a}) - ({b})) <= {NEAR!r} * greatest(abs({a}), abs({b})), FALSE)"
        for a, b in (
            (to_duckdb(left, place), to_duckdb(right, place)) for left, right in _comparisons(having)
        )
    ]
    outputs += [f"counted AND {kept} AS holds", f"({' OR '.join(close) or 'FALSE'}) AS near", "doubtful"]
    inner = f"SELECT {', '.join(shown)} FROM {joined}{of}"
    return (
        connection.sql(f"SELECT {', '.join(outputs)} FROM ({inner}) WHERE counted OR doubtful")
        .arrow()
        .read_all()
    )


def _aggregate(one: Aggregate, only: str) -> str:
    """An aggregate of DuckDB with the value that Tamis gives, up to rounding; `only` filters its rows."""
    if one.column is None:
        return f"count(*){only}"
    column = column_sql(one.column)
    double = one.column.type is Type.DOUBLE
    match one.function:
        case "count":
            return f"count({'DISTINCT ' if one.distinct else ''}{column}){only}"
        case "sum":
            total = f"fsum({column}){only}" if double else f"sum({column}){only}"
            return _finite(total) if double else f"TRY_CAST({total} AS BIGINT)"
        case "avg":
            if double:
                return _finite(f"favg({column}){only}")
            return f"(sum({column}){only})::DOUBLE / count({column}){only}"
        case "median":
            return f"median({column}::DOUBLE){only}"
        case _:
            return f"{one.function}({column}){only}"


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
    """Compare the rows of `keyed(query)` over windows with DuckDB's.

    *Missed*: rows that DuckDB has and Tamis hasn't, or with another value; *extra*: the other way round.
    """
    return compare_groups(name, query, grouped(query, recording), table_of(rows), len(recording))


def table_of(rows: Mapping[str, Values]) -> pa.Table:
    """Rows as Arrow."""
    return pa.table(
        {name: pa.array(one.data, mask=one.null, from_pandas=False) for name, one in rows.items()}
    )


def compare_groups(name: str, query: Query, expected: pa.Table, given: pa.Table, tuples: int) -> Verdict:
    """The same for what `groups` expects."""
    assert query.grouping is not None
    alike = [f"x.k{i} IS NOT DISTINCT FROM y.k{i}" for i in range(len(query.grouping.by))]
    same = " AND ".join([*alike, *(_alike(i, one.expr.type) for i, one in enumerate(query.select))])
    with session() as connection:
        connection.register("expected", expected)
        connection.register("given", given)

        def count(what: str) -> int:
            return int(connection.sql(f"SELECT count(*) FROM {what}").fetchall()[0][0])

        sure = "holds AND NOT near AND NOT doubtful"
        missed = f"expected x WHERE {sure} AND NOT EXISTS (SELECT 1 FROM given y WHERE {same})"
        own = f"{same} AND (holds OR near) OR {' AND '.join(alike) or 'TRUE'} AND doubtful"
        extra = f"given y WHERE NOT EXISTS (SELECT 1 FROM expected x WHERE {own})"
        return Verdict(
            query=name,
            tuples=tuples,
            retained=tuples,
            reference_alarms=count("expected WHERE holds"),
            alarms=count("given"),
            missed=count(missed),
            extra=count(extra),
            late=0,
            at_threshold=count("expected WHERE near OR doubtful"),
        )


def _alike(number: int, kind: Type) -> str:
    a, b = f"x.v{number}", f"y.v{number}"
    if kind is not Type.DOUBLE:
        return f"{a} IS NOT DISTINCT FROM {b}"
    return f"({a} IS NOT DISTINCT FROM {b} OR abs({a} - {b}) <= {NEAR!r} * greatest(abs({a}), abs({b})))"
