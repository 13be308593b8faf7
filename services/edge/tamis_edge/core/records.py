"""What a shard has to send, encoded as `tamis.messaging.records` lays down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple

import orjson

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import columns
from tamis.expressions.vectors import Value
from tamis.messaging.records import ENVELOPE
from tamis.planning.plan import StreamPlan, TopicPlan
from tamis_edge.core.keys import Int64s
from tamis_edge.core.rows import Batch

ANY_PARTITION = -1


class Record(NamedTuple):
    """One record for Kafka. `token`: by what its shard knows it once it is safe.

    `arrival`: wall clock in milliseconds, when its reading came to the edge: the joiner measures alarm
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
    """Records of one topic from columns; to call `Record` for each would cost half of what encoding does."""
    rows = zip(tokens, repeat(topic), partitions, keys, values, arrivals, repeat(None), strict=False)
    return map(partial(tuple.__new__, Record), rows)


def tail(shard: str, version: int, activation: int, late: bool) -> bytes:
    """The end of a tuple's value: its envelope, the same for all tuples of a shard under one plan.

    >>> tail("air:edge-a/http", 3, 17, False)
    b',"_":{"shard":"air:edge-a/http","plan":3,"activation":17}}'
    """
    envelope: dict[str, object] = {"shard": shard, "plan": version, "activation": activation}
    if late:
        envelope["late"] = True
    return b',"%s":%s}' % (ENVELOPE.encode(), orjson.dumps(envelope))


def placed_tails(
    shard: str, version: int, activation: int, places: Iterable[int], late: Iterable[bool]
) -> list[bytes]:
    """The same where each tuple says where in its source it stood.

    >>> placed_tails("air:edge-a/http", 3, 17, [4], [False])
    [b',"_":{"shard":"air:edge-a/http","plan":3,"activation":17,"place":4}}']
    """
    common = tail(shard, version, activation, False)[:-2]
    return [
        b'%s,"place":%d%s' % (common, place, b',"late":true}}' if is_late else b"}}")
        for place, is_late in zip(places, late, strict=True)
    ]


def message_columns(
    batch: Batch, rows: Int64s, stream: StreamPlan, topic: TopicPlan
) -> dict[str, list[Value]]:
    """What the values of the given rows' records carry: partition key, time and projection in the stream's
    order, or a derived stream's columns as its SELECT makes them.
    """
    if topic.select:
        read = {column.name for _, expr in topic.select for column in columns(expr)}
        taken = {("", name): batch.columns[name].take(rows) for name in read}
        return {name: evaluate(expr, taken, len(rows)).to_list() for name, expr in topic.select}
    wanted = {*topic.partition_key, *topic.columns, stream.time}
    names = [column.name for column in stream.columns if column.name in wanted]
    return {name: batch.columns[name].take(rows).to_list() for name in names}


def encode(values: dict[str, list[Value]], ends: Sequence[bytes]) -> list[bytes]:
    """The values of as many records as there are `ends`, from `tail` or `placed_tails`."""
    if not values:  # somebody only counts them
        return [b"{" + end[1:] for end in ends]
    dumps = orjson.dumps
    rows = zip(*values.values(), strict=True)
    return [
        dumps(dict(zip(values, row, strict=True)))[:-1] + end for row, end in zip(rows, ends, strict=True)
    ]
