"""Bounds on the link of the topics in use: the records and rows of partial aggregates a minute."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tamis.difference_bounds import Bound
from tamis_registry.core.plan.sent_aggregates import sent_by
from tamis_registry.core.status import View


@dataclass(frozen=True)
class TopicBound:
    """The greatest numbers that all listed shards together publish to a topic in a minute."""

    stream: str
    topic: str
    records: Bound | float
    rows: Bound | float


def topic_bounds(view: View) -> Iterator[TopicBound]:
    """The topics of partial aggregates for which keys and rates are declared: the bounds of EXPLAIN."""
    for planned in view.plan.streams:
        for topic in planned.topics if planned.name in view.state.catalog.streams else ():
            bound = None if topic.partials is None else sent_by(planned, topic, view.state, view.plan).bound
            if bound is not None and bound.most.document() is not None:
                shards, most = len(view.state.listed([planned.name])), bound.most
                records, rows = math.ceil(most.records) * shards, most.rows * shards
                yield TopicBound(planned.shards_of, topic.name, records, rows)
