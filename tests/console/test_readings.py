"""Pages with alarms, episodes, readings and dead letters of a real broker."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect
from tests.console.conftest import SINCE
from tests.integration.registry.conftest import Running

from tamis.messaging.topics import ALARMS, DEAD_LETTERS, EPISODES

pytestmark = pytest.mark.console
SECOND = 1_000_000


def reading(number: int) -> dict[str, Any]:
    return {"station": "k1", "ts": SINCE + 7 * number * SECOND, "temp": 21.5 + number % 3, "rh": 60 + number}


def alarm(number: int) -> dict[str, Any]:
    a = reading(number)
    return {
        "alert": "condensation",
        "id": f"id{number}",
        "key": ["k1"],
        "event_time": a["ts"],
        "row": {"station": "k1", "ts": a["ts"], "dew": 3.5 + number, "surface": 3.0},
        "tuples": {
            "a": a,
            "s": {"station": "k1", "ts": a["ts"] - 2 * SECOND, "temp": 4.25 - number / 8},
        },
        "plan": 3,
        "definition": 2,
        "arrived": a["ts"] + 2 * SECOND,
    }


def episode(event: str, alarms: int) -> dict[str, Any]:
    return {
        "alert": "condensation",
        "key": ["k1"],
        "episode": "9d41",
        "event": event,
        "start": SINCE,
        "end": SINCE + 49 * SECOND,
        "alarms": alarms,
        "row": {"dew": 3.5},
        "severity": "page",
        "labels": {"team": "ops"},
    }


@pytest.fixture(scope="module")
def records(with_kafka: Running) -> Running:
    """Eight readings of `air`, an alarm of each and one of them twice, an episode, and three dead letters."""
    producer = Producer({"bootstrap.servers": with_kafka.bootstrap})
    (topic,) = with_kafka.get("streams/air")["topics"]
    envelope = {"shard": "air:kitchen/motes", "plan": 3, "activation": SINCE}
    began = time.time_ns() // 1_000_000
    for number in range(8):
        # Records of two partitions have an order only by their times.
        value, at = orjson.dumps({**reading(number), "_": envelope}), began + number
        producer.produce(topic, value, b'["k1"]', number % 2, timestamp=at)
        producer.produce(ALARMS, orjson.dumps(alarm(number)), b"k", number % 2, timestamp=at)
    producer.produce(ALARMS, orjson.dumps(alarm(3)), b"k", 1)
    producer.produce(ALARMS, orjson.dumps({**alarm(0), "alert": "other", "id": "x"}), b"k", 0)
    producer.produce(EPISODES, orjson.dumps(episode("opened", 1)), b"k", 0)
    producer.produce(EPISODES, orjson.dumps(episode("closed", 8)), b"k", 0)
    for number, reason in enumerate(("undecodable", "undecodable", "out_of_domain")):
        headers: dict[str, str | bytes | None] = {
            "service": "edge",
            "source.topic": "motes",
            "source.partition": "0",
            "source.offset": str(number),
            "reason": reason,
            "error": "ts: not a time",
        }
        text = f'{{"station": "<b>k{number}</b>", "ts": "never"{" " * 200}}}'
        producer.produce(DEAD_LETTERS, text.encode(), headers=headers)
    assert producer.flush(30) == 0
    return with_kafka


def test_an_alert_shows_its_alarms_and_the_readings_that_raised_them(records: Running, page: Page) -> None:
    page.goto(f"{records.server.url}/#/alerts/condensation")
    alarms = page.get_by_role("table", name="Alarms", exact=True)
    expect(alarms.get_by_role("row")).to_have_count(1 + 8)
    newest = alarms.get_by_role("row").nth(1)
    expect(newest).to_contain_text("2023-11-14T22:14:09Z")
    expect(newest).to_contain_text("dew 10.5")
    expect(newest).to_contain_text("a station k1")
    # The chart has the readings of both streams, each once, and says so in words.
    chart = page.get_by_role("figure").filter(has_text="Readings that raised these alarms")
    expect(chart).to_contain_text("a.temp: 21.5 to 23.5")
    expect(chart).to_contain_text("s.temp: 3.375 to 4.25")
    expect(chart.locator("canvas")).to_be_visible()
    episodes = page.get_by_role("table", name="Episodes")
    expect(episodes.get_by_role("row")).to_have_count(2)
    expect(episodes.get_by_role("row").nth(1)).to_contain_text("closed")
    expect(episodes.get_by_role("row").nth(1)).to_contain_text("page")


def test_a_stream_shows_its_newest_readings(records: Running, page: Page) -> None:
    page.goto(f"{records.server.url}/#/streams/air")
    rows = page.get_by_role("table", name="Newest readings").get_by_role("row")
    expect(rows).to_have_count(1 + 8)
    expect(rows.nth(1)).to_contain_text("2023-11-14T22:14:09Z")
    expect(rows.nth(1)).to_contain_text("67")
    expect(page.get_by_role("figure").filter(has_text="air.rh: 60 to 67").locator("canvas")).to_be_visible()
    expect(page.get_by_text("kitchen/motes")).to_have_count(0)  # the envelope is no column


def test_dead_letters_are_counted_and_chosen_by_reason(records: Running, page: Page) -> None:
    page.goto(f"{records.server.url}/#/dead-letters")
    rows = page.get_by_role("table", name="Dead letters").get_by_role("row")
    expect(rows).to_have_count(1 + 3)
    page.get_by_role("radio", name="undecodable (2)").check()
    expect(rows).to_have_count(1 + 2)
    page.get_by_role("radio", name="out_of_domain (1)").check()
    expect(rows).to_have_count(1 + 1)
    # Markup of a record is text.
    expect(rows.nth(1)).to_contain_text("<b>k2</b>")
    expect(page.locator("b")).to_have_count(0)
    page.locator("summary").click()
    expect(page.locator("details[open] pre")).to_contain_text('"never"')


def test_a_chart_that_cannot_be_loaded_is_told(records: Running, page: Page) -> None:
    page.route("**/PlottedReadings-*.js", lambda route: route.fulfill(status=404))
    page.goto(f"{records.server.url}/#/streams/air")
    figure = page.get_by_role("figure").filter(has_text="air.rh: 60 to 67")
    expect(figure.get_by_role("alert")).to_contain_text("The chart could not be loaded")
    page.unroute("**/PlottedReadings-*.js")
    figure.get_by_role("button", name="Reload the page").click()
    expect(figure.locator("canvas")).to_be_visible()
