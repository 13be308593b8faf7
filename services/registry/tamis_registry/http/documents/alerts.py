"""The documents of alerts and of the result of a statement."""

from __future__ import annotations

from dataclasses import asdict

from tamis.declarations.backfill import raw_name
from tamis.expressions.nodes import Type
from tamis.plan.time_columns import key_times
from tamis_registry.core.shards.backfill import history
from tamis_registry.core.state.model import Stored
from tamis_registry.core.statements.outcomes import Outcome
from tamis_registry.core.status import View, alert_status
from tamis_registry.core.topic_readers import TopicReader, topic_readers
from tamis_registry.http.documents import Document
from tamis_registry.http.documents.streams import pattern_documents, stream_documents


def outcome_document(outcome: Outcome, explained: Document | None, view: View) -> Document:
    """The result of one statement. `explained`: EXPLAIN's document of its query."""
    document: Document = {"statement": outcome.statement, "result": outcome.result}
    if outcome.kind is not None:
        document |= {"kind": outcome.kind, "name": outcome.name, "plan": view.plan.version}
    if outcome.kept is not None:
        document |= {
            "where": outcome.kept.where,
            "in_service": outcome.kept.in_service,
            "asked": outcome.kept.asked,
        }
    if outcome.replanned:
        document["replanned"] = [
            {
                "kind": one.verdict.kind,
                "name": one.verdict.name,
                "result": one.result,
                "verdict": one.verdict.memory.verdict,
                "changes": list(one.changes),
            }
            for one in outcome.replanned
        ]
    if outcome.notices:
        document["notices"] = list(outcome.notices)
    if explained is not None:
        document["verdict"] = explained["memory"]["verdict"]
        document["explain"] = {"queries": [explained]}
    if outcome.shows == "alerts":
        document["rows"] = alert_documents(view)
    elif outcome.shows == "patterns":
        document["rows"] = pattern_documents(view)
    elif outcome.shows is not None:
        document["rows"] = stream_documents(view)
    return document


def alert_documents(view: View) -> list[Document]:
    """Every alert, in the order of creation."""
    return [alert_document(view, stored) for stored in view.state.of_kind("alert")]


def alert_document(view: View, stored: Stored) -> Document:
    """An alert with its state, the reason, and the event time from which each shard serves it."""
    status = alert_status(view, stored)
    definition = view.definition(stored.name, stored.version)
    return {
        "name": stored.name,
        "state": status.state,
        "why": list(status.why),
        "plan": stored.version,
        "streams": sorted({raw_name(view.state.base(source.stream)) for source in definition.inputs})
        if definition
        else [],
        "bound": definition.bound if definition else None,
        "live": sum(
            frontier.definitions.get(f"{stored.name}@{stored.version}", 0)
            for frontier in view.seen.frontiers.values()
        ),
        "unproven": definition is not None and view.unproven(definition),
        "activations": {
            shard: {"plan": a.plan, "event_time": a.since} for shard, a in status.activations.items()
        },
        "retiring": status.retiring,
        **_history(view, stored),
        "sql": stored.sql,
    }


def whole_alert(view: View, alert: Document) -> Document:
    """The document of an alert with the columns of its rows and the values of its keys that are times, the
    topics that serve its sources, and all readers of these topics.
    """
    definition = view.definition(alert["name"], alert["plan"])
    inputs = definition.inputs if definition else ()
    readers = topic_readers(view.state, view.plan, {source.topic for source in inputs})
    sharing = [
        {
            "source": source.alias or None,
            "stream": raw_name(view.state.base(source.stream)),
            "topic": source.topic,
            "readers": [reader_document(reader) for reader in readers[source.topic]],
        }
        for source in inputs
    ]
    defined = view.state.catalog.alerts.get(alert["name"])
    chosen = defined.query.select if defined else ()
    times = [output.name for output in chosen if output.expr.type is Type.TIMESTAMP]
    return {
        **alert,
        "times": times,
        "key_times": list(key_times(definition, view.plan)) if definition else [],
        "sharing": sharing,
    }


def reader_document(reader: TopicReader) -> Document:
    """A reader of a topic."""
    return asdict(reader)


def _history(view: View, stored: Stored) -> Document:
    """The history that an alert with `from` has; empty for other alerts."""
    found = history(stored, view.state, view.seen)
    if found is None:
        return {}
    shards = {
        name: {"first_offset": ack.first_offset, "event_time": ack.earliest}
        for name, ack in found.shards.items()
    }
    return {"history": {"from": found.since, "event_time": found.begins, "shards": shards}}
