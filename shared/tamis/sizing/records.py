"""Bytes of readings, tuples, alarms and progress records, from rows of a recording or of typical values.

Tuples and progress are encoded as edges encode them, in the format of their topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import orjson

from tamis.declarations.definitions import ColumnDef
from tamis.declarations.domains import ends
from tamis.declarations.streams import StreamDef
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Column, Expr, Type
from tamis.expressions.vectors import Columns, Vector
from tamis.messaging.records import ENVELOPE, canonical_key, progress_envelope
from tamis.messaging.schemas.tuple_encoding import encode_alone, encode_envelope, encode_tuples
from tamis.messaging.schemas.tuple_schema import Layout, ValueSchema, layout, value_schema
from tamis.messaging.schemas.wire_format import header
from tamis.plan.model import Definition, StandingQuery, StreamPlan, TopicPlan
from tamis.sizing.figures import Figure
from tamis.sizing.load import StreamLoad

# A time of these years has as many digits as any.
_NOW = 1_760_000_000_000_000
_ROWS = 200
_TEXT = "sensor-00001"
# A shard's name has the stream and the names of edge and source.
_SHARD = "{stream}:edge-00/source"

# The number of a schema takes four bytes, whichever it is.
_SCHEMA = 1
_FORMATS = {"json": "JSON", "avro": "Avro", "protobuf": "Protobuf"}

Row = Mapping[str, Any]


def sample_rows(load: StreamLoad) -> tuple[Sequence[Row], str]:
    """Some readings of a stream, and where they come from."""
    recording = load.recording
    if recording is not None and len(recording):
        step = max(1, len(recording) // _ROWS)
        columns = {name: vector.to_list()[::step] for name, vector in recording.columns.items()}
        names = list(columns)
        return [
            dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ], "rows of the recording"
    row = {column.name: _typical(column) for column in load.stream.columns}
    return [row], f"texts of {len(_TEXT)} characters and numbers with two decimals"


def sample_columns(load: StreamLoad) -> tuple[Columns, int, str]:
    """Some readings of a stream in columns with the empty alias, their number, and where they come from."""
    rows, source = sample_rows(load)
    columns = tuple((column.name, column.type) for column in load.stream.columns)
    return {("", name): vector for name, vector in _vectors(columns, rows).items()}, len(rows), source


def reading_bytes(load: StreamLoad) -> Figure:
    """The bytes of a reading as JSON, with all columns of its stream."""
    rows, source = sample_rows(load)
    names = [column.name for column in load.stream.recorded_columns]
    sizes = (len(orjson.dumps({name: row[name] for name in names})) for row in rows)
    return Figure(mean(sizes), "B", _basis(load), f"JSON of {source}")


def unfiltered_bytes(load: StreamLoad, stream: StreamPlan) -> Figure:
    """The bytes of a reading in the format of the stream's topics, without an envelope."""
    if stream.value_format == "json":
        return reading_bytes(load)
    rows, source = sample_rows(load)
    columns = tuple((column.name, column.type) for column in load.stream.recorded_columns)
    schema = ValueSchema(stream.value_format, _SCHEMA, len(columns))
    values = encode_tuples(schema, columns, _vectors(columns, rows), [header(_SCHEMA)] * len(rows))
    return Figure(mean(map(len, values)), "B", _basis(load), f"{_FORMATS[stream.value_format]} of {source}")


def tuple_bytes(load: StreamLoad, stream: StreamPlan, topic: TopicPlan, version: int) -> Figure:
    """The bytes of key and value of a tuple in a topic of a stream."""
    rows, source = sample_rows(load)
    envelope: dict[str, Any] = {
        "shard": _SHARD.format(stream=stream.name),
        "plan": version,
        "activation": _NOW,
    }
    if topic.counted:
        envelope["place"] = _NOW
    schema, found = _schema(stream, topic), [_columns(load.stream, topic, row) for row in rows]
    if schema is None:
        values = [orjson.dumps({**columns, ENVELOPE: envelope}) for columns in found]
    else:
        columns = layout(stream, topic)
        starts = [encode_envelope(schema, envelope)] * len(found)
        values = encode_tuples(schema, columns, _vectors(columns, found), starts)
    keys = [canonical_key(tuple(row[name] for name in topic.partition_key)) for row in rows]
    size = mean(len(key) + len(value) for key, value in zip(keys, values, strict=True))
    return Figure(size, "B", _basis(load), f"{_FORMATS[stream.value_format]} of {source}")


