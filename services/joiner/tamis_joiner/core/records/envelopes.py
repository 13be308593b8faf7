"""Envelopes of a stream topic's records, which distinguish tuples, progress and final records.

The envelope is the object under `_` (`tamis.messaging.records` describes its fields).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from tamis.messaging import topics
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.records import END_OF_TIME, ENVELOPE
from tamis.messaging.schemas.tuple_decoding import SchemaMismatchError, decode, has_schema
from tamis.messaging.schemas.tuple_schema import Layout
from tamis_joiner.core.records.cut_records import CutRecord, cut_record
from tamis_joiner.core.records.usual_tuples import Columns, UsualTuples, usual_tuples

SERVICE = "joiner"

# Below every event time: no shard has reported yet, so that any event time can still come.
BEGINNING_OF_TIME = -(2**62)


@dataclass(frozen=True)
class Records:
    """Records of one topic partition in the order of their offsets. `arrived` is Kafka's timestamp of each
    record in microseconds.
    """

    topic: str
    partition: int
    values: Sequence[bytes]
    offsets: NDArray[np.int64]
    arrived: NDArray[np.int64]

    def pick(self, rows: Sequence[int]) -> Records:
        """The records at `rows`, in the order given."""
        return Records(
            self.topic,
            self.partition,
            [self.values[row] for row in rows],
            self.offsets[rows] if len(rows) else self.offsets[:0],
            self.arrived[rows] if len(rows) else self.arrived[:0],
        )

    def dead_letter(self, row: int, reason: Reason, error: str) -> DeadLetter:
        """The record at `row` as a dead letter."""
        return DeadLetter(
            self.values[row], SERVICE, self.topic, self.partition, int(self.offsets[row]), reason, error
        )


def split_plans(records: Sequence[Records]) -> tuple[list[Records], list[Records]]:
    """Records of the plan topic, and those of stream topics."""
    plans = [part for part in records if part.topic == topics.PLANS]
    return plans, [part for part in records if part.topic != topics.PLANS]


@dataclass(frozen=True)
class ProgressRecord:
    """A progress or a final record of a shard. `position` (`place` in JSON): all tuples of the shard before
    this position of its source were published before this record. `activation`: the event time from which
    on all tuples of the shard are under this plan version or a later one.
    """

    kind: Literal["progress", "final"]
    shard: str
    version: int
    event_time: int  # 0 in a final record, BEGINNING_OF_TIME where the record has none
    shed: tuple[int, int] | None = None  # first and last microsecond of a span whose tuples were shed
    position: int | None = None
    activation: int = END_OF_TIME


@dataclass(frozen=True)
class Envelopes:
    """The contents of `records` by kind. `usual`: tuples that are decoded already; `rows` and the other lists
    have the rest.

    `rows`, `documents`, `versions`, `late` and `positions` are parallel lists of the tuples. `positions` has
    the shard of a tuple and its position in the shard's source, -1 if it has none; the list is empty for
    topics that no standing query reads.
    """

    records: Records
    rows: list[int]
    documents: list[dict[str, Any]]
    versions: list[int]
    late: list[bool]
    progress: list[ProgressRecord]
    pending: list[int]  # rows of records whose plan version is above the group's
    positions: list[tuple[str, int]]
    usual: UsualTuples | None = None
    cuts: Sequence[CutRecord] = ()


def read_envelopes(
    records: Records,
    version: int,
    dead: list[DeadLetter],
    *,
    with_positions: bool = False,
    layout: Layout | None = None,
    columns: Columns = (),
    time: str = "",
    fences: dict[str, int] | None = None,
) -> Envelopes:
    """Sort records by kind, for a group that uses plan `version`.

    A record of an unknown kind is appended to `dead`. `with_positions`: standing queries read the topic and
    need the positions of tuples. `layout`: the columns of the topic's schema, if the plan has the topic
    and its values aren't JSON. `columns` and `time` are those of the topic's tuples: without columns, or
    with positions or a layout, no tuple is decoded yet. `fences`: by shard, the number of the last fence on
    this partition; it takes up those of the records. What an earlier owner of a shard sends behind a fence is
    left out. None for records that have passed this before.
    """
    usual: UsualTuples | None = None
    others: Sequence[int] = range(len(records.values))
    if columns and layout is None and not with_positions:
        usual, others = usual_tuples(records.values, version, columns, time)
    rows: list[int] = []
    documents: list[dict[str, Any]] = []
    versions: list[int] = []
    late: list[bool] = []
    progress: list[ProgressRecord] = []
    pending: list[int] = []
    positions: list[tuple[str, int]] = []
    cuts: list[CutRecord] = []
    for row in others:
        value = records.values[row]
        try:
            document = decode(value, layout) if has_schema(value) else orjson.loads(value)
            envelope = document.pop(ENVELOPE)
            plan = envelope["plan"]
            kind = envelope.get("kind")
            if type(plan) is not int or not 0 <= plan <= END_OF_TIME:
                raise TypeError("plan")
            if (kind == "fence" or fences) and _shut_out(kind, envelope, fences):
                continue
            if kind is None:
                if plan > version:
                    pending.append(row)
                    continue
                if with_positions:
                    positions.append(_position(envelope))
                rows.append(row)
                documents.append(document)
                versions.append(plan)
                late.append(envelope.get("late") is True)
                continue
            if kind == "cut":
                cut = cut_record(row, envelope, document)
                # Also a plan of the queries by which it was made must be known.
                if max(plan, cut.form) > version:
                    pending.append(row)
                else:
                    cuts.append(cut)
                continue
            record = _progress(kind, envelope, plan)
            # Progress must not be taken before the cuts that it covers.
            plan = max(plan, _form(envelope))
        except orjson.JSONDecodeError as error:
            dead.append(records.dead_letter(row, Reason.UNDECODABLE, f"not JSON: {error}"))
            continue
        except SchemaMismatchError as error:
            dead.append(records.dead_letter(row, Reason.UNDECODABLE, str(error)))
            continue
        except (KeyError, TypeError, ValueError, AttributeError):
            dead.append(
                records.dead_letter(
                    row, Reason.FOREIGN, f"no envelope of an edge under {ENVELOPE!r}; publish through an edge"
                )
            )
            continue
        if plan > version:
            pending.append(row)
        else:
            progress.append(record)
    return Envelopes(records, rows, documents, versions, late, progress, pending, positions, usual, cuts)


def _shut_out(kind: Any, envelope: Mapping[str, Any], fences: dict[str, int] | None) -> bool:
    """True for a fence, which it takes up, and for a record from before the fence of its shard. Cuts have
    numbers of their own, and the progress that covers them has no place. Final records without a fence may be
    the registry's.
    """
    passes = kind == "cut" or (kind == "progress" and "place" not in envelope)
    if fences is None or passes or (kind == "final" and "fence" not in envelope):
        return False
    shard, number = envelope["shard"], envelope.get("fence", 0)
    if type(shard) is not str or type(number) is not int or not 0 <= number <= END_OF_TIME:
        raise TypeError("fence")
    if kind == "fence":
        fences[shard] = max(fences.get(shard, 0), number)
        return True
    return number < fences.get(shard, 0)


def _position(envelope: Mapping[str, Any]) -> tuple[str, int]:
    shard, position = envelope["shard"], envelope.get("place", -1)
    if type(shard) is not str or type(position) is not int or not -1 <= position <= END_OF_TIME:
        raise TypeError("place")
    return shard, position


def _form(envelope: Mapping[str, Any]) -> int:
    form = envelope.get("form", 0)
    if type(form) is not int or not 0 <= form <= END_OF_TIME:
        raise TypeError("form")
    return form


def _progress(kind: Any, envelope: Mapping[str, Any], plan: int) -> ProgressRecord:
    shard, shed, position = envelope["shard"], envelope.get("shed"), envelope.get("place")
    time = envelope.get("event_time", 0 if kind == "final" else BEGINNING_OF_TIME)
    activation = envelope.get("activation", END_OF_TIME)
    if kind not in ("progress", "final") or type(shard) is not str:
        raise TypeError("kind")
    # Arrays and reports have integers of 64 bits.
    if not all(type(one) is int and -(2**63) <= one < 2**63 for one in (time, activation, position or 0)):
        raise TypeError("a number is no integer of 64 bits")
    span = None if shed is None else _span(shed)
    return ProgressRecord(kind, shard, plan, time, span, position, activation)


def _span(shed: Any) -> tuple[int, int]:
    first, last = shed
    if type(first) is not int or type(last) is not int or not -END_OF_TIME <= first <= last <= END_OF_TIME:
        raise TypeError("shed")
    return first, last
