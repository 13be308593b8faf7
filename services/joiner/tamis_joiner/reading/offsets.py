"""Offsets of topics as Spark's checkpoint has them, and the ranges that a batch reads.

The form is that of Spark's Kafka source, `{"tamis.plans": {"0": 8}}`. So a joiner goes on with a checkpoint
that was written with that source, and the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

Offsets = Mapping[str, Mapping[str, int]]
"""By topic and partition number, the offset of the next record."""


class Range(NamedTuple):
    """The records of a partition from offset `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int


def ranges(start: Offsets, end: Offsets) -> list[Range]:
    """The ranges with records between two offsets, by topic and partition. A partition that `start` lacks is
    read from its beginning.

    >>> ranges({"a": {"0": 3, "1": 4}}, {"a": {"0": 5, "1": 4}, "b": {"0": 2}})
    [Range(topic='a', partition=0, start=3, end=5), Range(topic='b', partition=0, start=0, end=2)]
    """
    found = (
        Range(topic, int(partition), start.get(topic, {}).get(partition, 0), offset)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    )
    return sorted(one for one in found if one.start < one.end)


def limited(start: Offsets, end: Offsets, most: int) -> dict[str, dict[str, int]]:
    """`end`, or less where it is more than about `most` records from `start`: each partition gets its share
    of them, but at least one.

    >>> limited({"a": {"0": 100}}, {"a": {"0": 200}, "b": {"0": 300}}, 40)
    {'a': {'0': 110}, 'b': {'0': 30}}
    """
    found = {topic: dict(partitions) for topic, partitions in end.items()}
    read = ranges(start, end)
    total = sum(one.end - one.start for one in read)
    if total > most:
        for one in read:
            share = max(1, (one.end - one.start) * most // total)
            found[one.topic][str(one.partition)] = one.start + share
    return found


def by_partition(read: Sequence[Range]) -> Iterator[tuple[int, list[Range]]]:
    """The ranges of each partition number, over all topics."""
    for partition in sorted({one.partition for one in read}):
        yield partition, [one for one in read if one.partition == partition]


def encode(read: Sequence[Range]) -> str:
    """Ranges as JSON."""
    return json.dumps(read)


def decode(text: str) -> list[Range]:
    """The ranges of `encode`.

    >>> decode(encode([Range("a", 0, 3, 5)]))
    [Range(topic='a', partition=0, start=3, end=5)]
    """
    return [Range(*one) for one in json.loads(text)]
