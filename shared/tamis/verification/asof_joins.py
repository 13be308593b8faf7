"""The matches of ASOF JOINs by DuckDB's own ASOF JOIN, for the reference of standing queries.

Only the SQL and the recordings are shared with the rest of Tamis. DuckDB chooses any of several tuples with
the same time, so all but the greatest are taken away before.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.expressions.python_functions import calls
from tamis.query.model import AsOfJoin, Query
from tamis.recordings.typed import Recording
from tamis.verification.database import register
from tamis.verification.reference import attribute, column_sql, quote

_MATCHES = "_matches"


def create_matches(
    connection: duckdb.DuckDBPyConnection, query: Query, recordings: Mapping[str, Recording]
) -> None:
    """Create the table that `asof_tables` reads: for each combination, the row of each source."""
    first, *others = query.sources
    connection.execute(
        f"CREATE TEMP TABLE {_MATCHES} AS SELECT _row AS {quote(first.alias)} FROM {quote(first.stream)}"
    )
    time = f"{quote(first.alias)}.{attribute(str(recordings[first.stream].stream.time))}"
    known = [first]
    for source, join in zip(others, query.asof, strict=True):
        keys = [_exact(left, right) for left, right in join.keys]
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


def asof_tables(query: Query) -> str:
    """The FROM of all joined rows, before WHERE."""
    return f"{_MATCHES} " + " ".join(
        f"LEFT JOIN {quote(one.stream)} AS {quote(one.alias)}"
        f" ON {quote(one.alias)}._row = {_MATCHES}.{quote(one.alias)}"
        for one in query.sources
    )


def _candidates(query: Query, join: AsOfJoin, stream: str, recordings: Mapping[str, Recording]) -> str:
    """SQL of the tuples that may be chosen: of each key and time the greatest."""
    defined = recordings[stream].stream
    for called in calls(*(conjunct.expr for conjunct in join.filters)):
        register(called)
    alias = quote(join.alias)
    time = f"{alias}.{attribute(str(defined.time))}"
    keys = [right for _, right in (_exact(*pair) for pair in join.keys)]
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


def _expressions(query: Query) -> list[Expr]:
    """Every expression of the query."""
    found = [conjunct.expr for conjunct in query.conjuncts] + [output.expr for output in query.select]
    for join in query.asof:
        found += [conjunct.expr for conjunct in join.filters]
        found += [column for pair in join.keys for column in pair]
    return found


def _exact(left: Column, right: Column) -> tuple[str, str]:
    """SQL of two equated columns. A DOUBLE equals an integer by value, and no other integer."""
    texts = [column_sql(left), column_sql(right)]
    if (left.type is Type.DOUBLE) != (right.type is Type.DOUBLE) and left.type.numeric:
        at = 0 if left.type is Type.DOUBLE else 1
        whole = f"TRY_CAST({texts[at]} AS BIGINT)"
        # 2^63 is a DOUBLE, and no BIGINT; below it, casts of whole DOUBLEs are exact.
        texts[at] = f"CASE WHEN floor({texts[at]}) = {texts[at]} THEN {whole} END"
    return texts[0], texts[1]
