"""Compute aggregates by DuckDB, and compare them with the rows of Tamis.

As in `reference`, only the SQL and the recordings are shared. A tuple counts in the windows that the
watermark of its file hadn't passed when it came.

Sessions are gaps and islands: a tuple that isn't behind the watermark begins a run if the tuple before it, of
the same key, is further away than the gap. A tuple behind the watermark is in the session of the last such
tuple before the watermark, if that session begins before it and hadn't ended. See
`tamis.operators.windows.sessions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.definitions import WINDOW_END, WINDOW_START
from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.exact.rounding import certain
from tamis.expressions.nodes import Column, Expr, Type, aliases
from tamis.expressions.python_functions import calls
from tamis.query.computed_columns import meaning
from tamis.query.model import GroupByQuery, Output, SessionGroupBy, WindowGroupBy
from tamis.recordings.typed import Recording
from tamis.verification.compare import Verdict
from tamis.verification.database import WHOLE, register, session
from tamis.verification.reference import (
    attribute,
    column_sql,
    connect,
    near_threshold_sql,
    quote,
    windowed_sql,
)
from tamis.verification.rounded_values import NEAR, doubt_sql

_SPREADS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
# Exact numbers that are rounded once, or an exact sum that is divided by a count.
_ROUNDED_ONCE = ("sum", "avg", *_SPREADS)
_ERROR = 2.0**-51

_GroupBy = TypeVar("_GroupBy", bound=GroupByQuery)

_ERRORS = "errors"  # the alias of the error bounds of aggregates


class Values(Protocol):
    """A column of rows, with the interface of vectors."""

    @property
    def data(self) -> NDArray[Any]:
        """The values."""

    @property
    def null(self) -> NDArray[np.bool_] | None:
        """The mask of NULL values; None if no value is NULL."""


def windowed_groups(query: WindowGroupBy | SessionGroupBy, recordings: Mapping[str, Recording]) -> pa.Table:
    """The groups of each window, with the columns of `groups`."""
    (source,) = query.windowed
    recording = recordings[source.stream]
    stream = recording.stream
    assert stream.time is not None
    with connect(query, recordings) as connection:
        of = pa.table({"_row": np.arange(len(recording)), "file": recording.file_numbers})
        connection.register("files", of)
        before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        connection.execute(
            f"CREATE TEMP TABLE marks AS SELECT _row, max({attribute(stream.time)})"
            f" OVER (PARTITION BY file ORDER BY _row {before}) - {stream.delay} AS mark"
            f" FROM {quote(source.stream)} JOIN files USING (_row)"
        )
        if isinstance(query, SessionGroupBy):
            return groups(connection, query, sessions_sql(query, stream.time, "marks"), "TRUE", "FALSE")
        alias = quote(source.alias)
        where = [f"coalesce({alias}.{attribute(WINDOW_END)} > mark, TRUE)"]
        sure: list[str] = []
        doubts: list[str] = []
        for conjunct in query.conjuncts:
            holds = f"coalesce({to_duckdb(conjunct.expr, column_sql)}, FALSE)"
            near = near_threshold_sql([conjunct.expr] if len(aliases(conjunct.expr)) > 1 else [])
            where.append(holds if near == "FALSE" else f"({holds} OR {near})")
            if near != "FALSE":
                sure.append(holds)
                doubts.append(near)
        tables = [
            f" CROSS JOIN {quote(one.stream)} AS {quote(one.alias)}" for one in query.sources if one != source
        ]
        joined = (
            f"{windowed_sql(source.stream, stream.time, query.window)} AS {alias}"
            f" JOIN marks ON marks._row = {alias}._row{''.join(tables)} WHERE {' AND '.join(where)}"
        )
        return groups(connection, query, joined, " AND ".join(sure) or "TRUE", " OR ".join(doubts) or "FALSE")


def groups(
    connection: duckdb.DuckDBPyConnection, query: GroupByQuery, joined: str, holds: str, near: str
) -> pa.Table:
    """A row for each group of the rows of `joined`, which is a FROM and WHERE.

    Arguments: `holds` is the condition under which a row counts, and `near` that under which rounding decides
    whether it counts. Columns: `k…` of GROUP BY, `v…` of SELECT; `holds`: HAVING is true; `near`: rounding
    decides HAVING, by the error of the group's own aggregates; `doubtful`: rounding decides which rows count;
    `d…`: rounding decides the column of SELECT, and its values may differ by `m…`, or in any way if that is
    NULL.
    """
    by, having = query.grouping.by, query.grouping.having
    keys = [to_duckdb(meaning(column, query), column_sql) for column in by]
    aggregated = [
        None if one.column is None else meaning(one.column, query) for one in query.grouping.aggregates
    ]
    for called in calls(*(expr for expr in (*aggregated, *map(partial(meaning, query=query), by)) if expr)):
        register(called)
    only = "" if holds == "TRUE" else f" FILTER (WHERE {holds})"
    shown = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    bounds: list[str] = []
    errors: dict[Expr, Expr] = {}
    for i, (one, value) in enumerate(zip(query.grouping.aggregates, aggregated, strict=True)):
        argument = None if value is None else to_duckdb(value, column_sql)
        order = None if one.order is None else to_duckdb(meaning(one.order, query), column_sql)
        shown.append(f"{_aggregate(one, argument, only, order)} AS a{i}")
        if (error := _error(one, i, argument, only)) is not None:
            (bounds if one.function in _ROUNDED_ONCE else shown).append(f"{error} AS e{i}")
            errors[query.grouping.value(i)] = Column(_ERRORS, str(i), Type.DOUBLE)
    shown += [f"count(*){only} > 0 AS counted", f"coalesce(bool_or({near}), FALSE) AS doubtful"]
    of = f" GROUP BY {', '.join(keys)}" if by else ""

    def place(column: Column) -> str:
        if column.alias == _ERRORS:
            return f"e{column.name}"
        return f"k{by.index(column)}" if column.alias else f"a{column.name}"

    outputs = [f"k{i}" for i in range(len(by))]
    outputs += [f"{to_duckdb(one.expr, place)} AS v{i}" for i, one in enumerate(query.select)]
    for i, output in enumerate(query.select):
        doubt, most = doubt_sql(output.expr, errors, place) or ("FALSE", "CAST(NULL AS DOUBLE)")
        outputs += [f"coalesce({doubt}, FALSE) AS d{i}", f"{most} AS m{i}"]
    kept = "TRUE" if having is None else f"coalesce({to_duckdb(having, place)}, FALSE)"
    sure = None if having is None else certain(having, errors=errors)
    near_having = "FALSE" if sure is None else f"NOT coalesce({to_duckdb(sure, place)}, FALSE)"
    outputs += [f"counted AND {kept} AS holds", f"{near_having} AS near", "doubtful"]
    inner = f"SELECT {', '.join(shown)} FROM {joined}{of}"
    if bounds:
        inner = f"SELECT *, {', '.join(bounds)} FROM ({inner})"
    return (
        connection.sql(f"SELECT {', '.join(outputs)} FROM ({inner}) WHERE counted OR doubtful")
        .arrow()
        .read_all()
    )


def _aggregate(one: Aggregate, column: str | None, only: str, order: str | None) -> str:
    """SQL of an aggregate of `column` with the value that Tamis gives, up to rounding; `only` filters its
    rows, and `order` is for ARG_MIN and ARG_MAX.
    """
    if one.column is None or column is None:
        return f"count(*){only}"
    double = one.column.type is Type.DOUBLE
    match one.function:
        case "count":
            return f"count({'DISTINCT ' if one.distinct else ''}{column}){only}"
        case "sum":
            if double:
                return f"exact_sum(list({column}){only})"
            return f"TRY_CAST(sum({column}){only} AS BIGINT)"
        case "avg" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return f"exact_{one.function}{'' if double else WHOLE}(list({column}){only})"
        case "median":
            return f"median(({column})::DOUBLE){only}"
        case "percentile_cont" | "percentile_disc":
            return f"{one.function}({_decimal(one)}) WITHIN GROUP (ORDER BY {column}){only}"
        case "arg_min" | "arg_max":
            # Of equal times, the least or the greatest value.
            pair = f"{{'time': {order}, 'value': {column}}}"
            return f"{one.function}({column}, CASE WHEN {order} IS NOT NULL THEN {pair} END){only}"
        case _:
            return f"{one.function}({column}){only}"


def _decimal(one: Aggregate) -> str:
    """The exact fraction of a percentile: DuckDB computes ranks of DECIMALs exactly."""
    assert one.fraction is not None
    whole, decimals = divmod(int(one.fraction * 10**9), 10**9)
    return f"{whole}.{decimals:09}"


def _error(one: Aggregate, number: int, argument: str | None, only: str) -> str | None:
    """SQL of an upper bound of the error of the aggregate `a…`; None if it is exact."""
    if one.column is None or one.order is not None or one.function in ("count", "min", "max"):
        return None
    if one.function == "percentile_disc":
        return None
    if one.function == "sum" and one.column.type is not Type.DOUBLE:
        return None
    if one.function in _ROUNDED_ONCE:
        return f"{_ERROR!r} * abs(a{number})"
    return f"{_ERROR!r} * max(abs(({argument})::DOUBLE)){only}"


def with_group_keys(query: _GroupBy) -> _GroupBy:
    """The query that selects the columns of GROUP BY as `k…`, and those of its SELECT as `v…`."""
    by = (Output(f"k{i}", column) for i, column in enumerate(query.grouping.by))
    shown = (Output(f"v{i}", one.expr) for i, one in enumerate(query.select))
    return replace(query, select=(*by, *shown))


def compare_windowed_groups(
    name: str,
    query: WindowGroupBy | SessionGroupBy,
    recordings: Mapping[str, Recording],
    rows: Mapping[str, Values],
) -> Verdict:
    """Compare the rows of `with_group_keys(query)` over windows with DuckDB's. `recordings` are those of the
    stream and the tables.

    *Missed*: rows of DuckDB that Tamis doesn't have or has with another value. *Extra*: the reverse, and
    further rows of a group.
    """
    tuples = len(recordings[query.windowed[0].stream])
    return compare_groups(name, query, windowed_groups(query, recordings), table_of(rows), tuples=tuples)


def table_of(rows: Mapping[str, Values]) -> pa.Table:
    """The rows as an Arrow table."""
    return pa.table(
        {name: pa.array(one.data, mask=one.null, from_pandas=False) for name, one in rows.items()}
    )


def compare_groups(
    name: str, query: GroupByQuery, expected: pa.Table, given: pa.Table, *, tuples: int, repeated: int = 0
) -> Verdict:
    """Compare given rows, one for each group, with those that `groups` expects. `repeated`: the number of
    further rows, which say what the row before them said.
    """
    alike = [f"x.k{i} IS NOT DISTINCT FROM y.k{i}" for i in range(len(query.grouping.by))]
    same = " AND ".join([*alike, *(_equal_sql(i, one.expr.type) for i, one in enumerate(query.select))])
    decided = [f"holds AND d{i}" for i in range(len(query.select))]
    with session() as connection:
        connection.register("expected", expected)
        connection.register("given", given)

        def count(what: str) -> int:
            return int(connection.sql(f"SELECT count(*) FROM {what}").fetchall()[0][0])

        sure = "holds AND NOT near AND NOT doubtful"
        missed = f"expected x WHERE {sure} AND NOT EXISTS (SELECT 1 FROM given y WHERE {same})"
        own = f"{same} AND (holds OR near) OR {' AND '.join(alike) or 'TRUE'} AND doubtful"
        extra = f"given y WHERE NOT EXISTS (SELECT 1 FROM expected x WHERE {own})"
        keys = ", ".join(f"k{i}" for i in range(len(alike)))
        groups_given = f"(SELECT DISTINCT {keys} FROM given)" if keys else "(FROM given LIMIT 1)"
        return Verdict(
            query=name,
            tuples=tuples,
            retained=tuples,
            reference_alarms=count("expected WHERE holds"),
            alarms=count("given"),
            missed=count(missed),
            extra=count(extra) + count("given") - count(groups_given) + repeated,
            late=0,
            at_threshold=count(f"expected WHERE {' OR '.join(['near OR doubtful', *decided])}"),
        )


def _equal_sql(number: int, kind: Type) -> str:
    a, b, most = f"x.v{number}", f"y.v{number}", f"x.m{number}"
    equal = f"{a} IS NOT DISTINCT FROM {b}"
    if not kind.numeric:
        return f"({equal} OR x.d{number})"
    if kind is Type.DOUBLE:
        equal += f" OR abs({a} - {b}) <= {NEAR!r} * greatest(abs({a}), abs({b}))"
    near = f"{most} IS NULL OR {b} IS NULL OR abs({a} - {b}) <= {most} * {1 + NEAR!r}"
    return f"({equal} OR x.d{number} AND ({near}))"


def sessions_sql(query: SessionGroupBy, time: str, marks: str) -> str:
    """SQL of the stream's tuples that are in a session, each with the beginning and the end of its session.

    `time`: the event time of the stream. `marks`: a table with the watermark that each row met (`_row`,
    `mark`).
    """
    (source,), session = query.sources, query.session
    alias, at = quote(source.alias), attribute(time)
    where = " AND ".join(f"({to_duckdb(c.expr, column_sql)})" for c in query.conjuncts) or "TRUE"
    key = f"dense_rank() OVER (ORDER BY {', '.join(map(attribute, session.by))})" if session.by else "0"
    start, end = attribute(WINDOW_START), attribute(WINDOW_END)
    cut = "first"
    limit = f"{at} + {session.gap}"
    if session.greatest is not None:
        cut = f"first + ({at} - first) // {session.greatest} * {session.greatest}"
        limit = f"least({limit}, {start} + {session.greatest})"
    return f"""(
        WITH passing AS (
            SELECT {alias}.*, mark FROM {quote(source.stream)} AS {alias}
            JOIN {marks} ON {marks}._row = {alias}._row WHERE {where}
        ),
        keyed AS (SELECT *, {key} AS session_key FROM passing),
        timely AS (
            SELECT *, lag({at}) OVER (PARTITION BY session_key ORDER BY {at}) AS before
            FROM keyed WHERE coalesce({at} >= mark, TRUE)
        ),
        runs AS (
            SELECT *, max(CASE WHEN before IS NULL OR {at} - before > {session.gap} THEN {at} END)
                OVER (PARTITION BY session_key ORDER BY {at}) AS first
            FROM timely
        ),
        begun AS (SELECT *, {cut} AS {start} FROM runs),
        known AS (
            SELECT *, {limit} AS until, max({limit}) OVER (PARTITION BY session_key, {start}) AS {end}
            FROM begun
        )
        SELECT * EXCLUDE (mark, session_key, before, first, until) FROM known
        UNION ALL BY NAME
        SELECT late.* EXCLUDE (mark, session_key), known.{start}, known.{end}
        FROM (SELECT * FROM keyed WHERE {at} < mark) AS late
        ASOF JOIN known ON late.session_key = known.session_key AND late.mark > known.{at}
        WHERE known.{start} <= late.{at} AND known.until >= late.mark
    ) AS {alias}"""
