"""`tamis.plot_omission` and `tamis.plot_retained`: which readings are retained, as plots of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tamis.expressions.nodes import Type
from tamis.frames.arrow_tables import Frame
from tamis.frames.inputs import Frames, Sql, check_query, name_of, recordings_of, statements_of
from tamis.frames.omit import key_columns, retained
from tamis.offline.omit import Rule, Span
from tamis.offline.retained_series import RetainedSeries, draw, retained_series
from tamis.offline.run import chosen_query
from tamis.offline.wording import FUNCTION
from tamis.omission.batch import Ties
from tamis.omission.columns import Sides
from tamis.recordings.times import TimeUnit
from tamis.recordings.values import values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_omission(
    frame: Frame,
    interval: Span,
    *,
    value: str,
    time: str = "ts",
    key: str | Sequence[str] = (),
    sides: Sides = "both",
    max_delay: Span | None = None,
    ties: Ties = "fewest",
    time_unit: TimeUnit | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Plot the readings of a frame that `tamis.omit` keeps, beside those that it leaves out.

    Arguments: as of `tamis.omit`; `axes`: where to draw, by default in a new figure. The result is the axes.
    Of more than six keys, those with the most readings are drawn. Needs the extra `plots`.
    """
    names = key_columns(key)
    rule = Rule(
        interval=interval,
        sides=sides,
        time=time,
        value=value,
        key=names,
        max_delay=max_delay,
        ties=ties,
        time_unit=time_unit,
    )
    rows, found = retained(frame, rule)
    kept = np.zeros(len(rows), np.bool_)
    kept[found.numbers] = True
    given = rows.column(time)
    dated = time_unit is not None or not _numeric(given.type)
    times = values_of(rows, time, Type.TIMESTAMP if dated else Type.DOUBLE, time_unit or "us").vector.data
    keys = list(zip(*(rows.column(name).to_pylist() for name in names), strict=True)) if names else []
    series = RetainedSeries(
        times.view("datetime64[us]") if dated else times,
        values_of(rows, value, Type.DOUBLE).vector.data,
        kept,
        keys or [()] * len(rows),
        time_label=time,
        value_label=value,
    )
    where = axes if axes is not None else _new_axes()
    draw(where, series)
    return where


def plot_retained(
    sql: Sql,
    frames: Frames,
    *,
    value: str,
    stream: str | None = None,
    query: str | None = None,
    time_unit: TimeUnit | None = None,
    as_arrived: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Plot the readings of a stream that edges send for an alert alone, beside those that they drop.

    Arguments: `sql`, `frames`, `query`, `time_unit` and `as_arrived` as of `tamis.run`, but only the plotted
    stream needs a frame; `value`: the column to plot; `stream`: the stream, if there are frames of several;
    `axes`: where to draw, by default in a new figure. The result is the axes. Needs the extra `plots`.

    Raises the errors of `tamis.run`.
    """
    check_query(query)
    catalog, _ = statements_of(sql)
    alert = chosen_query(catalog, query, name_of(sql), FUNCTION)
    recordings = recordings_of(catalog, [alert], frames, time_unit, complete=False, as_arrived=as_arrived)
    series = retained_series(alert, catalog, recordings, value=value, stream=stream, wording=FUNCTION)
    where = axes if axes is not None else _new_axes()
    draw(where, series)
    return where


def _numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _new_axes() -> Axes:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        text = "plots need the Python package 'matplotlib'; install tamis[plots]"
        raise ModuleNotFoundError(text, name=error.name) from error
    return pyplot.subplots()[1]
