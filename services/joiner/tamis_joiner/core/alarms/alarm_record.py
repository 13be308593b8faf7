"""Form of an alarm record: its Kafka key, its `id`, and the fields that every alarm has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from tamis.messaging.records import canonical_key, canonical_value
from tamis.plan.model import Definition, StandingQuery

KeyValue = tuple[bytes, bytes]


def alarm_record(
    definition: Definition | StandingQuery,
    *,
    identity: list[Any],
    key: Iterable[Any],
    event_time: int,
    row: Mapping[str, Any],
    tuples: Mapping[str, Any],
    plan: int,
    more: Mapping[str, Any],
) -> KeyValue:
    """Key and value of an alarm. Its `id` is a digest of the alert's name and `identity`; `more` has the
    fields that not every alarm has.
    """
    canonical = [canonical_value(value) for value in key]
    text = orjson.dumps([definition.alert, *identity], option=orjson.OPT_SORT_KEYS)
    record = {
        "alert": definition.alert,
        "id": blake2b(text, digest_size=16).hexdigest(),
        "key": canonical,
        "event_time": event_time,
        "row": row,
        "tuples": tuples,
        "plan": plan,
        "definition": definition.version,
        **more,
    }
    return canonical_key((definition.alert, *canonical)), orjson.dumps(record)
