"""Streams: what CREATE STREAM declares, with the columns that watches add."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from tamis.declarations.definitions import MAX_AHEAD, MAX_STALL, ColumnDef, Rate
from tamis.declarations.watches import HISTORY, AnyWatch, WindowFunction, watched_name
from tamis.errors import Position


@dataclass(frozen=True)
class StreamDef:
    """CREATE STREAM s (…): a raw stream. Durations are in microseconds. `time` is None for a stream without
    a watermark, `max_ahead` None if event times may be any time ahead of the clock.
    """

    name: str
    columns: tuple[ColumnDef, ...]
    time: str | None
    delay: int  # WATERMARK FOR time AS time - delay
    keys: int | None = None
    rate: Rate | None = None
    max_stall: int = MAX_STALL
    idle_timeout: int | None = None
    max_ahead: int | None = MAX_AHEAD
    max_ahead_given: bool = False  # declared, so that it holds for replayed recordings, too
    finite: bool = False
    until: int | None = None
    value_format: Literal["json", "avro", "protobuf"] = "json"  # of the values in its topics
    time_unit: Literal["s", "ms", "us", "ns"] | None = None  # of event times that are numbers
    history: int = HISTORY  # the greatest age of the readings that window functions see by rows
    functions: tuple[
        str, ...
    ] = ()  # called by the statement, here and below; they can't be dropped before it
    # Of a watched stream: the raw stream, and the watches whose columns it adds.
    base: str | None = None
    watches: tuple[AnyWatch, ...] = ()
    # Of a backfill stream, which only plans have: the raw stream, and the least event time of its readings.
    origin: str | None = None
    begin: int | None = None
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)

    def column(self, name: str) -> ColumnDef | None:
        """The column with that name; None if there is none."""
        return next((c for c in self.columns if c.name == name), None)

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the KEY columns."""
        return tuple(c.name for c in self.columns if c.key)

    @property
    def recorded_columns(self) -> tuple[ColumnDef, ...]:
        """The columns that readings have: all but those of the watches."""
        added = {column.name for watch in self.watches for column in watch.columns}
        return tuple(column for column in self.columns if column.name not in added)

    @property
    def shown_name(self) -> str:
        """The name of the stream in SQL: a watched stream is shown as its base, a backfill stream as the raw
        stream.
        """
        return self.base or self.origin or self.name


def watched_stream(base: StreamDef, watches: tuple[AnyWatch, ...]) -> StreamDef:
    """The raw stream `base` with the columns of these watches."""
    known = sorted(dict.fromkeys(watches), key=lambda watch: watch.digest)
    checks = {column.name: column.check for column in base.columns if column.check is not None}
    added = tuple(
        ColumnDef(column.name, column.type, check=domains.get(column))
        for watch in known
        for domains in (
            {watch.column: watch.domain(checks)} if isinstance(watch, WindowFunction) else watch.domains,
        )
        for column in watch.columns
    )
    return replace(
        base,
        name=watched_name(base.name, tuple(known)),
        columns=(*base.columns, *added),
        base=base.name,
        watches=tuple(known),
    )
