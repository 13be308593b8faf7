"""The partial aggregates of a recording that edges send, by the policy of cuts.

Time goes by as the event times of the recording. A late reading counts as a row and a record of its own, the
most that it can cause: recordings don't say when it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from tamis.expressions.vectors import Columns
from tamis.messaging.partitioner import partition_of
from tamis.messaging.records import canonical_key
from tamis.operators.time_join.replay import retained_rows
from tamis.operators.windows.boundaries import pane_starts
from tamis.operators.windows.cut_policy import (
    COMMIT_EVERY,
    FULL_EVERY,
    full_cut_due,
    groups_of_rows,
    part_of_each,
    parts_of,
)
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.pane_document_sizes import document_bytes
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.table import Places
from tamis.plan.model import PartialAggregation, TopicPlan
from tamis.recordings.typed import Recording

# Readings that are added at once; the limit for open rows is checked after each of these.
_BLOCK = 10_000
_LONG_AGO = -(2**62)


class SentCuts(NamedTuple):
    """Records with partial aggregates, and rows in them."""

    records: int
    rows: int


def replayed_cuts(topic: TopicPlan, recording: Recording, partitions: int) -> SentCuts:
    """The cuts of a recording, of which each file is a shard. `topic` has partial aggregates."""
    sent = topic.partials
    assert sent is not None
    passing, time = retained_rows(topic, recording), recording.stream.time
    assert time is not None
    late = int(np.count_nonzero(passing & recording.late))
    records = rows = late
    ends = list(accumulate(recording.files or (len(recording),)))
    for begin, end in zip([0, *ends], ends, strict=False):
        shard = np.arange(begin, end)[~recording.late[begin:end]]
        times = recording.columns[time].data[shard]
        order = np.argsort(times, kind="stable")
        shard, times = shard[order], times[order]
        taken = passing[shard]
        columns = {("", name): vector.take(shard[taken]) for name, vector in recording.columns.items()}
        replay = _Replay(sent, topic.partition_key, partitions)
        for cut in replay.cuts(times, taken, columns, recording.stream.delay):
            rows += len(cut)
            records += replay.records(cut)
    return SentCuts(records, rows)


class _Replay:
    """The cuts of one shard, whose readings come in the order of their times."""

    def __init__(self, sent: PartialAggregation, key: tuple[str, ...], partitions: int) -> None:
        self._sent, self._partitions = sent, partitions
        names = [column.name for column in sent.grouping.by]
        self._key = [names.index(name) for name in key]
        self._partition_of: dict[tuple[Any, ...], int] = {}
        self._open = OpenPanes(sent.grouping)

    def cuts(self, times: Places, taken: np.ndarray, columns: Columns, delay: int) -> Iterator[PaneRows]:
        """The rows of each cut that has some. `times`: of all readings; `taken`: the mask of those that pass
        the filter, which `columns` has.
        """
        grids, open_ = self._sent.grids, self._open
        reached = pane_starts(times - delay, grids)
        passed = np.concatenate(([0], np.cumsum(taken)))
        panes = pane_starts(times[taken], grids)
        at, time, opened = 0, _LONG_AGO, None
        while at < len(times):
            # The next commit for which there is a reason to cut.
            due = np.searchsorted(reached, time, side="right") if time > _LONG_AGO else at
            commits = [_commit(int(times[due]))] if due < len(times) else []
            if opened is not None:
                commits.append(_commit(opened + FULL_EVERY + 1))
            commit = min(commits, default=_commit(int(times[-1])))
            whole = int(np.searchsorted(times, commit, side="right"))
            upto = min(whole, at + _BLOCK)
            first, last = int(passed[at]), int(passed[upto])
            if first < last:
                if opened is None:
                    opened = _commit(int(times[np.flatnonzero(taken[at:upto])[0] + at]))
                part = {name: vector.take(slice(first, last)) for name, vector in columns.items()}
                open_.add(panes[first:last], part, last - first)
            at, now = upto, commit if upto == whole else _commit(int(times[upto - 1]))
            if at < len(times) and _commit(int(times[at])) <= now:
                continue  # more readings come before this commit
            full = opened is not None and full_cut_due(open_, now - opened)
            bound = int(reached[at - 1])
            if full or bound > time:
                time = max(bound, time)
                cut = open_.take(None if full else time)
                opened = None if not open_.rows else opened
                if len(cut):
                    yield cut
        if open_.rows:
            yield open_.take()

    def records(self, rows: PaneRows) -> int:
        """The number of records of a cut: one for each output partition and part."""
        parts = parts_of(document_bytes(rows, self._sent.grouping))
        partitions = map(self._partition, groups_of_rows(rows))
        return len(set(zip(partitions, part_of_each(rows, parts).tolist(), strict=True)))

    def _partition(self, group: tuple[Any, ...]) -> int:
        found = self._partition_of.get(group)
        if found is None:
            key = canonical_key(tuple(group[number] for number in self._key))
            found = self._partition_of[group] = partition_of(key, self._partitions) if self._key else 0
        return found


def _commit(time: int) -> int:
    """The commit at a time or the next one after it."""
    return -(-time // COMMIT_EVERY) * COMMIT_EVERY
