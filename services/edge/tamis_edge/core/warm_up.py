"""Compilation of the kernels for omission, filters, patterns and window functions, before the first tuple."""

from __future__ import annotations

import numpy as np

from tamis.evaluation.filter_dispatch import MIN_INDEXED, Dispatch
from tamis.expressions.nodes import Column, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.vectors import Vector
from tamis.omission.stream import OmissionState
from tamis.omission.window_extremes.stream import WindowState
from tamis.query.watches import Frame, NamedPattern, Watch, WindowFunction
from tamis_edge.core.rows import Batch
from tamis_edge.core.watched.key_series import KeySeries


def warm_up() -> None:
    """Run every kernel with a few tuples. Compiled kernels are kept on disk for the next start."""
    for state in (OmissionState(2), WindowState(1, 2)):
        _warm_up(state)
    # From this many filters on, the index is used.
    a = Column("", "a", Type.DOUBLE)
    filters = [call(">", a, Literal(float(bound), Type.DOUBLE)) for bound in range(MIN_INDEXED)]
    columns = {"a": Vector(np.zeros(2))}
    Dispatch(filters).over(columns, 2)
    series = KeySeries(("a",))
    average = WindowFunction("avg", a, Frame(1, 0, 1), Type.DOUBLE)
    series.watch([Watch(a, "p", (NamedPattern("p", (0.0, 1.0)),), 0.1), average])
    series.push(Batch(columns, np.arange(2), np.arange(2), np.arange(2)))
    series.watch([])


def _warm_up(state: OmissionState | WindowState) -> None:
    state.offer(
        np.array([1, 0, 0, 0]), np.array([0, 0, 1, 2]), np.array([1.0, 2.0, 1.0, 2.0]), np.arange(4), 0
    )
    state.decide(1, 0)
    state.offer(np.array([0, 1]), np.array([3, 9]), np.array([1.0, 1.0]), np.array([4, 5]), 0)
    state.decide(4, 0)
    state.note_published(np.array([4]))
    state.held()
    state.flush()
