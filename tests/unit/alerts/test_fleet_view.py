"""View of the fleet: frontiers by alert, also of alerts that were dropped or paused."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.operators import NO_ROWS

from tamis.expressions.nodes import Column, Literal, Type
from tamis.messaging.column_names import ColumnNames
from tamis.messaging.records import END_OF_TIME, Frontier, StreamState
from tamis.messaging.topic_reader import Record
from tamis.messaging.topics import FRONTIERS, PLANS
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Definition, Input, Plan, StandingQuery, StreamColumn, StreamPlan
from tamis_alerts.fleet_view import FleetView, ProcessedFrontiers

TOPIC = "tamis.stream.a.1"
TIMES = (("still", ""), ("timed", "ts"))
KEY_TYPES = {"k": Type.VARCHAR, "day": Type.TIMESTAMP, "ts": Type.TIMESTAMP}


@pytest.fixture
def view() -> Iterator[FleetView]:
    """Nobody answers on that port, and nobody is asked."""
    made = FleetView({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "test")
    yield made
    made._reader.close()
    made._offsets.close()


def plan(version: int, *alerts: str) -> bytes:
    definitions = tuple(
        Definition(
            alert,
            version,
            (Input("x", "a", TOPIC, "ts", ("k",), None, 0),),
            (),
            (),
            Literal(True, Type.BOOLEAN),
            (("one", Literal(1, Type.INT)),),
        )
        for alert in alerts
    )
    return encode_plan(Plan(version, 1, (), definitions))


def take(view: FleetView, topic: str, value: bytes) -> None:
    key = b"plan" if topic == PLANS else str(Frontier.from_bytes(value).partition).encode()
    view._take(Record(topic, 0, 0, key, value))


def test_an_alert_that_is_gone_has_no_alarm_to_wait_for(view: FleetView) -> None:
    take(view, PLANS, plan(1, "hot", "cold"))
    take(view, FRONTIERS, Frontier(0, 1, {TOPIC: StreamState(7, 0, 0, False)}, {}, {}, 0, 0, 1).to_bytes())
    assert view._frontiers() == {"hot": 7, "cold": 7}
    take(view, PLANS, plan(2, "hot"))
    assert view._frontiers() == {"hot": 7, "cold": END_OF_TIME}
    take(view, PLANS, plan(3, "hot", "cold"))
    assert view._frontiers() == {"hot": 7, "cold": 7}


def test_an_alert_that_is_gone_keeps_its_rule_for_its_last_episodes(view: FleetView) -> None:
    take(view, PLANS, plan(1, "hot", "cold"))
    cold = view.rules["cold"]
    assert view.former_rules == {}
    take(view, PLANS, plan(2, "hot"))
    assert view.rules.keys() == {"hot"} and view.former_rules == {"cold": cold}
    assert cold.names.key == ("k",)


def test_the_plan_says_which_columns_of_a_definition_are_times(view: FleetView) -> None:
    """Of the key by the types of its stream's columns, of the row by those of its expressions."""
    columns = tuple(StreamColumn(name, kind, False, None) for name, kind in KEY_TYPES.items())
    stream = StreamPlan("a", columns, "ts", 0, None, None, 10**9, ())
    source = Input("x", "a", TOPIC, "ts", ("k", "day"), None, 0)
    select = (("seen", Column("x", "ts", Type.TIMESTAMP)), ("one", Literal(1, Type.INT)))
    alert = Definition("hot", 1, (source,), (), (), Literal(True, Type.BOOLEAN), select)
    take(view, PLANS, encode_plan(Plan(1, 1, (stream,), (alert,))))
    assert view.rules["hot"].names == ColumnNames(("k", "day"), ("day",), ("seen",))


def test_the_plan_says_which_columns_of_a_standing_query_are_times(view: FleetView) -> None:
    source = Input("", "a", TOPIC, "ts", ("site",), None, 0)
    shown = (("site", Type.VARCHAR), ("begin", Type.TIMESTAMP), ("end", Type.TIMESTAMP))
    node = replace(NO_ROWS, select=tuple((name, Column("a", name, kind)) for name, kind in shown))
    query = StandingQuery("counted", 2, node, (source,), ("site", "begin"), None)
    take(view, PLANS, encode_plan(Plan(2, 1, standing=(query,))))
    assert view.rules["counted"].names == ColumnNames(("site", "begin"), ("begin",), ("begin", "end"))


def test_what_has_no_time_follows_the_joiners_clock(view: FleetView) -> None:
    """Its alarms have the time at which tuples came to Kafka; with time besides, the frontier counts too."""
    sources = [Input("", name, f"tamis.stream.{name}.1", time, (), None, 0) for name, time in TIMES]
    for version, inputs in enumerate((sources[:1], sources), 1):
        query = StandingQuery("counted", version, NO_ROWS, tuple(inputs), ("site", "n"), None)
        take(view, PLANS, encode_plan(Plan(version, 2, standing=(query,))))
        assert view.rules["counted"].names.key == ("site", "n")
        for partition, time in enumerate((70, 80)):
            topics = {"tamis.stream.timed.1": StreamState(60 + partition, 0, 0, False)}
            record = Frontier(partition, version, topics, {}, {}, 0, 0, time)
            take(view, FRONTIERS, record.to_bytes())
        assert view._frontiers()["counted"] == (70 if version == 1 else 60)


def test_no_processed_frontiers_are_lost_between_two_threads(view: FleetView) -> None:
    """The last ones above all: nothing may come after them that would close the episodes."""
    count = 20_000
    updates = [ProcessedFrontiers({}, {"hot": number}) for number in range(count)]

    def publish() -> None:
        for update in updates:
            view._processed.append(update)

    thread = threading.Thread(target=publish)
    interval, last = sys.getswitchinterval(), -1
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        while thread.is_alive() or view._processed:
            found = view.take_processed()
            if found is not None:
                assert found.frontiers["hot"] > last
                last = found.frontiers["hot"]
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert last == count - 1
    assert view.take_processed() is None
