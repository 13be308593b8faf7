"""An alert over recordings: the edge's filter and omission, then the joiner's join, in one process.

`tamis run` and `tamis verify` use it. The plan is the same as the registry's. Filters, omission keys and
compared values are evaluated by the same code as in an edge (`tuple_entries`). Omission runs in its batch
form. It retains the tuples that an edge retains if they arrive in order of their event times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.vectors import Vector
from tamis.omission.exact_ranks import ExactRanks
from tamis.operators.representatives.sent_tuples import Representatives
from tamis.operators.time_join.decided_rows import all_passed, ends, times_of, waits
from tamis.operators.time_join.existence import existing_rows, row_inputs, tests_existence
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.operators.time_join.key_codes import KeyCodes
from tamis.operators.time_join.key_table import KeyTable
from tamis.operators.time_join.temporal_join import JoinedColumns, Tuples, combinations
from tamis.operators.time_join.time_bounds import window_rows
from tamis.operators.time_join.tuple_entries import Offer, OmissionRule, compared, matches
from tamis.plan.model import Definition, Entry, StreamPlan, TopicPlan
from tamis.recordings.typed import Recording

_LONG_AGO = -(2**62)
_AT_ONCE = 16  # entries whose filters are evaluated at once: a byte for each and each row of a recording


@dataclass(frozen=True)
class Replay:
    """The alarms of one definition: for each, the row of the recording of each input that rows consist of, in
    order of event time.

    `tuples` and `retained` count the usable and the retained rows over the streams that the alert reads.
    `exact_only` counts the alarms whose condition is false as computed, and may be true in exact arithmetic.
    """

    definition: Definition
    rows: Mapping[str, NDArray[np.int64]]  # alias -> row of that stream's recording, one per alarm
    selected: Mapping[str, Vector]
    tuples: int
    retained: int
    starts: NDArray[np.int64] | None = None  # of the window of each alarm, where the definition has windows
    exact_only: int = 0

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


def retained_rows(topic: TopicPlan, recording: Recording) -> NDArray[np.bool_]:
    """The rows of a recording that the edge publishes to this topic: retained ones and late ones."""
    keep = np.zeros(len(recording), np.bool_)
    for first in range(0, len(topic.entries), _AT_ONCE):
        entries = topic.entries[first : first + _AT_ONCE]
        omitting = [entry for entry in entries if entry.interval > 0]
        filters = Dispatch(entry.filter for entry in entries)
        holds, _ = filters.over(recording.columns, len(recording))
        concerned = matches(
            topic.partition_key,
            recording.columns,
            holds[[filters.row(entry.filter) for entry in entries if entry.complete]],
            holds[[filters.row(entry.filter) for entry in omitting]],
            [entry.null_keys for entry in omitting],
        )
        in_time = concerned.only(~recording.late)
        keep |= in_time.published | (concerned.any() & recording.late)
        for entry, offered in zip(omitting, in_time.offered, strict=True):
            rows = np.flatnonzero(offered)
            keep[rows[_retained(entry, recording, rows)]] = True
        for entry in entries:
            if entry.representation is not None:
                passing = np.flatnonzero(holds[filters.row(entry.filter)])
                keep[Representatives(entry.representation).publish(recording.columns, passing)] = True
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
    tuples, order = _inputs(definition, recordings, kept)
    shown = row_inputs(definition)
    if tests_existence(definition):
        chosen = list(existing_rows(definition, tuples, all_passed(definition)).rows)
    else:
        blocks = list(combinations(definition, tuples))
        chosen = [np.concatenate([block[i] for block in blocks] or [_none()]) for i in range(len(shown))]
    starts = None
    if definition.window is not None:
        stacked = [tuples[s.alias].times[rows] for s, rows in zip(definition.inputs, chosen, strict=True)]
        which, starts = window_rows(definition.window, stacked)
        chosen = [rows[which] for rows in chosen]
    times = times_of(tuples, {s.alias: rows for s, rows in zip(shown, chosen, strict=True)})
    when = np.max([*times.values(), *(ends(wait, times) for wait in waits(definition))], axis=0)
    arrived = np.argsort(when, kind="stable")
    chosen = [rows[arrived] for rows in chosen]
    starts = None if starts is None else starts[arrived]
    joined = JoinedColumns(shown, tuples, chosen, definition.window, starts)
    used = {source.stream for source in definition.inputs}
    condition, exact_only = definition.condition, 0
    if condition is not None and not definition.exists:  # under EXISTS, no single combination decides
        exact_only = len(arrived) - int(np.count_nonzero(holds(condition, joined, len(arrived))))
    return Replay(
        definition=definition,
        rows={s.alias: order[s.alias][rows] for s, rows in zip(shown, chosen, strict=True)},
        selected={name: evaluate(expr, joined, len(arrived)) for name, expr in definition.select},
        tuples=sum(len(recordings[name]) for name in used),
        retained=sum(len(_union(definition, name, kept)) for name in used),
        starts=starts,
        exact_only=exact_only,
    )


def _inputs(
    definition: Definition,
    recordings: Mapping[str, Recording],
    kept: Mapping[str, NDArray[np.int64]],
) -> tuple[dict[str, Tuples], dict[str, NDArray[np.int64]]]:
    """The tuples of each input in the order of the join, and their rows in the recordings, by alias; `kept`:
    the retained rows by topic.
    """
    codes = KeyCodes()
    tuples: dict[str, Tuples] = {}
    order: dict[str, NDArray[np.int64]] = {}
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
    return tuples, order


def _union(definition: Definition, stream: str, kept: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.unique(np.concatenate([kept[s.topic] for s in definition.inputs if s.stream == stream]))


def _retained(entry: Entry, recording: Recording, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The tuples among `rows` that the entry retains."""
    time, count = recording.stream.time, len(rows)
    if time is None:
        return np.ones(count, np.bool_)
    columns = {name: vector.take(rows) for name, vector in recording.columns.items()}
    keys = KeyTable().codes([columns[name] for name in entry.omission_key], count)
    times = columns[time].data
    # `alive`: nothing older than it can stand for the tuple of its row.
    reached = np.maximum.accumulate(np.append(_LONG_AGO, times))[:-1]
    alive = reached - min(recording.stream.delay + entry.interval, -_LONG_AGO)
    offer = Offer(np.arange(count), keys, times, alive)
    view = {("", name): vector for name, vector in columns.items()}
    numbers, keep, _ = compared(entry.value, view, count, exact=entry.exact, ranks=ExactRanks(), offer=offer)
    inside = ~keep
    keep = keep.copy()
    keep[inside] = OmissionRule.of(entry).retained(keys[inside], times[inside], numbers[inside])
    return keep


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)
