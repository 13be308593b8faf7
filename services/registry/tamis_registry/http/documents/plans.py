"""The documents of plans."""

from __future__ import annotations

from tamis.plan.model import Plan
from tamis_registry.http.documents.document import Document
from tamis_registry.plans.origin import Origin


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
