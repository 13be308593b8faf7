"""The topics of a stream over HTTP: what edges publish to them, and who reads that."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from tamis.plan.model import Entry
from tamis.planning.plan_trees.words import representatives
from tamis.wording.names import normalized_name, suggest
from tamis_registry.core.errors import MissingError, lists
from tamis_registry.core.plan.shared_topics import derived_topic
from tamis_registry.core.state.model import Stored
from tamis_registry.core.status import View
from tamis_registry.core.topic_readers import filter_sql, topic_readers
from tamis_registry.http.common.parts import Name, as_json
from tamis_registry.http.documents.alerts import reader_document
from tamis_registry.http.documents.streams import topics_of
from tamis_registry.http.schemas.definitions import SharedTopic
from tamis_registry.registry_loop import RegistryLoop


def topic_routes(app: FastAPI, loop: RegistryLoop) -> None:
    """Add the route."""

    @app.get(
        "/v1/streams/{name}/topics",
        summary="The topics of a stream, with their readers",
        description="The newest plan's. Columns that edges compute for window functions and `similar` have "
        "names of their own in filters.",
        tags=["Streams"],
        response_model=list[SharedTopic],
    )
    def topics(name: Name) -> Response:
        with loop.reading() as (registry, now):
            view = registry.view(now)
        streams = {one.name: one for one in view.state.of_kind("stream", "derived")}
        stored = streams.get(normalized_name(name, streams))
        if stored is None:
            hint = suggest(name, list(streams), lists("streams"))
            raise MissingError(f"there is no stream '{name}'", hint=hint)
        return as_json(topic_documents(view, stored))


def topic_documents(view: View, stored: Stored) -> list[dict[str, Any]]:
    """The topics of a stream in the order of the plan."""
    derived = {derived_topic(view.state, one.name): one.name for one in view.state.of_kind("derived")}
    topics = topics_of(view, stored)
    readers = topic_readers(view.state, view.plan, {topic.name for topic in topics})
    return [
        {
            "topic": topic.name,
            "derived": derived.get(topic.name),
            "key": list(topic.partition_key),
            "columns": [name for name, _ in topic.select] or list(topic.columns),
            "entries": [_entry(entry) for entry in topic.entries],
            "readers": [reader_document(reader) for reader in readers[topic.name]],
        }
        for topic in topics
    ]


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "filter": filter_sql(entry.filter),
        "key": list(entry.omission_key),
        "value": filter_sql(entry.value) if entry.interval else None,
        "sides": entry.sides if entry.interval else None,
        "interval": entry.interval,
        "max_delay": entry.max_delay if entry.interval else None,
        "representatives": None
        if entry.representation is None
        else representatives(entry.representation.covers),
    }
