"""Compile omission's kernels before the first tuple has to wait for them."""

from __future__ import annotations

import numpy as np

from tamis.evaluation.dispatch import WORTH_IT, Dispatch
from tamis.expressions.vectors import Vector
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState
from tamis.predicates import parse


def warm_up() -> None:
    """Take a few tuples through every kernel; what is compiled is kept on disk for the next start."""
    for state in (OmissionState(2), WindowState(1, 2)):
        _warm_up(state)
    # As many filters as the index is worth its while for.
    filters = [parse(f"a > {bound}").expression() for bound in range(WORTH_IT)]
    Dispatch(filters).over({"a": Vector(np.zeros(2))}, 2)


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
