"""Compare the alarms of Tamis with those of the reference, as the promise states it.

The promise is the section "No missed alarm" of the product page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.expressions.nodes import Expr, columns
from tamis.expressions.vectors import Mask, Vector
from tamis.plan.model import Definition
from tamis.query.model import Query
from tamis.recordings.typed import Recording
from tamis.verification.database import session
from tamis.verification.reference import Reference, near_threshold
from tamis.verification.rounded_values import wrong_values

Rows = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Alarms:
    """Alarms that Tamis raised: for each source the rows of its recording. `unknown`: the number of alarms
    with a tuple that no recording has. `selected`: the columns of SELECT, if they are to be compared.
    """

    rows: Rows
    unknown: int = 0
    starts: NDArray[np.int64] | None = None  # of the windows, where the query has windows
    selected: Mapping[str, Vector] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


@dataclass(frozen=True)
class Lateness:
    """A reading that made `late` others of its stream late.

    `where`: its position in its file; `time`: its event time in ISO 8601; `ahead_seconds`: the time from the
    latest of the late readings to it.
    """

    stream: str
    where: str
    time: str
    ahead_seconds: float
    late: int


@dataclass(frozen=True)
class Verdict:
    """One alert's line of `tamis verify`.

    Alarms with late tuples or at the threshold are in neither `missed` nor `extra`, except that a combination
    that holds in exact arithmetic is missed if Tamis has no alarm for it. `at_threshold`: alarms of the plain
    join that hold only because of rounding; combinations that hold in exact arithmetic and not as computed;
    and alarms of Tamis that hold in neither way, but that rounding of their own row explains. For aggregates,
    rows in which rounding decides HAVING or a column of SELECT.

    If edges send partial aggregates of the retained tuples: the rows and records of these, as often as the
    policy of cuts sends them (`tamis.operators.windows.cut_policy`). The alarms are then those over partial
    aggregates of several shards, with cuts and crashes at random.
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
    # Readings that made others late: alarms may be lost to lateness then, not to omission.
    lateness: tuple[Lateness, ...] = ()
    partial_rows: int | None = None
    partial_records: int | None = None

    @property
    def same(self) -> bool:
        """True if the promise was kept."""
        return not self.missed and not self.extra

    def to_json(self) -> dict[str, Any]:
        """The JSON object of `tamis verify --json`."""
        document = asdict(self)
        if not self.lateness:
            del document["lateness"]
        return {name: value for name, value in document.items() if value is not None}


def used_columns(query: Query, alias: str, time: str | None) -> list[str]:
    """The columns by which the tuples of a source differ: its time and those that the query reads, in order
    of their names.
    """
    exprs: list[Expr] = [c.expr for c in query.all_conjuncts] + [o.expr for o in query.select]
    read = {c.name for expr in exprs for c in columns(expr) if c.alias == alias}
    read.difference_update(WINDOW_COLUMNS if query.window is not None else ())
    return sorted(read if time is None else read | {time})


