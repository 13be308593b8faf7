"""Bounds on the link of the topics in use: the records and rows of partial aggregates a minute."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tamis.difference_bounds import Bound
from tamis.plan.model import TopicPlan
from tamis.planning import link_bound
from tamis.planning.link_bound import LinkBound
from tamis.query.model import AlertDef, WindowGroupBy
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
        shards = len(view.state.listed([planned.name]))
        for topic in planned.topics:
            of_shard = None if topic.partials is None else _of_shard(view, topic)
            if of_shard is not None and of_shard.most.document() is not None:
                most = of_shard.most
                yield TopicBound(
                    planned.shards_of, topic.name, math.ceil(most.records) * shards, most.rows * shards
                )


def _of_shard(view: View, topic: TopicPlan) -> LinkBound | None:
    """The bound of one shard; None if a query of the topic isn't the newest of its name."""
    assert topic.partials is not None
    grids = tuple(grid for grid in topic.partials.grids if grid.serves(view.plan.version))
    alerts = [_newest(view, grid.query) for grid in grids]
    queries = [alert.query for alert in alerts if alert and isinstance(alert.query, WindowGroupBy)]
    if not queries or len(queries) < len(grids):
        return None
    partials, keyed = replace(topic.partials, grids=grids), bool(topic.partition_key)
    catalog, partitions = view.state.catalog, view.state.partitions

    def make() -> tuple[LinkBound | None]:
        return (link_bound.shared(partials, queries, catalog, keyed=keyed, partitions=partitions),)

    # Metrics ask each second, and the bound changes only with the definitions.
    objects = (catalog.streams[queries[0].windowed[0].stream], *alerts)
    of_shard: tuple[LinkBound | None] = catalog.results.get(objects, ("link", grids, keyed, partitions), make)
    return of_shard[0]


def _newest(view: View, definition: str) -> AlertDef | None:
    """The alert of a definition ("alert@version") unless another one has replaced it."""
    name, _, version = definition.rpartition("@")
    stored = view.state.alert(name)
    return None if stored is None or stored.version != int(version) else stored.alert
