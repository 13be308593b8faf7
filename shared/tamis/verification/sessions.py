"""The sessions of a stream by DuckDB: gaps and islands.

A tuple that isn't behind the watermark begins a run if the tuple before it, of the same key, is further away
than the gap. A tuple behind the watermark is in the session of the last such tuple before the watermark, if
that session begins before it and hadn't ended. See `tamis.evaluation.standing.window_aggregates.sessions`.
"""

from __future__ import annotations

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.query.model import WINDOW_END, WINDOW_START, Query
from tamis.verification.reference import attribute, column_sql, quote


def sessions_sql(query: Query, time: str, marks: str) -> str:
    """SQL of the stream's tuples that are in a session, each with the beginning and the end of its session.

    `time`: the event time of the stream. `marks`: a table with the watermark that each row met (`_row`,
    `mark`).
    """
    (source,) = query.sources
    session = source.session
    assert session is not None
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
