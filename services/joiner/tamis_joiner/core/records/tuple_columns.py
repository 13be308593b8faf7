"""Tuples of one topic as columns, made from their JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.records import END_OF_TIME
from tamis_joiner.core.records.envelopes import Envelopes
from tamis_joiner.core.records.usual_tuples import Columns

Schema = Mapping[str, Type]
NO_FIELDS: Mapping[str, str] = {}


@dataclass(frozen=True)
class TupleColumns:
    """Tuples of one topic in the order of their offsets, as columns of equal length.

    `times` are 0 for a stream without event time. `shards` and `positions` (in the shard's source) are empty
    for topics that no standing query reads.
    """

    times: NDArray[np.int64]
    versions: NDArray[np.int64]
    late: NDArray[np.bool_]
    arrived: NDArray[np.int64]
    columns: dict[str, Vector]
    shards: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, np.object_))
    positions: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def tuple_columns(
    found: Envelopes, schema: Schema, time: str, dead: list[DeadLetter], fields: Mapping[str, str] = NO_FIELDS
) -> TupleColumns:
    """The tuples of `found` as columns of `schema`. `time` is the column with the event time, empty if the
    stream has none. `fields`: the names of columns in the documents, where they aren't the columns' own.

    A tuple with a value of a wrong type or without a usable event time is appended to `dead`.
    """
    named = columns_of(schema, fields)
    if found.usual is None:
        return _checked(found, named, time, dead)[0]
    usual = TupleColumns(
        found.usual.times(time),
        found.usual.versions,
        found.usual.late,
        found.records.arrived[found.usual.rows],
        found.usual.columns,
    )
    if not found.rows:
        return usual
    others, rows = _checked(found, named, time, dead)
    order = np.argsort(np.concatenate([found.usual.rows, np.array(rows, np.int64)]))
    return _joined(usual, others, order)


def columns_of(schema: Schema, fields: Mapping[str, str] = NO_FIELDS) -> Columns:
    """The columns of `schema` with their names in the documents."""
    return tuple((name, fields.get(name, name), type_) for name, type_ in schema.items())


def _joined(usual: TupleColumns, others: TupleColumns, order: NDArray[np.int64]) -> TupleColumns:
    def both(name: str) -> NDArray[Any]:
        found: NDArray[Any] = np.concatenate([getattr(usual, name), getattr(others, name)])[order]
        return found

    return TupleColumns(
        both("times"),
        both("versions"),
        both("late"),
        both("arrived"),
        {
            name: Vector.concat([usual.columns[name], others.columns[name]]).take(order)
            for name in usual.columns
        },
    )


def _checked(
    found: Envelopes, named: Columns, time: str, dead: list[DeadLetter]
) -> tuple[TupleColumns, list[int]]:
    """The tuples that were not decoded yet, and their rows."""
    try:
        return _columns(found, named, time), found.rows
    except InputError:
        # Only now each tuple is checked by itself: mostly all are valid, and columns are checked faster.
        key = next((key for name, key, _ in named if name == time), "")
        valid = []
        for at, row in enumerate(found.rows):
            fault = _fault(found.documents[at], named, key)
            if fault is None:
                valid.append(at)
            else:
                dead.append(found.records.dead_letter(row, *fault))
        picked = _pick(found, valid)
        return _columns(picked, named, time), picked.rows


def _pick(found: Envelopes, tuples: list[int]) -> Envelopes:
    """A part of the tuples, without progress and pending records."""
    return Envelopes(
        found.records,
        rows=[found.rows[at] for at in tuples],
        documents=[found.documents[at] for at in tuples],
        versions=[found.versions[at] for at in tuples],
        late=[found.late[at] for at in tuples],
        progress=[],
        pending=[],
        positions=[found.positions[at] for at in tuples] if found.positions else [],
    )


def _columns(found: Envelopes, named: Columns, time: str) -> TupleColumns:
    columns = {
        name: Vector.from_list([document.get(key) for document in found.documents], type_)
        for name, key, type_ in named
    }
    times = columns[time] if time else Vector(np.zeros(len(found.rows), np.int64))
    if times.null is not None or (
        # Not by `abs`: the absolute value of the least 64-bit integer is negative.
        len(times) and max(int(times.data.max()), -int(times.data.min())) > END_OF_TIME
    ):
        raise InputError("a tuple has no usable event time")
    return TupleColumns(
        times.data,
        np.array(found.versions, np.int64),
        np.array(found.late, np.bool_),
        found.records.arrived[found.rows] if found.rows else np.empty(0, np.int64),
        columns,
        np.array([shard for shard, _ in found.positions], np.object_),
        np.array([position for _, position in found.positions], np.int64),
    )


def _fault(document: Mapping[str, Any], named: Columns, time: str) -> tuple[Reason, str] | None:
    for _, name, type_ in named:
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
