"""Check the columns of watches against direct computation of every window and frame.

Rounding can decide whether a window matches, and which of two patterns is nearer. A reading has the columns
that Tamis computed if they are those of direct computation up to rounding, and else those of direct
computation. So a difference between the two shows as a missed or an extra alarm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tamis.expressions.nodes import Expr
from tamis.expressions.vectors import Vector
from tamis.query.watches import Watch, pattern_watches, window_functions
from tamis.recordings.typed import Recording
from tamis.verification.watched_series import Floats, Series, series_of
from tamis.verification.window_matches import (
    GREATEST_FIT,
    Computed,
    Mask,
    WindowMatches,
    window_matches,
)
from tamis.verification.window_values import same_values, window_values


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
