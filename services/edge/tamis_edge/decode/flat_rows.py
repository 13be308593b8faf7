"""Payloads that are flat JSON objects, decoded without objects of Python while most are understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tamis.expressions.vectors import Vector
from tamis.plan.model import StreamPlan
from tamis.recordings.field_paths import FieldPath
from tamis.recordings.flat_json.columns import FlatDecoder
from tamis.recordings.times import TimeUnit
from tamis_edge.core.messages.keys import Int64s

# Batches that are not tried after one of which less than half was understood: a try takes a tenth of the time
# of the other way.
_PAUSE = 20


class FlatRows:
    """The compiled decoder of a stream's payloads."""

    def __init__(self, stream: StreamPlan, paths: Mapping[str, FieldPath], unit: TimeUnit) -> None:
        """`paths`: of the columns. Each is one field, and no two are the same."""
        self._names = [column.name for column in stream.columns]
        self._decoder = FlatDecoder({paths[c.name].steps[0]: c.type for c in stream.columns}, unit)
        self._pause = 0

    @staticmethod
    def of(stream: StreamPlan, paths: Mapping[str, FieldPath], unit: TimeUnit) -> FlatRows | None:
        """The decoder for a stream; None if columns are fields of nested objects, or two are one field."""
        fields = {path.steps for path in paths.values()}
        if not paths or len(fields) < len(paths) or any(len(steps) > 1 for steps in fields):
            return None
        return FlatRows(stream, paths, unit)

    def decode(self, payloads: Sequence[bytes]) -> tuple[dict[str, Vector], Int64s] | None:
        """The column vectors, and the positions of the payloads that were not understood, whose values are
        undefined. None if it isn't worth while to try.
        """
        if self._pause or not payloads:
            self._pause = max(self._pause - 1, 0)
            return None
        vectors, understood = self._decoder.decode(payloads)
        left = np.flatnonzero(~understood)
        if 2 * len(left) > len(payloads):
            self._pause = _PAUSE
        return dict(zip(self._names, vectors, strict=True)), left
