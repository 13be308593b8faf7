"""A batch of one output partition in a Python worker: packed records in, rows for Spark's Kafka sink out.

What a worker remembers of its groups (`_MEMORY`) lives as long as the worker does.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from tamis.messaging import topics
from tamis.query.reach import Reach
from tamis_joiner.core.decode import Records
from tamis_joiner.core.group import Group, Output, plan_records
from tamis_joiner.core.state import StateMap

_MEMORY: dict[int, Group] = {}

_RECORD = Row("topic", "key", "value", "headers")
_HEADER = Row("key", "value")


def process(
    partition: int, partitions: int, packed: Iterable[bytes], state: StateMap, reach: Reach
) -> Iterator[Row]:
    """Take the batch, write what has changed to `state`, and yield the records to publish. `reach`: which
    files tables may name.
    """
    # Taken out while at work: an attempt that fails half way must leave nothing behind.
    group = Group.load(partition, partitions, state, _MEMORY.pop(partition, None), reach)
    plans, records = plan_records(unpack(packed))
    output = group.process(plans, records, state, now=time.time_ns() // 1000, token=secrets.token_hex(8))
    _MEMORY[partition] = group
    yield from _rows(partition, output)


def unpack(packed: Iterable[bytes]) -> list[Records]:
    """The records of one partition (at least one) by topic, in the order of their offsets."""
    table = pa.concat_tables([_table(one) for one in packed]).combine_chunks()
    topic = table.column("topic").combine_chunks().dictionary_encode()
    codes, names = topic.indices.to_numpy(), topic.dictionary.to_pylist()
    offsets = table.column("offset").to_numpy()
    arrived = table.column("arrived").to_numpy()
    values = table.column("value").to_numpy()
    partition = table.column("partition")[0].as_py()
    order = np.lexsort((offsets, codes))
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    found = []
    for number, name in enumerate(names):
        mine = order[ends[number - 1] if number else 0 : ends[number]]
        # A record without a value (a tombstone) is none of ours: an empty one is refused with a reason.
        payloads = [value or b"" for value in values[mine].tolist()]
        found.append(Records(name, partition, payloads, offsets[mine], arrived[mine]))
    return found


def _table(packed: bytes) -> Any:
    with pa.ipc.open_stream(packed) as reader:
        return reader.read_all()


def _rows(partition: int, output: Output) -> Iterator[Row]:
    for key, value in output.alarms:
        yield _RECORD(topics.ALARMS, key, value, None)
    if output.frontier is not None:
        yield _RECORD(topics.FRONTIERS, str(partition).encode(), output.frontier, None)
    for letter in output.dead:
        headers = [_HEADER(name, value) for name, value in letter.headers()]
        yield _RECORD(topics.DEAD_LETTERS, None, letter.payload, headers)
