"""Records that others write, read with suspicion: one that can't be read is logged and counted, and stops
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tamis.errors import InputError
from tamis.messaging.compacted import Record
from tamis.messaging.records import Ack, Frontier, Observation, StreamState
from tamis.predicates.selectivity import Sketch
from tamis.telemetry import Metrics, get_logger

T = TypeVar("T", Ack, Frontier, Observation)

_log = get_logger("tamis.registry")


def read_ack(value: bytes) -> Ack:
    """An acknowledgement; raises ValueError, KeyError or TypeError for anything else."""
    ack = Ack.from_bytes(value)
    texts, numbers = (ack.shard, ack.stream, ack.edge), (ack.plan, ack.activation, ack.time, ack.quiet)
    if not all(isinstance(t, str) for t in texts) or not all(type(n) is int for n in numbers):
        raise TypeError("a field of the acknowledgement has the wrong type")
    if ack.state not in ("waiting", "active", "final"):
        raise ValueError(f"no such state of a shard: {ack.state}")
    return ack


def read_frontier(value: bytes) -> Frontier:
    """The joiner's word on one partition; raises ValueError, KeyError, TypeError or AttributeError
    otherwise.
    """
    frontier = Frontier.from_bytes(value)
    if type(frontier.partition) is not int or type(frontier.plan) is not int:
        raise TypeError("partition and plan must be integers")
    for topic in frontier.topics.values():
        _check(topic)
    return frontier


def read_observation(value: bytes) -> Observation:
    """What a shard's readings are like; raises ValueError, KeyError or TypeError for anything else."""
    found = Observation.from_bytes(value)
    for text in (found.shard, found.stream):
        _check_text(text)
    try:
        sketch = Sketch.from_bytes(found.sketch)
    except InputError as error:
        raise ValueError(str(error)) from error
    if any(isinstance(value, str) for seen in sketch.values.values() for value in seen):
        raise TypeError("numbers and truth values are told of only")
    return found


def _check_text(value: object) -> None:
    if not isinstance(value, str):
        raise TypeError("shard and stream must be texts")


def _check(topic: StreamState) -> None:
    if topic.frontier is not None and type(topic.frontier) is not int:
        raise TypeError("a frontier must be an integer or null")


def read(record: Record, how: Callable[[bytes], T], metrics: Metrics) -> T | None:
    """The record, or None (logged and counted) where it can't be read."""
    if record.value is None:
        return None
    try:
        return how(record.value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        metrics.inc("tamis_dead_letters_total", service="registry", reason="undecodable")
        _log.warning(
            "record ignored",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            error=str(error),
        )
        return None
