"""Queries that keep synopses over recordings: the plan that the registry would make, run in this process."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tamis.operators.contract import RecordedRun
from tamis.operators.cuts.replay import run_by_cuts
from tamis.operators.recording_runs import run_recordings
from tamis.plan.model import TopicPlan
from tamis.plan.nodes import Windows
from tamis.planning.physical.lowering import lowered
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import Recording


def run_query(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> RecordedRun:
    """All rows of a query over the recordings of its streams."""
    node = lowered(query, catalog)
    assert node is not None, "the query keeps synopses"
    return run_recordings(node, catalog.file_access, recordings)


def run_query_by_cuts(
    query: Query, catalog: Catalog, recordings: Mapping[str, Recording], topic: TopicPlan, seed: str
) -> RecordedRun:
    """All rows of a query over the partial aggregates that edges publish to a topic of its own, by cuts and
    with crashes at random.
    """
    node = lowered(query, catalog)
    assert isinstance(node, Windows), "other queries have no partial aggregates"
    return run_by_cuts(node, topic, recordings[node.scan.stream], catalog.file_access, Random(seed))


def recordings_of(query: Query, recordings: Mapping[str, Recording]) -> dict[str, Recording]:
    """The recordings of the streams that a query reads."""
    streams = dict.fromkeys(source.stream for source in query.sources)
    return {stream: recordings[stream] for stream in streams if stream in recordings}
