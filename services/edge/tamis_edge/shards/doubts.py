"""Doubts about the readings of a shard: columns without a value, and times in a wrong unit.

Such readings are valid, so they are no dead letters. But a misspelt path in `map` makes a column NULL in all
of them, and no alert holds for NULL; and a time that is read in a wrong unit is late or ahead of the clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tamis.expressions.vectors import Vector
from tamis.omission.columns import Int64s
from tamis.plan.model import Plan, StreamPlan
from tamis.recordings.times import TimeUnit, description, implausible
from tamis_edge.source_fields import FieldMap

# A column is doubted after so many readings in a row without a value. Fewer may come from one sensor.
READINGS = 100
# How long times outside of 2000 to 2100 are told, in microseconds: somebody has to come and look.
TOLD = 600_000_000
# Columns that one report names: every report of the shard has them.
MOST_NAMED = 5

ALL_WRONG = (
    "set time_unit of the source, or correct the sender; aggregates and the end of episodes wait for this"
    " shard until its next reading, or until you give it up"
)
SOME_WRONG = "correct their sender"


def read_columns(plan: Plan, stream: StreamPlan, mapping: FieldMap) -> frozenset[str]:
    """The columns of a raw stream that should have values: those that `map` names, the keys of topics, and
    those that queries read. NOT NULL columns and the time are left out, since without a value there the
    reading is a dead letter.
    """
    wanted = set(mapping.fields)
    for one in plan.streams:
        if one.shards_of == stream.name:
            wanted.update(one.series_key)
            for topic in one.topics:
                wanted.update(topic.partition_key, topic.columns)
    checked = {column.name for column in stream.columns if column.not_null} | {stream.time}
    return frozenset(column.name for column in stream.columns if column.name in wanted - checked)


class Doubts:
    """Doubts about the readings of one shard. `now` is wall clock in microseconds."""

    def __init__(self) -> None:
        self._without: dict[str, int] = {}  # readings in a row without a value, by column
        self._valued: set[str] = set()  # columns that have had a value
        self._times = _DoubtfulTimes()

    def take(
        self, columns: Mapping[str, Vector], read: frozenset[str], times: Int64s, unit: TimeUnit, now: int
    ) -> tuple[str, str] | None:
        """Look at the usable readings of a batch, of which there is at least one. `read`: see `read_columns`;
        `times` is empty without event time. Returns what is implausible about the times, and a hint, if this
        begins now.
        """
        self._without = {
            name: _without_value(columns[name], self._without.get(name, 0))
            for name in read
            if name in columns
        }
        self._valued.update(name for name in read if name in columns and _valued(columns[name]))
        return self._times.described() if self._times.take(times, unit, now) else None

    @property
    def empty(self) -> list[str]:
        """The columns without a value in the last readings, in the order of their names."""
        return sorted(name for name, count in self._without.items() if count >= READINGS)

    def never(self, mapped: Mapping[str, object]) -> list[str]:
        """The columns named by `map` that have had no value since the first reading, in the order of their
        names. Those of `empty` are left out.
        """
        return sorted(
            name
            for name, count in self._without.items()
            if name in mapped and name not in self._valued and 0 < count < READINGS
        )

    def told(self, paths: Mapping[str, str], now: int, mapped: Mapping[str, str] | None = None) -> list[str]:
        """Sentences for people, without full stops. `paths`: the field of each column; `mapped`: those that
        `map` names.
        """
        said = []
        if mapped and (never := self.never(mapped)):
            said.append(
                f"no reading has had a value for {_named(never, mapped)} yet: compare `map` with them"
            )
        if names := self.empty:
            named = _named(names, paths)
            said.append(
                f"none of the last {READINGS} readings has a value for {named}: compare `map` with them"
            )
        if self._times.told(now):
            said.append("; ".join(self._times.described()))
        return said


class _DoubtfulTimes:
    """Times outside of 2000 to 2100, among all times of the minutes in which they came."""

    def __init__(self) -> None:
        self._far = self._count = 0
        self._first: tuple[int, TimeUnit] = 0, "us"
        self._since = self._until = -TOLD

    def take(self, times: Int64s, unit: TimeUnit, now: int) -> bool:
        """Count the times of a batch; returns True if doubts begin with it."""
        told = self.told(now)
        if not told and (self._far or now >= self._since + TOLD):
            self._far, self._count, self._since = 0, 0, now
        far = times[implausible(times)]
        self._count += len(times)
        if len(far):
            if not self._far:
                self._first = int(far[0]), unit
            self._far += len(far)
            self._until = now + TOLD
        return len(far) > 0 and not told

    def told(self, now: int) -> bool:
        """True for some minutes after a doubtful time."""
        return self._far > 0 and now < self._until

    def described(self) -> tuple[str, str]:
        """The doubts as a description, and a hint."""
        first, unit = self._first
        hint = ALL_WRONG if self._far == self._count else SOME_WRONG
        return description(first, self._far, self._count, unit), hint


def _named(columns: Sequence[str], paths: Mapping[str, str]) -> str:
    """The first columns with their fields, and the number of the others."""
    named = ", ".join(f"{name} (field {paths[name]})" for name in columns[:MOST_NAMED])
    return named + (f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else "")


def _valued(vector: Vector) -> bool:
    return vector.null is None or not bool(vector.null.all())


def _without_value(vector: Vector, before: int) -> int:
    """The readings in a row without a value at the end of a batch, behind `before` earlier ones."""
    if vector.null is None:
        return 0
    values = np.flatnonzero(~vector.null)
    rows = len(vector.null)
    return before + rows if len(values) == 0 else rows - 1 - int(values[-1])
