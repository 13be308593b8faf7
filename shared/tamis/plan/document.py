"""JSON document of a plan, put together from the texts of its queries, topics and entries.

Texts are taken from the document of the plan before, so the cost of a change depends on the number of changed
queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw

from tamis.errors import InputError
from tamis.persistent.lists import PersistentList, mapped
from tamis.plan.model import Definition, Entry, Plan, StandingQuery, StreamPlan, TopicPlan
from tamis.plan.wire import MOST, Record, WireType, wire_type

FORMAT = 1  # a reader refuses a plan of another format
# Bytes of one plan: some 10,000 queries. It is sent compressed to a tenth of that.
LARGEST = 32 * 1024 * 1024

PLAN: WireType[Plan] = WireType(Plan, format=int)
_encode = msgspec.json.Encoder().encode
_QUERIES = (Definition, StandingQuery)


class PlanDocument:
    """A plan's value in `tamis.plans`, with `size` bytes.

    `encoded`: the number of bytes that were encoded for it and for all documents before.
    """

    def __init__(self, plan: Plan, before: PlanDocument | None = None) -> None:
        """Raises InputError if `decode_plan` would refuse it."""
        self._plan = plan
        definitions, standing = wire_type(Definition), wire_type(StandingQuery)
        self._definitions: _Texts = (before._definitions if before else _Texts(definitions)).updated(
            plan.definitions
        )
        self._standing: _Texts = (before._standing if before else _Texts(standing)).updated(plan.standing)
        known: Mapping[str, _Topic] = before._topics if before else {}
        self._topics: dict[str, _Topic] = {
            topic.name: _Topic.of(topic, known.get(topic.name))
            for stream in plan.streams
            for topic in stream.topics
        }
        heads: Mapping[str, _Head] = before._heads if before else {}
        self._heads: dict[str, _Head] = {
            stream.name: _Head.of(stream, self._topics, heads.get(stream.name)) for stream in plan.streams
        }
        parts = (self._definitions, self._standing)
        self.size = len(self._document(whole=False))
        self.size += sum(part.size for part in parts)
        self.size += sum(topic.entries.size for topic in self._topics.values())
        self.encoded: int = (before.encoded if before else 0) + sum(part.encoded for part in parts)
        changed = [topic for name, topic in self._topics.items() if topic is not known.get(name)]
        self.encoded += sum(topic.entries.encoded for topic in changed)
        for what, many in (
            ("alerts", len(plan.definitions)),
            ("alerts that keep synopses", len(plan.standing)),
            ("topics of a stream", max((len(stream.topics) for stream in plan.streams), default=0)),
            ("entries of a topic", max((len(one.plan.entries) for one in self._topics.values()), default=0)),
        ):
            if many > MOST:
                raise InputError(f"the plan has {many} {what}; at most {MOST} fit", hint="drop alerts")
        if self.size > LARGEST:
            raise InputError(f"the plan has {self.size} bytes; at most {LARGEST} fit", hint="drop alerts")

    @cached_property
    def json(self) -> bytes:
        """The value itself."""
        return self._document(whole=True)

    def _document(self, *, whole: bool) -> bytes:
        """The JSON of the plan; without `whole`, all long lists are empty."""
        streams: tuple[Record | Raw, ...] = tuple(Raw(head.text) for head in self._heads.values())
        if whole:
            streams = tuple(map(self._stream, self._plan.streams))
        standing = self._standing.raw(whole=whole)
        if self._standing.records and not whole:
            standing = (Raw(b" "),)  # without any element the field would be left out
        record = PLAN.write(
            self._plan,
            format=FORMAT,
            streams=streams,
            definitions=self._definitions.raw(whole=whole),
            standing=standing,
        )
        text = _encode(record)
        return text if whole or not self._standing.records else text[:-1]

    def _stream(self, stream: StreamPlan) -> Record:
        topics = tuple(self._topics[topic.name].record() for topic in stream.topics)
        return wire_type(StreamPlan).write(stream, topics=topics)


@dataclass(frozen=True, eq=False, slots=True)
class _Texts:
    """Records of a list, each with its JSON.

    `size`: the bytes of all texts with commas; `encoded`: the bytes of those that are new.
    """

    kind: WireType[Any]
    records: PersistentList[object] = field(default_factory=PersistentList)
    texts: PersistentList[bytes] = field(default_factory=PersistentList)
    size: int = 0
    encoded: int = 0

    def updated(self, records: Sequence[object]) -> _Texts:
        """The texts of these records."""
        given = PersistentList(records)
        encoded = 0

        def encode(one: object) -> bytes:
            nonlocal encoded
            text = _encode(self.kind.write(one))
            _check(self.kind, text, one)
            encoded += len(text)
            return text

        texts = mapped(given, encode, self.records, self.texts)
        commas = max(len(given) - 1, 0) - max(len(self.records) - 1, 0)
        size = self.size + _more(self.texts, texts) + commas
        return _Texts(self.kind, given, texts, size, encoded)

    def raw(self, *, whole: bool) -> tuple[Raw, ...]:
        """The texts for the encoder; none without `whole`."""
        return tuple(map(Raw, self.texts)) if whole else ()


def _check(kind: WireType[Any], text: bytes, record: object) -> None:
    """A plan that can't be read would stop every alert. Raises InputError for such a record."""
    try:
        kind.decode(text, f"alert {record.alert}" if isinstance(record, _QUERIES) else "plan")
    except InputError as error:
        raise InputError(f"no service could read its plan: {error.what}", where=error.where) from None


def _more(before: PersistentList[bytes], now: PersistentList[bytes]) -> int:
    """The bytes by which the second texts are more than the first."""
    old, new = ({id(chunk): chunk for chunk in texts.chunks} for texts in (before, now))
    gone = sum(sum(map(len, old[one])) for one in old.keys() - new.keys())
    return sum(sum(map(len, new[one])) for one in new.keys() - old.keys()) - gone


@dataclass(frozen=True, eq=False, slots=True)
class _Topic:
    """A topic, its JSON without entries, and the texts of these."""

    plan: TopicPlan
    head: bytes
    entries: _Texts

    @staticmethod
    def of(topic: TopicPlan, before: _Topic | None) -> _Topic:
        """The topic with texts from `before`, which is the same object if the topic is."""
        if before is not None and before.plan is topic:
            return before
        known = before.entries if before is not None else _Texts(wire_type(Entry))
        head = _encode(wire_type(TopicPlan).write(topic, entries=()))
        return _Topic(topic, head, known.updated(topic.entries))

    def record(self) -> Record:
        """The topic for the encoder."""
        return wire_type(TopicPlan).write(self.plan, entries=self.entries.raw(whole=True))


@dataclass(frozen=True, eq=False, slots=True)
class _Head:
    """A stream, and its JSON with topics without entries."""

    plan: StreamPlan
    text: bytes

    @staticmethod
    def of(stream: StreamPlan, known: Mapping[str, _Topic], before: _Head | None) -> _Head:
        """The head of a stream, whose topics are `known` by name; `before` if that is of the same object."""
        if before is not None and before.plan is stream:
            return before
        topics = tuple(Raw(known[topic.name].head) for topic in stream.topics)
        return _Head(stream, _encode(wire_type(StreamPlan).write(stream, topics=topics)))
