"""Recording of one stream as typed columns, with the checks of an edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Mask, Vector
from tamis.recordings.field_paths import of_column
from tamis.recordings.files import Format, read_rows
from tamis.recordings.refusals import Refusal, refusals
from tamis.recordings.rows import Rows, check_column
from tamis.recordings.times import PER_SECOND, TimeUnit, implausibility, implausible
from tamis.recordings.values import Values, iso_text, nulls, values_of
from tamis.wording.file_text import separator_hint
from tamis.wording.names import suggest

# The column by which the tuples of several streams without time are interleaved.
ORDER = "_order"


@dataclass(frozen=True)
class LateCause:
    """A reading that made `late` others late. `where`: its position in its file; `time`: its event time;
    `ahead`: the time from the latest of the late readings to it. Times are in microseconds.
    """

    where: str
    time: int
    ahead: int
    late: int


def late_cause(times: NDArray[np.int64], late: Mask) -> tuple[int, int, int] | None:
    """The row that made most others late, its distance in time from the latest of these, and their number;
    None if no row is late. `times` are those of one file, in its order.
    """
    if not late.any():
        return None
    reached = np.maximum.accumulate(times)
    rising = np.concatenate([[True], reached[1:] > reached[:-1]])
    # For each row the row that last moved the watermark before it.
    moved_by = np.maximum.accumulate(np.where(rising, np.arange(len(times)), 0))
    row = int(np.bincount(moved_by[late]).argmax())
    behind = times[late & (moved_by == row)]
    return row, int(times[row] - behind.max()), len(behind)


@dataclass(frozen=True)
class Recording:
    """The usable tuples of a stream's recording, one file after the other. The tuples of a file are in order
    of event time, and those of equal times in the order of the file; or all are in order of arrival.

    `columns`: by name. `late`: the mask of tuples behind the watermark of those before them in their file; a
    file stands for one shard. `given`: the TIMESTAMP columns as the files write them. `refused`: the number
    of rows that an edge would put to the dead letters.
    """

    stream: StreamDef
    columns: dict[str, Vector]
    late: Mask
    given: Mapping[str, pa.ChunkedArray]
    refused: int
    order: NDArray[np.int64] | None = None  # the column `_order`, where the files have one
    files: tuple[int, ...] = ()  # the number of tuples of each file; () for a single file
    unit: TimeUnit = "us"  # of times that the files write as numbers
    implausible_times: tuple[str, ...] = ()  # descriptions of implausible event times, by file
    late_causes: tuple[
        LateCause, ...
    ] = ()  # for each file with late tuples, the reading that made most of them late
    # In verification, the tuples for which rounding decides which pattern is similar.
    uncertain: Mask | None = None
    refusals: tuple[Refusal, ...] = ()  # the reasons why rows were refused
    absent: tuple[str, ...] = ()  # descriptions of columns that a file doesn't have

    def __len__(self) -> int:
        return len(self.late)

    @property
    def file_numbers(self) -> NDArray[np.int64]:
        """The number of the file of each tuple, from 0."""
        return np.repeat(np.arange(max(len(self.files), 1)), self.files or (len(self),))

    @property
    def reached(self) -> NDArray[np.int64]:
        """For each tuple the greatest event time of its file so far. Only for a stream with event time."""
        assert self.stream.time is not None
        times = self.columns[self.stream.time].data
        parts = np.split(times, np.cumsum(self.files)[:-1]) if self.files else [times]
        return np.concatenate([np.maximum.accumulate(part) for part in parts])

    def since(self, time: int) -> Recording:
        """The tuples with this event time or a later one, in microseconds. A stream without event time has
        all of them.
        """
        if self.stream.time is None:
            return self
        keep = self.columns[self.stream.time].data >= time
        at = np.flatnonzero(keep)
        files = tuple(np.bincount(self.file_numbers[at], minlength=len(self.files)).tolist())
        return replace(
            self,
            columns={name: column.take(at) for name, column in self.columns.items()},
            late=self.late[at],
            given={name: column.filter(pa.array(keep)) for name, column in self.given.items()},
            order=None if self.order is None else self.order[at],
            files=files if self.files else (),
            uncertain=None if self.uncertain is None else self.uncertain[at],
        )

    def under(self, alias: str) -> dict[tuple[str, str], Vector]:
        """The columns by alias and name, as a source of a query has them."""
        return {(alias, name): vector for name, vector in self.columns.items()}


def read_recording(
    stream: StreamDef,
    paths: Sequence[str],
    form: Format | None = None,
    unit: TimeUnit | None = None,
    *,
    absent_is_null: bool = False,
    as_arrived: bool = False,
) -> Recording:
    """Read the files of one stream, one after the other. `unit` is the unit of times that are numbers; None:
    the one that the stream declares, or microseconds.

    `absent_is_null`: as at an edge, a column that a file doesn't have is NULL, if it may be NULL; KEY columns
    must be there. `as_arrived`: the order of the rows in a file is that of their arrival, so that rows may be
    late; by default the rows of each file are put in order of event time.

    Raises InputError for a missing column, or a value that isn't of its column's type. A row outside the
    domain, with a number that isn't finite, or with NULL in a NOT NULL column is left out, and the reasons
    are kept.
    """
    files = (read_rows(path, form) for path in paths)
    return recording_of(stream, files, unit, absent_is_null=absent_is_null, as_arrived=as_arrived)


def recording_of(
    stream: StreamDef,
    files: Iterable[Rows],
    unit: TimeUnit | None = None,
    *,
    absent_is_null: bool = False,
    as_arrived: bool = False,
) -> Recording:
    """The recording whose files have these rows, as of `read_recording`."""
    unit = unit or stream.time_unit or "us"
    named = [(rows.where, _typed(stream, rows, unit, absent_is_null, as_arrived)) for rows in files]
    parts = [part for _, part in named]
    columns = {c.name: Vector.concat([part.columns[c.name] for part in parts]) for c in stream.columns}
    given = {
        name: _concat_given([part.given[name] for part in parts], columns[name]) for name in parts[0].given
    }
    late = np.concatenate([part.late for part in parts])
    orders = [part.order for part in parts if part.order is not None]
    if orders and any(part.order is None and len(part) for part in parts):
        hint = f"give all files of stream {stream.name} a column {ORDER}, or none"
        raise InputError(f"some files have a column {ORDER} and some have none", where=named[0][0], hint=hint)
    order = np.concatenate(orders) if orders else None
    return Recording(
        stream,
        columns,
        late,
        given,
        sum(part.refused for part in parts),
        order,
        tuple(len(part) for part in parts),
        unit,
        tuple(one for part in parts for one in part.implausible_times),
        tuple(one for part in parts for one in part.late_causes),
        refusals=tuple(one for part in parts for one in part.refusals),
        absent=tuple(one for part in parts for one in part.absent),
    )


def _typed(
    stream: StreamDef, rows: Rows, unit: TimeUnit, absent_is_null: bool, as_arrived: bool
) -> Recording:
    absent = _absent(stream, rows) if absent_is_null else []
    for column in stream.columns:
        if column.name not in absent and rows.names:
            check_column(rows, column.name, declared=True)
    found = {
        column.name: nulls(column.type, len(rows))
        if column.name in absent
        else values_of(rows, column.name, column.type, unit)
        for column in stream.columns
    }
    refused, reasons = refusals(stream, rows, found)
    keep = ~refused
    columns = {name: values.vector.take(keep) for name, values in found.items()}
    given = {name: v.given.filter(pa.array(keep)) for name, v in found.items() if v.given is not None}
    order = _order(rows, keep) if ORDER in rows.names else None
    said = None if stream.time is None else _implausibility(found[stream.time], unit)
    unread = set(rows.names).difference(*(of_column(column.name).names for column in stream.columns))
    separated = separator_hint(rows.names) if rows.textual else None
    implausible_times = () if said is None else (f"{rows.where}: {said}",)
    late = _late(stream, columns) if as_arrived else np.zeros(int(keep.sum()), np.bool_)
    late_causes = _late_causes(stream, columns, late, rows, np.flatnonzero(keep)) if as_arrived else ()
    recording = Recording(
        stream,
        columns,
        late,
        given,
        int(refused.sum()),
        order,
        (),
        unit,
        implausible_times,
        late_causes,
        refusals=reasons,
        absent=tuple(
            f"{rows.where} has no column {name}, which is NULL in its readings, as at an edge; "
            + (separated or suggest(name, unread, f"it has {', '.join(rows.names)}", quoted=True))
            for name in absent
        ),
    )
    return recording if as_arrived else _by_time(recording)


def _by_time(recording: Recording) -> Recording:
    """A recording of one file in order of event time, stable. If it is in order, it isn't sorted."""
    if recording.stream.time is None:
        return recording
    times = recording.columns[recording.stream.time].data
    if (times[1:] >= times[:-1]).all():
        return recording
    at = np.argsort(times, kind="stable")
    return replace(
        recording,
        columns={name: column.take(at) for name, column in recording.columns.items()},
        given={name: column.take(pa.array(at)) for name, column in recording.given.items()},
        order=None if recording.order is None else recording.order[at],
    )


