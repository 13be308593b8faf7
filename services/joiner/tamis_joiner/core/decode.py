"""Records of stream topics as they come from Kafka: what each is, and tuples as columns.

Two steps, since only the envelope can be read before the plan is there that says which columns a tuple has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.records import END_OF_TIME, ENVELOPE

SERVICE = "joiner"

NOTHING_YET = -(2**62)  # below every event time: no shard has reported, anything can still come

Schema = Mapping[str, Type]


@dataclass(frozen=True)
class Records:
    """Records of one topic partition in the order of their offsets; `arrived` is Kafka's time in
    microseconds.
    """

    topic: str
    partition: int
    values: Sequence[bytes]
    offsets: NDArray[np.int64]
    arrived: NDArray[np.int64]

    def pick(self, rows: Sequence[int]) -> Records:
        """Some of the records, in the order given."""
        return Records(
            self.topic,
            self.partition,
            [self.values[row] for row in rows],
            self.offsets[rows] if len(rows) else self.offsets[:0],
            self.arrived[rows] if len(rows) else self.arrived[:0],
        )

    def dead(self, row: int, reason: Reason, error: str) -> DeadLetter:
        """The record in `row` as a dead letter."""
        return DeadLetter(
            self.values[row], SERVICE, self.topic, self.partition, int(self.offsets[row]), reason, error
        )


@dataclass(frozen=True)
class Mark:
    """A progress or a final record of a shard. `place`: all before it is there."""

    kind: Literal["progress", "final"]
    shard: str
    version: int
    event_time: int  # 0 for a final record, NOTHING_YET where progress tells none
    shed: tuple[int, int] | None = None  # first and last microsecond of a span of which tuples were shed
    place: int | None = None


@dataclass(frozen=True)
class Envelopes:
    """What `read` found in `records`. `rows`, `documents`, `versions`, `late` and, of a topic that is
    counted, `stood` are parallel, of tuples: `stood` is a tuple's shard and its place there, or -1.
    """

    records: Records
    rows: list[int]
    documents: list[dict[str, Any]]
    versions: list[int]
    late: list[bool]
    marks: list[Mark]
    parked: list[int]  # rows whose plan version is above the one that is obeyed
    stood: list[tuple[str, int]]


def read(records: Records, version: int, dead: list[DeadLetter], counted: bool = False) -> Envelopes:
    """Sort records by kind, as of plan `version`; what is none of them is added to `dead`."""
    rows: list[int] = []
    documents: list[dict[str, Any]] = []
    versions: list[int] = []
    late: list[bool] = []
    marks: list[Mark] = []
    parked: list[int] = []
    stood: list[tuple[str, int]] = []
    for row, value in enumerate(records.values):
        try:
            document = orjson.loads(value)
            envelope = document.pop(ENVELOPE)
            plan = envelope["plan"]
            kind = envelope.get("kind")
            if type(plan) is not int or plan < 0:
                raise TypeError("plan")
            if kind is None:
                if plan > version:
                    parked.append(row)
                    continue
                if counted:
                    stood.append(_stood(envelope))
                rows.append(row)
                documents.append(document)
                versions.append(plan)
                late.append(envelope.get("late") is True)
                continue
            mark = _mark(kind, envelope, plan)
        except orjson.JSONDecodeError as error:
            dead.append(records.dead(row, Reason.UNDECODABLE, f"not JSON: {error}"))
            continue
        except (KeyError, TypeError, ValueError, AttributeError):
            dead.append(
                records.dead(
                    row, Reason.FOREIGN, f"no envelope of an edge under {ENVELOPE!r}; publish through one"
                )
            )
            continue
        if plan > version:
            parked.append(row)
        else:
            marks.append(mark)
    return Envelopes(records, rows, documents, versions, late, marks, parked, stood)


def _stood(envelope: Mapping[str, Any]) -> tuple[str, int]:
    shard, place = envelope["shard"], envelope.get("place", -1)
    if type(shard) is not str or type(place) is not int or not -1 <= place <= END_OF_TIME:
        raise TypeError("place")
    return shard, place


def _mark(kind: Any, envelope: Mapping[str, Any], plan: int) -> Mark:
    shard, shed, place = envelope["shard"], envelope.get("shed"), envelope.get("place")
    time = envelope.get("event_time", 0 if kind == "final" else NOTHING_YET)
    if kind not in ("progress", "final") or type(shard) is not str or type(time) is not int:
        raise TypeError("kind")
    if place is not None and type(place) is not int:
        raise TypeError("place")
    return Mark(kind, shard, plan, time, None if shed is None else _span(shed), place)


def _span(shed: Any) -> tuple[int, int]:
    first, last = shed
    if type(first) is not int or type(last) is not int or not -END_OF_TIME <= first <= last <= END_OF_TIME:
        raise TypeError("shed")
    return first, last


@dataclass(frozen=True)
class Fresh:
    """Tuples of one topic as columns of equal length, as they came. `shards` and `places` are of a topic that
    is counted; without time, `times` are 0.
    """

    times: NDArray[np.int64]
    versions: NDArray[np.int64]
    late: NDArray[np.bool_]
    arrived: NDArray[np.int64]
    columns: dict[str, Vector]
    shards: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, np.object_))
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def fresh(found: Envelopes, schema: Schema, time: str, dead: list[DeadLetter]) -> Fresh:
    """The tuples of `found` as columns; those with a value of a wrong type, or without a time where there is
    one, are dead.
    """
    try:
        return _columns(found, schema, time)
    except InputError:
        good = []
        for at, row in enumerate(found.rows):
            fault = _fault(found.documents[at], schema, time)
            if fault is None:
                good.append(at)
            else:
                dead.append(found.records.dead(row, *fault))
        sound = Envelopes(
            found.records,
            [found.rows[at] for at in good],
            [found.documents[at] for at in good],
            [found.versions[at] for at in good],
            [found.late[at] for at in good],
            [],
            [],
            [found.stood[at] for at in good] if found.stood else [],
        )
        return _columns(sound, schema, time)


def _columns(found: Envelopes, schema: Schema, time: str) -> Fresh:
    columns = {
        name: Vector.from_list([document.get(name) for document in found.documents], type_)
        for name, type_ in schema.items()
    }
    times = columns[time] if time else Vector(np.zeros(len(found.rows), np.int64))
    if times.null is not None or (
        # Not by `abs`: that of the least integer is negative.
        len(times) and max(int(times.data.max()), -int(times.data.min())) > END_OF_TIME
    ):
        raise InputError("a tuple without a usable time")
    return Fresh(
        times.data,
        np.array(found.versions, np.int64),
        np.array(found.late, np.bool_),
        found.records.arrived[found.rows] if found.rows else np.empty(0, np.int64),
        columns,
        np.array([shard for shard, _ in found.stood], np.object_),
        np.array([place for _, place in found.stood], np.int64),
    )


def _fault(document: Mapping[str, Any], schema: Schema, time: str) -> tuple[Reason, str] | None:
    for name, type_ in schema.items():
        try:
            Vector.from_list([document.get(name)], type_)
        except InputError as error:
            return Reason.WRONG_TYPE, f"{name}: {error.what}"
    if not time:
        return None
    when = document.get(time)
    if when is None:
        return Reason.MISSING_FIELD, f"{time}: the event time is missing"
    if abs(when) > END_OF_TIME:
        return Reason.OUT_OF_DOMAIN, f"{time}: {when} is not a time in microseconds"
    return None
