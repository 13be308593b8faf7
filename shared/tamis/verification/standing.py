"""The rows of a query that keeps synopses, by DuckDB over all tuples at once, and whether those of Tamis are
the same.

As in `reference`, the SQL and the recordings are all that is shared. Once all has come, the order and the
time in which it came play no part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import isclose
from typing import Any

import duckdb
import pyarrow as pa

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Type
from tamis.expressions.opaque import calls
from tamis.query.model import Query
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import Values, compare_groups, groups, table_of
from tamis.verification.compare import Verdict
from tamis.verification.database import register, session
from tamis.verification.reference import NEAR, attribute, column_sql, connect, near_of, quote

WITHDRAWN = "_withdrawn"
_TYPES = {Type.VARCHAR: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DOUBLE: "DOUBLE"}  # all others are BIGINT
Row = tuple[Any, ...]


def compare_standing(
    name: str, query: Query, recordings: Mapping[str, Recording], rows: Mapping[str, Values]
) -> Verdict:
    """Compare all rows that Tamis gave, in their order, with DuckDB's; with aggregates these are of
    `keyed(query)`, of which the last row of each group counts.

    `recordings` are of streams and tables. *Missed*: rows that DuckDB has and Tamis hasn't, each as often as
    it has it; *extra*: the other way round.
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
        if query.grouping is not None:
            joined, holds, near = _joined(query)
            expected = groups(connection, query, joined, holds, near)
            return compare_groups(name, query, expected, _last(query, rows), tuples)
        return _compare(connection, name, query, table_of(rows), tuples)


def _joined(query: Query) -> tuple[str, str, str]:
    """FROM and WHERE of all that passes up to rounding; what holds where it passes, and where that is a
    matter of rounding.
    """
    for called in calls(*(c.expr for c in query.conjuncts), *(one.expr for one in query.select)):
        register(called)
    tables = [f"{quote(source.stream)} AS {quote(source.alias)}" for source in query.sources]
    conditions = [f"coalesce({to_duckdb(c.expr, column_sql)}, FALSE)" for c in query.conjuncts]
    close = [near_of([c.expr]) for c in query.conjuncts]
    near = " OR ".join(dict.fromkeys(one for one in close if one != "FALSE")) or "FALSE"
    either = [c if n == "FALSE" else f"({c} OR {n})" for c, n in zip(conditions, close, strict=True)]
    holds = " AND ".join(conditions) if near != "FALSE" else "TRUE"
    return f"{', '.join(tables)} WHERE {' AND '.join(either) or 'TRUE'}", holds, near


def _selected(query: Query) -> str:
    """The rows of a query without aggregates as `v…`, and whether each is `sure`."""
    if query.members:
        every = " UNION ALL ".join(f"({_selected(member)})" for member in query.members)
    else:
        joined, holds, near = _joined(query)
        shown = [
            f"CAST({to_duckdb(one.expr, column_sql)} AS {_TYPES.get(one.expr.type, 'BIGINT')}) AS v{i}"
            for i, one in enumerate(query.select)
        ]
        every = f"SELECT {', '.join(shown)}, ({holds}) AND NOT ({near}) AS sure FROM {joined}"
    if not query.distinct:
        return every
    names = ", ".join(f"v{i}" for i in range(len(query.select)))
    return f"SELECT {names}, bool_or(sure) AS sure FROM ({every}) GROUP BY ALL"


def _compare(
    connection: duckdb.DuckDBPyConnection, name: str, query: Query, given: pa.Table, tuples: int
) -> Verdict:
    names = [f"v{i}" for i in range(len(query.select))]
    connection.register("given", given.rename_columns(names))
    connection.execute(f"CREATE TEMP TABLE expected AS {_selected(query)}")
    shown = ", ".join(names)

    def rows(what: str) -> list[Row]:
        return connection.sql(what).fetchall()

    missed = rows(f"SELECT {shown} FROM expected WHERE sure EXCEPT ALL SELECT {shown} FROM given")
    extra = rows(f"SELECT {shown} FROM given EXCEPT ALL SELECT {shown} FROM expected")
    alike = _alike(missed, extra)
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


def _alike(missed: list[Row], extra: list[Row]) -> int:
    """How many rows of both are the same but for the rounding of DOUBLEs."""
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


def _last(query: Query, rows: Mapping[str, Values]) -> pa.Table:
    """The last row of each group, unless it was withdrawn."""
    assert query.grouping is not None
    keys = ", ".join(f"k{i}" for i in range(len(query.grouping.by)))
    table = table_of(rows)
    kept = f" WHERE NOT {WITHDRAWN}" if WITHDRAWN in rows else ""
    of = f"PARTITION BY {keys} " if keys else ""
    with session() as connection:
        connection.register("rows", table.append_column("_at", pa.array(range(len(table)))))
        last = f"SELECT * FROM rows QUALIFY row_number() OVER ({of}ORDER BY _at DESC) = 1"
        return connection.sql(f"SELECT * FROM ({last}){kept}").arrow().read_all()
