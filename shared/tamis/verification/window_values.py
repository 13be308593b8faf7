"""The values of window functions by DuckDB's own window functions.

Sums, means and variances of both are exact numbers that are rounded once or twice. So values that are equal
up to this rounding count as equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.python_functions import calls
from tamis.expressions.vectors import Mask, Vector
from tamis.query.watches import Frame, WindowFunction
from tamis.recordings.typed import Recording
from tamis.verification.database import register, session
from tamis.verification.exact_sums import WHOLE
from tamis.verification.reference import attribute, tuples

_ERROR = 2.0**-50  # the share of themselves by which exact numbers differ that are rounded twice


def window_values(recording: Recording, function: WindowFunction) -> tuple[Vector, NDArray[np.float64]]:
    """The values for all readings, and by how much they may be wrong."""
    stream = recording.stream
    assert stream.time is not None
    exprs = [function.value, *(() if function.default is None else (function.default,))]
    for called in calls(*exprs):
        register(called)

    def sql(expr: Expr) -> str:
        return to_duckdb(expr, lambda column: attribute(column.name))

    default = "NULL" if function.default is None else sql(function.default)
    series = ", ".join(["file", *(attribute(name) for name in stream.key)])
    ordered = (
        f"SELECT *, {attribute(stream.time)} AS _time, {sql(function.value)} AS _value,"
        f" {default} AS _default,"
        f" row_number() OVER (PARTITION BY {series} ORDER BY {attribute(stream.time)}, _row) AS _number"
        " FROM readings WHERE NOT _late"
    )
    framed = f"SELECT *, {_frame(function.frame, series)} AS _frame FROM ({ordered})"
    value, error = _value(function)
    with session() as connection:
        table = tuples(recording).append_column("file", [recording.file_numbers])
        connection.register("readings", table)
        found = connection.sql(
            f"SELECT _row, {value} AS value, {error} AS error FROM"
            f" (SELECT _row, _default, list_transform(_frame, lambda one: one.value) AS _all,"
            " list_filter(_all, lambda one: one IS NOT NULL) AS _values"
            f" FROM ({framed}))"
        ).arrow()
        rows = found.read_all()
    at = rows.column("_row").to_numpy()
    values = np.full(len(recording), None, np.object_)
    values[at] = np.array([*rows.column("value").to_pylist(), None], np.object_)[:-1]
    errors = np.zeros(len(recording))
    errors[at] = rows.column("error").to_numpy()
    return Vector.from_list(values.tolist(), function.type), errors


def _frame(frame: Frame, series: str) -> str:
    """SQL of the readings in the frame as a list of time, number and value, the oldest first.

    Of readings with the same time, those that are behind a reading in its series are not in its frame.
    """
    one = "{'time': _time, 'number': _number, 'value': _value}"
    if frame.first is None:
        over = f"RANGE BETWEEN {frame.span} PRECEDING AND CURRENT ROW"
        order, kept = "_time", "one.number <= _number"
    else:
        over = f"ROWS BETWEEN {frame.first} PRECEDING AND {frame.last} PRECEDING"
        order, kept = "_number", f"_time - one.time <= {frame.span}"
    listed = (
        f"coalesce(list({one} ORDER BY _number) OVER (PARTITION BY {series} ORDER BY {order} {over}), [])"
    )
    return f"list_filter({listed}, lambda one: {kept})"


def _value(function: WindowFunction) -> tuple[str, str]:
    """SQL of the function over `_all` values of its frame, or those that aren't NULL, and of its error."""
    name = function.function
    whole = "" if function.value.type is Type.DOUBLE else WHOLE
    match name:
        case "lag":
            return "CASE WHEN len(_all) > 0 THEN _all[1] ELSE _default END", "0.0"
        case "first_value" | "last_value":
            return f"_all[{1 if name == 'first_value' else -1}]", "0.0"
        case "count":
            return "len(_values)", "0.0"
        case "min" | "max":
            return f"list_aggregate(_values, '{name}')", "0.0"
        case "sum" if whole:
            return "TRY_CAST(list_aggregate(_values, 'sum') AS BIGINT)", "0.0"
        case _:
            found = f"exact_{name}{whole}(_values)"
            return found, f"coalesce({_ERROR!r} * abs({found}), 0)"


def same_values(ours: Vector, direct: Vector, error: NDArray[np.float64]) -> Mask:
    """The readings where our value is the direct one, up to its error."""
    nulls = [np.zeros(len(one), np.bool_) if one.null is None else one.null for one in (ours, direct)]
    alike = np.asarray(ours.data == direct.data, np.bool_)
    if direct.data.dtype == np.float64:
        with np.errstate(all="ignore"):
            alike |= np.abs(ours.data - direct.data) <= error
    found: Mask = np.where(nulls[0] | nulls[1], nulls[0] & nulls[1], alike)
    return found
