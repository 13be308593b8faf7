"""Status of alerts, streams and edges with its reasons, and the form of the durable records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from tamis.durations import iso_text
from tamis.errors import InputError, RefusedError
from tamis.messaging.records import Ack
from tamis.plan.model import Definition, Input, TimeBound
from tamis_registry.core.errors import MissingError
from tamis_registry.core.plan.retirement import span
from tamis_registry.core.shards import fleet_reports
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.records import recover
from tamis_registry.core.status import alert_status
from tamis_registry.http.documents.edges import edge_documents
from tamis_registry.http.documents.streams import stream_documents
from tamis_registry.http.live.broadcast import _seen

SECOND = 1_000_000
Q = (
    "CREATE {} q AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k AND s.ts BETWEEN "
    "a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v + s.v > {};"
)


def status(fleet: Any) -> Any:
    registry = fleet.registry
    return alert_status(registry.view(fleet.now), registry.state.alert("q"))


def obey(fleet: Any, *streams: str) -> None:
    for stream in streams:
        fleet.ack(stream, fleet.version, 100, "active")


@pytest.fixture
def running(fleet: Any) -> Any:
    fleet.sql(Q.format("ALERT", 5))
    fleet.join("air")
    fleet.join("surface")
    obey(fleet, "air", "surface")
    fleet.frontier(100)
    assert (status(fleet).state, status(fleet).why) == ("running", ())
    return fleet


def test_starting_until_everyone_obeys(fleet: Any) -> None:
    fleet.sql(Q.format("ALERT", 5))
    assert status(fleet).why[:2] == (
        "no shard of stream air has announced itself yet",
        "no shard of stream surface has announced itself yet",
    )
    fleet.join("air")
    fleet.join("surface")
    assert status(fleet).state == "starting" and "the joiner has not taken up" in status(fleet).why[0]
    fleet.frontier(None)
    assert status(fleet).state == "running"
    fleet.sql(Q.format("OR REPLACE ALERT", 9))
    assert status(fleet).state == "starting"
    assert f"shard e1/air has not taken up plan {fleet.version} yet" in status(fleet).why
    assert list(status(fleet).retiring) == [f"q@{fleet.version - 3}"]


def test_activations_are_those_of_the_shards_that_obey(running: Any) -> None:
    activations = status(running).activations
    assert {s: (a.plan, a.since) for s, a in activations.items()} == {
        "e1/air": (running.version - 1, 100),  # it obeyed before the other shard was listed
        "e1/surface": (running.version, 100),
    }


def test_degraded_while_a_shard_is_away(running: Any) -> None:
    heard = iso_text(running.now, "seconds")
    running.now += 16 * SECOND
    running.ack("air", running.version, 100, "active")
    assert status(running).state == "degraded"
    said, drop = f"shard e1/surface has said nothing since {heard}", "tamis drop shard e1/surface"
    (why,) = status(running).why
    assert why == f"{said}; edge e1 runs without its source: add it to the configuration again, or {drop}"
    assert edge_documents(running.registry.view(running.now))[0]["state"] == "away"
    # A source that fails, or an edge that is silent as a whole, is another matter.
    running.ack("air", running.version, 100, "active", failing={"surface": "connection refused"})
    assert status(running).why == (f"{said}; if nothing more comes from it: {drop}",)
    heard = iso_text(running.now, "seconds")
    running.now += 16 * SECOND
    # The reason of the other shard is the same as before.
    assert status(running).why == (
        f"shard e1/air has said nothing since {heard}; "
        "if nothing more comes from it: tamis drop shard e1/air",
        f"{said}; if nothing more comes from it: {drop}",
    )


def test_a_shard_that_an_edge_no_longer_has_is_gone_with_the_advice_to_drop_it(running: Any) -> None:
    running.now += 3601 * SECOND
    running.ack("air", running.version, 100, "active")
    running.tick()
    obey(running, "air")
    (why,) = status(running).why
    assert "shard e1/surface had nothing new for longer than max_stall of surface" in why
    assert why.endswith(
        "edge e1 runs without its source: add it to the configuration again, or tamis drop shard e1/surface"
    )
    # The edge has gone, too.
    running.now += 16 * SECOND
    drop = "if nothing more comes from it: tamis drop shard e1/surface"
    assert any(reason.endswith(drop) for reason in status(running).why)


def test_a_shard_that_has_moved_belongs_to_the_edge_that_acknowledged_it_last(running: Any) -> None:
    registry = running.registry
    before = _seen(registry.view(running.now))
    registry.hear(replace(registry.seen.acks["e1/air"], edge="e2"), running.now)
    view = registry.view(running.now)
    found = {edge["name"]: [one["shard"] for one in edge["shards"]] for edge in edge_documents(view)}
    assert found == {"e1": ["e1/surface"], "e2": ["e1/air"]}
    air = next(one for one in stream_documents(view) if one["name"] == "air")
    assert [shard["edge"] for shard in air["shards"]] == ["e2"]
    # Listeners learn of the move.
    after = _seen(view)
    assert {edge: [name for name, *_ in states] for edge, states in after["edges"].items()} == found
    assert after["streams"]["air"] != before["streams"]["air"]
    running.now += 16 * SECOND
    running.ack("surface", running.version, 100, "active")
    # The edge for which it was listed runs, and isn't the one that lacks its source.
    assert status(running).why[0].endswith("; if nothing more comes from it: tamis drop shard e1/air")
    registry.hear(Ack.of_edge("e2", running.now, {}), running.now)
    assert "; edge e2 runs without its source" in status(running).why[0]


def test_degraded_while_a_shard_is_gone_but_not_when_it_has_ended(running: Any) -> None:
    running.now += 3601 * SECOND
    running.ack("air", running.version, 100, "active")
    running.tick()
    assert status(running).state == "degraded" and "declared gone" in status(running).why[0]
    running.ack("surface", running.version)
    running.tick()
    running.ack("surface", running.version, 100, "final")
    running.tick()
    obey(running, "air")
    running.frontier(200)
    assert status(running).state == "running"


def test_a_shard_whose_source_was_removed_is_forgotten_when_somebody_says_so(running: Any) -> None:
    """The edge goes on with its other source; the registry waits for the shard until it is declared gone."""
    forget = running.registry.forget_shard
    with pytest.raises(MissingError, match="there is no shard 'e9/air'"):
        forget("e9/air", running.now)
    with pytest.raises(
        RefusedError, match=r"new in the last 15 s.*once nothing has come for 15 s, try again"
    ):
        forget("e1/surface", running.now)
    running.ack("surface", running.version, 100, "active", edge="e2")  # another edge has its readings
    running.now += 3601 * SECOND
    running.ack("surface", edge="e2")
    running.ack("air", running.version, 100, "active")
    running.tick()
    obey(running, "air")
    running.ack("surface", running.version, 100, "active", edge="e2")
    running.frontier(200)
    assert status(running).state == "degraded" and "tamis drop shard e1/surface" in status(running).why[0]
    _, change = running.registry.forget_shard("e1/surface", running.now)
    assert change.plan is None
    running.perform(change)
    assert (status(running).state, status(running).why) == ("running", ())
    names = [one["name"] for one in edge_documents(running.registry.view(running.now))]
    shards = [s["shard"] for one in edge_documents(running.registry.view(running.now)) for s in one["shards"]]
    assert names == ["e1", "e2"] and "e1/surface" not in shards
    with pytest.raises(MissingError, match="there is no shard 'e1/surface'"):
        running.registry.forget_shard("e1/surface", running.now)
    # Another process knows it, too.
    running.start()
    obey(running, "air")
    running.ack("surface", running.version, 100, "active", edge="e2")
    running.frontier(200)
    assert status(running).state == "running"
    # Its source is back: it waits for a plan that lists it, as any shard that was gone.
    running.ack("surface", running.version)
    assert running.tick() is not None and running.registry.state.shards["e1/surface"].since == running.version
    shards = [s["shard"] for one in edge_documents(running.registry.view(running.now)) for s in one["shards"]]
    assert "e1/surface" in shards


@pytest.mark.parametrize("alive", [True, False])
def test_joins_stop_waiting_for_a_shard_that_somebody_gives_up(running: Any, alive: bool) -> None:
    listed = running.version
    running.now += 16 * SECOND
    running.ack("air", listed, 100, "active")
    running.ack("surface", listed, 100, "active", quiet=14 * SECOND)
    with pytest.raises(RefusedError, match="had something new in the last 15 s"):
        running.registry.forget_shard("e1/surface", running.now)
    running.now += 16 * SECOND
    running.ack("air", listed, 100, "active")
    if alive:
        running.ack("surface", listed, 100, "active", quiet=30 * SECOND)
    _, change = running.registry.forget_shard("e1/surface", running.now)
    running.perform(change)
    assert set(running.plan.since) == {"e1/air"}
    assert ("tamis.stream.surface.1", "e1/surface", running.version) in running.finals
    obey(running, "air")
    running.frontier(200)
    if alive:
        running.ack("surface", running.version, quiet=31 * SECOND, unread=False)
    assert running.tick() is None
    assert not any("e1/surface" in why for why in status(running).why)
    [edge] = edge_documents(running.registry.view(running.now))
    states = {shard["shard"]: (shard["state"], shard["why"]) for shard in edge["shards"]}
    assert ("e1/surface" in states) == alive
    if alive:
        assert states["e1/surface"][0] == "unused" and "with its next reading" in states["e1/surface"][1]
    running.ack("surface", running.version, unread=True)
    running.tick()
    assert running.plan.since["e1/surface"] == running.version


def test_a_shard_that_never_had_a_reading_beside_others_degrades_nothing(running: Any) -> None:
    """An edge takes every stream over HTTP unless its configuration says otherwise; readings of one may come
    from another edge alone.
    """
    running.ack("air", edge="e2", quiet=0)
    running.tick()
    for seconds in (3590, 11):
        running.now += seconds * SECOND
        for stream, edge in (("air", "e1"), ("surface", "e1"), ("air", "e2")):
            quiet = 3601 * SECOND if edge == "e2" else 0
            running.ack(stream, running.version, 100, "active", edge=edge, quiet=quiet)
    running.tick()
    obey(running, "air", "surface")
    running.ack("air", running.version, 0, "waiting", edge="e2", quiet=3601 * SECOND, tuples={})
    running.frontier(200)
    assert status(running).state == "running"
    [_, other] = edge_documents(running.registry.view(running.now))
    assert (other["name"], other["state"]) == ("e2", "unused") and "never had a reading" in other["why"][0]
    # Nobody else has the readings of the stream: it is the one that is missed.
    running.ack("air", running.version, 100, "final")
    running.tick()
    obey(running, "surface")
    running.frontier(300)
    assert status(running).state == "degraded" and "e2/air had nothing new" in status(running).why[0]


def test_a_shard_that_was_never_listed_says_why(running: Any) -> None:
    """An edge that takes every stream over HTTP, and of which nobody uses one of them; then it is stopped."""

    def shown(stream: str) -> tuple[str, str]:
        documents = edge_documents(running.registry.view(running.now))
        [edge] = [one for one in documents if one["name"] == "e2"]
        [shard] = [one for one in edge["shards"] if one["shard"] == f"e2/{stream}"]
        return shard["state"], shard["why"]

    running.ack("air", edge="e2", quiet=0, tuples={}, unused=True)
    running.ack("other", edge="e2", quiet=0, tuples={}, unused=True)
    running.tick()
    assert "e2/air" not in running.plan.since
    assert shown("air") == ("unused", "shard e2/air has never had a reading")
    assert shown("other") == ("waiting", "shard e2/other waits: stream other is not defined")
    running.now += 16 * SECOND
    assert shown("air")[0] == "away" and "tamis drop shard e2/air" in shown("air")[1]


def test_an_edge_that_is_away_says_when_it_was_heard(running: Any) -> None:
    """The time was that of the last reading, which may be hours before the edge ended."""
    running.ack("air", running.version, 100, "active", quiet=600 * SECOND)
    heard = iso_text(running.now, "seconds")
    running.now += 16 * SECOND
    running.ack("surface", running.version, 100, "active")
    assert f"shard e1/air has said nothing since {heard}; " in status(running).why[0]
    # The registry was started again, and knows only what the edge wrote before.
    running.registry.seen.heard.clear()
    running.registry.seen.floor = running.now
    running.now += 16 * SECOND
    assert f"shard e1/air has said nothing since {heard}; " in status(running).why[0]


def test_degraded_when_no_source_of_a_stream_is_left(running: Any) -> None:
    running.now += 16 * SECOND
    running.ack("air", running.version, 100, "active")
    running.ack("surface", running.version, 100, "active", quiet=16 * SECOND)
    _, change = running.registry.forget_shard("e1/surface", running.now)
    running.perform(change)
    obey(running, "air")
    running.ack("surface", running.version, quiet=17 * SECOND, unread=False)
    running.frontier(200)
    assert (status(running).state, status(running).why) == (
        "degraded",
        ("no source of stream surface sends readings",),
    )


def test_degraded_when_someone_takes_long_over_a_new_plan(running: Any) -> None:
    running.ack("air", edge="e2")
    running.tick()
    assert status(running).state == "running"
    running.now += 11 * SECOND
    obey(running, "air")
    running.ack("surface", running.version - 1, 100, "active")
    running.ack("air", edge="e2")
    why = status(running).why
    assert status(running).state == "degraded"
    assert f"shard e1/surface does not obey plan {running.version} yet" in why
    assert f"shard e2/air has not taken up plan {running.version}, which lists it" in why
    assert any("the joiner" in reason for reason in why)


def test_paused_and_refused(running: Any) -> None:
    running.sql("PAUSE ALERT q;")
    assert status(running).state == "paused"
    running.statements[b"alert/q"] = running.statements[b"alert/q"].replace(b"a.v + s.v", b"a.gone + s.v")
    running.start()
    assert status(running).state == "refused" and "gone" in status(running).why[0]


def test_shards_of_a_stream_and_those_that_wait_for_one(running: Any) -> None:
    running.ack("noise", edge="e2")
    view = running.registry.view(running.now)
    air = stream_documents(view)[0]
    assert (air["name"], air["topics"], air["alerts"]) == ("air", ["tamis.stream.air.1"], ["q"])
    assert [(s["shard"], s["state"]) for s in air["shards"]] == [("e1/air", "active")]
    assert [(e["name"], e["state"]) for e in edge_documents(view)] == [("e1", "active"), ("e2", "waiting")]


def test_failing_sources_of_an_edge_until_it_names_none_or_is_away(running: Any) -> None:
    def shown() -> tuple[Any, Any]:
        (edge,) = edge_documents(running.registry.view(running.now))
        return edge["failing"], edge["why"]

    def heard(failing: dict[str, str] | None) -> None:
        running.now += SECOND
        running.ack("air", running.version, 100, "active", failing=failing)

    assert shown() == ({}, [])
    heard({"mqtt": "refused"})
    assert shown() == ({"mqtt": "refused"}, ["source mqtt fails: refused"])
    heard(None)
    assert shown()[0] == {}
    heard({"mqtt": "refused"})
    running.now += 20 * SECOND
    assert shown()[0] == {}  # nobody knows how its sources are now


def test_doubts_about_readings_are_shown_until_the_edge_has_none_or_is_away(running: Any) -> None:
    def shown() -> tuple[Any, Any]:
        (edge,) = edge_documents(running.registry.view(running.now))
        return edge["shards"][0]["doubts"], edge["why"]

    assert shown() == ([], [])
    running.ack("air", running.version, 100, "active", doubts=["no value for temp"])
    assert shown() == (["no value for temp"], ["shard e1/air: no value for temp"])
    # They say nothing about the edge, which works.
    assert status(running).state == "running"
    running.now += 20 * SECOND
    assert shown()[0] == []
    running.ack("air", running.version, 100, "active")
    assert shown()[0] == []


def test_an_edge_without_shards_is_known_by_its_own_sign_of_life(running: Any) -> None:
    def shown() -> Any:
        return next(
            (e for e in edge_documents(running.registry.view(running.now)) if e["name"] == "roof"), None
        )

    told = Ack.of_edge("roof", running.now, {"mqtt": "refused"})
    assert Ack.from_bytes(told.to_bytes()) == told
    running.registry.hear(told, None)
    assert (
        shown() is None
    )  # it was sent before this registry started, and nobody knows if the edge still runs
    running.registry.hear(told, running.now)
    waits = (
        "edge roof has no shard: none of its sources has had a reading yet, or other edges read its sources"
    )
    assert shown() == {
        "name": "roof",
        "state": "waiting",
        "why": [waits, "source mqtt fails: refused"],
        "failing": {"mqtt": "refused"},
        "shards": [],
    }
    assert running.registry.tick(running.now) is None  # the plan has nothing to do with it
    heard = iso_text(running.now, "seconds")
    running.now += 20 * SECOND
    assert (shown()["state"], shown()["why"]) == ("away", [f"edge roof has said nothing since {heard}"])
    running.now += SECOND
    assert shown()["why"] == [f"edge roof has said nothing since {heard}"]
    running.join("air", edge="roof")
    found = shown()
    assert (found["state"], found["failing"]) == ("active", {})
    assert [shard["shard"] for shard in found["shards"]] == ["roof/air"]


@pytest.mark.parametrize("failing", [{"mqtt": 3}, ["mqtt"], "mqtt"])
def test_failing_sources_that_are_no_texts_are_refused(failing: object) -> None:
    ack = {"shard": "s", "stream": "air", "edge": "e", "plan": 0, "activation": 0, "state": "waiting"}
    with pytest.raises(ValueError, match="failing"):
        Ack.from_bytes(orjson.dumps({**ack, "time": 0, "failing": failing}))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([("a", "b", -10, 4), ("b", "c", 0, 3)], 10),
        ([("a", "b", -2, 2), ("b", "c", 5, 9)], 11),
        ([("a", "b", -2, None), ("b", "c", 5, 9)], None),
        ([("a", "b", -2, 2)], None),
        ([("a", "b", -9, 9), ("b", "c", -9, 9), ("a", "c", -1, 1)], 9),
    ],
)
def test_span_is_the_longest_time_between_two_tuples(bounds: Any, expected: int | None) -> None:
    inputs = tuple(Input(alias, alias, alias, "ts", (), None, 0) for alias in "abc")
    definition = Definition("q", 1, inputs, (), tuple(TimeBound(*b) for b in bounds), None, ())
    assert span(definition) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"alert/q", b"no JSON"),
        (b"alert/q", b"[]"),
        (b"alert/q", b'{"sql": "", "order": 1, "version": 1, "colour": "red"}'),
        (b"retiring/q", b'{"sql": "", "order": 1, "successor": 2}'),
        (b"pattern/p", b"{}"),
        (b"fleet", b"{}"),
    ],
)
def test_records_of_another_version_are_named(fleet: Any, key: bytes, value: bytes) -> None:
    fleet.statements[key] = value
    with pytest.raises(InputError, match=f"key {key.decode()}"):
        recover(fleet.statements)


def test_an_edge_and_a_stream_have_so_many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_reports, "MOST_SHARDS_OF_EDGE", 2)
    monkeypatch.setattr(fleet_reports, "MOST_SHARDS_OF_STREAM", 3)
    seen = FleetReports()

    def hear(shard: str, stream: str, edge: str) -> None:
        seen.hear(Ack(shard, stream, edge, 0, 0, "waiting", 1))

    hear("1", "air", "e")
    hear("2", "air", "e")
    with pytest.raises(ValueError, match="edge 'e' has 2 shards"):
        hear("3", "water", "e")
    hear("3", "air", "f")
    with pytest.raises(ValueError, match="stream 'air' has 3 shards"):
        hear("4", "air", "f")
    with pytest.raises(ValueError, match="one of stream 'air'"):
        hear("1", "water", "e")
    hear("2", "air", "f")  # it has moved, which leaves room
    hear("5", "water", "e")
    assert set(seen.acks) == {"1", "2", "3", "5"}
    for again in range(3):  # known ones are always heard
        seen.hear(Ack("1", "air", "e", again, 0, "active", 2))
