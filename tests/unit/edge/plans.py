"""Small plans for tests of the edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.plan.model import Entry, Plan, StreamColumn, StreamPlan, TopicPlan

TEMP = Column("", "temp", Type.DOUBLE)
TOPIC = "tamis.stream.air.1"


def compare(op: str, column: Column, value: float) -> Call:
    """A comparison of a column with a constant."""
    return Call(op, (column, Literal(value, column.type)), Type.BOOLEAN)


def domain(column: Column, low: float, high: float) -> Expr:
    """low <= column <= high"""
    return Call("and", (compare(">=", column, low), compare("<=", column, high)), Type.BOOLEAN)


AIR = (
    StreamColumn("station", Type.VARCHAR, False, None),
    StreamColumn("ts", Type.TIMESTAMP, False, None),
    StreamColumn("temp", Type.DOUBLE, False, domain(TEMP, -60, 70)),
    StreamColumn("site", Type.VARCHAR, False, None),
    StreamColumn("n", Type.BIGINT, False, None),
    StreamColumn("ok", Type.BOOLEAN, True, None),
)


def entry(interval: int, serves: int = 1, **fields: Any) -> Entry:
    """An entry on the temperature of each station."""
    values = {
        "filter": None,
        "omission_key": ("station",),
        "value": TEMP,
        "sides": "both",
        "max_delay": None,
        **fields,
    }
    return Entry(interval=interval, serves=serves, **values)


def topic(entries: Sequence[Entry], name: str = TOPIC, **fields: Any) -> TopicPlan:
    """A topic of air, by station."""
    values = {"partition_key": ("station",), "columns": ("temp",), **fields}
    return TopicPlan(name=name, entries=tuple(entries), **values)


def air(
    topics: Sequence[TopicPlan],
    delay: int = 0,
    columns: Sequence[str] = ("station", "ts", "temp"),
    **fields: Any,
) -> StreamPlan:
    """The stream, with the given columns of AIR."""
    chosen = tuple(column for column in AIR if column.name in columns)
    values = {"idle_timeout": None, "max_ahead": None, "max_stall": 3_600_000_000, **fields}
    return StreamPlan("air", chosen, "ts", delay, topics=tuple(topics), **values)


def plan(stream: StreamPlan, shards: Sequence[str], version: int = 1, partitions: int = 2) -> Plan:
    """A plan that lists the shards."""
    return Plan(
        version,
        partitions,
        (stream,),
        since=dict.fromkeys(shards, 1),
        shard_streams=dict.fromkeys(shards, "air"),
    )
