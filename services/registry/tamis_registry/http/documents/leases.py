"""The documents of leases: what a reader outside the fleet needs to read a topic."""

from __future__ import annotations

from dataclasses import replace

from tamis_registry.core.leases import SECOND, left
from tamis_registry.core.state.model import Lease, State
from tamis_registry.core.status import View
from tamis_registry.core.topic_readers import lease_topic
from tamis_registry.http.documents import Document


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
