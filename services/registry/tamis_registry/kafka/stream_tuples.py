"""Tuples of stream topics in their three formats, as documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from confluent_kafka import Message

from tamis.messaging.records import ENVELOPE
from tamis.messaging.schemas.tuple_decoding import SchemaMismatchError, decode, has_schema
from tamis.messaging.schemas.tuple_schema import layout
from tamis.plan.model import Plan, TopicPlan


def carried(topic: TopicPlan, time: str | None) -> frozenset[str]:
    """The columns that messages of a topic carry."""
    if topic.select:
        return frozenset(name for name, _ in topic.select)
    return frozenset({*topic.columns, *topic.partition_key} | ({time} if time is not None else set()))


def tuple_picker(plan: Plan) -> Callable[[Message], dict[str, Any] | None]:
    """`tuple_decoder` for Kafka's messages."""
    decoded = tuple_decoder(plan)
    return lambda message: decoded(str(message.topic()), message.value() or b"")


def tuple_decoder(plan: Plan) -> Callable[[str, bytes], dict[str, Any] | None]:
    """A function of topic and value that returns the document of a tuple, with its envelope, and None for
    progress and final records. In each format, the document has the columns that its topic carries.

    The function raises ValueError, KeyError or TypeError for any other record.
    """
    topics = {topic.name: (stream, topic) for stream in plan.streams for topic in stream.topics}
    layouts = {
        name: layout(stream, topic) for name, (stream, topic) in topics.items() if topic.schema is not None
    }
    shown = {name: carried(topics[name][1], topics[name][0].time) for name in layouts}

    def decoded(topic: str, value: bytes) -> dict[str, Any] | None:
        if not has_schema(value):
            record: dict[str, Any] = orjson.loads(value)
            return None if "kind" in _envelope(record) else record
        try:
            record = decode(value, layouts[topic])
        except SchemaMismatchError as error:
            raise ValueError(str(error)) from error
        if "kind" in record[ENVELOPE]:
            return None
        # Its schema has all columns of the stream, and those that no reader needs are NULL.
        return {name: cell for name, cell in record.items() if name in shown[topic] or name == ENVELOPE}

    return decoded


def _envelope(record: dict[str, Any]) -> dict[str, Any]:
    envelope: dict[str, Any] = record[ENVELOPE]
    if not isinstance(envelope["shard"], str):
        raise TypeError("the envelope names no shard")
    return envelope
