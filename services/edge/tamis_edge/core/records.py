"""Records of a shard, encoded as `tamis.messaging.records` defines them, and their output partitions.

Partition keys are dense codes: each distinct key is encoded and assigned to a partition once. Topics that are
joined share the Java client's partitioner, librdkafka's `murmur2_random`, so that a key has the same
partition number in all of them, whichever client wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import orjson

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import columns
from tamis.expressions.vectors import Vector
from tamis.messaging.partitioner import partition_of
from tamis.messaging.records import ENVELOPE, canonical_key
from tamis.messaging.schemas.tuple_encoding import encode_envelope
from tamis.messaging.schemas.tuple_schema import ValueSchema
from tamis.omission.columns import Int64s
from tamis.operators.time_join.key_table import KeyTable
from tamis.plan.model import StreamPlan, TopicPlan
from tamis_edge.core.rows import Batch


class MessageKeys(KeyTable):
    """Codes of partition keys, with the message key and the output partition of each."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self._count = partitions
        self.encoded: list[bytes] = []
        self._partitions = np.empty(16, np.int64)

    def partitions(self, codes: Int64s) -> Int64s:
        """The output partition of each code."""
        return self._partitions[codes]

    def forget(self, live: Sequence[Int64s]) -> None:
        super().forget(live)
        del self.encoded[self._end :]
        for code in self._free:
            self.encoded[code] = b""
        self._partitions = self._partitions[: max(16, self._end)].copy()

    def _add(self, key: Any, values: tuple[Any, ...]) -> int:
        code = super()._add(key, values)
        if code >= len(self._partitions):
            self._partitions = np.concatenate([self._partitions, np.empty_like(self._partitions)])
        encoded = canonical_key(values)
        if code < len(self.encoded):
            self.encoded[code] = encoded
        else:
            self.encoded.append(encoded)
        self._partitions[code] = partition_of(encoded, self._count)
        return code


ANY_PARTITION = -1


class Record(NamedTuple):
    """One record for Kafka. Its `token` identifies it when it is reported as safe.

    `arrival`: wall clock in milliseconds when its reading arrived at the edge. The joiner measures alarm
    latency from it.
    """

    token: int
    topic: str
    partition: int
    key: bytes | None
    value: bytes
    arrival: int
    headers: list[tuple[str, bytes]] | None = None


def records(
    tokens: Iterable[int],
    topic: str,
    *,
    partitions: Iterable[int],
    keys: Iterable[bytes],
    values: Iterable[bytes],
    arrivals: Iterable[int],
) -> Iterator[Record]:
    """Records of one topic from columns. It doesn't call `Record` for each: the calls would take half as long
    as the encoding.
    """
    rows = zip(tokens, repeat(topic), partitions, keys, values, arrivals, repeat(None), strict=False)
    return map(partial(tuple.__new__, Record), rows)


def tail(shard: str, version: int, activation: int, late: bool) -> bytes:
    """The end of a tuple's value in JSON: its envelope, the same for all tuples of a shard under one plan.

    >>> tail("air:edge-a/http", 3, 17, False)
    b',"_":{"shard":"air:edge-a/http","plan":3,"activation":17}}'
    """
    envelope: dict[str, object] = {"shard": shard, "plan": version, "activation": activation}
    if late:
        envelope["late"] = True
    return b',"%s":%s}' % (ENVELOPE.encode(), orjson.dumps(envelope))


def placed_tails(
    shard: str, version: int, activation: int, places: Iterable[int], late: Iterable[bool], *, fence: int = 0
) -> list[bytes]:
    """The ends of the values of tuples that carry their position in the source. `fence`: its number, 0
    without one.

    >>> placed_tails("air:edge-a/http", 3, 17, [4], [False])
    [b',"_":{"shard":"air:edge-a/http","plan":3,"activation":17,"place":4}}']
    """
    common = tail(shard, version, activation, False)[:-2] + (b',"fence":%d' % fence if fence else b"")
    return [
        b'%s,"place":%d%s' % (common, place, b',"late":true}}' if is_late else b"}}")
        for place, is_late in zip(places, late, strict=True)
    ]


def schema_envelopes(
    schema: ValueSchema, envelope: Mapping[str, object], places: Sequence[int] | None, late: Sequence[bool]
) -> list[bytes]:
    """The beginnings of the values of tuples in a format with a schema.

    `envelope`: shard, plan and activation. `places`: the positions of the tuples in the source, for topics
    whose tuples carry them.
    """
    if places is not None:
        return [
            encode_envelope(schema, {**envelope, "place": place, "late": is_late or None})
            for place, is_late in zip(places, late, strict=True)
        ]
    in_time, behind = encode_envelope(schema, envelope), encode_envelope(schema, {**envelope, "late": True})
    return [behind if is_late else in_time for is_late in late]


def message_columns(batch: Batch, rows: Int64s, stream: StreamPlan, topic: TopicPlan) -> dict[str, Vector]:
    """The columns in the values of the given rows' records, in the stream's order: partition key, time and
    projection. A derived stream has the columns of its SELECT.
    """
    if topic.select:
        read = {column.name for _, expr in topic.select for column in columns(expr)}
        taken = {("", name): batch.columns[name].take(rows) for name in read}
        return {name: evaluate(expr, taken, len(rows)) for name, expr in topic.select}
    wanted = {*topic.partition_key, *topic.columns, stream.time}
    names = [column.name for column in stream.columns if column.name in wanted]
    return {name: batch.columns[name].take(rows) for name in names}


def encode(values: Mapping[str, Vector], ends: Sequence[bytes]) -> list[bytes]:
    """The values of records in JSON, one for each of `ends`, which come from `tail` or `placed_tails`.

    Each column is written by one call: a call for each record takes three times as long.
    """
    n = len(ends)
    if n == 0:
        return []
    if not values:  # a reader that only counts tuples
        return [b"{" + end[1:] for end in ends]
    parts: list[Iterable[bytes]] = []
    before = b"{"
    for name, vector in values.items():
        texts, quote = _json_values(vector)
        parts += [repeat(before + orjson.dumps(name) + b":" + quote, n), texts]
        before = quote + b","
    if before != b",":
        parts.append(repeat(before[:-1], n))
    return list(map(b"".join, zip(*parts, ends, strict=True)))


def _json_values(vector: Vector) -> tuple[Sequence[bytes], bytes]:
    """The values of a column, at least one, in JSON; and the quote that they lack on both sides."""
    values = vector.to_list()
    if vector.data.dtype != np.object_:
        # Numbers and BOOLEANs have no comma.
        return orjson.dumps(values)[1:-1].split(b","), b""
    if vector.null is None or not vector.null.any():
        together = orjson.dumps(values)
        # Without escapes, every quote is at an end of a text.
        if b"\\" not in together:
            return together[2:-2].split(b'","'), b'"'
    return list(map(orjson.dumps, values)), b""
