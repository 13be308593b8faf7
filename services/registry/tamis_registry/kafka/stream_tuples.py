"""Tuples of stream topics in their three formats, as documents and as samples of the newest ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from confluent_kafka import Message

from tamis.errors import RefusedError
from tamis.messaging.records import ENVELOPE
from tamis.messaging.schemas.tuple_decoding import SchemaMismatchError, decode, has_schema
from tamis.messaging.schemas.tuple_schema import layout
from tamis.plan.model import Plan, StreamPlan, TopicPlan
from tamis.recordings.typed import ORDER
from tamis_registry.kafka.newest import Entry, NewestReader
from tamis_registry.proving.messages import NeededStream, Sample


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


# Readings of one stream, counted in each of its topics.
MOST_READINGS = 2_000

# By topic: for columns of the stream, their names in the messages.
_Names = Mapping[str, Mapping[str, str]]

_SCALARS = (str, int, float, bool, type(None))

_HINT = "send samples of readings with the request, or run the query on a recording by `tamis run`"


def recent_sample(reader: NewestReader, plan: Plan, stream: str, needed: NeededStream) -> tuple[Sample, bool]:
    """The newest readings of a stream in its topics, and True if these are all that the topics keep.

    Raises RefusedError if no topic has all columns that are needed, and the errors of `NewestReader.read`.
    """
    names = _topics(plan, stream, needed)
    found = reader.read(list(names), tuple_picker(plan), MOST_READINGS)
    return sample_of(reversed(found.entries), names, needed), found.complete


def sample_of(entries: Iterable[Entry[dict[str, Any]]], names: _Names, needed: NeededStream) -> Sample:
    """The readings of tuples, the oldest first, by shard. Topics of a stream have copies of the same reading,
    which is in the sample once. `names`: by topic, the names that columns of the stream have in messages.
    """
    time = needed.time
    kept: Counter[tuple[str, bytes]] = Counter()
    copies: Counter[tuple[str, str, bytes]] = Counter()
    parts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        written = names[entry.topic]
        row = {name: entry.value.get(written[name]) for name in sorted(needed.columns)}
        if not all(isinstance(value, _SCALARS) for value in row.values()):
            continue  # no edge has written it
        if time is not None and type(row[time]) is not int:
            continue
        shard, text = entry.value[ENVELOPE]["shard"], orjson.dumps(row)
        copies[entry.topic, shard, text] += 1
        # Equal readings that are in one topic are several readings.
        if copies[entry.topic, shard, text] <= kept[shard, text]:
            continue
        kept[shard, text] += 1
        # Without event time, readings of several streams come in Kafka's order.
        parts[shard].append(row if time is not None else {**row, ORDER: entry.time})
    if time is not None:
        # Kafka keeps no order between partitions, and readings that were late would be late again.
        for part in parts.values():
            part.sort(key=lambda row: int(row[time]))
    return Sample(tuple(tuple(part) for part in parts.values()), needed.columns)


def _topics(plan: Plan, stream: str, needed: NeededStream) -> _Names:
    """The topics of a stream with all of these columns."""
    names = {
        topic.name: _names(one, topic)
        for one in plan.streams
        if one.shards_of == stream
        for topic in one.topics
    }
    if not names:
        raise RefusedError(f"stream {stream} has no topic, since no query reads it", hint=_HINT)
    found = {topic: written for topic, written in names.items() if needed.columns <= written.keys()}
    if not found:
        missing = min((needed.columns - written.keys() for written in names.values()), key=len)
        columns = ", ".join(sorted(missing))
        what = f"no topic of stream {stream} has {columns}, since no query in service reads it"
        raise RefusedError(what, hint=_HINT)
    return found


def _names(stream: StreamPlan, topic: TopicPlan) -> dict[str, str]:
    """The columns of the stream that messages carry, with their names in messages. Topics of derived streams
    also have results of expressions.
    """
    return topic.fields if topic.select else {name: name for name in carried(topic, stream.time)}
