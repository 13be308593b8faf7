"""The JSON documents of the HTTP API. Event times are microseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from tamis.expressions.nodes import Type
from tamis.messaging.records import Ack
from tamis.plan.model import Plan, TopicPlan
from tamis.plan.time_columns import key_times
from tamis.query.backfill import raw_name
from tamis.query.catalog import dependents
from tamis.query.model import PatternDef
from tamis_registry.core.leases import SECOND, left
from tamis_registry.core.plan.shared_topics import derived_topic
from tamis_registry.core.shards.history import history
from tamis_registry.core.shards.rates import retained_share, total
from tamis_registry.core.state.model import Lease, Shard, State, Stored
from tamis_registry.core.statements.outcomes import Outcome
from tamis_registry.core.status import View, alert_status, edge_state, shard_state
from tamis_registry.core.topic_readers import TopicReader, lease_topic, topic_readers
from tamis_registry.plans.origin import Origin

Document = dict[str, Any]


def outcome_document(outcome: Outcome, view: View) -> Document:
    """The result of one statement."""
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
                "kind": one.query["kind"],
                "name": one.query["name"],
                "result": one.result,
                "verdict": one.query["memory"]["verdict"],
                "changes": list(one.changes),
            }
            for one in outcome.replanned
        ]
    if outcome.notices:
        document["notices"] = list(outcome.notices)
    if outcome.query is not None:
        document["verdict"] = outcome.query["memory"]["verdict"]
        document["explain"] = {"queries": [outcome.query]}
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
        "why": [stored.refusal] if stored.refusal else [],
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
    """The same with the SQL."""
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


def subscriber_document(view: View, lease: Lease) -> Document:
    """A reader outside the fleet, and the seconds until its lease expires."""
    return {
        "id": lease.id,
        "consumer": lease.consumer,
        "topic": lease_topic(view.state, lease),
        "filter": lease.predicate or None,
        "plan": lease.version,
        "seconds": lease.seconds,
        "expires_in": max(0, left(lease, view.seen, view.now) // SECOND),
    }


def lease_document(view: View, lease: Lease) -> Document:
    """All facts that a consumer outside the fleet needs to read its lease's topic."""
    derived = view.state.catalog.derived.get(lease.stream)
    base = lease.stream if derived is None else derived.query.sources[0].stream
    shards = view.state.listed([_raw(view, base)])
    stored = view.state.statements.get(f"{'stream' if derived is None else 'derived'}/{lease.stream}")
    # A derived stream's topic has carried all of it since the stream was made.
    version = lease.version if lease.subscription or stored is None else stored.version
    found = {shard.name: view.seen.activation(shard.name, max(version, shard.since or 0)) for shard in shards}
    return {
        "stream": lease.stream,
        "topic": lease_topic(view.state, lease),
        "partitions": view.state.partitions,
        "filter": lease.predicate or None,
        "plan": version,
        "activations": {
            shard: {"plan": a[0], "event_time": a[1]} for shard, a in found.items() if a is not None
        },
        "waiting": [shard for shard, a in found.items() if a is None],
        "exists": True,
        **_format(view, base),
        "lease": {
            "id": lease.id,
            "consumer": lease.consumer,
            "seconds": lease.seconds,
            "expires_in": max(0, left(lease, view.seen, view.now) // SECOND),
        },
    }


def _format(view: View, base: str) -> Document:
    """The format of a topic's values, if it isn't JSON."""
    form = view.state.catalog.streams[_raw(view, base)].value_format
    return {} if form == "json" else {"value_format": form}


def look_document(view: View, state: State, lease: Lease) -> Document:
    """The topic that would serve a lease, in the `state` with that lease."""
    there = lease_document(replace(view, state=state), lease)
    numbers = view.state.topics.get(lease.stream)
    exists = lease.subscription is None or (
        numbers is not None and any(number == lease.topics[""] for _, number in numbers.numbers)
    )
    # Nobody has asked for the tuples yet, so none of them need be there but a derived stream's.
    activations = there["activations"] if lease.subscription is None else {}
    waiting = [*there["waiting"], *(shard for shard in there["activations"] if shard not in activations)]
    return {
        **there,
        "exists": exists,
        "plan": None if lease.subscription is not None else there["plan"],
        "activations": activations,
        "waiting": sorted(waiting),
        "lease": None,
    }


def _raw(view: View, stream: str) -> str:
    """The raw stream below a stream."""
    while (derived := view.state.catalog.derived.get(stream)) is not None:
        stream = derived.query.sources[0].stream
    return stream


def shard_document(view: View, shard: Shard) -> Document:
    """A shard with its state and the plan that it uses."""
    state, why = shard_state(view, shard)
    ack = view.seen.acks.get(shard.name)
    tells = state not in ("away", "gone", "unused", "ended")
    recent = view.seen.recent.growth(shard.name) if tells else None
    obeys = ack if ack and ack.state != "waiting" else None
    return {
        "shard": shard.name,
        "stream": shard.stream,
        "edge": shard.edge,
        "state": state,
        "why": why,
        "plan": obeys.plan if obeys else None,
        "activation": obeys.activation if obeys else None,
        "watermark": ack.watermark if ack else None,
        "doubts": list(ack.doubts or ()) if ack and state != "away" else [],
        "tuples": ack.tuples if ack else None,
        "rates": view.seen.rates.of(shard.name) if tells else None,
        "recent": None if recent is None else {"seconds": recent.span // SECOND, "tuples": recent.tuples},
    }


def edge_documents(view: View) -> list[Document]:
    """Every edge that has sent a report, by name, with its shards."""
    edges: dict[str, list[Shard]] = {}
    for shard in every_shard(view):
        edges.setdefault(shard.edge, []).append(shard)
    for edge in view.seen.edges:
        edges.setdefault(edge, [])
    failing = failing_sources(view)
    return [_edge(view, name, shards, failing.get(name, {})) for name, shards in sorted(edges.items())]


def _edge(view: View, name: str, shards: list[Shard], failing: dict[str, str]) -> Document:
    parts = [shard_document(view, shard) for shard in shards]
    # The worst word first: one shard that is away is what the reader looks for.
    order = ("away", "gone", "behind", "waiting", "active", "unused", "ended")
    states = [(part["state"], part["why"]) for part in parts] or [edge_state(view, name)]
    worst = min((state for state, _ in states), key=order.index)
    why = [reason for _, reason in states if reason]
    why += [f"shard {part['shard']}: {doubt}" for part in parts for doubt in part["doubts"]]
    why += [f"source {source} fails: {reason}" for source, reason in failing.items()]
    return {"name": name, "state": worst, "why": why, "failing": failing, "shards": parts}


def failing_sources(view: View) -> dict[str, dict[str, str]]:
    """By edge, the failing sources with reasons, as the newest sign of life of the edge names them. An edge
    that is away has none.
    """
    newest: dict[str, Ack] = {}
    for name, ack in (*view.seen.acks.items(), *view.seen.edges.items()):
        known = newest.get(ack.edge)
        if (known is None or known.time < ack.time) and not view.seen.away(name, view.now):
            newest[ack.edge] = ack
    return {edge: ack.failing for edge, ack in newest.items() if ack.failing}


def every_shard(view: View) -> list[Shard]:
    """The shards on record, and those that wait and were never listed."""
    waiting = [
        Shard(ack.shard, ack.stream, ack.edge, since=None, reason="")
        for name, ack in view.seen.acks.items()
        if name not in view.state.shards and ack.state == "waiting"
    ]
    known = [shard for shard in view.state.shards.values() if not view.forgotten(shard)]
    return sorted([*known, *waiting], key=lambda s: (s.edge, s.name))


def origin_document(origin: Origin) -> Document:
    """The time at which a plan version was made, and why."""
    return {"made": origin.time, "why": list(origin.why)}


def plan_document(plan: Plan) -> Document:
    """One line about a plan version."""
    return {
        "version": plan.version,
        "definitions": [f"{d.alert}@{d.version}" for d in plan.queries],
        "retiring": sorted(plan.retiring),
        "topics": [topic.name for stream in plan.streams for topic in stream.topics],
        "shards": len(plan.since),
    }
