"""Readings of a stream with the mask of those that edges send for an alert alone, as input of plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.offline.recordings import since_begin
from tamis.offline.wording import Wording
from tamis.omission.columns import Int64s
from tamis.operators.windows.boundaries import last_boundary, most_boundaries
from tamis.plan.model import PaneGrid
from tamis.planning.explanations.cut_replay import replayed_cuts
from tamis.planning.explanations.measured import partial_topic, retained_by_edges
from tamis.planning.link.bound import PARTITIONS
from tamis.printable import printable
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.recordings.typed import Recording
from tamis.wording.names import normalized_name, suggest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More lines can't be told apart.
MOST_KEYS = 6
_MOST_BOUNDARIES = 300


@dataclass(frozen=True)
class RetainedSeries:
    """Readings in any order. `times` (numbers, or datetime64 in UTC), `values` (NaN for NULL), `kept` and
    `keys` have one entry for each reading.

    If edges send partial aggregates of the kept ones, `sent` says for people how many rows and records these
    are, of all keys, and `boundaries` has the times at which panes begin, unless these are too many to see.
    """

    times: NDArray[Any]
    values: NDArray[np.float64]
    kept: NDArray[np.bool_]
    keys: Sequence[tuple[object, ...]]
    time_label: str
    value_label: str
    sent: str = ""
    boundaries: NDArray[Any] | None = None


@dataclass(frozen=True)
class ShownKey:
    """The readings of one key by their numbers, in the order of time. `label` is empty without a key."""

    label: str
    retained: NDArray[np.int64]
    omitted: NDArray[np.int64]


def shown_keys(series: RetainedSeries) -> tuple[list[ShownKey], str]:
    """The keys that a plot shows, and its title, which counts the readings of these only. Of more than six
    keys, those with the most readings are shown.
    """
    numbers: dict[tuple[object, ...], list[int]] = {}
    for row, key in enumerate(series.keys):
        numbers.setdefault(key, []).append(row)
    shown = []
    for key in sorted(numbers, key=lambda key: -len(numbers[key]))[:MOST_KEYS]:
        rows = np.array(numbers[key], np.int64)
        rows = rows[np.argsort(series.times[rows], kind="stable")]
        kept = series.kept[rows]
        shown.append(ShownKey(printable(", ".join(map(str, key))), rows[kept], rows[~kept]))
    retained = sum(len(one.retained) for one in shown)
    count = retained + sum(len(one.omitted) for one in shown)
    left_out = f", {len(shown)} of {len(numbers)} keys" if len(shown) < len(numbers) else ""
    form = "in partial aggregates" if series.sent else "retained"
    return shown, f"{retained:,} of {count:,} readings {form} (o), others omitted (x){left_out}"


def retained_series(
    alert: AlertDef | DerivedDef,
    catalog: Catalog,
    recordings: Mapping[str, Recording],
    *,
    value: str,
    stream: str | None,
    wording: Wording,
) -> RetainedSeries:
    """The readings of one recorded stream, and which of them edges send for an accepted alert alone.

    `value`: the column to plot; `stream`: the stream, if several are recorded. Raises InputError.
    """
    if not isinstance(alert, AlertDef):
        raise InputError(f"{alert.name} is a stream", where=wording.query, hint="name an alert that reads it")
    recordings = since_begin(alert, recordings)
    kept = retained_by_edges(alert, catalog, recordings)
    name = _stream(stream, recordings, wording)
    recording = recordings[name]
    definition = recording.stream
    if definition.time is None:
        hint = "choose a stream with a TIMESTAMP and a WATERMARK"
        raise InputError("has no event time to plot by", where=f"stream {definition.shown_name}", hint=hint)
    numeric = [column.name for column in definition.columns if column.type.numeric]
    column_name = value if value in numeric else normalized_name(value, numeric)
    if column_name not in numeric:
        hint = suggest(value, numeric)
        what = f"stream {definition.shown_name} has no number {value!r}"
        raise InputError(what, where=wording.value, hint=hint)
    column = recording.columns[column_name]
    values = np.array(column.data, np.float64)
    if column.null is not None:
        values[column.null] = np.nan
    keys = [recording.columns[one].to_list() for one in definition.key]
    times = recording.columns[definition.time].data
    topic = partial_topic(alert, catalog) if name in kept else None
    found = RetainedSeries(
        times.view("datetime64[us]"),
        values,
        kept.get(name, np.ones(len(recording), np.bool_)),
        list(zip(*keys, strict=True)) if keys else [()] * len(recording),
        time_label=printable(definition.time),
        value_label=printable(column_name),
    )
    if topic is None or topic.partials is None:
        return found
    cuts = replayed_cuts(topic, recording, PARTITIONS)
    sent = f"sent to Kafka: {cuts.rows:,} rows of partial aggregates in {cuts.records:,} records"
    return replace(found, sent=sent, boundaries=_boundaries(topic.partials.grids, times))


def _boundaries(grids: Sequence[PaneGrid], times: Int64s) -> NDArray[Any] | None:
    """The boundaries of panes within the times; None for more than can be told apart."""
    if not len(times):
        return None
    first, last = int(times.min()), int(times.max())
    if most_boundaries(last - first, grids) > _MOST_BOUNDARIES:
        return None
    every = [np.arange(last_boundary(first, [one]) + one.slide, last + 1, one.slide) for one in grids]
    return np.unique(np.concatenate(every)).view("datetime64[us]")


def _stream(asked: str | None, recordings: Mapping[str, Recording], wording: Wording) -> str:
    """The name in `recordings` of the stream to plot."""
    names = {recording.stream.shown_name: name for name, recording in recordings.items()}
    if asked is None and len(names) == 1:
        return next(iter(names.values()))
    if not names:
        hint = f"give a {wording.recording} of the stream"
        raise InputError(f"there is no {wording.recording} to plot", where=wording.inputs, hint=hint)
    if asked is None:
        raise InputError("several streams", where=wording.stream, hint=f"choose one of {', '.join(names)}")
    name = normalized_name(asked, names)
    if name not in names:
        what = f"there is no {wording.recording} of stream {name!r}"
        raise InputError(what, where=wording.stream, hint=suggest(name, names))
    return names[name]


def draw(axes: Axes, series: RetainedSeries) -> None:
    """Draw the readings of each key as a thin line: retained ones as filled circles, omitted ones as small
    crosses. Panes of partial aggregates are between thin vertical lines. The title says how many readings are
    retained, or what is sent in place of them.
    """
    shown, title = shown_keys(series)
    times, values = series.times, series.values
    for boundary in () if series.boundaries is None else series.boundaries:
        axes.axvline(boundary, color="0.85", linewidth=0.6, zorder=0)
    for number, key in enumerate(shown):
        color = f"C{number}"
        both = np.concatenate([key.retained, key.omitted])
        rows = both[np.argsort(times[both], kind="stable")]
        axes.plot(times[rows], values[rows], color=color, linewidth=0.6, alpha=0.4)
        on, off = key.retained, key.omitted
        axes.plot(times[on], values[on], "o", color=color, markersize=4, label=key.label or "retained")
        axes.plot(times[off], values[off], "x", color=color, markersize=3, alpha=0.6)
    # A $ in a key or a name is no formula of TeX.
    axes.set_title("\n".join(filter(None, (title, series.sent))), parse_math=False)
    axes.set_xlabel(series.time_label, parse_math=False)
    axes.set_ylabel(series.value_label, parse_math=False)
    if len(shown) > 1:
        for text in axes.legend().get_texts():
            text.set_parse_math(False)
    if times.dtype.kind == "M":
        axes.figure.autofmt_xdate()
