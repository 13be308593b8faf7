"""Records of a shard besides its tuples, as an edge writes them in JSON."""

from __future__ import annotations

import orjson

from tamis.messaging.records import ENVELOPE, final_envelope, progress_envelope


def progress_record(
    shard: str,
    plan: int,
    activation: int,
    event_time: int | None,
    shed: tuple[int, int] | None = None,
    *,
    place: int | None = None,
) -> bytes:
    """The value of a progress record in JSON; see `progress_envelope`."""
    envelope = progress_envelope(shard, plan, activation, event_time, shed, place=place)
    return orjson.dumps({ENVELOPE: envelope})


def final_record(shard: str, plan: int) -> bytes:
    """The value of a final record in JSON; see `final_envelope`."""
    return orjson.dumps({ENVELOPE: final_envelope(shard, plan)})
