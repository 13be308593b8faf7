"""Parts of a plan, one for each raw stream, and the plan of an edge put together from those of its streams.

A plan has all streams and queries of the fleet (decision 29). An edge obeys only what concerns its sources,
and `cut` takes that out of the plan's JSON without decoding the rest: decoding all of a plan of thousands of
queries takes ten times as long as skipping over its text, and the decoded plan needs several times the memory
of its text.

The part of a stream is what `cut` cuts for a source of that stream alone. So its size depends on what
concerns this stream, and not on the queries of others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from tamis.plan.document import FORMAT, LARGEST
from tamis.plan.json_form import version_of
from tamis.plan.wire import UNREADABLE, wrong

_ENDS = msgspec.json.Decoder(Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=1)])


class StreamHead(Struct):
    """A stream's name, and those of the streams that it depends on."""

    name: str
    base: str | None = None
    origin: str | None = None


class _Input(Struct):
    stream: str


class DefinitionHead(Struct):
    """A definition's name, and the streams that it reads."""

    alert: str
    version: int
    inputs: list[_Input]

    @property
    def id(self) -> str:
        """The name of the definition in `retiring`."""
        return f"{self.alert}@{self.version}"


class PlanTexts(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A plan with its long parts as text. Unknown fields are refused as `decode_plan` refuses them."""

    format: int
    version: int
    partitions: int
    streams: list[Raw]
    definitions: list[Raw]
    since: dict[str, int]
    shard_streams: dict[str, str]
    retiring: dict[str, int]
    standing: Raw = Raw(b"[]")


PLAN_TEXTS = msgspec.json.Decoder(PlanTexts)
STREAM_HEAD = msgspec.json.Decoder(StreamHead)
DEFINITION_HEAD = msgspec.json.Decoder(DefinitionHead)


def cut(document: bytes, streams: Collection[str] | None) -> bytes:
    """The JSON of the plan that an edge with sources of these raw streams needs; None: of every stream.

    It has the streams, their watched streams and backfill streams, the shards of all of these, and the
    definitions over them that a shard looks at: those that are retired, and those over a single stream, which
    may call Python functions for retained tuples (`omission.filters_before_calls`).

    A document that can't be read as a plan is returned as it is, so that `decode_plan` says what is wrong.
    What concerns other streams only is not checked.
    """
    if len(document) > LARGEST:
        return document
    try:
        plan = PLAN_TEXTS.decode(document)
        if plan.format != FORMAT:
            return document
        return msgspec.json.encode(_cut(plan, streams))
    except UNREADABLE:
        return document


def _cut(plan: PlanTexts, streams: Collection[str] | None) -> PlanTexts:
    heads = [STREAM_HEAD.decode(one) for one in plan.streams]
    if streams is None:
        names = {one.name for one in heads}
    else:
        names = {*streams, *(one.name for one in heads if one.origin in streams)}
        names |= {one.name for one in heads if one.base in names}
    since = {
        shard: version for shard, version in plan.since.items() if plan.shard_streams.get(shard) in names
    }
    definitions = [
        (one, raw)
        for one, raw in zip(map(DEFINITION_HEAD.decode, plan.definitions), plan.definitions, strict=True)
        if any(name in names for name in looked_at(one, plan.retiring))
    ]
    ids = {one.id for one, _ in definitions}
    return PlanTexts(
        plan.format,
        plan.version,
        plan.partitions,
        [raw for raw, one in zip(plan.streams, heads, strict=True) if one.name in names],
        [raw for _, raw in definitions],
        since,
        {shard: plan.shard_streams[shard] for shard in since},
        {name: version for name, version in plan.retiring.items() if name in ids},
    )


def looked_at(definition: DefinitionHead, retiring: Collection[str]) -> list[str]:
    """The streams whose shards look at a definition."""
    read = [source.stream for source in definition.inputs]
    return read if len(read) == 1 or definition.id in retiring else []


def parts(document: bytes) -> dict[str, bytes]:
    """The part of each raw stream of a plan, from one pass over its text.

    Each part is itself a plan, with the version of the whole plan.
    """
    plan = PLAN_TEXTS.decode(document)
    heads = [STREAM_HEAD.decode(one) for one in plan.streams]
    raw_stream = _raw_streams(heads)
    found = {name: _empty(plan) for name in raw_stream.values()}
    for head, text in zip(heads, plan.streams, strict=True):
        found[raw_stream[head.name]].streams.append(text)
    for shard, version in plan.since.items():
        stream = plan.shard_streams.get(shard)
        if stream in raw_stream:
            part = found[raw_stream[stream]]
            part.since[shard], part.shard_streams[shard] = version, stream
    for text in plan.definitions:
        definition = DEFINITION_HEAD.decode(text)
        read = [name for name in looked_at(definition, plan.retiring) if name in raw_stream]
        for name in dict.fromkeys(raw_stream[name] for name in read):
            found[name].definitions.append(text)
            if definition.id in plan.retiring:
                found[name].retiring[definition.id] = plan.retiring[definition.id]
    return {name: msgspec.json.encode(part) for name, part in found.items()}


def joined(found: Mapping[str, bytes]) -> bytes:
    """The plan of an edge from the parts of its streams, all of one version. Streams and definitions stand in
    the order of the parts' names.

    A part that can't be read is returned as it is, so that `decode_plan` says what is wrong.
    """
    plan = None
    ids: set[str] = set()
    for _, document in sorted(found.items()):
        try:
            part = PLAN_TEXTS.decode(document)
            if part.format != FORMAT:
                return document
            plan = plan or _empty(part)
            for text in part.definitions:
                # A retired join of two streams is in the parts of both.
                if (one := DEFINITION_HEAD.decode(text).id) not in ids:
                    ids.add(one)
                    plan.definitions.append(text)
        except UNREADABLE:
            return document
        plan.streams += part.streams
        plan.since |= part.since
        plan.shard_streams |= part.shard_streams
        plan.retiring |= part.retiring
    return msgspec.json.encode(plan)


@dataclass(frozen=True)
class PartRecord:
    """A record of `tamis.plan-parts.<stream>`. `ends`: the offset behind the plan's transaction in each
    partition of `tamis.plans`. If a partition ends elsewhere, a plan without parts may have come.
    """

    ends: Sequence[int]
    part: bytes

    def encode(self) -> bytes:
        """The record's value: the ends as a line of JSON, and the part."""
        return msgspec.json.encode(self.ends) + b"\n" + self.part

    @staticmethod
    def decode(value: bytes) -> PartRecord:
        """Raises InputError for other values."""
        ends, _, part = value.partition(b"\n")
        try:
            return PartRecord(_ENDS.decode(ends), part)
        except UNREADABLE as error:
            raise wrong(error, "plan part") from None


class NewestParts:
    """The newest part of each stream of an edge, as they arrive in any order of the streams.

    They are used only if all have the same version: parts of different versions would be a plan that never
    was. The parts of a version may arrive one after the other, and some of them may be missing for good.
    """

    def __init__(self, streams: Collection[str]) -> None:
        self._newest: dict[str, tuple[int, PartRecord]] = dict.fromkeys(streams, (0, PartRecord((), b"")))

    def take(self, stream: str, value: bytes) -> None:
        """A record has arrived. Raises InputError if it can't be read.

        A plan may be written again as it is; its parts then say where it ends now.
        """
        record = PartRecord.decode(value)
        version = version_of(record.part)
        if version >= self._newest[stream][0]:
            self._newest[stream] = version, record

    @property
    def streams(self) -> Collection[str]:
        """The streams of the edge."""
        return self._newest.keys()

    @property
    def version(self) -> int:
        """The version of which every stream has its part; 0 if they have parts of different versions."""
        versions = {version for version, _ in self._newest.values()}
        return versions.pop() if len(versions) == 1 else 0

    @property
    def ends(self) -> Sequence[int]:
        """Where the plan of `version` ends in each partition of `tamis.plans`."""
        return next(iter(self._newest.values()))[1].ends

    def plan(self) -> bytes:
        """The edge's plan of `version`."""
        return joined({stream: record.part for stream, (_, record) in self._newest.items()})


def _raw_streams(heads: list[StreamHead]) -> dict[str, str]:
    """By the name of each stream, the raw stream whose sources serve it."""
    origins = {head.name: head.origin or head.name for head in heads}
    bases = {head.name: head.base or head.name for head in heads}
    return {name: origins.get(base, base) for name, base in bases.items()}


def _empty(plan: PlanTexts) -> PlanTexts:
    return PlanTexts(plan.format, plan.version, plan.partitions, [], [], {}, {}, {})
