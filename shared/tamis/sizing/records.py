"""Bytes of readings, tuples, alarms and progress records, from rows of a recording or of typical values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import orjson

from tamis.analysis.domains import ends
from tamis.expressions.nodes import Column, Expr, Type
from tamis.expressions.vectorized.evaluate import evaluate
from tamis.expressions.vectors import Vector
from tamis.messaging.records import ENVELOPE, canonical_key, progress_record
from tamis.plan.model import Definition, StandingQuery, TopicPlan
from tamis.query.model import ColumnDef, StreamDef
from tamis.sizing.figures import Figure
from tamis.sizing.load import StreamLoad

# A time of these years has as many digits as any.
_NOW = 1_760_000_000_000_000
_ROWS = 200
_TEXT = "sensor-00001"
# A shard's name has the stream and the names of edge and source.
_SHARD = "{stream}:edge-00/source"

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


def reading_bytes(load: StreamLoad) -> Figure:
    """The bytes of a reading as JSON, with all columns of its stream."""
    rows, source = sample_rows(load)
    return Figure(mean(len(orjson.dumps(row)) for row in rows), "B", _basis(load), f"JSON of {source}")


def tuple_bytes(load: StreamLoad, topic: TopicPlan, version: int) -> Figure:
    """The bytes of key and value of a tuple in a topic."""
    rows, source = sample_rows(load)
    envelope: dict[str, Any] = {
        "shard": _SHARD.format(stream=load.stream.name),
        "plan": version,
        "activation": _NOW,
    }
    if topic.counted:
        envelope["place"] = _NOW
    sizes = []
    for row in rows:
        key = canonical_key(tuple(row[name] for name in topic.partition_key))
        sizes.append(len(key) + len(orjson.dumps({**_columns(load.stream, topic, row), ENVELOPE: envelope})))
    return Figure(mean(sizes), "B", _basis(load), f"JSON of {source}")


def progress_bytes(stream: str, version: int) -> int:
    """The bytes of a progress record."""
    return len(progress_record(_SHARD.format(stream=stream), version, _NOW, _NOW))


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
