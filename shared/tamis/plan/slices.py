"""Part of a plan that concerns some streams, cut out of the plan's JSON without decoding the rest.

A plan has all streams and queries of the fleet (decision 29). An edge obeys only what concerns its sources.
Decoding all of a plan of thousands of queries takes ten times as long as skipping over its text, and the
decoded plan needs several times the memory of its text.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import Raw, Struct

from tamis.plan.document import FORMAT, LARGEST
from tamis.plan.wire import UNREADABLE


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
    may call Python functions for retained tuples (`late_calls`).

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
