"""Tuples of topics: in each format the same document, with the columns that the topic carries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.unit.registry.test_proving import STREAMS, started

from tamis.expressions.vectors import Vector
from tamis.messaging.records import progress_envelope
from tamis.messaging.schemas.tuple_encoding import encode_alone, encode_envelope, encode_tuples
from tamis.messaging.schemas.tuple_schema import layout, value_schema
from tamis.plan.model import Plan
from tamis_registry.kafka.stream_tuples import tuple_decoder

ALERT = "CREATE ALERT warm AS SELECT k FROM surface WHERE x > 40;"
ENVELOPE = {"plan": 2, "shard": "surface:e/s", "activation": 5}


def planned(form: Any, sql: str = ALERT) -> Plan:
    """A plan whose topics have values of a format."""
    plan = started(STREAMS.replace("x DOUBLE, WATERMARK", "x DOUBLE, y INT, WATERMARK") + sql).plan
    streams = tuple(
        replace(stream, value_format=form, topics=tuple(replace(topic, schema=7) for topic in stream.topics))
        for stream in plan.streams
    )
    return replace(plan, streams=streams)


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_values_with_a_schema_are_the_documents_that_they_are_in_json(form: Any) -> None:
    plan = planned(form)
    stream = next(one for one in plan.streams if one.name == "surface")
    (topic,) = stream.topics
    schema = value_schema(stream, topic)
    assert schema is not None
    row = {"k": "k1", "ts": 1_700_000_000_000_000, "x": 41.5}
    types = dict(layout(stream, topic))
    columns = {name: Vector.from_list([value], types[name]) for name, value in row.items()}
    (value,) = encode_tuples(schema, layout(stream, topic), columns, [encode_envelope(schema, ENVELOPE)])
    decoded = tuple_decoder(plan)
    assert decoded(topic.name, value) == {**row, "_": ENVELOPE}
    assert decoded(topic.name, orjson.dumps({**row, "_": ENVELOPE})) == {**row, "_": ENVELOPE}
    progress = progress_envelope("surface:e/s", 2, 5, 6)
    assert decoded(topic.name, encode_alone(schema, progress)) is None
    assert decoded(topic.name, orjson.dumps({"_": progress})) is None
    odd = (b'{"_": "kind"}', b'{"_": "no"}', b'{"_": {}}', b'{"_": {"shard": 5}}')
    for wrong in (value[:-1], value + b"x", b"[]", b"{}", b"", *odd):
        with pytest.raises((ValueError, KeyError, TypeError)):
            decoded(topic.name, wrong)


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_topics_of_derived_streams_have_the_columns_of_their_select(form: Any) -> None:
    sql = "CREATE STREAM warm AS SELECT k, ts, x * 2 AS twice FROM surface WHERE x > 40;"
    plan = planned(form, sql)
    stream = next(one for one in plan.streams if one.name == "surface")
    (topic,) = (one for one in stream.topics if one.select)
    schema = value_schema(stream, topic)
    assert schema is not None
    row = {"k": "k1", "ts": 1_700_000_000_000_000, "twice": 83.0}
    columns = {name: Vector.from_list([row[name]], type_) for name, type_ in layout(stream, topic)}
    (value,) = encode_tuples(schema, layout(stream, topic), columns, [encode_envelope(schema, ENVELOPE)])
    assert tuple_decoder(plan)(topic.name, value) == {**row, "_": ENVELOPE}
