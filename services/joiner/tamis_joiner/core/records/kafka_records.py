"""Records of one topic partition in a batch, and their dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.messaging import topics
from tamis.messaging.dead_letters import DeadLetter, Reason

SERVICE = "joiner"


@dataclass(frozen=True)
class Records:
    """Records of one topic partition in the order of their offsets. `arrived` is Kafka's timestamp of each
    record in microseconds.
    """

    topic: str
    partition: int
    values: Sequence[bytes]
    offsets: NDArray[np.int64]
    arrived: NDArray[np.int64]

    def pick(self, rows: Sequence[int]) -> Records:
        """The records at `rows`, in the order given."""
        return Records(
            self.topic,
            self.partition,
            [self.values[row] for row in rows],
            self.offsets[rows] if len(rows) else self.offsets[:0],
            self.arrived[rows] if len(rows) else self.arrived[:0],
        )

    def dead_letter(self, row: int, reason: Reason, error: str) -> DeadLetter:
        """The record at `row` as a dead letter."""
        return DeadLetter(
            self.values[row], SERVICE, self.topic, self.partition, int(self.offsets[row]), reason, error
        )


def split_plans(records: Sequence[Records]) -> tuple[list[Records], list[Records]]:
    """Records of the plan topic, and those of stream topics."""
    plans = [part for part in records if part.topic == topics.PLANS]
    return plans, [part for part in records if part.topic != topics.PLANS]
