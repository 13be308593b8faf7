"""Values of SELECT where rounding decides, over aggregates and over the tuples of alarms.

Rounding decides steps, choices and differences near zero. Aggregates are computed in another order by DuckDB
than by Tamis, so that both may be on different sides of a step: `round(avg(x), 2)` is 0.12 or 0.13 where the
average is 0.125 up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.declarations.definitions import WINDOW_COLUMNS, WINDOW_START
from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.exact.rounding import bound, certain
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Call, Column, Expr, Type, columns
from tamis.expressions.python_functions import calls
from tamis.expressions.vectors import Mask, Vector
from tamis.query.model import Query
from tamis.recordings.typed import Recording
from tamis.verification.database import register
from tamis.verification.reference import ROW, column_sql, connect, quote

# Values of rows may differ by this share, since sums may be computed in another order.
NEAR = 1e-9

Rows = Mapping[str, NDArray[np.int64]]
Place = Callable[[Column], str]


def doubt_sql(expr: Expr, errors: Mapping[Expr, Expr], place: Place) -> tuple[str, str] | None:
    """SQL of a condition that is true where rounding decides the value of `expr`, and of the greatest
    difference of two values then, NULL if any value is possible. None if rounding decides no value.

    `errors` has the error bounds of aggregates.
    """
    if not isinstance(expr, Call) or not any(column in errors for column in columns(expr)):
        return None
    value, error, sure = to_duckdb(expr, place), bound(expr, errors), certain(expr, errors=errors)
    inputs = [to_duckdb(column, place) for column in dict.fromkeys(columns(expr)) if column in errors]
    anything = [] if sure is None else [f"NOT coalesce({to_duckdb(sure, place)}, FALSE)"]
    # By these functions, any change of an argument may change the value in any way.
    anything += [f"{to_duckdb(arg, place)} IS NOT NULL" for arg in inexact_arguments(expr, errors)]
    some = []
    if error is not None:
        anything.append(f"{value} IS NULL AND {' AND '.join(f'{one} IS NOT NULL' for one in inputs)}")
        size = to_duckdb(error, place)
        anything.append(f"{value} IS NOT NULL AND {size} IS NULL")
        least = f"{NEAR!r} * abs({value})" if expr.type is Type.DOUBLE else "0"
        some.append(f"coalesce({size} > {least}, FALSE)")
    if not anything:
        return None
    any_value = " OR ".join(f"({one})" for one in anything)
    most = "NULL" if error is None else f"CASE WHEN NOT ({any_value}) THEN {to_duckdb(error, place)} END"
    return " OR ".join([any_value, *some]), f"CAST({most} AS DOUBLE)"


def inexact_arguments(expr: Expr, errors: Mapping[Expr, Expr]) -> Iterator[Expr]:
    """The arguments with a rounding error of functions that are exact by definition."""
    if not isinstance(expr, Call):
        return
    for arg in expr.args:
        if FUNCTIONS[expr.op].computed and bound(arg, errors) is not None:
            yield arg
        yield from inexact_arguments(arg, errors)


def wrong_values(
    query: Query,
    recordings: Mapping[str, Recording],
    rows: Rows,
    starts: NDArray[np.int64] | None,
    selected: Mapping[str, Vector],
) -> Mask:
    """The mask of alarms in which a column of SELECT has another value than DuckDB computes from the alarm's
    tuples, and rounding can't be the reason. `rows` and `starts` are those of `compare.Alarms`.
    """
    count = len(next(iter(rows.values())))
    wrong = np.zeros(count, np.bool_)
    if not count:
        return wrong
    for called in calls(*(one.expr for one in query.select)):
        register(called)
    size = 0 if query.window is None else query.window.size

    def place(column: Column) -> str:
        if query.window is not None and column.name in WINDOW_COLUMNS:
            return "given.start" if column.name == WINDOW_START else f"(given.start + {size})"
        return column_sql(column)

    sources = [source for source in query.row_sources if source.alias in rows]
    given = {f"r{i}": rows[source.alias] for i, source in enumerate(sources)}
    given["start"] = np.zeros(count, np.int64) if starts is None else starts
    values = {f"v{i}": _array(selected[one.name]) for i, one in enumerate(query.select)}
    joins = " ".join(
        f"JOIN {quote(s.stream)} AS {quote(s.alias)} ON {quote(s.alias)}.{ROW} = given.r{i}"
        for i, s in enumerate(sources)
    )
    tests = [_differs(one.expr, f"given.v{i}", place) for i, one in enumerate(query.select)]
    with connect(query, recordings) as connection:
        connection.register("given", pa.table({"n": np.arange(count), **given, **values}))
        found = connection.sql(f"SELECT n FROM given {joins} WHERE {' OR '.join(tests)}").fetchnumpy()
    wrong[np.asarray(found["n"], np.int64)] = True
    return wrong


def _differs(expr: Expr, given: str, place: Place) -> str:
    """SQL that is true where a given value is not that of `expr`, whatever rounding did."""
    value = to_duckdb(expr, place)
    differs = f"{given} IS DISTINCT FROM {value}"
    if any(True for _ in inexact_arguments(expr, {})):
        return "FALSE"
    excuses = list(_excuses(expr, value, given, place))
    return f"({differs} AND NOT ({' OR '.join(excuses)}))" if excuses else f"({differs})"


def _excuses(expr: Expr, value: str, given: str, place: Place) -> Iterator[str]:
    """SQL of the conditions under which rounding explains another value."""
    error, sure = bound(expr), certain(expr)
    if sure is not None:
        yield f"NOT coalesce({to_duckdb(sure, place)}, FALSE)"
    if error is not None:
        size = to_duckdb(error, place)
        # Both values err, each by up to the bound. NULL may be due to a divisor that is nearly 0.
        yield f"coalesce(abs({value} - {given}) <= 2 * {size}, TRUE)"


def _array(vector: Vector) -> pa.Array:
    return pa.array(vector.data, mask=vector.null, from_pandas=False)
