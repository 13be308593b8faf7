"""Bounds on the link of the topics in use: the records and rows of partial aggregates a minute."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound
from tamis.operators.windows.partials import partials
from tamis.plan.model import PartialAggregation, TopicPlan
from tamis.planning.link.bound import LinkBound, PaneEntries, entries_of_pane, link_bound
from tamis_registry.core.status import View


@dataclass(frozen=True)
class TopicBound:
    """The greatest numbers that all listed shards together publish to a topic in a minute."""

    stream: str
    topic: str
    records: Bound | float
    rows: Bound | float


def topic_bounds(view: View) -> Iterator[TopicBound]:
    """The topics of partial aggregates for which keys and rates are declared."""
    for planned in view.plan.streams:
        stream = view.state.catalog.streams.get(planned.name)
        if stream is None:
            continue
        for topic in planned.topics:
            of_shard = None if topic.partials is None else _known(view, stream, topic)
            if of_shard is not None and of_shard.most.document() is not None:
                shards, most = len(view.state.listed([planned.name])), of_shard.most
                records, rows = math.ceil(most.records) * shards, most.rows * shards
                yield TopicBound(planned.shards_of, topic.name, records, rows)


def _known(view: View, stream: StreamDef, topic: TopicPlan) -> LinkBound | None:
    """As `_of_shard`, once for each stream and topic: metrics ask each second."""
    known: tuple[LinkBound | None] = view.state.catalog.results.get(
        (stream, topic), "bound on the link", lambda: (_of_shard(view, stream, topic),)
    )
    return known[0]


def _of_shard(view: View, stream: StreamDef, topic: TopicPlan) -> LinkBound | None:
    """The bound of one shard; None if none is proven."""
    assert topic.partials is not None
    in_force = tuple(grid for grid in topic.partials.grids if grid.serves(view.plan.version))
    sent: PartialAggregation = replace(topic.partials, grids=in_force)
    entries = entries_of_pane(view.plan, topic, sent) if in_force else None
    if entries is None:
        return None
    each = any(partial.each for partial in partials(sent.grouping.aggregates))
    pane = PaneEntries(entries, entries if each else 0)
    return link_bound(sent, stream, pane, view.state.partitions if topic.partition_key else 1)
