"""Compute the rows of a standing query by DuckDB over all tuples at once, and compare those of Tamis.

As in `reference`, only the SQL and the recordings are shared. Once all tuples have come, the result doesn't
depend on their order of arrival.

The matches of ASOF JOINs come from DuckDB's own ASOF JOIN. DuckDB chooses any of several tuples with the same
time, so all but the greatest are taken away before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import isclose
from typing import Any

import duckdb
import pyarrow as pa

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Column, Expr, Type, aliases, columns
from tamis.expressions.python_functions import calls
from tamis.query.model import (
    AsOfJoin,
    LatestValueJoin,
    Query,
    TimelessGroupBy,
    UnionQuery,
    is_distinct,
)
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import (
    Values,
    compare_groups,
    groups,
    table_of,
)
from tamis.verification.compare import Verdict
from tamis.verification.database import register, session
from tamis.verification.reference import (
    attribute,
    bucketed_tables,
    column_sql,
    connect,
    near_threshold_sql,
    quote,
)
from tamis.verification.rounded_values import NEAR

WITHDRAWN = "_withdrawn"
_TYPES = {Type.VARCHAR: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DOUBLE: "DOUBLE"}  # all others are BIGINT
Row = tuple[Any, ...]
Times = Mapping[str, str | None]  # the event time of each stream


def compare_standing(
    name: str, query: Query, recordings: Mapping[str, Recording], rows: Mapping[str, Values]
) -> Verdict:
    """Compare all rows that Tamis gave, in order, with DuckDB's. Rows with aggregates must be those of
    `with_group_keys(query)`; the last row of each group counts.

    `recordings` are those of streams and tables. *Missed*: rows of DuckDB that Tamis doesn't have, counted as
    often as they are missing. *Extra*: the reverse, and rows of a group that repeat the row before them.
    """
    read = {source.stream for source in query.sources}
    tuples = sum(len(recordings[one]) for one in read)
    with connect(query, recordings) as connection:
        for one in read:
            stream = recordings[one].stream
            if stream.until is not None and stream.time is not None:
                connection.execute(
                    f"DELETE FROM {quote(one)} WHERE {attribute(stream.time)} > {stream.until}"
                )
        if isinstance(query, LatestValueJoin):
            create_matches(connection, query, recordings)
        if isinstance(query, TimelessGroupBy):
            joined, holds, near = _joined(query, {})
            expected = groups(connection, query, joined, holds, near)
            last, repeated = _last_rows(query, rows)
            return compare_groups(name, query, expected, last, tuples=tuples, repeated=repeated)
        times = {one: recordings[one].stream.time for one in read}
        return _compare(connection, name, query, table_of(rows), tuples, times=times)


def _joined(query: Query, times: Times) -> tuple[str, str, str]:
    """FROM and WHERE of all rows that pass up to rounding; the condition under which a row passes as
    computed; and the condition under which rounding decides. `times`: the event times of streams in windows.
    """
    for called in calls(*(c.expr for c in query.conjuncts), *(one.expr for one in query.select)):
        register(called)
    conditions = [f"coalesce({to_duckdb(c.expr, column_sql)}, FALSE)" for c in query.conjuncts]
    close = [near_threshold_sql([c.expr] if len(aliases(c.expr)) > 1 else []) for c in query.conjuncts]
    # A condition that passes only by rounding needn't hold, so nothing follows from it.
    held = [c.expr for c, near in zip(query.conjuncts, close, strict=True) if near == "FALSE"]
    if isinstance(query, LatestValueJoin):
        tables: list[str] = [asof_tables(query)]
        ties: list[str] = []
    else:
        tables, ties = bucketed_tables(query, held, times)
    near = " OR ".join(dict.fromkeys(one for one in close if one != "FALSE")) or "FALSE"
    either = [c if n == "FALSE" else f"({c} OR {n})" for c, n in zip(conditions, close, strict=True)]
    holds = " AND ".join(conditions) if near != "FALSE" else "TRUE"
    return f"{', '.join(tables)} WHERE {' AND '.join([*either, *ties]) or 'TRUE'}", holds, near


def _selected(query: Query, times: Times) -> str:
    """SQL of the rows of a query without aggregates as `v…`; `sure`: rounding doesn't decide the row."""
    if isinstance(query, UnionQuery):
        every = " UNION ALL ".join(f"({_selected(member, times)})" for member in query.members)
    else:
        joined, holds, near = _joined(query, times)
        columns_sql = [
            f"CAST({to_duckdb(one.expr, column_sql)} AS {_TYPES.get(one.expr.type, 'BIGINT')}) AS v{i}"
            for i, one in enumerate(query.select)
        ]
        every = f"SELECT {', '.join(columns_sql)}, ({holds}) AND NOT ({near}) AS sure FROM {joined}"
    if not is_distinct(query):
        return every
    names = ", ".join(f"v{i}" for i in range(len(query.select)))
    return f"SELECT {names}, bool_or(sure) AS sure FROM ({every}) GROUP BY ALL"


