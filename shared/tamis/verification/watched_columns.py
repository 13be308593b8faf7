"""Check the columns of watches against direct computation of every window and frame.

Rounding can decide whether a window matches, and which of two patterns is nearer. A reading has the columns
that Tamis computed if they are those of direct computation up to rounding, and else those of direct
computation. So a difference between the two shows as a missed or an extra alarm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.watches import Frame, Watch, WindowFunction, pattern_watches, window_functions
from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.python_functions import calls
from tamis.expressions.vectors import Mask, Vector
from tamis.recordings.typed import Recording
from tamis.verification.database import WHOLE, register, session
from tamis.verification.reference import attribute, tuples
from tamis.verification.watched_series import Floats, Series, series_of
from tamis.verification.window_matches import (
    GREATEST_FIT,
    Computed,
    WindowMatches,
    window_matches,
)

_ERROR = 2.0**-50  # the share of themselves by which exact numbers differ that are rounded twice


def checked_recording(recording: Recording) -> Recording:
    """The recording of a stream, with the columns of watches checked, if it has any.

    `uncertain` is then the mask of readings for which rounding decides which pattern matches.
    """
    if not recording.stream.watches:
        return recording
    columns = dict(recording.columns)
    uncertain = np.zeros(len(recording), np.bool_)
    series: dict[Expr, Series] = {}
    for function in window_functions(recording.stream.watches):
        own = recording.columns[function.column.name]
        values, error = window_values(recording, function)
        alike = same_values(own, values, error)
        columns[function.column.name] = _chosen(alike, own, values)
    for watch in pattern_watches(recording.stream.watches):
        if watch.value not in series:
            series[watch.value] = series_of(recording, watch.value)
        ours = [columns[column.name] for column in watch.columns]
        found = window_matches(watch, series[watch.value], Computed.of(watch, ours))
        right, doubtful = _judged(found, ours)
        for column, given, direct in zip(
            watch.columns, ours, _nearest(watch, found, len(right)), strict=True
        ):
            columns[column.name] = _chosen(right, given, direct)
        uncertain |= doubtful
    return replace(recording, columns=columns, uncertain=uncertain)


def _judged(found: WindowMatches, ours: list[Vector]) -> tuple[Mask, Mask]:
    """Masks of the readings whose columns are right up to rounding, and of those that rounding decides."""
    count = len(ours[0])
    # A pattern can be the nearest if it isn't farther than this, up to rounding.
    reach = np.full(count, np.inf)
    np.minimum.at(reach, found.row[found.sure], (found.distance + found.near)[found.sure])
    possible = found.distance - found.near <= reach[found.row]
    outcomes = np.bincount(found.row[possible], minlength=count) + np.isinf(reach)
    null = np.all([np.zeros(count, np.bool_) if one.null is None else one.null for one in ours], axis=0)
    right = null & np.isinf(reach)
    right[found.row[possible & found.alike]] = True
    return right, outcomes > 1


def _nearest(watch: Watch, found: WindowMatches, count: int) -> tuple[Vector, ...]:
    """The four columns by direct computation."""
    order = np.lexsort((found.place, found.distance, found.row))
    order = order[found.holds[order]]
    rows, first = np.unique(found.row[order], return_index=True)
    chosen = order[first]
    names = np.full(count, None, np.object_)
    names[rows] = np.array([pattern.name for pattern in watch.patterns], np.object_)[found.place[chosen]]
    none = np.ones(count, np.bool_)
    none[rows] = False

    def spread(values: Floats) -> Vector:
        data, null = np.zeros(count), none.copy()
        data[rows] = values[chosen]
        null[rows] = ~(np.abs(values[chosen]) <= GREATEST_FIT)
        return Vector(np.where(null, 0.0, data), null)

    return spread(found.distance), spread(found.scale), spread(found.shift), Vector(names, none)


def _chosen(first: Mask, one: Vector, other: Vector) -> Vector:
    """The values of `one` where `first` is true, else those of `other`."""
    place = np.where(first, 0, len(first)) + np.arange(len(first))
    return Vector.concat([one, other]).take(place)


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
