"""Readings that wait for the watermark, and then leave in the order of their event times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis_edge.core.rows import Batch


class EventOrder:
    """Buffer of readings. Readings with equal event times leave in the order in which they came."""

    def __init__(self) -> None:
        # In the order of arrival; within a batch in the order of event times.
        self._parts: list[Batch] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def oldest(self) -> int | None:
        """The least event time that waits; None if nothing waits."""
        return min((int(part.times[0]) for part in self._parts), default=None)

    def add(self, batch: Batch) -> None:
        """Add readings."""
        if len(batch):
            self._parts.append(_in_order(batch))

    def add_columns(self, columns: Mapping[str, Type]) -> None:
        """Add columns that are NULL to the readings that wait."""
        for number, part in enumerate(self._parts):
            new = {name: Vector.nulls(type_, len(part)) for name, type_ in columns.items()}
            self._parts[number] = replace(part, columns=new | part.columns)

    def release(self, watermark: int) -> Batch | None:
        """Remove the readings with an event time up to the watermark; returns them in order, None if there
        are none.
        """
        ready, waiting = [], []
        for part in self._parts:
            count = int(np.searchsorted(part.times, watermark, side="right"))
            if count:
                ready.append(part.take(slice(0, count)))
            if count < len(part):
                waiting.append(part.take(slice(count, None)))
        self._parts = waiting
        return _in_order(Batch.concat(ready)) if ready else None


def _in_order(batch: Batch) -> Batch:
    if (batch.times[1:] >= batch.times[:-1]).all():
        return batch
    return batch.take(np.argsort(batch.times, kind="stable"))
