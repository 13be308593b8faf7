"""Records of `tamis.statements`: the state is read from them again, and damaged records are refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.unit.registry.conftest import Fleet

from tamis.errors import InputError
from tamis.persistent.dicts import PersistentDict
from tamis.predicates.sketch import Observed
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.state.model import (
    Lease,
    Retiring,
    Shard,
    State,
    Stored,
    StreamTopics,
)
from tamis_registry.core.state.records import records, recover

STATE = State(
    partitions=4,
    owner="abc",
    version=9,
    order=2,
    statements=PersistentDict(
        {
            "stream/air": Stored("stream", "air", "CREATE STREAM air (k INT)", 1, 3),
            "alert/q": Stored("alert", "q", "CREATE ALERT q …", 2, 5, paused=True, topics={"a": 2}),
        }
    ),
    retiring=PersistentDict({"q@3": Retiring("q", 3, "CREATE ALERT q …", 2, 5, {"a": 1})}),
    leases=PersistentDict({"ab12": Lease("ab12", "air", "x > 3", "", 60, 4, {"": 2})}),
    shards={
        "air:e/0": Shard("air:e/0", "air", "e", 4),
        "air:e/1": Shard("air:e/1", "air", "e", None, 8, "silent"),
    },
    topics={
        "air": StreamTopics(3, ((("k",), 1), (("k",), 2)), frozenset({2}), 7),
        "old": StreamTopics(2),
        "air_similar_0": StreamTopics(2, base="air"),
    },
    statistics={
        "air": StreamStatistics(10, {"x": Observed([1, 2.5, 3], 0.1), "on": Observed([False, True])})
    },
)
# As earlier versions wrote them.
WRITTEN: dict[str, Any] = {
    "fleet": {
        "partitions": 4, "owner": "abc", "version": 9, "order": 2,
        "topics": {
            "air": {"next": 3, "numbers": [[["k"], 1], [["k"], 2]], "outside": [2], "anew": 7},
            "old": {"next": 2, "numbers": [], "outside": []},
            "air_similar_0": {"next": 2, "numbers": [], "outside": [], "base": "air"},
        },
    },
    "stream/air": {"sql": "CREATE STREAM air (k INT)", "order": 1, "version": 3, "paused": False},
    "alert/q": {"sql": "CREATE ALERT q …", "order": 2, "version": 5, "paused": True, "topics": {"a": 2}},
    "retiring/q@3": {"sql": "CREATE ALERT q …", "order": 2, "successor": 5, "topics": {"a": 1}},
    "lease/ab12": {
        "stream": "air", "predicate": "x > 3", "consumer": "", "seconds": 60, "version": 4, "topics": {"": 2},
    },
    "shard/air:e/0": {"stream": "air", "edge": "e", "since": 4, "gone": None, "reason": ""},
    "shard/air:e/1": {"stream": "air", "edge": "e", "since": None, "gone": 8, "reason": "silent"},
    "estimate/air": {
        "count": 10,
        "attributes": {
            "x": {"values": [1, 2.5, 3], "null": 0.1}, "on": {"values": [False, True], "null": 0.0},
        },
    },
}  # fmt: skip


def test_the_state_is_written_and_read_as_by_earlier_versions() -> None:
    found = records(STATE)
    assert {key.decode(): orjson.loads(value) for key, value in found.items()} == WRITTEN
    assert recover(found) == STATE


@pytest.mark.parametrize("key", list(WRITTEN))
def test_a_damaged_record_is_refused_by_its_key(key: str) -> None:
    good = records(STATE)
    value = orjson.loads(good[key.encode()])
    damaged = [b"{", b"[]", b"\xff", b'{"sql": "\xff"}', orjson.dumps({**value, "extra": 1})]
    for name in value:
        damaged.append(orjson.dumps({**value, name: {"a": []}}))
        if name != "topics" or key in ("fleet", "lease/ab12"):
            damaged.append(orjson.dumps({other: value[other] for other in value if other != name}))
    for wrong in damaged:
        with pytest.raises(InputError, match="can't read the record") as raised:
            recover({**good, key.encode(): wrong})
        assert raised.value.where == f"topic tamis.statements, key {key}"


def test_unknown_keys_are_refused() -> None:
    for key in (b"view/v", b"retiring/q", b"retiring/q@x"):
        with pytest.raises(InputError, match="can't read the record"):
            recover({**records(STATE), key: b'{"sql": "", "order": 1, "successor": 2}'})


def test_records_of_a_running_registry_are_read_again() -> None:
    fleet = Fleet()
    sql = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);"
    fleet.perform(fleet.registry.apply(f"{sql} CREATE ALERT q AS SELECT k FROM air WHERE x > 2;", 0)[1])
    state = recover(fleet.statements)
    assert state is not None and len(fleet.statements) == 3 and records(state) == fleet.statements
