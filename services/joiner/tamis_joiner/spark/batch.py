"""A batch of one output partition in a Python worker: offsets in, rows for Spark's Kafka sink out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Row

from tamis.declarations.file_access import FileAccess
from tamis.messaging import topics
from tamis_joiner.core.frontier_report import Output
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans
from tamis_joiner.core.state import StateMap
from tamis_joiner.reading.offsets import Range
from tamis_joiner.reading.range_reader import RangeReader

# Groups of this worker by partition, for as long as the worker lives. A worker has a single thread. A token
# in the state tells if a cached group is up to date.
_CACHE: dict[int, Group] = {}

# Readers of this worker by the configuration of their client.
_READERS: dict[tuple[tuple[str, str], ...], RangeReader] = {}

_RECORD = Row("topic", "key", "value", "headers")
_HEADER = Row("key", "value")


def read(config: Mapping[str, str], ranges: Sequence[Range]) -> list[Records]:
    """The records of the ranges, as `RangeReader.read`."""
    key = tuple(sorted(config.items()))
    if key not in _READERS:
        _READERS[key] = RangeReader(config)
    return _READERS[key].read(ranges)


def process(
    partition: int, partitions: int, found: Sequence[Records], state: StateMap, file_access: FileAccess
) -> Iterator[Row]:
    """Process the records that were `found`, write the changes to `state`, and yield the records to publish.
    `file_access`: the files that tables may name.
    """
    # The group is removed from the cache meanwhile: a failed attempt leaves it half changed.
    group = Group.load(partition, partitions, state, _CACHE.pop(partition, None), file_access)
    plans, records = split_plans(found)
    output = group.process(plans, records, state, now=time.time_ns() // 1000, token=secrets.token_hex(8))
    _CACHE[partition] = group
    yield from _rows(partition, output)


def _rows(partition: int, output: Output) -> Iterator[Row]:
    for key, value in output.alarms:
        yield _RECORD(topics.ALARMS, key, value, None)
    if output.frontier is not None:
        yield _RECORD(topics.FRONTIERS, str(partition).encode(), output.frontier, None)
    for letter in output.dead_letters:
        headers = [_HEADER(name, value) for name, value in letter.headers()]
        yield _RECORD(topics.DEAD_LETTERS, None, letter.payload, headers)
