"""Alerts WITH (from = …) in the registry: their streams, shards, history and refusals."""

from __future__ import annotations

import pytest
from tests.fixtures.in_process_fleet import InProcessRegistry

from tamis.errors import TamisError
from tamis.messaging.records import Ack
from tamis_registry.core.shards.backfill import lacks
from tamis_registry.core.state.records import difference, recover
from tamis_registry.core.status import alert_status
from tamis_registry.http.documents.alerts import alert_document
from tamis_registry.http.documents.streams import stream_documents

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
STREAMS = "".join(
    f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP NOT NULL, v DOUBLE CHECK (v BETWEEN 0 AND 9), "
    "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
    for name in ("a", "b")
)
JOIN = """AS SELECT a.k FROM a JOIN b ON a.k = b.k
  AND a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND b.ts + INTERVAL '3' SECOND WHERE a.v - b.v > {};"""
ALERT = "CREATE ALERT q WITH (from = 'earliest') " + JOIN.format(5)


class Station:
    """A registry that listens for a minute already, with two shards of stream a and one of b."""

    def __init__(self) -> None:
        self.inside = InProcessRegistry(STREAMS, NOW - 60 * SECOND)
        for shard in ("a:log/0", "a:log/1", "b:log/0"):
            self.wait(shard)
        self.inside.tick(NOW)

    def wait(self, shard: str, rereadable: bool | None = None) -> None:
        """A shard says that it waits."""
        plan = self.inside.plan.version
        ack = Ack(shard, shard.partition(":")[0], "e", plan, 0, "waiting", NOW, rereadable=rereadable)
        self.inside.registry.hear(ack, NOW)

    def apply(self, sql: str) -> None:
        self.inside.apply(sql, NOW)

    def listed(self, stream: str) -> list[str]:
        """The listed shards of a stream."""
        return [name for name, of in self.inside.plan.shard_streams.items() if of == stream]

    def why(self) -> tuple[str, ...]:
        registry = self.inside.registry
        stored = registry.state.alert("q")
        assert stored is not None
        return alert_status(registry.view(NOW), stored).why


@pytest.fixture
def station() -> Station:
    return Station()


def names(station: Station) -> tuple[str, str]:
    """The backfill streams of the alert."""
    version = station.inside.plan.definitions[0].version
    return f"a-backfill-{version}", f"b-backfill-{version}"


def test_first_shards_are_listed_together(station: Station) -> None:
    station.apply(ALERT)
    a, b = names(station)
    assert [stream.origin for stream in station.inside.plan.streams] == [None, None, "a", "b"]
    assert "no edge has opened the sources of stream a" in station.why()[0]
    for shard in (f"a-backfill-{a[-1]}:log/0", f"{b}:log/0"):
        station.wait(shard)
        assert station.inside.tick(NOW) is None
    assert "log/1 has not announced itself yet" in station.why()[0]
    station.wait(f"{a}:log/1")
    assert station.inside.tick(NOW) is not None
    assert station.listed(a) == [f"{a}:log/0", f"{a}:log/1"]
    assert station.listed(b) == [f"{b}:log/0"]
    station.wait(f"{b}:log/9")  # later ones don't wait for others
    station.inside.tick(NOW)
    assert len(station.listed(b)) == 2


def test_a_registry_that_has_just_started_waits_for_reports(station: Station) -> None:
    station.apply(ALERT)
    station.inside.registry.listen_anew(NOW)
    for shard in (f"{names(station)[0]}:log/0", f"{names(station)[0]}:log/1", f"{names(station)[1]}:log/0"):
        station.wait(shard)
    assert station.inside.tick(NOW) is None and "just started" in station.why()[0]


def test_shards_and_topics_are_forgotten_with_the_alert(station: Station) -> None:
    station.apply(ALERT)
    a, b = names(station)
    for shard in (f"{a}:log/0", f"{a}:log/1", f"{b}:log/0"):
        station.wait(shard)
    station.inside.tick(NOW)
    state = station.inside.registry.state
    assert {a, b} <= {shard.stream for shard in state.shards.values()} and {a, b} <= state.topics.keys()
    station.apply("DROP ALERT q;")
    state = station.inside.registry.state
    assert {shard.stream for shard in state.shards.values()} == {"a", "b"}
    assert not {a, b} & state.topics.keys()
    assert [stream.name for stream in station.inside.plan.streams] == ["a", "b"]
    station.wait(f"{a}:log/0")  # an edge that doesn't know it yet
    assert station.inside.tick(NOW) is None


