"""Counts of a shard's tuples by decision, for its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis_edge.core.messages.keys import Int64s

# The decisions about tuples of raw streams.
DECISIONS = ("published", "omitted", "filtered", "late", "dead")


@dataclass(slots=True)
class Counts:
    """Tuples by decision, and published bytes, since the counts were last taken."""

    published: int = 0
    omitted: int = 0
    filtered: int = 0
    late: int = 0
    dead: int = 0
    saved_calls: int = 0  # omitted tuples for which the joiner would call a Python function
    shed: int = 0  # retained and dropped at random; counted once for each topic
    published_bytes: int = 0
    holds: list[Int64s] = field(default_factory=list)  # microseconds from arrival to publication
