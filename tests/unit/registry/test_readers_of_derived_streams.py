"""Alerts that read the topic of a derived stream: their topics, what EXPLAIN says, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.registry.test_leases import SECOND, started

from tamis.errors import TamisError
from tamis.messaging.records import Ack
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.records import records, recover
from tamis_registry.http.documents.streams import stream_facts

AIR = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), n INT,
  WATERMARK FOR ts AS ts);
"""
HOT = "CREATE STREAM hot AS SELECT k, ts AS at, x AS v FROM air WHERE x > 80;"
WARM = "CREATE ALERT warm AS SELECT k FROM air WHERE x > 90;"


def applied(registry: Registry, sql: str, now: int = 0) -> list[Any]:
    outcomes, change = registry.apply(sql, now)
    registry.done(change, now)
    return outcomes


def read_by(registry: Registry, alert: str) -> list[str]:
    return [one.topic for d in registry.plan.definitions if d.alert == alert for one in d.inputs]


@pytest.fixture
def registry() -> Registry:
    made = started()
    applied(made, AIR + HOT)
    return made


@pytest.mark.parametrize(
    ("select", "name"),
    [
        ("k, ts, x FROM air WHERE x > 80", "tamis.stream.d.1"),
        ("x AS ts, ts AS x, k AS n FROM air WHERE x > 80", "tamis.stream.d.1"),
        ("k, ts, x FROM air", "tamis.stream.d.01"),
        ("ts, x FROM air WHERE x > 80", "tamis.stream.d.01"),
        ("k, x FROM air WHERE x > 80", "tamis.stream.d.01"),
        ("k, ts + INTERVAL '1' SECOND AS ts, x FROM air WHERE x > 80", "tamis.stream.d.01"),
        ("k, v FROM dry WHERE v > 80", "tamis.stream.d.01"),
    ],
)
def test_the_joiner_reads_the_topics_that_may_serve_alerts(select: str, name: str) -> None:
    dry = "CREATE STREAM dry (k VARCHAR KEY, v DOUBLE);"
    plan = first_plan(catalog_of(AIR, dry, f"CREATE STREAM d AS SELECT {select};"))
    assert [topic.name for stream in plan.streams for topic in stream.topics] == [name]


@pytest.mark.parametrize(
    ("alert", "topic"),
    [
        ("SELECT k FROM air WHERE x > 90", "tamis.stream.hot.1"),
        ("SELECT k, v FROM hot WHERE v < 99", "tamis.stream.hot.1"),
        # Tuples that hot doesn't have, or a column.
        ("SELECT k FROM air WHERE x > 79", "tamis.stream.air.1"),
        ("SELECT k FROM air WHERE x > 80 OR n = 1", "tamis.stream.air.1"),
        ("SELECT k, n FROM air WHERE x > 90", "tamis.stream.air.1"),
        # To read all of hot would cost more.
        ("SELECT k FROM air WHERE x > 99.9", "tamis.stream.air.1"),
        # Omission retains fewer tuples than hot has.
        (
            "SELECT p.k FROM air p JOIN air q ON p.k = q.k AND ABS(p.ts - q.ts) <= INTERVAL '5' SECOND "
            "WHERE p.x > 90 AND q.x > 90 AND p.x - q.x > 1",
            "tamis.stream.air.1",
        ),
    ],
)
def test_an_alert_reads_a_derived_stream_that_has_all_that_it_needs(
    registry: Registry, alert: str, topic: str
) -> None:
    applied(registry, f"CREATE ALERT q AS {alert};")
    assert set(read_by(registry, "q")) == {topic}


def test_an_alert_may_be_told_not_to(registry: Registry) -> None:
    applied(registry, WARM.replace(" AS", " WITH (read_derived = false) AS", 1))
    assert read_by(registry, "warm") == ["tamis.stream.air.1"]


def test_explain_says_which_stream_is_read(registry: Registry) -> None:
    (outcome,) = applied(registry, WARM)
    sharing = outcome.query.document()["streams"][0]["sharing"]
    assert (sharing["topic"], sharing["how"]) == ("tamis.stream.hot.1", "derived")
    told = "stream hot, which has all readings that it needs (an estimated 20 % of the stream)"
    assert sharing["reason"] == f"reads from {told}"
    (outcome,) = applied(registry, "EXPLAIN warm;")
    assert outcome.explained["streams"][0]["sharing"]["reason"] == f"continues to read from {told}"


