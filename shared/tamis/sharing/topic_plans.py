"""Plans of the shared topics: columns and entries that follow from readers and subscriptions of each topic.

A topic plan is updated when readers come and go. The cost of an update depends on the number of changed
readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Expr
from tamis.identity_diff import identity_diff
from tamis.persistent.lists import PersistentList
from tamis.plan.model import Input, PartialAggregation, TopicPlan
from tamis.plan.omission import Omission
from tamis.sharing.entries import Entries, ReaderInput
from tamis.sharing.partial_groupings import united
from tamis.sharing.topic_assignment import partial_form
from tamis.sharing.topic_choice import ReadRequest, TopicKey


@dataclass(frozen=True, eq=False)
class SharedTopic:
    """The plan of a shared topic, with the requests and reader inputs that it was made from.

    `requests` and `inputs` are in the same order. `columns`: the number of inputs that need each column;
    `counted`: the number of inputs of standing queries.
    """

    plan: TopicPlan
    requests: Sequence[ReadRequest]
    inputs: Sequence[ReaderInput]
    entries: Entries
    columns: Counter[str]
    counted: int

    @staticmethod
    def empty(key: TopicKey) -> SharedTopic:
        """A topic without readers and without a name."""
        none: PersistentList[Any] = PersistentList()
        return SharedTopic(TopicPlan("", key[1], (), ()), none, none, Entries(), Counter(), 0)

    def updated(
        self,
        name: str,
        requests: Sequence[ReadRequest],
        input_of: Callable[[ReadRequest], ReaderInput],
        stream: StreamDef,
    ) -> SharedTopic:
        """The topic with these requests."""
        diff = identity_diff(self.requests, requests)
        removed, added = diff.removed(self.inputs), [input_of(request) for request in diff.added(requests)]
        columns, counted = self.columns.copy(), self.counted
        for one in removed:
            columns.subtract(one.source.columns)
            counted -= one.counted
        for one in added:
            columns.update(one.source.columns)
            counted += one.counted
        entries = self.entries.changed(
            [(old.sort_key, one) for old, one in zip(diff.removed(self.requests), removed, strict=True)],
            [(new.sort_key, one) for new, one in zip(diff.added(requests), added, strict=True)],
        )
        plan = TopicPlan(
            name,
            self.plan.partition_key,
            tuple(column.name for column in stream.columns if columns[column.name]),
            entries.kept,
            counted=counted > 0,
            partials=_partials(requests, inputs := diff.applied(self.inputs, added)),
        )
        return SharedTopic(plan, requests, inputs, entries, columns, counted)


def _partials(requests: Sequence[ReadRequest], inputs: Sequence[ReaderInput]) -> PartialAggregation | None:
    """Partial aggregates for all readers of a topic, in place of tuples; None if some need tuples."""
    if partial_form(requests) is None:
        return None
    alone = [one.partials for one in inputs if one.partials is not None]
    grids = sorted((grid for one in alone for grid in one.grids), key=lambda grid: (grid.version, grid.query))
    return PartialAggregation(united([one.grouping for one in alone]), tuple(grids))


@dataclass(frozen=True)
class Subscription:
    """Every tuple of a raw stream that passes `filter`, with all of its columns.

    `filter` is over bare column names; None lets every tuple pass. `version`: the plan version that made it.
    """

    id: str
    stream: str
    filter: Expr | None
    version: int


def subscriber(one: Subscription, stream: StreamDef, topic: str) -> ReaderInput:
    """The subscription as an input from a topic."""
    key = stream.key
    rest = tuple(c.name for c in stream.columns if c.name not in (*key, stream.time))
    source = Input("", stream.name, topic, stream.time or "", key, one.filter, 0, rest)
    nothing = "no omission: a subscriber needs every tuple"
    return ReaderInput(source, Omission.none("", key, one.filter, nothing), one.version, max_delay=None)