def _compare(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    query: Query,
    given: pa.Table,
    tuples: int,
    *,
    times: Times,
) -> Verdict:
    names = [f"v{i}" for i in range(len(query.select))]
    connection.register("given", given.rename_columns(names))
    connection.execute(f"CREATE TEMP TABLE expected AS {_selected(query, times)}")
    columns_sql = ", ".join(names)

    def rows(what: str) -> list[Row]:
        return connection.sql(what).fetchall()

    missed = rows(f"SELECT {columns_sql} FROM expected WHERE sure EXCEPT ALL SELECT {columns_sql} FROM given")
    extra = rows(f"SELECT {columns_sql} FROM given EXCEPT ALL SELECT {columns_sql} FROM expected")
    alike = _count_equal(missed, extra)
    ((all_of, sure),) = rows("SELECT count(*), count(*) FILTER (WHERE sure) FROM expected")
    return Verdict(
        query=name,
        tuples=tuples,
        retained=tuples,
        reference_alarms=sure,
        alarms=len(given),
        missed=len(missed) - alike,
        extra=len(extra) - alike,
        late=0,
        at_threshold=all_of - sure,
    )


def _count_equal(missed: list[Row], extra: list[Row]) -> int:
    """The number of rows that both have, up to the rounding of DOUBLEs."""
    known: dict[Row, list[Row]] = defaultdict(list)
    for row in extra:
        known[_exact(row)].append(row)
    found = 0
    for row in missed:
        others = known[_exact(row)]
        at = next((i for i, other in enumerate(others) if _close(row, other)), None)
        if at is not None:
            del others[at]
            found += 1
    return found


def _exact(row: Row) -> Row:
    return tuple(isinstance(value, float) or value for value in row)


def _close(one: Row, other: Row) -> bool:
    pairs = ((a, b) for a, b in zip(one, other, strict=True) if isinstance(a, float))
    return all(isclose(a, b, rel_tol=NEAR) for a, b in pairs)


def _last_rows(query: TimelessGroupBy, rows: Mapping[str, Values]) -> tuple[pa.Table, int]:
    """The last row of each group, if it wasn't withdrawn; and the number of rows that repeat the row of their
    group before them.
    """
    keys = ", ".join(f"k{i}" for i in range(len(query.grouping.by)))
    table = table_of(rows)
    kept = f" WHERE NOT {WITHDRAWN}" if WITHDRAWN in rows else ""
    of = f"PARTITION BY {keys} " if keys else ""
    whole = f"row({', '.join(rows)})"
    with session() as connection:
        connection.register("rows", table.append_column("_at", pa.array(range(len(table)))))
        last = f"SELECT * FROM rows QUALIFY row_number() OVER ({of}ORDER BY _at DESC) = 1"
        repeated = (
            f"SELECT 1 FROM rows QUALIFY {whole} IS NOT DISTINCT FROM lag({whole}) OVER ({of}ORDER BY _at)"
        )
        ((count,),) = connection.sql(f"SELECT count(*) FROM ({repeated})").fetchall()
        return connection.sql(f"SELECT * FROM ({last}){kept}").arrow().read_all(), count


_MATCHES = "_matches"


