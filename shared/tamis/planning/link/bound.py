"""Bound on the link: the records and rows of partial aggregates that a shard sends in a minute.

The policy of cuts is that of `tamis.operators.windows.cut_policy`. In the formulas, b(t) is the greatest
number of boundaries of panes in a half-open span t, over the grids of all queries that share the topic. D is
the delay of the stream, and T a second: a boundary that the watermark has passed is cut within T, and
readings are no more than T apart. A reading that is not late arrives within D after its time, so the
watermark advances by less than t + D + T in a time t.

- Of the cuts in a minute, the first may have any reason. Each further one has a boundary that the watermark
  passed within the minute, or is a full one because a reading waited for 10 minutes, of which there is at
  most one:  cuts <= 2 + b(60 s + D + T).
- Each cut has at most one record for each part and each output partition that has groups.
- A cut that isn't full sends the panes that ended since the cut before: together  b(60 s + D + 2 T).  A full
  one also sends the panes that are open:  1 + b(D).  Each pane has a row for each group.
- The rows have no more than the readings of a pane, a minute, 2 D and 2 T, since each reading is in one row.
- Memory, and values that are kept separately, make further full cuts necessary, each after as many readings
  as take it up. There are no more cuts than commits, never more rows than readings, and in a cut no more than
  are open.
- A late reading adds at most one row and one record to all of these.
- Between two cuts the readings lie in  1 + b(2 D + T)  panes, which an edge keeps in memory.

Changes of queries, a restart, a silence of the source and an outage of Kafka each add a cut with what was
open or had to wait.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tamis.bounded.group_counts import Combinations, tuples_in
from tamis.declarations.aggregates import needs_all_values
from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound
from tamis.operators.windows.boundaries import boundaries_in, longest_pane, most_boundaries
from tamis.operators.windows.cut_policy import (
    COMMIT_EVERY,
    FULL_EVERY,
    MOST_ROWS,
    MOST_SEPARATE_BYTES,
    parts_of,
)
from tamis.operators.windows.pane_document_sizes import most_document_bytes
from tamis.operators.windows.partials import partials
from tamis.operators.windows.slots.memory import most_bytes
from tamis.plan.model import PaneGrid, PartialAggregation, Plan, TopicPlan
from tamis.query.model import Catalog, WindowGroupBy

MINUTE = 60_000_000
# A boundary is cut so many microseconds after the watermark passed it: at the next commit, when the records
# of the cut before are safe.
LAG = 1_000_000
# Readings that an edge adds at once, for which it makes room.
_BATCH = 10_000
# The default of TAMIS_PARTITIONS.
PARTITIONS = 4


class PaneEntries(NamedTuple):
    """The greatest numbers of the groups of a pane, and of the values that it keeps separately."""

    groups: Bound
    values: Bound


@dataclass(frozen=True)
class Amount:
    """Records and rows; infinity for what nothing limits."""

    records: Bound | float
    rows: Bound | float

    def document(self) -> dict[str, Any] | None:
        """The JSON object; None if something is unlimited."""
        if math.inf in (self.records, self.rows):
            return None
        return {"records": _rounded(self.records), "rows": _rounded(self.rows)}


@dataclass(frozen=True)
class LinkBound:
    """Records and rows that a shard sends in a minute to a topic of partial aggregates, besides progress.

    `expected`: with as many readings and groups as declared. `cuts`, `most`: the greatest numbers without
    late readings, each of which adds at most one row and one record. `readings`: in a minute, at most.
    `open_rows`, `memory`: at the edge, in bytes. Infinity for what nothing limits.
    """

    expected: Amount
    expected_cuts: float
    cuts: int
    most: Amount
    readings: Bound
    open_panes: int
    open_rows: Bound
    memory: Bound

    def document(self) -> dict[str, Any]:
        """The JSON object; null for what nothing limits."""
        return {
            "expected_a_minute": self.expected.document(),
            "most_a_minute": self.most.document(),
            "cuts_a_minute": self.cuts,
            "readings_a_minute": _limited(self.readings),
            "open_rows": _limited(self.open_rows),
            "memory": _limited(self.memory),
        }


def link_bound(
    sent: PartialAggregation, stream: StreamDef, entries: PaneEntries, partitions: int
) -> LinkBound:
    """The bound of a topic over `stream`. `partitions`: those of the topic to which the groups can go."""
    grids, delay = sent.grids, stream.delay
    pane = longest_pane(grids)
    groups = entries.groups

    def readings(span: int) -> Bound:
        return tuples_in(stream, span, "").count

    open_panes = most_open_panes(grids, delay)
    waiting = readings(pane + 2 * delay + LAG)
    open_rows = min(groups * open_panes, waiting)
    values = min(entries.values * open_panes, waiting)
    cuts = most_cuts(grids, delay)
    most_sent = readings(pane + MINUTE + 2 * delay + 2 * LAG)
    panes = most_boundaries(MINUTE + delay + 2 * LAG, grids) + 1 + most_boundaries(delay, grids)
    rows = min(groups * panes, most_sent)
    if open_rows + values > MOST_ROWS:
        # Full cuts free the memory of so many rows.
        rows, most_open = most_sent, MOST_ROWS + readings(COMMIT_EVERY + delay)
        cuts += 1 + _divided(most_sent, MOST_ROWS)
        open_rows, values = min(open_rows, most_open), min(values, most_open)
    memory = _memory(sent, open_rows, groups, values)
    if any(partial.each for partial in partials(sent.grouping.aggregates)):
        least = _separate_values(sent, open_rows, groups)
        if values > least:
            # Full cuts keep the values of a group small enough for one record.
            rows = most_sent
            cuts += 1 + _divided(most_sent, max(least, 1))
    cuts = min(cuts, MINUTE // COMMIT_EVERY + 1)
    # A cut has a row for each group and pane with readings that no cut before it has.
    rows = min(rows, cuts * min(groups * open_panes, waiting))
    reached = min(partitions, groups)
    document = most_document_bytes(sent.grouping, open_rows, values)
    parts = math.inf if document == math.inf else parts_of(int(document))
    minute, density = readings(MINUTE), boundaries_in(MINUTE, grids)
    full = MINUTE / FULL_EVERY
    expected_rows = min(minute, groups * (density + full * (1 + boundaries_in(delay, grids))))
    return LinkBound(
        Amount(min((density + full) * reached, expected_rows), expected_rows),
        density + full,
        cuts,
        Amount(min(cuts * reached * parts, rows), rows),
        minute,
        open_panes,
        open_rows,
        memory,
    )


def most_cuts(grids: Sequence[PaneGrid], delay: int) -> int:
    """The greatest number of cuts in a minute, without those for late readings and for memory."""
    return 2 + most_boundaries(MINUTE + delay + LAG, grids)


def most_open_panes(grids: Sequence[PaneGrid], delay: int) -> int:
    """The greatest number of panes that have readings which no cut has sent, without late ones."""
    return 1 + most_boundaries(2 * delay + LAG, grids)


def entries_of_pane(plan: Plan, topic: TopicPlan, sent: PartialAggregation) -> int | None:
    """The bound of a pane's groups and of the values that it keeps separately, from those of the queries;
    None if they have none. Their panes are no shorter, and all have the same groups.
    """
    found = [
        None if source.kept is None else source.kept.tuples
        for query in plan.standing
        for source in query.inputs
        if source.topic == topic.name
    ]
    known = [count for count in found if count is not None]
    if not known or len(known) < len(found):
        return None
    each = any(partial.each for partial in partials(sent.grouping.aggregates))
    return sum(known) if each else min(known)


def longest_wait(grids: Sequence[PaneGrid], delay: int) -> int:
    """Microseconds after which a reading is sent and safe: it is read again after a restart before that."""
    pane = longest_pane(grids)
    return min(pane + 2 * delay, FULL_EVERY) + 2 * LAG


def of_queries(
    sent: PartialAggregation,
    queries: Sequence[WindowGroupBy | None],
    catalog: Catalog,
    *,
    keyed: bool,
    partitions: int = PARTITIONS,
) -> LinkBound | None:
    """The bound of a topic with these queries, which have the same filter and groups; None for a query of
    which nothing is known. `keyed`: the topic has a partition key. None if the queries never have a row.
    """
    known = [query for query in queries if query is not None]
    if not known:
        return None
    stream = catalog.streams[known[0].windowed[0].stream]
    of_pane = tuples_in(stream, longest_pane(sent.grids), "a pane")
    combinations = Combinations.of(known[0], catalog)
    if combinations is None:
        return None
    groups = combinations.entries(of_pane).groups.count
    values: dict[str, Bound] = {}
    for query in known:
        if any(map(needs_all_values, query.grouping.aggregates)):
            kept = Combinations.of(query, catalog)
            entries = {} if kept is None else kept.entries(of_pane).values
            values |= {column.name: one.count for column, one in entries.items()}
    all_values = sum(values.values(), 0) if len(known) == len(queries) else math.inf
    return link_bound(sent, stream, PaneEntries(groups, all_values), partitions if keyed else 1)


def _memory(sent: PartialAggregation, rows: Bound, groups: Bound, values: Bound) -> Bound:
    if math.inf in (rows, values):
        return math.inf
    return most_bytes(sent.grouping, int(rows), int(min(groups, rows)), int(values))


def _separate_values(sent: PartialAggregation, rows: Bound, groups: Bound) -> int:
    """So many values can be kept separately before their memory alone makes a full cut necessary."""
    if math.inf in (rows, groups):
        return 0
    none, many = (_memory(sent, rows, groups, values) for values in (0, 1_000_000))
    each = (many - none) / 1_000_000
    return int((MOST_SEPARATE_BYTES - none) / each) - _BATCH


def _divided(count: Bound, by: int) -> int:
    return MINUTE // COMMIT_EVERY if count == math.inf else int(count) // by


def _limited(count: Bound) -> int | None:
    return None if count == math.inf else int(count)


def _rounded(number: Bound | float) -> int | float:
    return number if isinstance(number, int) else round(number, 1)
