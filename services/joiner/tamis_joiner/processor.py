"""Spark's side of a group: rows of a batch in, records for Kafka out, state in one map.

In a module of its own, imported by the Python workers: what a worker remembers of its groups (`_MEMORY`)
lives as long as the worker does.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tamis.messaging import topics
from tamis_joiner.core.decode import Records
from tamis_joiner.core.group import Group, Output, plan_records

# Spark refuses new fields and silently empties renamed variables: neither may ever change.
STATE = "state"
STATE_KEY = "name string"
STATE_VALUE = "blob binary"

INPUT = ("topic", "partition", "offset", "arrived", "value")
OUTPUT = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"

_MEMORY: dict[int, Group] = {}


class SparkState:
    """Spark's map state as a `StateMap`."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        """As `StateMap.get`."""
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, value: bytes) -> None:
        """As `StateMap.put`."""
        self._state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        """As `StateMap.remove`."""
        self._state.removeKey((name,))


class GroupProcessor(StatefulProcessor):
    """One call of `handleInputRows` is one batch of one output partition."""

    def __init__(self, groups: list[int]) -> None:
        self._partition_of = {number: partition for partition, number in enumerate(groups)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark calls this once a task."""
        self._state = SparkState(handle.getMapState(STATE, STATE_KEY, STATE_VALUE))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """Process the batch and yield the records to publish, if any."""
        partition = self._partition_of[int(key[0])]
        # Taken out while at work: an attempt that fails half way must leave nothing behind.
        group = Group.load(partition, len(self._partition_of), self._state, _MEMORY.pop(partition, None))
        plans, records = plan_records(by_topic(list(rows)))
        output = group.process(
            plans, records, self._state, now=time.time_ns() // 1000, token=secrets.token_hex(8)
        )
        _MEMORY[partition] = group
        frame = output_frame(partition, output)
        if len(frame):  # Spark 4.2 fails on an empty frame
            yield frame

    def close(self) -> None:
        """Nothing to let go of."""


def by_topic(frames: list[pd.DataFrame]) -> list[Records]:
    """The rows of a batch of one partition as `Records` by topic, in the order of their offsets."""
    rows = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    codes, names = pd.factorize(rows["topic"])
    offsets = rows["offset"].to_numpy(np.int64)
    arrived = rows["arrived"].to_numpy(np.int64)
    values = rows["value"].to_numpy()
    partition = int(rows["partition"].iloc[0])
    order = np.lexsort((offsets, codes))
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    found = []
    for number, name in enumerate(names):
        mine = order[ends[number - 1] if number else 0 : ends[number]]
        # A record without a value (a tombstone) is none of ours: an empty one is refused with a reason.
        payloads = [value or b"" for value in values[mine]]
        found.append(Records(str(name), partition, payloads, offsets[mine], arrived[mine]))
    return found


def output_frame(partition: int, output: Output) -> pd.DataFrame:
    """The records of a batch as rows for Spark's Kafka sink."""
    rows: list[tuple[str, bytes | None, bytes, list[dict[str, Any]] | None]] = [
        (topics.ALARMS, key, value, None) for key, value in output.alarms
    ]
    if output.frontier is not None:
        rows.append((topics.FRONTIERS, str(partition).encode(), output.frontier, None))
    for letter in output.dead:
        headers = [{"key": name, "value": value} for name, value in letter.headers()]
        rows.append((topics.DEAD_LETTERS, None, letter.payload, headers))
    return pd.DataFrame(rows, columns=["topic", "key", "value", "headers"])