def create_matches(
    connection: duckdb.DuckDBPyConnection, query: LatestValueJoin, recordings: Mapping[str, Recording]
) -> None:
    """Create the table that `asof_tables` reads: for each combination, the row of each source."""
    first, *others = query.sources
    connection.execute(
        f"CREATE TEMP TABLE {_MATCHES} AS SELECT _row AS {quote(first.alias)} FROM {quote(first.stream)}"
    )
    time = f"{quote(first.alias)}.{attribute(str(recordings[first.stream].stream.time))}"
    known = [first]
    for source, join in zip(others, query.joins, strict=True):
        keys = [_equated(left, right) for left, right in join.keys]
        asked = ", ".join(f"{left} AS k{i}" for i, (left, _) in enumerate(keys))
        joined = " ".join(
            f"LEFT JOIN {quote(one.stream)} AS {quote(one.alias)}"
            f" ON {quote(one.alias)}._row = m.{quote(one.alias)}"
            for one in known
        )
        asking = f"SELECT m.*, {time} AS asked{', ' if asked else ''}{asked} FROM {_MATCHES} AS m {joined}"
        equal = "".join(f"p.k{i} = c.k{i} AND " for i in range(len(keys)))
        young = "TRUE" if join.most is None else f"c.at >= p.asked - {join.most}"
        columns_sql = ", ".join(f"p.{quote(one.alias)}" for one in known)
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {_MATCHES} AS"
            f" SELECT {columns_sql}, CASE WHEN {young} THEN c._row END AS {quote(source.alias)}"
            f" FROM (SELECT *, asked - {join.least} AS latest FROM ({asking})) AS p"
            f" ASOF LEFT JOIN ({_candidates(query, join, source.stream, recordings)}) AS c"
            f" ON {equal}p.latest >= c.at"
        )
        if not join.outer:
            connection.execute(f"DELETE FROM {_MATCHES} WHERE {quote(source.alias)} IS NULL")
        known.append(source)


def asof_tables(query: LatestValueJoin) -> str:
    """The FROM of all joined rows, before WHERE."""
    return f"{_MATCHES} " + " ".join(
        f"LEFT JOIN {quote(one.stream)} AS {quote(one.alias)}"
        f" ON {quote(one.alias)}._row = {_MATCHES}.{quote(one.alias)}"
        for one in query.sources
    )


def _candidates(
    query: LatestValueJoin, join: AsOfJoin, stream: str, recordings: Mapping[str, Recording]
) -> str:
    """SQL of the tuples that may be chosen: of each key and time the greatest."""
    defined = recordings[stream].stream
    for called in calls(*(conjunct.expr for conjunct in join.filters)):
        register(called)
    alias = quote(join.alias)
    time = f"{alias}.{attribute(str(defined.time))}"
    keys = [right for _, right in (_equated(*pair) for pair in join.keys)]
    read = {
        column.name for expr in _expressions(query) for column in columns(expr) if column.alias == join.alias
    }
    order = [f"{alias}.{attribute(one.name)} DESC NULLS LAST" for one in defined.columns if one.name in read]
    filters = [f"coalesce({to_duckdb(one.expr, column_sql)}, FALSE)" for one in join.filters]
    shown = "".join(f", {key} AS k{i}" for i, key in enumerate(keys))
    return (
        f"SELECT {alias}._row, {time} AS at{shown} FROM {quote(stream)} AS {alias}"
        f" WHERE {' AND '.join(filters) or 'TRUE'}"
        f" QUALIFY row_number() OVER (PARTITION BY {', '.join([time, *keys])}"
        f" ORDER BY {', '.join([*order, f'{alias}._row'])}) = 1"
    )


def _expressions(query: LatestValueJoin) -> list[Expr]:
    """Every expression of the query."""
    found = [conjunct.expr for conjunct in query.conjuncts] + [output.expr for output in query.select]
    for join in query.joins:
        found += [conjunct.expr for conjunct in join.filters]
        found += [column for pair in join.keys for column in pair]
    return found


def _equated(left: Column, right: Column) -> tuple[str, str]:
    """SQL of two equated columns. A DOUBLE equals an integer by value, and no other integer."""
    texts = [column_sql(left), column_sql(right)]
    if (left.type is Type.DOUBLE) != (right.type is Type.DOUBLE) and left.type.numeric:
        at = 0 if left.type is Type.DOUBLE else 1
        whole = f"TRY_CAST({texts[at]} AS BIGINT)"
        # 2^63 is a DOUBLE, and no BIGINT; below it, casts of whole DOUBLEs are exact.
        texts[at] = f"CASE WHEN floor({texts[at]}) = {texts[at]} THEN {whole} END"
    return texts[0], texts[1]
