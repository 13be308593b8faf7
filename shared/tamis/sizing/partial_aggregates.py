"""Figures of topics of partial aggregates: the rows that edges send in place of readings."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from tamis.operators.windows.boundaries import boundaries_in, pane_starts
from tamis.operators.windows.cut_policy import COMMIT_EVERY, FULL_EVERY, MOST_SEPARATE_BYTES
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.pane_documents import to_document
from tamis.operators.windows.partials import partials
from tamis.operators.windows.slots.memory import most_bytes
from tamis.plan.model import PartialAggregation, Plan, TopicPlan
from tamis.plan.nodes import Grouping
from tamis.plan.wire import wire_type
from tamis.planning.explanations.cut_replay import replayed_cuts
from tamis.planning.link.bound import MINUTE, PARTITIONS, entries_of_pane, longest_wait, most_open_panes
from tamis.sizing.figures import Basis, Figure
from tamis.sizing.load import SECOND, StreamLoad
from tamis.sizing.records import sample_columns

# Bytes of the envelope of a record, with a short name of the shard.
_ENVELOPE = 300


@dataclass(frozen=True)
class PartialRows:
    """The rows of a topic. `rows`: in a second, of all edges together, with the values that are kept
    separately; `row`, `frame`: the bytes of a row, and those of a record without rows; `groups`, `cuts`: of a
    pane and in a second, at each edge; `memory`: at each edge, in bytes; `wait`: seconds until a reading is
    sent, at most.
    """

    rows: Figure
    row: Figure
    frame: float
    groups: float
    cuts: float
    memory: float
    wait: float

    def records(self, edges: int, partitions: int) -> float:
        """The records a second of all edges, if each cut goes to so many partitions."""
        return min(self.rows.value, edges * self.cuts * min(partitions, max(self.groups, 1)))


def partial_rows(plan: Plan, topic: TopicPlan, load: StreamLoad, passing: Figure, edges: int) -> PartialRows:
    """The rows of a topic of a plan in which all streams have keys and a rate. `passing`: the share of the
    readings that pass the filter.
    """
    sent = topic.partials
    assert sent is not None
    stream, grids = load.stream, sent.grids
    entries = entries_of_pane(plan, topic, sent)
    rate = load.rate.value * passing.value
    # Keys are evenly distributed over edges; a group without them is at each edge.
    names = {column.name for column in sent.grouping.by}
    spread = edges if stream.key and names >= set(stream.key) else 1
    entries_each = rate * MINUTE / SECOND / edges if entries is None else entries / spread
    cuts = boundaries_in(SECOND, grids) + SECOND / FULL_EVERY
    open_panes = 1 + boundaries_in(stream.delay, grids)
    most = edges * entries_each * (boundaries_in(SECOND, grids) + open_panes * SECOND / FULL_EVERY)
    rows = Figure(min(rate, most), "tuples/s", "computed", "rows of partial aggregates: groups x panes")
    recording = load.recording
    if load.retained is None and recording is not None and len(recording):
        share = replayed_cuts(topic, recording, PARTITIONS).rows / len(recording)
        what = f"rows of partial aggregates: replay of {len(recording)} readings"
        rows = Figure(load.rate.value * share, "tuples/s", "measured", what)
    open_rows = int(
        min(entries_each * most_open_panes(grids, stream.delay), rate / edges * FULL_EVERY / SECOND)
    )
    memory = most_bytes(sent.grouping, open_rows, open_rows, open_rows)
    if any(partial.each for partial in partials(sent.grouping.aggregates)):
        # A full cut frees them; while it is on its way, others come.
        commit = int(rate / edges * COMMIT_EVERY / SECOND)
        memory = min(memory, 2 * MOST_SEPARATE_BYTES + most_bytes(sent.grouping, commit, commit, commit))
    return PartialRows(
        rows,
        *_bytes(sent, load),
        entries_each,
        cuts,
        float(memory),
        longest_wait(grids, stream.delay) / SECOND,
    )


def _bytes(sent: PartialAggregation, load: StreamLoad) -> tuple[Figure, float]:
    """The bytes of a row, and those that the rows of a record share."""
    columns, count, source = sample_columns(load)
    open_, time = OpenPanes(sent.grouping), columns["", str(load.stream.time)].data
    panes = pane_starts(np.asarray(time, np.int64), sent.grids)
    # Only the first row has its whole time, and a row of a single reading is shorter than others.
    for shift in (0, 0, sent.grids[0].slide, sent.grids[0].slide):
        open_.add(panes + shift, columns, count)
    rows = open_.take()
    whole, first = (
        len(msgspec.json.encode(to_document(some, sent.grouping))) for some in (rows, rows.take(np.arange(1)))
    )
    each = (whole - first) / (len(rows) - 1)
    basis: Basis = "assumed" if load.recording is None else "computed"
    form = len(msgspec.json.encode(wire_type(Grouping).write(sent.grouping)))
    row = Figure(each, "B", basis, f"a row of partial aggregates of {source}")
    return row, first - each + form + _ENVELOPE
