"""Values with schemas as confluent-kafka's serializers write them, and their decoding by the edge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tests.fixtures.schema_registry import SchemaRegistryServer

from tamis.messaging.schemas.registry import SchemaRegistry, UnusableSchema, WriterSchema
from tamis.messaging.schemas.wire_format import KINDS, Format, schema_of
from tamis.plan.model import StreamPlan
from tamis.recordings.times import TimeUnit
from tamis.settings.schema_registry import SchemaRegistryAccess
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.source_fields import FieldMap

NOW = 1_700_000_000_000_000
CONTEXT = SerializationContext("readings", MessageField.VALUE)


class Values:
    """Writes readings by the serializers, and decodes them by the schemas that the registry has."""

    def __init__(self, server: SchemaRegistryServer) -> None:
        self.client = SchemaRegistryClient({"url": server.url, "max.retries": 0})
        self.registry = SchemaRegistry(SchemaRegistryAccess(url=server.url))

    def avro(self, schema: Any, *rows: Any, references: Sequence[Any] = ()) -> list[bytes]:
        """Avro readings, in the schema given as JSON values."""
        text = Schema(json.dumps(schema), "AVRO", list(references))
        write = AvroSerializer(self.client, text, conf={"validate.strict": False})
        return [write(row, CONTEXT) for row in rows]

    def protobuf(self, kind: type[Message], *rows: Message) -> list[bytes]:
        """Protobuf readings of one type."""
        write = ProtobufSerializer(kind, self.client, {"use.deprecated.format": False})
        return [write(row, CONTEXT) for row in rows]

    def schemas(self, payloads: Sequence[bytes], form: Format) -> Mapping[int, WriterSchema | UnusableSchema]:
        """The schemas that readings name."""
        numbers = {number for payload in payloads if (number := schema_of(payload)) is not None}
        return {number: self.registry.schema(number, KINDS[form]) for number in numbers}

    def decode(
        self,
        payloads: Sequence[bytes],
        stream: StreamPlan,
        form: Format = "avro",
        *,
        fields: Mapping[str, str] | None = None,
        unit: TimeUnit = "us",
    ) -> Decoded:
        """The readings as an edge decodes them."""
        decoder = Decoder(stream, FieldMap(fields or {}, unit))
        return decoder.with_schemas(payloads, self.schemas(payloads, form), NOW)


def served() -> Iterator[Values]:
    """Values of a registry of their own."""
    with SchemaRegistryServer() as server:
        values = Values(server)
        with values.client:
            yield values
        values.registry.close()


def rows(decoded: Decoded) -> list[dict[str, Any]]:
    """The tuples as dictionaries."""
    columns = {name: vector.to_list() for name, vector in decoded.columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def message_types(file: FileDescriptorProto, *others: FileDescriptorProto) -> dict[str, type[Message]]:
    """The classes of a file's messages, also the nested ones, by their full names."""
    from tamis_edge.decode.protobuf import _KNOWN

    pool = DescriptorPool()
    for known in {name for one in (*others, file) for name in one.dependency} & set(_KNOWN):
        pool.AddSerializedFile(_KNOWN[known].serialized_pb)
    for part in (*others, file):
        pool.AddSerializedFile(part.SerializeToString())
    found: dict[str, type[Message]] = {}
    left = list(pool.FindFileByName(file.name).message_types_by_name.values())
    while left:
        one = left.pop()
        found[one.full_name] = GetMessageClass(one)
        left += one.nested_types
    return found
