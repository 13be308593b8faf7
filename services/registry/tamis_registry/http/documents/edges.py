"""The documents of edges and their shards."""

from __future__ import annotations

from tamis.messaging.records import Ack
from tamis_registry.core.leases import SECOND
from tamis_registry.core.state.model import Shard
from tamis_registry.core.status import View, edge_state, shard_state
from tamis_registry.http.documents import Document


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
        "edge": view.edge(shard),
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
        edges.setdefault(view.edge(shard), []).append(shard)
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
    return sorted([*known, *waiting], key=lambda s: (view.edge(s), s.name))
