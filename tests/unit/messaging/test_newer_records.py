"""Records of newer releases: fields that this release doesn't know change nothing."""

from __future__ import annotations

from dataclasses import asdict, replace

import orjson
import pytest

from tamis.messaging.records import Ack, Frontier, StreamState

ACK = Ack("air:edge/http", "air", "edge", 3, 17, "active", 99)
STATE = StreamState(frontier=1, tuples=2, bytes=3, void=False, shards=("air:edge/http",))
FRONTIER = Frontier(0, 3, {"tamis.stream.air.1": STATE}, {"q@1": 2}, {"q": 1}, 0, 0, 99)


def test_unknown_fields_are_ignored() -> None:
    assert Ack.from_bytes(orjson.dumps({**asdict(ACK), "mood": "good"})) == ACK
    newer = asdict(FRONTIER) | {"weather": {"wind": 3}}
    newer["topics"]["tamis.stream.air.1"]["colour"] = "red"
    assert Frontier.from_bytes(orjson.dumps(newer)) == FRONTIER
    assert Frontier.from_bytes(FRONTIER.to_bytes()) == FRONTIER and Ack.from_bytes(ACK.to_bytes()) == ACK


def test_an_acknowledgement_of_an_older_edge_names_no_failing_sources() -> None:
    assert b"failing" not in ACK.to_bytes() and Ack.from_bytes(ACK.to_bytes()).failing is None
    newer = replace(ACK, failing={"mqtt": "connection refused"})
    assert Ack.from_bytes(newer.to_bytes()) == newer


@pytest.mark.parametrize("frontier", ["x", 1.5, True, [1]])
def test_a_frontier_is_an_event_time_or_none(frontier: object) -> None:
    wrong = asdict(FRONTIER)
    wrong["topics"]["tamis.stream.air.1"]["frontier"] = frontier
    with pytest.raises(ValueError, match=r"int \| null.*\.frontier"):
        Frontier.from_bytes(orjson.dumps(wrong))


@pytest.mark.parametrize("value", [b"[]", b"3", b"{}", b'{"shard": "air:edge/http"}'])
def test_what_is_no_such_record_is_refused(value: bytes) -> None:
    for kind in (Ack, Frontier):
        with pytest.raises(ValueError, match=r"object|required"):
            kind.from_bytes(value)


def test_an_edge_whose_clock_was_set_back_is_heard() -> None:
    back = replace(ACK, time=5, quiet=-3_600_000_000, watermark=-7, reached=-(2**62))
    assert Ack.from_bytes(back.to_bytes()) == back
