"""Patterns and watched streams at the registry: restarts, replaced alerts, drops, and what users see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.declarations.definitions import PatternDef
from tamis.errors import SqlErrors, TamisError
from tamis.messaging.records import Ack, Frontier, StreamState
from tamis.plan.model import StreamPlan
from tamis_registry.core.leases import new_lease
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import records, recover
from tamis_registry.http.documents.alerts import alert_documents, outcome_document
from tamis_registry.http.documents.streams import whole_pattern_documents

VIB = (
    "CREATE STREAM vib (machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE,"
    " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
)
FAULT = "CREATE PATTERN fault VALUES (0, 1, 4, 9, 4, 1, 0) WITH (max_gap = '3 seconds');"
DAYS = "CREATE PATTERN days VALUES ('mo', (0, 1, 2)), ('tu', (3, -1.5, 2e3));"
ALERT = "CREATE OR REPLACE ALERT shaken AS SELECT machine FROM vib WHERE similar(value, {});"
SHARD = "edge/vib"


def started(state: State | None = None) -> Registry:
    registry = Registry(PLANNER, state.draft() if state else State(2), state, 0, 0)
    registry.done(registry.begin(0), 0)
    return registry


def restarted(registry: Registry) -> Registry:
    return started(recover(records(registry.state)))


def say(registry: Registry, *sql: str) -> None:
    for text in sql:
        registry.done(registry.apply(text, 0)[1], 0)


@pytest.fixture
def registry() -> Registry:
    made = started()
    say(made, VIB + FAULT + DAYS)
    return made


def watched(registry: Registry) -> list[StreamPlan]:
    return [stream for stream in registry.plan.streams if stream.base is not None]


def listed(registry: Registry) -> None:
    registry.hear(Ack(SHARD, "vib", "edge", registry.plan.version, 0, "waiting", 0), 0)
    change = registry.tick(0)
    assert change is not None
    registry.done(change, 0)


def obeyed(registry: Registry, state: StreamState) -> None:
    """The shard and the joiner have taken up the newest plan."""
    newest = registry.plan.version
    registry.hear(Ack(SHARD, "vib", "edge", newest, 0, "active", 0), 0)
    for partition in range(2):
        topics = {topic.name: state for stream in registry.plan.streams for topic in stream.topics}
        waiting = {f"{one.alert}@{one.version}": 0 for one in registry.plan.definitions}
        registry.follow(Frontier(partition, newest, topics, {}, {}, 0, 0, 0, waiting=waiting))


def test_any_stands_for_the_same_patterns_after_a_restart(registry: Registry) -> None:
    say(registry, ALERT.format("ANY, 0.1"), "CREATE PATTERN later VALUES (5, 4, 5);")
    again = restarted(registry)
    assert again.plan.streams == registry.plan.streams
    assert again.plan.definitions == registry.plan.definitions
    (stream,) = watched(again)
    assert [one.name for one in stream.watches[0].patterns] == ["fault", "days/mo", "days/tu"]
    assert list(again.state.catalog.patterns) == ["fault", "days", "later"]
    assert again.state.statements == registry.state.statements


def test_a_file_is_stored_with_its_values(registry: Registry, tmp_path: Path) -> None:
    file = tmp_path / "peak.csv"
    file.write_text("0\n1.5\n4\n")
    registry.state.catalog.file_access = type(registry.state.catalog.file_access)((str(tmp_path),))
    say(registry, f"CREATE PATTERN peak FROM '{file}'")
    file.unlink()
    again = restarted(registry)
    made = again.state.statements["pattern/peak"].definition
    assert isinstance(made, PatternDef) and made.members[0].values == (0.0, 1.5, 4.0)
    assert made.sql == "CREATE PATTERN peak VALUES (0, 1.5, 4)"


def test_files_need_the_setting_of_tables(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "peak.csv").write_text("0\n1.5\n4\n")
    with pytest.raises(SqlErrors, match="TAMIS_TABLES isn't set"):
        registry.apply(f"CREATE PATTERN peak FROM '{tmp_path}/peak.csv'", 0)


def test_the_old_definition_of_a_replaced_alert_keeps_its_watched_stream(registry: Registry) -> None:
    say(registry, ALERT.format("'fault', 0.5"))
    listed(registry)
    obeyed(registry, StreamState(None, 0, 0, False, (SHARD,), obeyed=registry.plan.version))
    (old,) = watched(registry)
    say(registry, ALERT.format("'days', 0.1"))
    both = watched(registry)
    assert len(both) == 2 and old.name in [stream.name for stream in both]
    again = restarted(registry)
    assert again.plan.streams == registry.plan.streams
    for kind, name in (("pattern", "fault"), ("stream", "vib")):
        with pytest.raises(TamisError, match=r"replaced definition of alert 'shaken'|is read by"):
            registry.apply(f"DROP {kind} {name}", 0)
    # The joiner has nothing of the old plan any more.
    obeyed(registry, StreamState(None, 0, 0, False, (SHARD,), obeyed=registry.plan.version))
    change = registry.tick(0)
    assert change is not None and change.why == ("shaken@3 has ended",)
    registry.done(change, 0)
    assert [stream.name for stream in watched(registry)] == [
        stream.name for stream in both if stream.name != old.name
    ]
    say(registry, "DROP PATTERN fault")
    with pytest.raises(SqlErrors, match="pattern 'days' is read by alert 'shaken'"):
        registry.apply("DROP PATTERN days", 0)


def test_an_old_definition_waits_for_the_shards_of_the_base(registry: Registry) -> None:
    say(registry, ALERT.format("'fault', 0.5"))
    listed(registry)
    say(registry, ALERT.format("'days', 0.1"))
    assert registry.tick(0) is None
    assert len(watched(registry)) == 2


def test_a_shard_that_is_gone_ends_in_the_topics_of_watched_streams(registry: Registry) -> None:
    say(registry, ALERT.format("'fault', 0.5"))
    listed(registry)
    registry.hear(Ack(SHARD, "vib", "edge", registry.plan.version, 0, "final", 0), 0)
    change = registry.tick(0)
    assert change is not None
    (stream,) = watched(registry)
    assert [(final.topic, final.shard) for final in change.finals] == [(stream.topics[0].name, SHARD)]
    # Also if no query reads the watched stream any more.
    registry.done(change, 0)
    say(registry, "DROP ALERT shaken")
    again = recover(records(registry.state))
    assert again is not None
    first = Registry(PLANNER, again.draft(), again, 0, 0).begin(0)
    assert [final.topic for final in first.finals] == [stream.topics[0].name]


def test_an_alert_starts_when_a_shard_of_the_base_is_listed(registry: Registry) -> None:
    say(registry, ALERT.format("'fault', 0.5"))
    (row,) = alert_documents(registry.view(0))
    assert row["streams"] == ["vib"]
    assert row["why"][0] == "no shard of stream vib has announced itself yet"
    listed(registry)
    obeyed(registry, StreamState(None, 0, 0, False, (SHARD,), obeyed=registry.plan.version))
    (row,) = alert_documents(registry.view(0))
    assert (row["state"], list(row["activations"])) == ("running", [SHARD])


def test_watched_streams_are_shown_as_their_base(registry: Registry) -> None:
    say(registry, ALERT.format("'fault', 0.5"))
    (stream,) = watched(registry)
    outcomes, change = registry.apply("SHOW STREAMS; SHOW PATTERNS; EXPLAIN shaken;", 0)
    registry.done(change, 0)
    streams, patterns, explained = (
        outcome_document(outcome, outcome.explanation(), registry.view(0)) for outcome in outcomes
    )
    (row,) = streams["rows"]
    assert (row["name"], row["alerts"], row["topics"]) == ("vib", ["shaken"], [stream.topics[0].name])
    (source,) = explained["explain"]["queries"][0]["streams"]
    assert source["stream"] == "vib" and source["predicate"] == "similar(value, 'fault', 0.5)"
    assert source["sharing"]["topic"] == stream.topics[0].name
    assert [(row["name"], row["kind"], row["readers"]) for row in patterns["rows"]] == [
        ("fault", "pattern", ["alert 'shaken'"]),
        ("days", "folder", []),
    ]
    assert "sql" not in patterns["rows"][0]
    assert whole_pattern_documents(registry.view(0))[0]["sql"].startswith("CREATE PATTERN fault VAL")


@pytest.mark.parametrize(
    "sql",
    ["SELECT machine FROM {0}", "SELECT machine FROM vib, {0}", "SELECT count(*) FROM {0}"],
)
def test_a_watched_stream_can_not_be_named(registry: Registry, sql: str) -> None:
    say(registry, ALERT.format("'fault', 0.5"))
    (stream,) = watched(registry)
    with pytest.raises(SqlErrors, match="there is no stream"):
        registry.apply(f"CREATE ALERT q AS {sql.format(stream.name)};", 0)
    with pytest.raises(TamisError, match="there is no stream"):
        registry.apply(f"DROP STREAM {stream.name};", 0)
    with pytest.raises(TamisError, match="there is no stream"):
        new_lease(stream.name, "", "c", 60, registry.state.catalog)
    with pytest.raises(SqlErrors, match="is already the name of"):
        registry.apply(VIB.replace("vib", stream.name), 0)


def test_a_stream_is_not_dropped_under_its_watched_stream(registry: Registry) -> None:
    say(registry, ALERT.format("'fault', 0.5"))
    with pytest.raises(SqlErrors, match="stream 'vib' is read by alert 'shaken'"):
        registry.apply("DROP STREAM vib", 0)
    say(registry, "DROP ALERT shaken")
    assert watched(registry) == []
    say(registry, "DROP STREAM vib", "DROP PATTERN fault", VIB + FAULT, ALERT.format("'fault', 0.5"))
    # A stream of the same name may have other columns, so it gets topics of its own.
    (stream,) = watched(registry)
    assert [topic.name for topic in stream.topics] == [f"tamis.stream.{stream.name}.2"]


def test_a_pattern_is_not_changed_in_place(registry: Registry) -> None:
    outcomes, _ = registry.apply(FAULT, 0)
    assert [one.result for one in outcomes] == ["unchanged"]
    with pytest.raises(SqlErrors, match="there is a pattern 'fault' already, and it is different"):
        registry.apply(FAULT.replace("9", "8"), 0)
    say(registry, "DROP PATTERN fault", FAULT.replace("9", "8"))


def test_a_new_pattern_for_any_needs_or_replace(registry: Registry) -> None:
    alert = ALERT.format("ANY, 0.1").replace("OR REPLACE ", "")
    say(registry, alert, "CREATE PATTERN later VALUES (5, 4, 5);")
    with pytest.raises(SqlErrors, match="there is an alert 'shaken' already, and it is different"):
        registry.apply(alert, 0)
