"""Samples of streams from the newest readings in their topics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from tamis.errors import RefusedError
from tamis.messaging.records import ENVELOPE
from tamis.plan.model import Plan, StreamPlan, TopicPlan
from tamis.recordings.typed import ORDER
from tamis_registry.kafka.newest import Entry, NewestReader
from tamis_registry.kafka.stream_tuples import carried, tuple_picker
from tamis_registry.proving.messages import NeededStream, Sample

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