def test_names_and_shards_survive_a_restart_of_the_registry(station: Station) -> None:
    station.apply(ALERT)
    a, b = names(station)
    for shard in (f"{a}:log/0", f"{a}:log/1", f"{b}:log/0"):
        station.wait(shard)
    station.inside.tick(NOW)
    before, state = station.inside.plan, station.inside.registry.state
    records = {key: value for key, value in difference(None, state).items() if value is not None}
    found = recover(records)
    assert found is not None
    again = InProcessRegistry.__new__(InProcessRegistry)
    again.registry = type(station.inside.registry)(
        station.inside.registry._planner, found.draft(), found, before.version, NOW
    )
    again.begin(NOW)
    assert (again.plan.streams, again.plan.definitions) == (before.streams, before.definitions)
    assert again.plan.since == before.since


@pytest.mark.parametrize(
    ("first", "then", "what"),
    [
        (ALERT, ALERT.replace("CREATE", "CREATE OR REPLACE").replace("> 5", "> 6"), "can't be replaced"),
        (
            "CREATE ALERT q " + JOIN.format(5),
            ALERT.replace("CREATE", "CREATE OR REPLACE"),
            "can't be replaced",
        ),
        (ALERT, "PAUSE ALERT q;", "can't be paused"),
        (ALERT, "ALTER STREAM a ADD COLUMN w DOUBLE;", "would need a new definition"),
    ],
)
def test_its_definition_stays(station: Station, first: str, then: str, what: str) -> None:
    station.apply(first)
    plan = station.inside.plan
    with pytest.raises(TamisError) as told:
        station.apply(then)
    assert what in str(told.value) and station.inside.plan is plan
    station.apply(first)  # to repeat it changes nothing
    assert station.inside.plan is plan


def test_sources_that_cannot_be_read_again(station: Station) -> None:
    station.wait("b:e/http", rereadable=False)
    station.inside.tick(NOW)
    with pytest.raises(TamisError, match="b:e/http of stream b can't be read again"):
        station.apply(ALERT)
    station.apply(ALERT.replace("from = 'earliest'", "severity = 'low'"))


def test_a_source_without_history_that_comes_later(station: Station) -> None:
    station.apply(ALERT)
    station.wait("b:e/http", rereadable=False)
    station.inside.tick(NOW)
    registry = station.inside.registry
    stored = registry.state.alert("q")
    assert stored is not None
    (why,) = lacks(stored, registry.state, registry.seen)
    assert "the readings of shard b:e/http don't reach it" in why
    a, b = names(station)
    for shard in (f"{a}:log/0", f"{a}:log/1", f"{b}:log/0"):
        station.wait(shard)
    assert station.inside.tick(NOW) is not None  # it doesn't wait for that shard


def test_history_in_documents(station: Station) -> None:
    station.apply(ALERT)
    a, b = names(station)
    for shard in (f"{a}:log/0", f"{a}:log/1", f"{b}:log/0"):
        station.wait(shard)
    station.inside.tick(NOW)
    registry, plan = station.inside.registry, station.inside.plan.version
    for shard, first, earliest in ((f"{a}:log/0", 0, 7), (f"{a}:log/1", 400, 9), (f"{b}:log/0", 0, None)):
        ack = Ack(shard, shard.partition(":")[0], "e", plan, 0, "active", NOW)
        ack = Ack(**{**ack.__dict__, "first_offset": first, "earliest": earliest})
        registry.hear(Ack.from_bytes(ack.to_bytes()), NOW)
    stored = registry.state.alert("q")
    assert stored is not None
    document = alert_document(registry.view(NOW), stored)
    assert document["streams"] == ["a", "b"]
    assert document["history"] == {
        "from": "earliest",
        "event_time": 7,
        "shards": {
            f"{a}:log/0": {"first_offset": 0, "event_time": 7},
            f"{a}:log/1": {"first_offset": 400, "event_time": 9},
            f"{b}:log/0": {"first_offset": 0, "event_time": None},
        },
    }
    assert [one["alerts"] for one in stream_documents(registry.view(NOW))] == [["q"], ["q"]]
