"""Records that other services write: a record that can't be read is logged, counted and skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tamis.errors import InputError
from tamis.messaging.heartbeats import Heartbeat
from tamis.messaging.records import Ack, Frontier, Observation, StreamState
from tamis.messaging.silences import Held, decode
from tamis.messaging.topic_reader import Record
from tamis.predicates.selectivity import Sketch
from tamis.telemetry import Metrics, get_logger
from tamis_registry.core.held_openings import HeldOpening, held_opening

T = TypeVar("T", Ack, Frontier, Heartbeat, HeldOpening, Observation)

_log = get_logger("tamis.registry")


def read_ack(value: bytes) -> Ack:
    """An acknowledgement; raises ValueError, KeyError or TypeError for anything else."""
    ack = Ack.from_bytes(value)
    texts, numbers = (ack.shard, ack.stream, ack.edge), (ack.plan, ack.activation, ack.time, ack.quiet)
    if not all(isinstance(t, str) for t in texts) or not all(type(n) is int for n in numbers):
        raise TypeError("a field of the acknowledgement has the wrong type")
    for name in ("reached", "first_offset", "earliest", "watermark"):
        if (value := getattr(ack, name)) is not None and type(value) is not int:
            raise TypeError(f"{name} must be an integer or null")
    for name in ("rereadable", "unread", "unused"):
        if (value := getattr(ack, name)) is not None and type(value) is not bool:
            raise TypeError(f"{name} must be a boolean or null")
    failing: object = ack.failing
    if failing is not None and not (
        isinstance(failing, dict) and all(isinstance(why, str) for why in failing.values())
    ):
        raise TypeError("failing must be an object of texts, or null")
    tuples: object = ack.tuples
    if tuples is not None and not (
        isinstance(tuples, dict) and all(type(n) is int and n >= 0 for n in tuples.values())
    ):
        raise TypeError("tuples must be an object of counts, or null")
    if ack.state not in ("waiting", "active", "final"):
        raise ValueError(f"no such state of a shard: {ack.state}")
    return ack


def read_frontier(value: bytes) -> Frontier:
    """The joiner's frontier of one partition.

    Raises ValueError, KeyError, TypeError or AttributeError for anything else.
    """
    frontier = Frontier.from_bytes(value)
    if type(frontier.partition) is not int or type(frontier.plan) is not int:
        raise TypeError("partition and plan must be integers")
    for topic in frontier.topics.values():
        _check(topic)
    return frontier


def read_observation(value: bytes) -> Observation:
    """The sample of a shard's readings; raises ValueError, KeyError or TypeError for anything else."""
    found = Observation.from_bytes(value)
    for text in (found.shard, found.stream):
        _check_text(text)
    try:
        sketch = Sketch.from_bytes(found.sketch)
    except InputError as error:
        raise ValueError(str(error)) from error
    if any(isinstance(value, str) for seen in sketch.values.values() for value in seen):
        raise TypeError("only samples of numbers and booleans are reported")
    return found


def read_held(value: bytes) -> HeldOpening:
    """An opening that the alerts service holds back. Raises ValueError for anything else."""
    held = decode(value)
    if not isinstance(held, Held):
        raise ValueError("the record has the key of a held opening")
    return held_opening(held)


def _check_text(value: object) -> None:
    if not isinstance(value, str):
        raise TypeError("shard and stream must be texts")


def _check(topic: StreamState) -> None:
    if type(topic.keys) is not int:
        raise TypeError("the number of keys must be an integer")
    if topic.frontier is not None and type(topic.frontier) is not int:
        raise TypeError("a frontier must be an integer or null")


def read(record: Record, how: Callable[[bytes], T], metrics: Metrics) -> T | None:
    """The record; None if it can't be read, which is then logged and counted."""
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
