"""The documents of streams and patterns."""

from __future__ import annotations

from collections.abc import Iterable

from tamis.declarations.definitions import PatternDef
from tamis.plan.model import TopicPlan
from tamis.query.catalog import dependents
from tamis_registry.core.declared_keys import excesses
from tamis_registry.core.plan.shared_topics import derived_topic
from tamis_registry.core.shards.fleet_reports import retained_share, total
from tamis_registry.core.state.model import Shard, Stored
from tamis_registry.core.status import View
from tamis_registry.http.documents import Document
from tamis_registry.http.documents.edges import every_shard, shard_document
from tamis_registry.http.documents.leases import subscriber_document


def stream_documents(view: View) -> list[Document]:
    """Every stream, raw and derived, in the order of creation."""
    shards: dict[str, list[Shard]] = {}
    for shard in every_shard(view):
        shards.setdefault(shard.stream, []).append(shard)
    return [
        {**stream_facts(view, stored), **_shards_of(view, shards.get(stored.name, ())), "sql": stored.sql}
        for stored in view.state.of_kind("stream", "derived")
    ]


def stream_facts(view: View, stored: Stored) -> Document:
    """A stream with its shared topics, without its shards."""
    names = _planned_streams(view, stored)
    topics = [topic.name for topic in topics_of(view, stored)]
    readers = {
        d.alert
        for d in view.plan.queries
        for source in d.inputs
        if source.stream in names or (stored.kind == "derived" and source.topic in topics)
    }
    return {
        "name": stored.name,
        "kind": "raw" if stored.kind == "stream" else "derived",
        "why": [one for one in (stored.refusal, excesses(view).get(stored.name)) if one],
        "plan": stored.version,
        "topics": topics,
        "alerts": sorted(readers),
        "subscribers": [
            subscriber_document(view, lease)
            for lease in view.state.leases.values()
            if lease.stream == stored.name
        ],
    }


def _planned_streams(view: View, stored: Stored) -> set[str]:
    """The streams of the plan that a stream has: itself, and those with computed columns or a history."""
    origins = {stream.name for stream in view.plan.streams if stream.origin == stored.name}
    return {stored.name, *view.state.watched(stored.name)} | origins


def topics_of(view: View, stored: Stored) -> list[TopicPlan]:
    """The topics of a stream in the plan. A raw stream has also those of the derived streams over it."""
    if stored.kind == "derived":
        name = derived_topic(view.state, stored.name)
        return [topic for stream in view.plan.streams for topic in stream.topics if topic.name == name]
    names = _planned_streams(view, stored)
    return [topic for stream in view.plan.streams if stream.name in names for topic in stream.topics]


def _shards_of(view: View, shards: Iterable[Shard]) -> Document:
    """The shards of a stream, and what they count together."""
    documents = [shard_document(view, shard) for shard in shards]
    tuples = total(one["tuples"] for one in documents)
    return {
        "tuples": tuples,
        "rates": total(one["rates"] for one in documents),
        "retained": retained_share(tuples),
        "shards": documents,
    }


def pattern_documents(view: View) -> list[Document]:
    """Every pattern and folder of patterns, in the order of creation, without its values."""
    return [
        {key: value for key, value in document.items() if key != "sql"}
        for document in whole_pattern_documents(view)
    ]


def whole_pattern_documents(view: View) -> list[Document]:
    """Every pattern and folder of patterns, in the order of creation, with its SQL."""
    return [_pattern_document(view, stored) for stored in view.state.of_kind("pattern")]


def _pattern_document(view: View, stored: Stored) -> Document:
    """A pattern with the queries that compare with it."""
    made = stored.definition
    members = made.members if isinstance(made, PatternDef) else ()
    folder = [one.name for one in members] != [stored.name]
    return {
        "name": stored.name,
        "kind": "folder" if folder else "pattern",
        "why": [stored.refusal] if stored.refusal else [],
        "plan": stored.version,
        "members": [{"name": one.name, "length": len(one.values), "max_gap": one.max_gap} for one in members],
        "readers": list(dependents(view.state.catalog, "pattern", stored.name)),
        "sql": stored.sql,
    }
