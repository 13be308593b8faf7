"""The comparison of Tamis' alarms with the reference's, as the promise states it (product page, "No missed
alarm").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.expressions.nodes import Expr, columns
from tamis.planning.plan import Definition
from tamis.query.model import WINDOW_COLUMNS, Query
from tamis.recordings.typed import Recording
from tamis.verification.database import session
from tamis.verification.reference import Reference, near_threshold

Rows = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Alarms:
    """Alarms that Tamis raised: per source the row of its recording; `unknown` counts those with a tuple
    that no recording has.
    """

    rows: Rows
    unknown: int = 0
    starts: NDArray[np.int64] | None = None  # of the windows, where the query has any

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


@dataclass(frozen=True)
class Verdict:
    """One alert's line of `tamis verify`. Alarms with late tuples or at the threshold are in neither
    `missed` nor `extra`.
    """

    query: str
    tuples: int
    retained: int
    reference_alarms: int
    alarms: int
    missed: int
    extra: int
    late: int
    at_threshold: int

    @property
    def same(self) -> bool:
        """Whether the promise was kept."""
        return not self.missed and not self.extra

    def to_json(self) -> dict[str, Any]:
        """The JSON object of `tamis verify --json`."""
        return asdict(self)


def used_columns(query: Query, alias: str, time: str | None) -> list[str]:
    """The columns of a source that tell its tuples apart: its time and those that the query reads, in order
    of their names.
    """
    exprs: list[Expr] = [c.expr for c in query.conjuncts] + [o.expr for o in query.select]
    read = {c.name for expr in exprs for c in columns(expr) if c.alias == alias}
    read.difference_update(WINDOW_COLUMNS if query.window is not None else ())
    return sorted(read if time is None else read | {time})


def alarms_of(
    query: Query,
    recordings: Mapping[str, Recording],
    tuples: Sequence[Mapping[str, Any]],
    starts: Sequence[int] | None = None,
) -> Alarms:
    """Alarms given as the `tuples` of `tamis.alarms` records, found again in the recordings by their
    values; `starts` are those of their windows, where the query has any.
    """
    found: dict[str, list[int]] = {}
    for source in query.sources:
        recording = recordings[source.stream]
        names = used_columns(query, source.alias, recording.stream.time)
        listed = [recording.columns[name].to_list() for name in names]
        # Equal tuples are one: the first row stands for them, as in `_classes`.
        known: dict[tuple[Any, ...], int] = {}
        for row, values in enumerate(zip(*listed, strict=True)):
            known.setdefault(values, row)
        found[source.alias] = [
            known.get(tuple(one[source.alias].get(name) for name in names), -1) for one in tuples
        ]
    rows = {alias: np.array(numbers, np.int64) for alias, numbers in found.items()}
    real = np.all([numbers >= 0 for numbers in rows.values()], axis=0)
    return Alarms(
        {alias: numbers[real] for alias, numbers in rows.items()},
        int((~real).sum()),
        None if starts is None else np.array(starts, np.int64)[real],
    )


def compare(
    name: str,
    query: Query,
    *,
    definition: Definition,
    recordings: Mapping[str, Recording],
    reference: Reference,
    alarms: Alarms,
    retained: int,
) -> Verdict:
    """Count what was missed and what is extra.

    *Missed*: reference alarms without an alarm of the same key (and window) in which every tuple lies within
    its stream's omission interval of the reference's. *Extra*: alarms that the reference doesn't have.
    """
    classes = {s.alias: _classes(query, s.alias, recordings[s.stream]) for s in query.sources}
    expected = _table(definition, recordings, classes, reference.rows, reference.starts).append_column(
        "apart", pa.array(reference.late | reference.near)
    )
    seen = _table(definition, recordings, classes, alarms.rows, alarms.starts)
    late = np.any([recordings[s.stream].late[alarms.rows[s.alias]] for s in query.sources], axis=0)
    raised = seen.append_column("late", pa.array(late)).append_column("n", pa.array(np.arange(len(alarms))))
    count = range(len(query.sources))
    same = " AND ".join((*(f"x.c{i} = y.c{i}" for i in count), "x.start = y.start"))
    spans = [source.interval for source in definition.inputs]
    close = " AND ".join(f"abs(x.t{i} - y.t{i}) <= {spans[i]}" for i in count)
    # What is close in time is in the same bucket or the next: DuckDB hashes keys and buckets.
    at = int(np.argmin(spans))
    bucket = f"(t{at} // {spans[at] + 1})"
    with session() as connection:
        connection.register("expected", expected)
        connection.register("raised", raised)
        connection.sql(
            f"""CREATE TEMP TABLE missing AS SELECT *, {bucket} AS bucket FROM expected x
                WHERE NOT apart AND NOT EXISTS (SELECT 1 FROM raised y WHERE {same})"""
        )
        connection.sql(
            f"""CREATE TEMP TABLE standing AS
                SELECT *, unnest([{bucket} - 1, {bucket}, {bucket} + 1]) AS bucket FROM raised"""
        )
        missed = _count(
            connection,
            f"""missing x WHERE NOT EXISTS
                (SELECT 1 FROM standing y
                 WHERE x.key = y.key AND x.start = y.start AND x.bucket = y.bucket AND {close})""",
        )
        unlike = connection.sql(
            f"SELECT n FROM raised x WHERE NOT late AND NOT EXISTS (SELECT 1 FROM expected y WHERE {same})"
        ).fetchnumpy()["n"]
    doubtful = {alias: rows[unlike] for alias, rows in alarms.rows.items()}
    extra = int(np.count_nonzero(~near_threshold(query, recordings, doubtful)))
    return Verdict(
        query=name,
        tuples=sum(len(recordings[stream]) for stream in {s.stream for s in query.sources}),
        retained=retained,
        reference_alarms=len(reference),
        alarms=len(alarms) + alarms.unknown,
        missed=missed,
        extra=extra + alarms.unknown,
        late=int(reference.late.sum()),
        at_threshold=int((reference.near & ~reference.late).sum()),
    )


def _count(connection: duckdb.DuckDBPyConnection, what: str) -> int:
    return int(connection.sql(f"SELECT count(*) FROM {what}").fetchall()[0][0])


def _classes(query: Query, alias: str, recording: Recording) -> NDArray[np.int64]:
    """For each row the first row that is equal to it in time and all columns that the query reads."""
    first: dict[tuple[Any, ...], int] = {}
    names = used_columns(query, alias, recording.stream.time)
    listed = [recording.columns[name].to_list() for name in names]
    if not listed:
        return np.arange(len(recording), dtype=np.int64)
    numbers = [first.setdefault(values, row) for row, values in enumerate(zip(*listed, strict=True))]
    return np.array(numbers, np.int64)


def _table(
    definition: Definition,
    recordings: Mapping[str, Recording],
    classes: Rows,
    rows: Rows,
    starts: NDArray[np.int64] | None,
) -> pa.Table:
    """Key, start of the window (0 without windows), and per source the class of its tuple and its time."""
    built: dict[str, Any] = {}
    for i, source in enumerate(definition.inputs):
        picked = rows[source.alias]
        built[f"c{i}"] = classes[source.alias][picked]
        built[f"t{i}"] = recordings[source.stream].columns[source.time].data[picked]
    first = definition.inputs[0]
    parts = [
        recordings[first.stream].columns[name].take(rows[first.alias]).to_list()
        for name in first.partition_key
    ]
    # Text, so that keys of any type are compared the same way; all come from one source, so equal keys are
    # alike.
    keys = [repr(key) for key in zip(*parts, strict=True)] if parts else [""] * len(built["c0"])
    built["start"] = np.zeros(len(keys), np.int64) if starts is None else starts
    return pa.table({"key": pa.array(keys, pa.string()), **built})
