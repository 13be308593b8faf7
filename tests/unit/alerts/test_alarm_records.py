"""Records of the alarms topic: alarms of the joiner are read, other records are skipped."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec import MsgspecError, Raw

from tamis.messaging.records import END_OF_TIME, canonical_key
from tamis_alerts.core.episodes import Alarm
from tamis_alerts.episodes_app import read_alarm

GOOD: dict[str, Any] = {
    "alert": "hot",
    "key": ["k", 1],
    "id": "ab" * 16,
    "event_time": 5,
    "row": {"t": 1.5},
    "arrived": 7,
}
KEY = canonical_key(("hot", "k", 1))


def test_an_alarm_of_the_joiner_is_taken() -> None:
    row = Raw(b'{"t":1.5}')
    assert read_alarm(KEY, orjson.dumps(GOOD)) == Alarm("hot", ("k", 1), "ab" * 16, 5, row, 7)
    del (older := dict(GOOD))["arrived"]
    assert read_alarm(KEY, orjson.dumps(older)).arrived is None


@pytest.mark.parametrize(
    "poison",
    [
        b"",
        b"\xff",
        b"[]",
        b'"hot"',
        *(orjson.dumps({k: v for k, v in GOOD.items() if k != name}) for name in GOOD if name != "arrived"),
        *(
            orjson.dumps({**GOOD, **wrong})
            for wrong in (
                {"alert": 3},
                {"key": "k"},
                {"key": None},
                {"id": None},
                {"event_time": "5"},
                {"event_time": True},
                {"event_time": END_OF_TIME + 1},
                {"row": [1]},
                {"arrived": "now"},
                {"arrived": END_OF_TIME + 1},
                {"alert": "cold"},
                {"key": ["other", 1]},
            )
        ),
        *(
            orjson.dumps(GOOD).replace(b'"key":["k",1]', b'"key":' + key)
            for key in (b'["k",%d]' % 2**70, b'["k",1,' + b"[" * 300 + b"]" * 300 + b"]", b"[" * 100_000)
        ),
        *(
            orjson.dumps({**GOOD, "row": {"here": 1}}).replace(b'{"here":1}', row)
            for row in (b'{"a":1e400}', b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"[]", b"{")
        ),
    ],
)
def test_what_is_none_is_refused(poison: bytes) -> None:
    with pytest.raises((ValueError, MsgspecError)):
        read_alarm(KEY, poison)


@pytest.mark.parametrize("key", [None, b"", b"hot", b'["hot"]'])
def test_under_another_key_it_would_be_kept_where_nobody_looks(key: bytes | None) -> None:
    with pytest.raises(ValueError, match="record's key"):
        read_alarm(key, orjson.dumps(GOOD))
