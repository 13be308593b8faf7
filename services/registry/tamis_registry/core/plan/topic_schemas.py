"""Schemas of the topics of a plan: those of new topics are registered in the schema registry."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace

from tamis.errors import RefusedError
from tamis.messaging.schemas.schema_texts import schema_text
from tamis.messaging.schemas.tuple_schema import ValueSchema, check_names, layout
from tamis.messaging.schemas.wire_format import KINDS, Kind
from tamis.messaging.topics import stream_of
from tamis.plan.model import StreamPlan, TopicPlan
from tamis.planning.incremental import Built
from tamis.query.model import StreamDef
from tamis_registry.core.state.model import State, TopicSchema

Register = Callable[[str, Kind, str], int]
"""Registers a schema, given by its subject, kind and text; returns its number. May raise TamisError."""


def check_stream(stream: StreamDef, register: Register | None) -> None:
    """Raises RefusedError if a new stream has a format that this fleet has no schema registry for, or columns
    that the format can't have.
    """
    if stream.value_format == "json":
        return
    if register is None:
        raise RefusedError(
            f"value_format = '{stream.value_format}' needs a schema registry, and none is configured",
            where=f"stream {stream.name}",
            hint="set TAMIS_SCHEMA_REGISTRY_URL where the registry starts, or use value_format = 'json'",
        )
    check_names(tuple((column.name, column.type) for column in stream.columns), f"stream {stream.name}")


def with_schemas(built: Built, draft: State, register: Register | None) -> Built:
    """The plan with the schemas of all topics. Those of new topics are registered, and stored in the draft.

    Raises TamisError if the schema registry doesn't answer or refuses a schema.
    """
    if all(stream.value_format == "json" for stream in built.plan.streams):
        return built
    streams = tuple(_with_schemas(stream, draft, register) for stream in built.plan.streams)
    return replace(built, plan=replace(built.plan, streams=streams))


def _with_schemas(stream: StreamPlan, draft: State, register: Register | None) -> StreamPlan:
    if stream.value_format == "json":
        return stream
    topics = tuple(_with_schema(stream, topic, draft, register) for topic in stream.topics)
    return replace(stream, topics=topics)


def _with_schema(stream: StreamPlan, topic: TopicPlan, draft: State, register: Register | None) -> TopicPlan:
    columns, where = layout(stream, topic), f"topic {topic.name}"
    check_names(columns, where)
    text = schema_text(stream_of(topic.name) or stream.name, columns, stream.value_format)
    digest = zlib.crc32(text.encode())
    known = draft.schemas.get(topic.name)
    # The topic of a derived stream that is dropped and made again has the same name.
    if known is None or known.digest != digest:
        if register is None:
            raise RefusedError(
                "its schema can't be registered: no schema registry is configured",
                where=where,
                hint="set TAMIS_SCHEMA_REGISTRY_URL where the registry starts",
            )
        number = register(f"{topic.name}-value", KINDS[stream.value_format], text)
        schema = ValueSchema(stream.value_format, number, len(columns))
        known = draft.schemas[topic.name] = TopicSchema(schema, digest)
    return replace(topic, schema=known.schema.number)