def alarms_of(
    query: Query,
    recordings: Mapping[str, Recording],
    tuples: Sequence[Mapping[str, Any]],
    starts: Sequence[int] | None = None,
) -> Alarms:
    """Find the `tuples` of `tamis.alarms` records in the recordings by their values; `starts` are those of
    their windows, where the query has windows.
    """
    found: dict[str, list[int]] = {}
    for source in query.row_sources:
        recording = recordings[source.stream]
        names = used_columns(query, source.alias, recording.stream.time)
        known, _ = _first_rows(recording, names)
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
    checked: Mapping[str, Recording] | None = None,
) -> Verdict:
    """Count the missed and the extra alarms. `checked` are the recordings of the reference, if columns of
    watches were checked for it.

    *Missed*: reference alarms, and combinations that hold only in exact arithmetic, without an alarm of the
    same key (and window) in which every tuple lies within its stream's omission interval of the reference's.
    Over one stream (`within`): each of them that lies in a span of that length without an alarm of its key.
    *Extra*: alarms that neither the plain join nor exact arithmetic has, those that were raised more often
    than the recordings have their tuples, and those with a wrong value in a column of SELECT.
    """
    shown = tuple(s for s in definition.inputs if s.alias in alarms.rows)
    of_rows = definition if len(shown) == len(definition.inputs) else replace(definition, inputs=shown)
    tables, others = _tables(query, of_rows, recordings, checked or recordings)
    parts = [reference] if reference.exact_only is None else [reference, reference.exact_only]
    alone = len(definition.inputs) == 1 and not definition.absences
    spans = alone and definition.window is None
    expected = pa.concat_tables(
        others.table(part.rows, part.starts).append_column(
            # The promise of a span includes late readings.
            "apart",
            pa.array(part.near if spans else part.late | part.near),
        )
        for part in parts
    )
    late = np.any([recordings[s.stream].late[alarms.rows[s.alias]] for s in query.row_sources], axis=0)
    raised = (
        tables.table(alarms.rows, alarms.starts)
        .append_column("late", pa.array(late))
        .append_column("n", pa.array(np.arange(len(alarms))))
    )
    missed, unmatched = _differences(of_rows, expected, raised, spans=spans)
    wrong = np.zeros(len(alarms), np.bool_)
    wrong[unmatched] = True
    near = 0
    if of_rows is definition:  # the reference of EXISTS has every row for which rounding decides
        doubtful = {alias: rows[unmatched] for alias, rows in alarms.rows.items()}
        explained = near_threshold(query, recordings, doubtful, definition.margins)
        near = int(np.count_nonzero(explained))
        wrong[unmatched] = ~explained
    if alarms.selected is not None:
        wrong |= wrong_values(query, checked or recordings, alarms.rows, alarms.starts, alarms.selected)
    rounded_off = 0 if reference.exact_only is None else int((~reference.exact_only.late).sum())
    return Verdict(
        query=name,
        tuples=sum(len(recordings[stream]) for stream in {s.stream for s in query.sources}),
        retained=retained,
        reference_alarms=len(reference),
        alarms=len(alarms) + alarms.unknown,
        missed=missed,
        extra=int(np.count_nonzero(wrong)) + tables.surplus(alarms, ~wrong) + alarms.unknown,
        late=int(reference.late.sum()),
        at_threshold=int((reference.near & ~reference.late).sum()) + rounded_off + near,
    )


def _differences(
    definition: Definition, expected: pa.Table, raised: pa.Table, *, spans: bool
) -> tuple[int, NDArray[np.int64]]:
    """The number of expected alarms for which none close in time was raised, and the numbers of raised alarms
    that aren't expected. `spans`: an alarm must be raised in each span of the length of the interval.
    """
    intervals = [source.interval for source in definition.inputs]
    same = " AND ".join((*(f"x.c{i} = y.c{i}" for i in range(len(intervals))), "x.start = y.start"))
    close = " AND ".join(f"abs(x.t{i} - y.t{i}) <= {interval}" for i, interval in enumerate(intervals))
    # Close times are in the same bucket or the next one, so DuckDB can hash keys and buckets.
    at = int(np.argmin(intervals))
    bucket = f"(t{at} // {intervals[at] + 1})"
    with session() as connection:
        connection.register("expected", expected)
        connection.register("raised", raised)
        connection.sql(
            f"""CREATE TEMP TABLE missing AS SELECT *, {bucket} AS bucket FROM expected x
                WHERE NOT apart AND NOT EXISTS (SELECT 1 FROM raised y WHERE {same})"""
        )
        connection.sql(
            f"""CREATE TEMP TABLE candidates AS
                SELECT *, unnest([{bucket} - 1, {bucket}, {bucket} + 1]) AS bucket FROM raised"""
        )
        missed = connection.sql(
            f"""SELECT count(*) FROM missing x
                ASOF LEFT JOIN raised before ON x.key = before.key AND x.t0 >= before.t0
                ASOF LEFT JOIN raised after ON x.key = after.key AND x.t0 <= after.t0
                WHERE coalesce(after.t0 - before.t0 > {intervals[0]}, TRUE)"""
            if spans
            else f"""SELECT count(*) FROM missing x WHERE NOT EXISTS
                (SELECT 1 FROM candidates y
                 WHERE x.key = y.key AND x.start = y.start AND x.bucket = y.bucket AND {close})"""
        ).fetchall()[0][0]
        unmatched = connection.sql(
            f"SELECT n FROM raised x WHERE NOT late AND NOT EXISTS (SELECT 1 FROM expected y WHERE {same})"
        ).fetchnumpy()["n"]
    return int(missed), unmatched


