"""The JSON documents of the HTTP API. Event times are microseconds."""

from __future__ import annotations

from typing import Any

from tamis.messaging.topics import outside_topic
from tamis.planning.plan import Plan
from tamis_registry.core.leases import SECOND, left
from tamis_registry.core.retirement import unproven
from tamis_registry.core.state import Lease, Shard, Stored
from tamis_registry.core.statements import Outcome
from tamis_registry.core.status import View, alert_status, shard_state

Document = dict[str, Any]


def outcome_document(outcome: Outcome, view: View) -> Document:
    """What was made of one statement."""
    document: Document = {"statement": outcome.statement, "result": outcome.result}
    if outcome.kind is not None:
        document |= {"kind": outcome.kind, "name": outcome.name, "plan": view.plan.version}
    if outcome.query is not None:
        document["verdict"] = outcome.query["memory"]["verdict"]
        document["explain"] = {"queries": [outcome.query]}
    if outcome.shows == "alerts":
        document["rows"] = alert_documents(view)
    elif outcome.shows is not None:
        document["rows"] = stream_documents(view)
    return document


def alert_documents(view: View) -> list[Document]:
    """Every alert, in the order of making."""
    return [alert_document(view, stored) for stored in view.state.of_kind("alert")]


def alert_document(view: View, stored: Stored) -> Document:
    """An alert with its state, why, and from which event time each shard serves it."""
    status = alert_status(view, stored)
    definition = view.definition(stored.name, stored.version)
    return {
        "name": stored.name,
        "state": status.state,
        "why": list(status.why),
        "plan": stored.version,
        "streams": sorted({source.stream for source in definition.inputs}) if definition else [],
        "bound": definition.bound if definition else None,
        "live": sum(
            frontier.definitions.get(f"{stored.name}@{stored.version}", 0)
            for frontier in view.seen.frontiers.values()
        ),
        "unproven": definition is not None and unproven(definition),
        "activations": {
            shard: {"plan": a.plan, "event_time": a.since} for shard, a in status.activations.items()
        },
        "retiring": status.retiring,
        "sql": stored.sql,
    }


def stream_documents(view: View) -> list[Document]:
    """Every stream, raw and derived, in the order of making."""
    return [stream_document(view, stored) for stored in view.state.of_kind("stream", "derived")]


def stream_document(view: View, stored: Stored) -> Document:
    """A stream with its shared topics and its shards."""
    planned = view.plan.stream(stored.name)
    readers = {d.alert for d in view.plan.queries for source in d.inputs if source.stream == stored.name}
    return {
        "name": stored.name,
        "kind": "raw" if stored.kind == "stream" else "derived",
        "why": [stored.refusal] if stored.refusal else [],
        "plan": stored.version,
        "topics": [topic.name for topic in planned.topics] if planned else [],
        "alerts": sorted(readers),
        "subscribers": [
            subscriber_document(view, lease)
            for lease in view.state.leases.values()
            if lease.stream == stored.name
        ],
        "shards": [shard_document(view, s) for s in _shards(view) if s.stream == stored.name],
        "sql": stored.sql,
    }


def subscriber_document(view: View, lease: Lease) -> Document:
    """Who reads a stream from outside the fleet, and for how long without asking again."""
    return {
        "id": lease.id,
        "consumer": lease.consumer,
        "topic": _topic(view, lease),
        "filter": lease.predicate or None,
        "plan": lease.version,
        "seconds": lease.seconds,
        "expires_in": max(0, left(lease, view.seen, view.now) // SECOND),
    }


def lease_document(view: View, lease: Lease) -> Document:
    """What a consumer outside the fleet has to know to read what it asked for."""
    derived = view.state.catalog.derived.get(lease.stream)
    base = lease.stream if derived is None else derived.query.sources[0].stream
    shards = view.state.listed([_raw(view, base)])
    stored = view.state.statements.get(f"{'stream' if derived is None else 'derived'}/{lease.stream}")
    # A derived stream's topic has carried all of it since the stream was made.
    version = lease.version if lease.subscription or stored is None else stored.version
    found = {shard.name: view.seen.activation(shard.name, max(version, shard.since or 0)) for shard in shards}
    return {
        "stream": lease.stream,
        "topic": _topic(view, lease),
        "partitions": view.state.partitions,
        "filter": lease.predicate or None,
        "plan": version,
        "activations": {
            shard: {"plan": a[0], "event_time": a[1]} for shard, a in found.items() if a is not None
        },
        "waiting": [shard for shard, a in found.items() if a is None],
        "lease": {
            "id": lease.id,
            "consumer": lease.consumer,
            "seconds": lease.seconds,
            "expires_in": max(0, left(lease, view.seen, view.now) // SECOND),
        },
    }


def _topic(view: View, lease: Lease) -> str:
    """The topic that serves a lease: a derived stream has one of its own."""
    if lease.subscription is None:
        return outside_topic(lease.stream, 1)
    return view.state.topics[lease.stream].name(lease.stream, lease.topics[""])


def _raw(view: View, stream: str) -> str:
    """The raw stream below a stream."""
    while (derived := view.state.catalog.derived.get(stream)) is not None:
        stream = derived.query.sources[0].stream
    return stream


def shard_document(view: View, shard: Shard) -> Document:
    """A shard with its state and what it obeys."""
    state, why = shard_state(view, shard)
    ack = view.seen.acks.get(shard.name)
    obeys = ack if ack and ack.state != "waiting" else None
    return {
        "shard": shard.name,
        "stream": shard.stream,
        "edge": shard.edge,
        "state": state,
        "why": why,
        "plan": obeys.plan if obeys else None,
        "activation": obeys.activation if obeys else None,
    }


def edge_documents(view: View) -> list[Document]:
    """Every edge that was heard of, by name, with its shards."""
    edges: dict[str, list[Shard]] = {}
    for shard in _shards(view):
        edges.setdefault(shard.edge, []).append(shard)
    return [_edge(view, name, shards) for name, shards in sorted(edges.items())]


def _edge(view: View, name: str, shards: list[Shard]) -> Document:
    parts = [shard_document(view, shard) for shard in shards]
    # The worst word first: one shard that is away is what the reader looks for.
    order = ("away", "gone", "behind", "waiting", "active", "ended")
    worst = min((part["state"] for part in parts), key=order.index)
    return {"name": name, "state": worst, "why": [p["why"] for p in parts if p["why"]], "shards": parts}


def _shards(view: View) -> list[Shard]:
    """Those on record, and those that wait without ever having been listed."""
    waiting = [
        Shard(ack.shard, ack.stream, ack.edge, since=None, reason="")
        for name, ack in view.seen.acks.items()
        if name not in view.state.shards and ack.state == "waiting"
    ]
    return sorted([*view.state.shards.values(), *waiting], key=lambda s: (s.edge, s.name))


def plan_document(plan: Plan, newest: int) -> Document:
    """One line on a plan version."""
    return {
        "version": plan.version,
        "newest": plan.version == newest,
        "definitions": [f"{d.alert}@{d.version}" for d in plan.queries],
        "retiring": sorted(plan.retiring),
        "topics": [topic.name for stream in plan.streams for topic in stream.topics],
        "shards": len(plan.since),
    }
