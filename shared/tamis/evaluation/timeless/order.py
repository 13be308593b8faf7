"""In which order the tuples of several recordings arrive."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.recordings.typed import ORDER, Recording


def interleaved(recordings: Mapping[str, Recording]) -> list[tuple[str, int]]:
    """All tuples as (stream, row): by their column `_order`, or the recordings one after the other.

    Raises InputError where some streams have that column and some have not.
    """
    ordered = [name for name, recording in recordings.items() if recording.order is not None]
    without = [name for name in recordings if name not in ordered]
    if ordered and without:
        raise InputError(
            f"stream {ordered[0]} has a column {ORDER} and stream {without[0]} has none",
            where="--input",
            hint="give every recording one, or none",
        )
    arrived = [(name, row) for name, recording in recordings.items() for row in range(len(recording))]
    if not ordered:
        return arrived
    places = np.concatenate([_places(recording) for recording in recordings.values()])
    return [arrived[i] for i in np.argsort(places, kind="stable")]


def _places(recording: Recording) -> NDArray[np.int64]:
    assert recording.order is not None
    return recording.order
