"""EXPLAIN of the running fleet: what edges send to the topic of an alert, as the plan has it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.in_process_fleet import InProcessRegistry
from tests.unit.registry.test_link_bounds import NOW, ROWS, TEN, bounds, served
from tests.unit.registry.test_partial_topics import STREAM, windows

from tamis.cli.common.tables import show_outcome
from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.plan.model import partial_topics
from tamis.sharing.topic_assignment import MOST_PARTIAL
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State

FIFTEEN = f"CREATE ALERT fifteen AS {ROWS.format(15).replace('avg(x)', 'max(x)')};"
TOPIC = "tamis.stream.air.1"
TOLD = (
    f"in topic {TOPIC}, shared with alert fifteen: a pane ends at each boundary of the windows of any of them"
)


def sent(registry: InProcessRegistry, sql: str) -> Any:
    """`sent` of the one source of the one query."""
    (query,) = registry.registry.explain(sql)
    (source,) = query["streams"]
    return source["sent"]


def test_the_topic_is_explained_with_all_of_its_queries() -> None:
    registry = served(TEN + FIFTEEN)
    told = sent(registry, "EXPLAIN ten")
    assert told["text"][0].endswith(
        "for each k and pane between multiples of 10 s and 15 s a row with the count of readings, count,"
        " sum and greatest value of x"
    )
    assert told["text"][1] == TOLD
    assert (told["topic"], told["others"], told["others_count"]) == (TOPIC, ["fifteen"], 1)
    # In 60 + 5 + 2 s 7 and 5 boundaries; 1 + 1 + 1 panes that may be open at the end, of 100 groups each.
    assert told["most_a_minute"]["rows"] == (7 + 5 + 1 + 2) * 100
    assert told["partitions"] == registry.registry.state.partitions
    (bound,) = bounds(registry)
    assert told["most_a_minute"] == {"records": bound.records, "rows": bound.rows}


def test_an_alert_that_is_only_asked_about_joins_the_topic() -> None:
    registry = served(TEN)
    told = sent(registry, f"EXPLAIN {FIFTEEN}")
    assert (told["topic"], told["others"]) == (TOPIC, ["ten"])
    assert told["most_a_minute"]["rows"] == (7 + 5 + 1 + 2) * 100
    # The question has changed nothing.
    alone = sent(registry, "EXPLAIN ten")
    assert "others" not in alone
    assert alone["text"][1] == f"in topic {TOPIC}"
    assert alone["most_a_minute"]["rows"] == (7 + 1 + 1) * 100


def test_a_definition_that_is_replaced_no_longer_counts() -> None:
    registry = served(TEN + FIFTEEN)
    twenty = f"CREATE OR REPLACE ALERT ten AS {ROWS.format(20)};"
    asked = sent(registry, f"EXPLAIN {twenty}")
    assert "multiples of 15 s and 20 s" in asked["text"][0]
    registry.apply(twenty, NOW)
    assert sent(registry, "EXPLAIN ten") == asked
    assert sent(registry, "EXPLAIN fifteen")["others"] == ["ten"]


def test_values_of_all_alerts_take_memory() -> None:
    registry = served(TEN)
    before = sent(registry, "EXPLAIN ten")["memory"]
    registry.apply(f"CREATE ALERT middle AS {ROWS.format(10).replace('avg', 'median')};", NOW)
    # 100 keys have up to 10 values a second, in panes of 10 s.
    assert sent(registry, "EXPLAIN ten")["memory"] > before + 2 * 100 * 100 * 8


def test_a_topic_that_is_older_has_readings_until_services_can_exchange_the_rows() -> None:
    service = InProcessRegistry("", NOW)
    service.registry = Registry(PLANNER, State(1), None, 0, NOW)
    service.registry.take_heartbeat(JOINER, Heartbeat(time=NOW), NOW)
    service.begin(NOW)
    service.apply(STREAM + windows(1), NOW)
    told = sent(service, "EXPLAIN q1")
    assert (told["form"], told["topic"]) == ("readings", TOPIC)
    (line,) = told["text"]
    assert line.startswith(
        f"sent to Kafka: readings one by one, since topic {TOPIC} has readings, from before"
    )
    service.registry.take_heartbeat(JOINER, Heartbeat(time=NOW, partials=True), NOW)
    assert service.tick(NOW) is not None
    assert sent(service, "EXPLAIN q1")["form"] == "partial aggregates"


def test_beyond_the_limit_of_a_stream_readings_are_sent() -> None:
    service = InProcessRegistry(STREAM + windows(*range(MOST_PARTIAL + 1)), NOW)
    forms = [sent(service, f"EXPLAIN q{number}")["form"] for number in range(MOST_PARTIAL + 1)]
    assert forms == ["partial aggregates"] * MOST_PARTIAL + ["readings"]
    (line,) = sent(service, f"EXPLAIN q{MOST_PARTIAL}")["text"]
    assert line.endswith("since stream air has 16 topics of partial aggregates, and no more")


def test_many_alerts_of_a_topic_are_counted_and_some_named() -> None:
    alerts = "".join(f"CREATE ALERT a{number} AS {ROWS.format(10)};" for number in range(14))
    told = sent(served(alerts), "EXPLAIN a3")
    assert told["others"] == ["a0", "a1", "a10", "a11", "a12", "a13", "a2", "a4", "a5", "a6"]
    assert told["others_count"] == 13
    assert "a5, a6 and 3 more: a pane" in told["text"][1]


def test_sharing_partial_aggregates_needs_no_reading() -> None:
    (query,) = served(TEN + FIFTEEN).registry.explain("EXPLAIN ten")
    sharing = query["streams"][0]["sharing"]
    assert (sharing["needs_all"], sharing["needs_all_count"]) == ([], 0)


def test_the_shell_prints_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    registry = served(TEN + FIFTEEN)
    (query,) = registry.registry.explain("EXPLAIN ten")
    document = {"statement": "explain", "result": "explained", "explain": {"queries": [query]}}
    show_outcome(document)
    shown = " ".join(capsys.readouterr().out.split())
    for line in query["streams"][0]["sent"]["text"]:
        assert line in shown


FEW = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts) WITH ({});"
ONE_A_SECOND = "keys = 1, rate = '1/s'"
EACH_SECOND = ROWS.format(1)


def test_readings_are_sent_where_they_take_fewer_bytes() -> None:
    registry = InProcessRegistry(FEW.format(ONE_A_SECOND) + f"CREATE ALERT each AS {EACH_SECOND};", NOW)
    told = sent(registry, "EXPLAIN each")
    assert told["form"] == "readings"
    assert "since they take fewer bytes: about 10" in told["text"][0]
    assert not partial_topics(registry.plan)


def test_there_is_no_way_back_to_readings() -> None:
    registry = InProcessRegistry(
        FEW.format("keys = 1, rate = '50/s'") + f"CREATE ALERT each AS {EACH_SECOND};", NOW
    )
    registry.apply("ALTER STREAM air SET (rate = '1/s');", NOW)
    assert partial_topics(registry.plan) == {TOPIC}
    assert sent(registry, "EXPLAIN each")["form"] == "partial aggregates"


def test_they_join_partial_aggregates_that_exist() -> None:
    registry = InProcessRegistry(FEW.format(ONE_A_SECOND) + TEN, NOW)
    assert partial_topics(registry.plan)
    registry.apply(f"CREATE ALERT each AS {EACH_SECOND};", NOW)
    told = sent(registry, "EXPLAIN each")
    assert (told["form"], told["topic"], told["others"]) == ("partial aggregates", TOPIC, ["ten"])


def test_readings_that_are_sent_anyway_serve_others() -> None:
    registry = InProcessRegistry(FEW.format(ONE_A_SECOND) + f"CREATE ALERT each AS {EACH_SECOND};", NOW)
    registry.apply(TEN, NOW)
    assert not partial_topics(registry.plan)
    registry.apply("DROP ALERT each;", NOW)
    assert partial_topics(registry.plan)