def test_a_derived_stream_shows_its_topic_and_its_readers(registry: Registry) -> None:
    applied(registry, WARM)
    hot, air = (
        stream_facts(registry.view(0), registry.state.statements[key])
        for key in ("derived/hot", "stream/air")
    )
    assert (hot["topics"], hot["alerts"]) == (["tamis.stream.hot.1"], ["warm"])
    assert (air["topics"], air["alerts"]) == (["tamis.stream.hot.1"], ["warm"])


def test_the_columns_of_the_topic_are_those_of_its_readers(registry: Registry) -> None:
    def topic() -> Any:
        return registry.plan.streams[0].topics[0]

    outside = topic()
    assert (outside.columns, outside.entries[0].serves) == ((), 0)
    applied(registry, WARM)
    version = registry.plan.version
    assert (topic().columns, topic().entries[0].serves) == (("x",), version)
    assert topic().select == outside.select
    applied(registry, "DROP ALERT warm;")
    assert topic() == outside


def test_a_derived_stream_with_readers_is_not_dropped(registry: Registry) -> None:
    applied(registry, WARM)
    with pytest.raises(TamisError, match="the topic of stream 'hot' is read by alert 'warm'"):
        registry.apply("DROP STREAM hot;", 0)
    applied(registry, "PAUSE ALERT warm; DROP STREAM hot;")
    applied(registry, "RESUME ALERT warm;")
    assert read_by(registry, "warm") == ["tamis.stream.air.1"]


def test_a_new_stream_of_the_same_name_has_a_new_topic(registry: Registry) -> None:
    applied(registry, "DROP STREAM hot;")
    applied(registry, HOT.replace("80", "70"))
    assert [topic.name for topic in registry.plan.streams[0].topics] == ["tamis.stream.hot.2"]
    applied(registry, "DROP STREAM hot;")
    applied(registry, HOT.replace("k, ts AS at,", "k,"))
    assert [topic.name for topic in registry.plan.streams[0].topics] == ["tamis.stream.hot.01"]


def test_readers_keep_their_topics_over_a_restart(registry: Registry) -> None:
    applied(registry, WARM)
    applied(registry, "CREATE OR REPLACE ALERT warm AS SELECT k FROM air WHERE x > 91;")
    kept = records(registry.state)
    state = recover(kept)
    assert state is not None
    again = started(state)
    assert read_by(again, "warm") == ["tamis.stream.hot.1"] * 2
    assert records(again.state).keys() == kept.keys()
    assert again.state.statements["alert/warm"].topics == {"air": "hot"}


def test_streams_of_earlier_releases_keep_their_topics(registry: Registry) -> None:
    kept = records(registry.state)
    kept[b"derived/hot"] = kept[b"derived/hot"].replace(b',"topics":{"":1}', b"")
    state = recover(kept)
    assert state is not None and state.statements["derived/hot"].topics == {}
    again = started(state)
    applied(again, WARM)
    assert read_by(again, "warm") == ["tamis.stream.air.1"]
    assert {topic.name for topic in again.plan.streams[0].topics} == {
        "tamis.stream.air.1",
        "tamis.stream.hot.01",
    }


def test_topics_from_before_the_restart_of_a_streams_time_serve_nobody(registry: Registry) -> None:
    day = 24 * 3600 * SECOND
    applied(registry, WARM, day)
    waiting = Ack("air:e/http", "air", "e", registry.plan.version, 0, "waiting", day)
    registry.hear(waiting, day)
    change = registry.tick(day)
    assert change is not None
    registry.done(change, day)
    ahead = Ack("air:e/http", "air", "e", registry.plan.version, 0, "active", day, reached=3 * day)
    registry.hear(ahead, day)
    change = registry.tick(day)
    assert change is not None and change.anew == ("air",)
    registry.done(change, day)
    assert read_by(registry, "warm") == ["tamis.stream.air.1"]
    assert "tamis.stream.hot.1" in {topic.name for topic in registry.plan.streams[0].topics}
    applied(registry, HOT.replace("hot", "new").replace("x > 80", "x < 20"), day)
    applied(registry, WARM.replace("warm", "later").replace("x > 90", "x < 19"), day)
    assert read_by(registry, "later") == ["tamis.stream.new.1"]


def test_a_text_is_explained_with_its_derived_streams() -> None:
    registry = started()
    _, query = registry.explain(AIR + HOT + WARM)
    assert query["streams"][0]["sharing"]["topic"] == "tamis.stream.hot.1"
    assert registry.state.statements == {}
