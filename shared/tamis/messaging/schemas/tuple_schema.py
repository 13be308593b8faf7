"""Schemas of stream topics: derived from the columns of a stream, the same for as long as the topic exists.

A schema has every column of the stream, each of which may be NULL, and not only those that readers need now.
So it doesn't change when queries come and go. Its envelope is the one of JSON (`tamis.messaging.records`).
It is the first field, and `plan` is its first field, so that a reader can read it without the columns.
`schema_texts` writes them as a registry takes them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.messaging.records import ENVELOPE
from tamis.messaging.schemas.wire_format import Format
from tamis.plan.model import StreamPlan, TopicPlan

Layout = tuple[tuple[str, Type], ...]
"""Names and types of the columns of a schema, in its order."""

# A field of a Protobuf message can't be called _ in every language.
PROTOBUF_ENVELOPE = "tamis_envelope"
PROTOBUF_TYPE = "TamisEnvelope"

# The fields of the envelope after `plan` and `shard`. Their numbers in Protobuf go on from there.
ENVELOPE_FIELDS = ("activation", "kind", "late", "event_time", "place", "shed")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ValueSchema(NamedTuple):
    """The form of a topic's values: its schema's number in the registry, and its number of columns."""

    format: Format
    number: int
    columns: int


def layout(stream: StreamPlan, topic: TopicPlan) -> Layout:
    """The columns of a topic's schema: of its SELECT if it has one, otherwise all columns of the stream."""
    if topic.select:
        return tuple((name, expr.type) for name, expr in topic.select)
    return tuple((column.name, column.type) for column in stream.columns)


def value_schema(stream: StreamPlan, topic: TopicPlan) -> ValueSchema | None:
    """The form of a topic's values; None for JSON, which partial aggregates have in every format."""
    if topic.schema is None or topic.partials is not None:
        return None
    return ValueSchema(stream.value_format, topic.schema, len(layout(stream, topic)))


def check_names(columns: Layout, where: str) -> None:
    """Raises RefusedError if a column can't be a field of Avro or Protobuf."""
    for name, _ in columns:
        if not _NAME.fullmatch(name) or name in (ENVELOPE, PROTOBUF_ENVELOPE, PROTOBUF_TYPE):
            raise RefusedError(
                f"a column of Avro or Protobuf can't have the name {name!r:.100}",
                where=where,
                hint="use letters, digits and _ (in SELECT: AS name), or value_format = 'json'",
            )
