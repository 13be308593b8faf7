"""A plan as it is written: the texts of its queries, topics and entries, found again in the plan before, so
that a change of one query of thousands costs what it touches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from tamis.errors import InputError
from tamis.expressions.json_form import to_json
from tamis.expressions.nodes import Call, Column, Literal
from tamis.planning.plan import Plan, StreamPlan, TopicPlan
from tamis.planning.remembered import same_ends

FORMAT = 1  # a reader refuses a plan of another form rather than guess
# Bytes of one plan: some 10,000 queries. Compressed, as it is sent, it is a tenth of that.
LARGEST = 32 * 1024 * 1024
MOST = 50_000  # items of one list or map

# What came after the first release, and what each is where it isn't written.
LATER: dict[str, tuple[object, ...]] = {
    "window": (None,),
    "certificate": (None,),
    "kept": (None,),
    "counted": (False,),
    "standing": ([],),
    "proven": (True,),
}


class Written:
    """A plan's value in `tamis.plans`, with `size` bytes. `made`: how many bytes of texts were made for it
    and all plans before.
    """

    def __init__(self, plan: Plan, before: Written | None = None) -> None:
        """Raises InputError where `decode_plan` would refuse it."""
        self._plan = plan
        self._definitions: _Row = (before._definitions if before else _Row()).now(plan.definitions)
        self._standing: _Row = (before._standing if before else _Row()).now(plan.standing)
        known: Mapping[str, _Topic] = before._topics if before else {}
        self._topics: dict[str, _Topic] = {
            topic.name: (known.get(topic.name) or _Topic.empty()).now(topic)
            for stream in plan.streams
            for topic in stream.topics
        }
        rows = (self._definitions, self._standing)
        self.size = len(self._text(whole=False))
        self.size += sum(row.size for row in rows) + sum(topic.size for topic in self._topics.values())
        self.made: int = (before.made if before else 0) + sum(row.made for row in rows)
        changed = [topic for name, topic in self._topics.items() if topic is not known.get(name)]
        self.made += sum(topic.entries.made for topic in changed)
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
    def document(self) -> bytes:
        """The value itself."""
        return self._text(whole=True)

    def _text(self, *, whole: bool) -> bytes:
        """The plan, with its queries and topics or without."""
        rows = {"definitions": self._definitions, "standing": self._standing}
        fields = {"format": _dumped(FORMAT)}
        for name, value in _named(self._plan).items():
            if name == "streams":
                fields[name] = _list([self._stream(stream, whole=whole) for stream in self._plan.streams])
            elif name not in rows:
                fields[name] = _dumped(value)
            elif value or name not in LATER:
                fields[name] = b"[%s]" % (rows[name].text if whole else b"")
        return _object(fields)

    def _stream(self, stream: StreamPlan, *, whole: bool) -> bytes:
        topics = [self._topics[topic.name].text if whole else b"" for topic in stream.topics]
        fields = {name: _dumped(value) for name, value in _named(stream).items() if name != "topics"}
        return _object({**fields, "topics": _list(topics)})


def plain(value: object) -> Any:
    """A record as JSON values; fields are written by their names."""
    if isinstance(value, (Column, Literal, Call)):
        return to_json(value)
    if dataclasses.is_dataclass(value):
        named = {name: plain(item) for name, item in _named(value).items()}
        return {name: item for name, item in named.items() if name not in LATER or item not in LATER[name]}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class _Row:
    """Records in a list, each as written. `size`: of all with commas; `made`: of those that are new."""

    records: Sequence[object] = ()
    texts: Sequence[bytes] = ()
    size: int = 0
    made: int = 0

    def now(self, records: Sequence[object]) -> _Row:
        """These records, of which most were there before."""
        first, last = same_ends(self.records, records)
        behind = len(self.records) - last
        gone, come = self.texts[first:behind], [_dumped(one) for one in records[first : len(records) - last]]
        texts = [*self.texts[:first], *come, *self.texts[behind:]]
        made = sum(map(len, come))
        commas = max(len(records) - 1, 0) - max(len(self.records) - 1, 0)
        return _Row(records, texts, self.size + made - sum(map(len, gone)) + commas, made)

    @property
    def text(self) -> bytes:
        return b",".join(self.texts)


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class _Topic:
    """A topic as written: what stands around its entries, and these."""

    plan: TopicPlan
    around: tuple[bytes, bytes]
    entries: _Row

    @staticmethod
    def empty() -> _Topic:
        return _Topic(TopicPlan("", (), (), ()), (b"", b""), _Row())

    def now(self, topic: TopicPlan) -> _Topic:
        if topic is self.plan:
            return self
        mark = b'"entries":['
        whole = _dumped(dataclasses.replace(topic, entries=()))
        at = whole.index(mark) + len(mark)
        return _Topic(topic, (whole[:at], whole[at:]), self.entries.now(topic.entries))

    @property
    def size(self) -> int:
        return len(self.around[0]) + self.entries.size + len(self.around[1])

    @property
    def text(self) -> bytes:
        return b"%s%s%s" % (self.around[0], self.entries.text, self.around[1])


def _named(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _dumped(value: object) -> bytes:
    return orjson.dumps(plain(value))


def _list(texts: Sequence[bytes]) -> bytes:
    return b"[%s]" % b",".join(texts)


def _object(fields: Mapping[str, bytes]) -> bytes:
    return b"{%s}" % b",".join(b"%s:%s" % (orjson.dumps(name), text) for name, text in fields.items())
