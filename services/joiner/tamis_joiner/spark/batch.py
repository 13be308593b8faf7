"""A batch of one output partition in a Python worker: packed records in, rows for Spark's Kafka sink out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from tamis.messaging import topics
from tamis.query.file_access import FileAccess
from tamis_joiner.core.group import Group
from tamis_joiner.core.output import Output
from tamis_joiner.core.records.kafka_records import Records, split_plans
from tamis_joiner.core.state.state_map import StateMap

# Groups of this worker by partition, for as long as the worker lives. A worker has a single thread. A token
# in the state tells if a cached group is up to date.
_CACHE: dict[int, Group] = {}

_RECORD = Row("topic", "key", "value", "headers")
_HEADER = Row("key", "value")


def process(
    partition: int, partitions: int, packed: Iterable[bytes], state: StateMap, file_access: FileAccess
) -> Iterator[Row]:
    """Process the batch, write the changes to `state`, and yield the records to publish. `file_access`: the
    files that tables may name.
    """
    # The group is removed from the cache meanwhile: a failed attempt leaves it half changed.
    group = Group.load(partition, partitions, state, _CACHE.pop(partition, None), file_access)
    plans, records = split_plans(unpack(packed))
    output = group.process(plans, records, state, now=time.time_ns() // 1000, token=secrets.token_hex(8))
    _CACHE[partition] = group
    yield from _rows(partition, output)


def unpack(packed: Iterable[bytes]) -> list[Records]:
    """The records of one partition (at least one record) by topic, in the order of their offsets."""
    table = pa.concat_tables([_table(stream) for stream in packed]).combine_chunks()
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
        rows = order[ends[number - 1] if number else 0 : ends[number]]
        # No service writes records without a value (tombstones) here: an empty value becomes a dead letter.
        payloads = [value or b"" for value in values[rows].tolist()]
        found.append(Records(name, partition, payloads, offsets[rows], arrived[rows]))
    return found


def _table(stream: bytes) -> Any:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()


def _rows(partition: int, output: Output) -> Iterator[Row]:
    for key, value in output.alarms:
        yield _RECORD(topics.ALARMS, key, value, None)
    if output.frontier is not None:
        yield _RECORD(topics.FRONTIERS, str(partition).encode(), output.frontier, None)
    for letter in output.dead_letters:
        headers = [_HEADER(name, value) for name, value in letter.headers()]
        yield _RECORD(topics.DEAD_LETTERS, None, letter.payload, headers)
