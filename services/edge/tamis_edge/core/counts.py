"""What became of a shard's tuples, for its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis_edge.core.keys import Int64s


@dataclass(slots=True)
class Counts:
    """Tuples by what became of them, and bytes published, since the last look."""

    published: int = 0
    omitted: int = 0
    filtered: int = 0
    late: int = 0
    dead: int = 0
    shed: int = 0  # retained, and dropped at random, counted for each topic
    published_bytes: int = 0
    holds: list[Int64s] = field(default_factory=list)  # microseconds from arrival to publication