def progress_bytes(stream: StreamPlan, topic: TopicPlan, version: int) -> int:
    """The bytes of a progress record."""
    envelope = progress_envelope(_SHARD.format(stream=stream.name), version, _NOW, _NOW)
    return len(encode_alone(_schema(stream, topic), envelope))


def _schema(stream: StreamPlan, topic: TopicPlan) -> ValueSchema | None:
    """The form of a topic's values before a schema registry has given a number to its schema."""
    return value_schema(stream, topic if stream.value_format == "json" else replace(topic, schema=_SCHEMA))


def _vectors(columns: Layout, rows: Sequence[Row]) -> dict[str, Vector]:
    return {
        name: Vector.from_list([row[name] for row in rows], kind) for name, kind in columns if name in rows[0]
    }


def alarm_bytes(query: Definition | StandingQuery, loads: Mapping[str, StreamLoad]) -> Figure:
    """The bytes of key and value of an alarm, with the tuples that raised it."""
    tuples: dict[str, Row] = {}
    source = ""
    for one in query.inputs:
        rows, source = sample_rows(loads[one.stream])
        wanted = (*one.partition_key, one.time, *one.columns)
        tuples[one.alias] = {name: rows[0][name] for name in wanted if name in rows[0]}
    if isinstance(query, Definition):
        row = {name: _selected(expr, tuples) for name, expr in query.select}
    else:
        row, tuples = {name: 21.53 for name in query.key or ("value",)}, {}
    first = query.inputs[0]
    sample, _ = sample_rows(loads[first.stream])
    key = [sample[0].get(name) for name in first.partition_key]
    document = {
        "alert": query.alert,
        "id": "0" * 32,
        "key": key,
        "event_time": _NOW,
        "row": row,
        "tuples": tuples,
        "plan": query.version,
        "definition": query.version,
        "arrived": _NOW,
    }
    size = len(orjson.dumps(document, default=str)) + len(canonical_key((query.alert, *key)))
    basis = "assumed" if any(loads[one.stream].recording is None for one in query.inputs) else "computed"
    return Figure(size, "B", "computed" if basis == "computed" else "assumed", f"JSON of {source}")


def _selected(expr: Expr, tuples: Mapping[str, Row]) -> Any:
    """The value of a column of SELECT, or a typical one where the sample has none."""
    if isinstance(expr, Column) and expr.name in tuples.get(expr.alias, {}):
        return tuples[expr.alias][expr.name]
    return 21.53


def _columns(stream: StreamDef, topic: TopicPlan, row: Row) -> Row:
    if topic.select:
        taken = {("", c.name): Vector.from_list([row[c.name]], c.type) for c in stream.columns}
        return {name: evaluate(expr, taken, 1).to_list()[0] for name, expr in topic.select}
    wanted = {*topic.partition_key, *topic.columns, stream.time}
    return {column.name: row[column.name] for column in stream.columns if column.name in wanted}


def _typical(column: ColumnDef) -> Any:
    match column.type:
        case Type.VARCHAR:
            return _TEXT
        case Type.BOOLEAN:
            return True
        case Type.TIMESTAMP:
            return _NOW
        case Type.DOUBLE:
            low, high = ends(column)
            return round(min(max(21.53, low), high), 2)
        case _:
            low, high = ends(column)
            return int(min(max(10_000, low), high))


def _basis(load: StreamLoad) -> Any:
    return "assumed" if load.recording is None else "computed"
