"""A stream's decoder: payloads or raw columns to checked tuples, and the offenders apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import Reason
from tamis.planning.plan import StreamPlan
from tamis.recordings.json_values import Offence, TimeUnit, convert
from tamis_edge.core.keys import Int64s
from tamis_edge.decode.json_rows import parse

# Payloads parsed at a time: their objects stay in the processor's cache until their values are taken out.
SLICE = 500

# Bytes of a reading, for a table's row characters of its texts. A tuple goes out with its key, and an alarm
# with the tuples of all its streams: together they must stay below what a topic takes (`MAX_RECORD_BYTES`).
MAX_READING = 900_000


@dataclass(frozen=True)
class FieldMap:
    """How a source's readings become a stream's columns.

    `fields`: the path of a column's value in a reading (`"data.temp"`), the column's own name where it isn't
    given; `unit`: what TIMESTAMPs that are numbers count.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    unit: TimeUnit = "us"


@dataclass(frozen=True, slots=True)
class Decoded:
    """`rows`: places in the batch of the tuples that are good; `columns` and `times` are of these alone."""

    rows: Int64s
    columns: dict[str, Vector]
    times: Int64s
    offences: list[Offence]


class Decoder:
    """Decodes micro-batches for one stream and one way of mapping."""

    def __init__(self, stream: StreamPlan, mapping: FieldMap) -> None:
        self.stream = stream
        self.mapping = mapping
        self._paths = {
            column.name: tuple(mapping.fields.get(column.name, column.name).split("."))
            for column in stream.columns
        }
        # All columns in one go where all are fields of the reading itself; a getter of one gives no tuple.
        flat = len(self._paths) > 1 and all(len(path) == 1 for path in self._paths.values())
        self._flat = itemgetter(*(path[0] for path in self._paths.values())) if flat else None

    def path(self, column: str) -> tuple[str, ...]:
        """The steps to a column's value in a reading."""
        return self._paths[column]

    def payloads(self, payloads: Sequence[bytes], now: int) -> Decoded:
        """JSON objects, one a payload. `now`: wall clock, microseconds."""
        raw: dict[str, list[Any]] = {name: [] for name in self._paths}
        offences: list[Offence] = []
        for start in range(0, len(payloads), SLICE):
            rows, faults = parse(payloads[start : start + SLICE], MAX_READING)
            offences += [Offence(start + fault.row, fault.reason, fault.error) for fault in faults]
            for name, values in zip(self._paths, self._extract(rows), strict=True):
                raw[name] += values
        return self._check(raw, len(payloads), offences, now)

    def _extract(self, rows: Sequence[dict[str, Any]]) -> Iterable[Sequence[Any]]:
        """The values of each column, None where a row lacks it."""
        if self._flat is not None:
            try:
                return list(zip(*map(self._flat, rows), strict=True))
            except KeyError:
                pass  # some row lacks a field
        return [_follow(rows, path) for path in self._paths.values()]

    def columns(self, raw: Mapping[str, Sequence[Any]], rows: int, now: int) -> Decoded:
        """Columns of Python values, by the names that the mapping's paths give; a column that isn't there is
        NULL.
        """
        named = {name: raw.get(".".join(path)) or [None] * rows for name, path in self._paths.items()}
        texts = [named[column.name] for column in self.stream.columns if column.type is Type.VARCHAR]
        offences = []
        for row, cells in enumerate(zip(*texts, strict=True)):
            size = sum(len(cell) for cell in cells if type(cell) is str)
            if size > MAX_READING:
                error = f"texts of {size} characters; the limit is {MAX_READING}"
                offences.append(Offence(row, Reason.TOO_LARGE, error))
        return self._check(named, rows, offences, now)

    def _check(self, raw: Mapping[str, Sequence[Any]], n: int, offences: list[Offence], now: int) -> Decoded:
        stream = self.stream
        bad = np.zeros(n, np.bool_)
        bad[[offence.row for offence in offences]] = True

        def accuse(rows: np.ndarray, reason: Reason, error: Any) -> None:
            for row in rows.tolist():
                if not bad[row]:
                    bad[row] = True
                    offences.append(Offence(row, reason, error(row)))

        columns: dict[str, Vector] = {}
        for column in stream.columns:
            values = raw[column.name]
            vector, misfits = convert(column.name, values, column.type, self.mapping.unit)
            for misfit in misfits:
                if not bad[misfit.row]:
                    bad[misfit.row] = True
                    offences.append(misfit)
            if (column.not_null or column.name == stream.time) and vector.null is not None:
                path = ".".join(self._paths[column.name])
                accuse(
                    np.flatnonzero(vector.null & ~bad),
                    Reason.MISSING_FIELD,
                    lambda _, name=column.name, path=path: (
                        f"{name}: no value in field {path!r}, which must not be NULL"
                    ),
                )
            columns[column.name] = vector
        for column in stream.columns:
            if column.check is not None:
                fits = evaluate(column.check, {("", name): v for name, v in columns.items()}, n)
                outside = ~fits.data.astype(np.bool_)
                if fits.null is not None:
                    outside &= ~fits.null  # a CHECK admits NULL
                values = raw[column.name]
                accuse(
                    np.flatnonzero(outside & ~bad),
                    Reason.OUT_OF_DOMAIN,
                    lambda row, name=column.name, values=values: (
                        f"{name}: {values[row]!r:.80} fails the column's CHECK"
                    ),
                )
        times = np.zeros(n, np.int64) if stream.time is None else columns[stream.time].data
        if stream.max_ahead is not None:
            accuse(
                np.flatnonzero((times > now + stream.max_ahead) & ~bad),
                Reason.AHEAD_OF_CLOCK,
                lambda row: (
                    f"{stream.time}: {(int(times[row]) - now) / 1e6:.3f} s ahead of this edge's clock; "
                    f"max_ahead is {(stream.max_ahead or 0) / 1e6:g} s"
                ),
            )
        good = np.flatnonzero(~bad)
        if len(good) < n:
            columns = {name: vector.take(good) for name, vector in columns.items()}
            times = times[good]
        return Decoded(good, columns, times, sorted(offences, key=lambda offence: offence.row))


def _follow(rows: Sequence[dict[str, Any]], path: tuple[str, ...]) -> list[Any]:
    values: list[Any] = [row.get(path[0]) for row in rows]
    for step in path[1:]:
        values = [value.get(step) if type(value) is dict else None for value in values]
    return values