def _absent(stream: StreamDef, rows: Rows) -> list[str]:
    """The columns that the file lacks and that may be NULL. A file of JSON without objects lacks none."""
    if not rows.names:
        return []
    optional = (c.name for c in stream.columns if not (c.key or c.not_null or c.name == stream.time))
    return [name for name in optional if not rows.has(name)]


def _late_causes(
    stream: StreamDef, columns: Mapping[str, Vector], late: Mask, rows: Rows, numbers: NDArray[np.int64]
) -> tuple[LateCause, ...]:
    """The reading that made most of a file's late tuples late; `numbers`: the rows of the tuples in the
    file.
    """
    if stream.time is None:
        return ()
    times = columns[stream.time].data
    found = late_cause(times, late)
    if found is None:
        return ()
    row, ahead, count = found
    return (LateCause(rows.place(stream.time, int(numbers[row])), int(times[row]), ahead, count),)


def _implausibility(times: Values, unit: TimeUnit) -> str | None:
    """A description of a file's implausible event times, including those that are out of range."""
    given = times.given
    if given is not None and (pa.types.is_integer(given.type) or pa.types.is_floating(given.type)):
        numbers = given.drop_null().cast(pa.float64(), safe=False).to_numpy()
        return implausibility(numbers[np.isfinite(numbers)] * (1_000_000 / PER_SECOND[unit]), unit)
    known = ~times.unusable if times.vector.null is None else ~times.unusable & ~times.vector.null
    ticks = times.vector.data[known]
    far = np.flatnonzero(implausible(ticks))
    # Text may have numbers beside dates.
    first = None if given is None or not len(far) else given[int(np.flatnonzero(known)[far[0]])].as_py()
    return implausibility(ticks, unit if isinstance(first, str) and _is_number(first) else None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _order(rows: Rows, keep: Mask) -> NDArray[np.int64]:
    found = values_of(rows, ORDER, Type.BIGINT).vector
    if found.null is not None:
        raise InputError(
            f"a row has no value in column {ORDER}",
            where=rows.place(ORDER, int(np.argmax(found.null))),
            hint="number every row",
        )
    return np.asarray(found.data[keep], np.int64)


def _concat_given(parts: Sequence[pa.ChunkedArray], ticks: Vector) -> pa.ChunkedArray:
    """One column of several files; in ISO 8601 where the files write times differently."""
    if len({part.type for part in parts}) == 1:
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return pa.chunked_array([iso_text(pa.array(ticks.data, mask=ticks.null))])


def _late(stream: StreamDef, columns: Mapping[str, Vector]) -> Mask:
    if stream.time is None:
        return np.zeros(len(next(iter(columns.values()))), np.bool_)
    times = columns[stream.time].data
    if not len(times):
        return np.zeros(0, np.bool_)
    before = np.concatenate([times[:1], np.maximum.accumulate(times)[:-1]])
    return np.asarray(times < before - stream.delay)
