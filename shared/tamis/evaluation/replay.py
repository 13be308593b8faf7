"""An alert over recordings: the edge's filter and omission, then the joiner's join, in one process.

Used by `tamis run` and `tamis verify`. Times and omission are those of the plan that the registry would
make, so what it retains is what the fleet would retain when every tuple came in order of its event time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.key_codes import KeyCodes
from tamis.evaluation.temporal_join import Joined, Tuples, combinations
from tamis.evaluation.window_rows import rows as window_rows
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.vectors import Vector
from tamis.omission.kernel import retained_by_key
from tamis.omission.windows import retained_in_windows
from tamis.planning.plan import Definition, Entry, StreamPlan, TopicPlan
from tamis.recordings.typed import Recording

_EXACT = 2**53  # integers up to this size are DOUBLEs too


@dataclass(frozen=True)
class Replay:
    """The alarms of one definition: for each, the row of every input's recording, in order of event time.

    `tuples` and `retained` count the usable and the retained rows over the streams that the alert reads.
    """

    definition: Definition
    rows: Mapping[str, NDArray[np.int64]]  # alias -> row of that stream's recording, one per alarm
    selected: Mapping[str, Vector]
    tuples: int
    retained: int
    starts: NDArray[np.int64] | None = None  # of the window of each alarm, where the definition has windows

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


def retained_rows(topic: TopicPlan, recording: Recording) -> NDArray[np.bool_]:
    """Which rows of a recording the edge publishes to this topic: what an entry retains or what is late."""
    keep = np.zeros(len(recording), np.bool_)
    for entry in topic.entries:
        passing = _passing(entry, topic, recording)
        keep |= passing & recording.late
        rows = np.flatnonzero(passing & ~recording.late)
        keep[rows[_omission(entry, recording, rows)]] = True
    return keep


def replay(
    definition: Definition, streams: Sequence[StreamPlan], recordings: Mapping[str, Recording]
) -> Replay:
    """Run one definition of a plan over the recordings of its streams.

    `streams` are the plan's, with the topics that the definition reads; `recordings` are by stream.
    """
    topics = {topic.name: topic for stream in streams for topic in stream.topics}
    kept = {
        source.topic: np.flatnonzero(retained_rows(topics[source.topic], recordings[source.stream]))
        for source in definition.inputs
    }
    codes = KeyCodes()
    tuples: dict[str, Tuples] = {}
    order: dict[str, NDArray[np.int64]] = {}  # alias -> recording's row of each joined tuple
    for source in definition.inputs:
        recording, rows = recordings[source.stream], kept[source.topic]
        keys = codes.encode([recording.columns[name].take(rows) for name in source.partition_key], len(rows))
        times = recording.columns[source.time].data[rows]
        by_key = np.lexsort((times, keys))
        order[source.alias] = rows[by_key]
        tuples[source.alias] = Tuples(
            times=times[by_key],
            keys=keys[by_key],
            versions=np.full(len(rows), definition.version, np.int64),
            new=np.ones(len(rows), np.bool_),
            columns={name: vector.take(rows[by_key]) for name, vector in recording.columns.items()},
        )
    found = list(combinations(definition, tuples))
    chosen = [
        np.concatenate([block[i] for block in found] or [_none()]) for i in range(len(definition.inputs))
    ]
    starts = None
    if definition.window is not None:
        stacked = [tuples[s.alias].times[rows] for s, rows in zip(definition.inputs, chosen, strict=True)]
        which, starts = window_rows(definition.window, stacked)
        chosen = [rows[which] for rows in chosen]
    when = np.max(
        [tuples[s.alias].times[rows] for s, rows in zip(definition.inputs, chosen, strict=True)], axis=0
    )
    arrived = np.argsort(when, kind="stable")
    chosen = [rows[arrived] for rows in chosen]
    starts = None if starts is None else starts[arrived]
    joined = Joined(definition.inputs, tuples, chosen, definition.window, starts)
    used = {source.stream for source in definition.inputs}
    return Replay(
        definition=definition,
        rows={s.alias: order[s.alias][rows] for s, rows in zip(definition.inputs, chosen, strict=True)},
        selected={name: evaluate(expr, joined, len(arrived)) for name, expr in definition.select},
        tuples=sum(len(recordings[name]) for name in used),
        retained=sum(len(_union(definition, name, kept)) for name in used),
        starts=starts,
    )


def _union(definition: Definition, stream: str, kept: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.unique(np.concatenate([kept[s.topic] for s in definition.inputs if s.stream == stream]))


def _passing(entry: Entry, topic: TopicPlan, recording: Recording) -> NDArray[np.bool_]:
    passing = np.ones(len(recording), np.bool_)
    # What has omission serves joins, and a NULL key joins nothing; without it, an alert may be over one
    # stream.
    for name in topic.partition_key if entry.interval else ():
        null = recording.columns[name].null
        if null is not None:
            passing &= ~null
    if entry.filter is not None:
        passing &= holds(entry.filter, recording.under(""), len(recording))
    return passing


def _omission(entry: Entry, recording: Recording, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of `rows` the entry retains."""
    if entry.interval == 0 or entry.value is None or recording.stream.time is None:
        return np.ones(len(rows), np.bool_)
    columns = {("", name): vector.take(rows) for name, vector in recording.columns.items()}
    values = evaluate(entry.value, columns, len(rows))
    # What has no value, or none that is exact as DOUBLE, can't be weighed against others: it is kept.
    weighed = np.ones(len(rows), np.bool_) if values.null is None else ~values.null
    if values.data.dtype.kind == "i":
        weighed &= (values.data <= _EXACT) & (values.data >= -_EXACT)
    keep = ~weighed
    codes = _omission_codes([columns["", name] for name in entry.omission_key], len(rows))[weighed]
    times = recording.columns[recording.stream.time].data[rows][weighed]
    numbers = values.data[weighed].astype(np.float64)
    if entry.window is None:
        keep[weighed] = retained_by_key(
            codes, times, numbers, entry.interval, sides=entry.sides, max_delay=entry.max_delay
        )
    else:
        keep[weighed] = retained_in_windows(
            codes,
            times,
            numbers,
            entry.window.slide,
            entry.window.size,
            sides=entry.sides,
            max_delay=entry.max_delay,
        )
    return keep


def _omission_codes(key: Sequence[Vector], size: int) -> NDArray[np.int64]:
    """Equal keys have equal codes; NULL is a value of its own."""
    nulls = [Vector(np.zeros(size, np.bool_) if vector.null is None else vector.null, None) for vector in key]
    filled = [Vector(v.data if v.null is None else np.where(v.null, v.data[:1], v.data), None) for v in key]
    return KeyCodes().encode([*filled, *nulls], size)


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)
