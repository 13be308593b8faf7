"""The plan of a draft of the state."""

from __future__ import annotations

from dataclasses import replace

from tamis.persistent.lists import PersistentList
from tamis.planning.incremental import Built
from tamis.planning.topic_readers import ReaderSource
from tamis_registry.core.plan import shared_topics
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.state.model import State


def plan_draft(planner: Planner, draft: State, n: int, before: Built | None) -> Built:
    """The plan `n` of a draft; the draft gets the new topics and their readers."""
    listed = {name: shard for name, shard in draft.shards.items() if shard.since is not None}

    def sources() -> PersistentList[ReaderSource]:
        found: PersistentList[ReaderSource] = PersistentList(draft.retiring.value_list)
        return found.followed_by(draft.statements.value_list, draft.leases.value_list)

    # An old definition reads the watched streams that it was made with.
    old = [retiring.definition for retiring in draft.retiring.values() if retiring.definition]
    built = planner.build(
        n,
        draft.catalog.reading(*old),
        sources(),
        partitions=draft.partitions,
        topic_numbers=shared_topics.numbers(draft),
        outside={stream: known.outside for stream, known in draft.topics.items()},
        retiring={reader: one.successor for reader, one in draft.retiring.items() if one.definition},
        since={name: shard.since for name, shard in listed.items() if shard.since is not None},
        shard_streams={name: shard.stream for name, shard in listed.items()},
        statistics=draft.statistics,
        derived_numbers=shared_topics.derived_numbers(draft),
        before=before,
    )
    anew = {name: known.anew for name, known in draft.topics.items() if known.anew}
    if anew:
        streams = (replace(s, anew=anew.get(s.shards_of, 0)) for s in built.plan.streams)
        built = replace(built, plan=replace(built.plan, streams=tuple(streams)))
    shared_topics.remember(draft, built)
    return built.with_sources(sources()) if built.assigned else built
