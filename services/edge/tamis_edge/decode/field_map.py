"""Mapping from the fields of a source's readings to a stream's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tamis.recordings.field_paths import FieldPath, of_column, parsed
from tamis.recordings.times import TimeUnit


@dataclass(frozen=True)
class FieldMap:
    """The mapping from the fields of a source's readings to a stream's columns.

    `fields`: the path of a column's value in a reading (`"data.temp"`); without a path the column's name is
    the path. `unit`: the time unit of TIMESTAMPs that are numbers; None: the
    unit that the stream declares, or microseconds.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    unit: TimeUnit | None = None

    def path(self, column: str) -> FieldPath:
        """The path to a column's value. Raises ValueError if `fields` has none for it."""
        return parsed(self.fields[column]) if column in self.fields else of_column(column)