def _first_rows(
    recording: Recording, names: Sequence[str]
) -> tuple[dict[tuple[Any, ...], int], NDArray[np.int64]]:
    """The first row of each combination of values in these columns, and for each row the first one equal to
    it.

    Equal tuples count as one, which the first row stands for.
    """
    first: dict[tuple[Any, ...], int] = {}
    return first, _classes(recording, names, first, 0)


def _classes(
    recording: Recording, names: Sequence[str], first: dict[tuple[Any, ...], int], start: int
) -> NDArray[np.int64]:
    """For each row the number that `first` has for its values. Other values are added with the number of
    their row, counted from `start`.
    """
    listed = [recording.columns[name].to_list() for name in names]
    if not listed:
        return np.arange(len(recording), dtype=np.int64)
    rows = enumerate(zip(*listed, strict=True), start)
    numbers = [first.setdefault(values, number) for number, values in rows]
    return np.array(numbers, np.int64)


def _tables(
    query: Query,
    definition: Definition,
    recordings: Mapping[str, Recording],
    others: Mapping[str, Recording],
) -> tuple[_Tables, _Tables]:
    """Tables over two versions of the recordings; equal tuples have the same class in both."""
    classes: tuple[dict[str, NDArray[np.int64]], ...] = {}, {}
    for source in query.row_sources:
        recording, other = recordings[source.stream], others[source.stream]
        names = used_columns(query, source.alias, recording.stream.time)
        first, numbers = _first_rows(recording, names)
        classes[0][source.alias] = numbers
        classes[1][source.alias] = (
            numbers if other is recording else _classes(other, names, first, len(numbers))
        )
    return _Tables(definition, recordings, classes[0]), _Tables(definition, others, classes[1])


@dataclass(frozen=True)
class _Tables:
    """Makes tables of combinations. `classes`: for each source and row a number that equal rows share."""

    definition: Definition
    recordings: Mapping[str, Recording]
    classes: Rows

    def surplus(self, alarms: Alarms, counted: Mask) -> int:
        """The number of alarms in a mask beyond one for each combination of tuples of the recordings."""
        classes = [self.classes[source.alias] for source in self.definition.inputs]
        picked = [
            own[alarms.rows[source.alias]][counted]
            for own, source in zip(classes, self.definition.inputs, strict=True)
        ]
        starts = [] if alarms.starts is None else [alarms.starts[counted]]
        combinations, raised = np.unique(np.stack([*picked, *starts]), axis=1, return_counts=True)
        most = np.ones(len(raised), np.float64)
        for own, numbers in zip(classes, combinations, strict=False):
            most *= np.bincount(own, minlength=1)[numbers]
        return int(np.maximum(raised - most, 0).sum())

    def table(self, rows: Rows, starts: NDArray[np.int64] | None) -> pa.Table:
        """Key, start of the window (0 without windows), and for each source the class of its tuple and its
        time.
        """
        built: dict[str, Any] = {}
        for i, source in enumerate(self.definition.inputs):
            picked = rows[source.alias]
            built[f"c{i}"] = self.classes[source.alias][picked]
            built[f"t{i}"] = self.recordings[source.stream].columns[source.time].data[picked]
        first = self.definition.inputs[0]
        parts = [
            self.recordings[first.stream].columns[name].take(rows[first.alias]).to_list()
            for name in first.partition_key
        ]
        # Text, so that keys of any type can be compared; all keys come from one source, so equal keys have
        # equal text.
        keys = [repr(key) for key in zip(*parts, strict=True)] if parts else [""] * len(built["c0"])
        built["start"] = np.zeros(len(keys), np.int64) if starts is None else starts
        return pa.table({"key": pa.array(keys, pa.string()), **built})
