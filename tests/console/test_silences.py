"""Silences and acknowledgements in the console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect
from tests.console.conftest import SINCE
from tests.console.registry_in_memory import RegistryInMemory
from tests.integration.registry.conftest import Running

from tamis.durations import exact_text
from tamis.messaging.heartbeats import SinkState
from tamis.messaging.silences import Held, encode
from tamis.messaging.topic_reader import Record
from tamis.messaging.topics import EPISODES, SILENCES

pytestmark = pytest.mark.console
OPEN, OTHER, CLOSED = "9d41" * 8, "5f0c" * 8, "77aa" * 8


def test_a_silence_is_made_and_ended(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(fleet.url)
    page.get_by_role("link", name="Silences").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Silences")
    expect(page.get_by_text("There is no silence")).to_be_visible()
    form = page.get_by_role("region", name="New silence")
    button = form.get_by_role("button", name="Silence")
    button.click()
    expect(form.get_by_role("alert")).to_contain_text("would cover every alert")
    form.get_by_role("combobox", name="Alert").select_option("condensation")
    form.get_by_role("textbox", name="Label").fill("team")
    button.click()
    expect(form.get_by_role("alert")).to_contain_text("The label team has no value")
    form.get_by_role("textbox", name="Label").fill("team=ops, team=night")
    form.get_by_role("textbox", name="Key").fill("k1")
    form.get_by_role("combobox", name="For").select_option("30 minutes")
    form.get_by_role("textbox", name="Comment").fill("the cooler is being repaired")
    form.get_by_role("textbox", name="Your name").fill("Ada")
    # Enter sends a form.
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="The silence lasts until")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("no alert has a label 'team'; no alert has any")
    rows = page.get_by_role("table", name="Silences").get_by_role("row")
    expect(rows).to_have_count(1 + 1)
    for text in (
        "alert condensation",
        "key k1",
        "label team: ops or night",
        "active",
        "Ada",
        "the cooler is",
    ):
        expect(rows.nth(1)).to_contain_text(text)
    (made,) = fleet.get("silences")
    assert (made["alerts"], made["keys"], made["labels"]) == (
        ["condensation"],
        [["k1"]],
        {"team": ["ops", "night"]},
    )
    assert made["until"] - made["from"] == 1_800_000_000
    expect(rows.nth(1)).to_contain_text("nothing")
    fleet.sinks = {"log": SinkState(), "pager": SinkState(), "chat": SinkState()}
    named = {"episode": OPEN, "alert": "condensation", "key": ["k1"], "labels": {"team": "ops"}}
    opened = {**named, "event": "opened", "start": 1, "end": 2, "alarms": 1, "row": {}}
    for sink in ("pager", "chat"):
        held = Held(sink=sink, partition=0, offset=0, event={**opened, "severity": None})
        fleet.store.reports.put(Record(SILENCES, 0, 0, held.record_key, encode(held)))
    expect(rows.nth(1)).to_contain_text("2 openings of 1 episode", timeout=20_000)
    rows.nth(1).get_by_role("button", name="End the silence of alert condensation").click()
    expect(page.get_by_text("The silence has ended.")).to_be_visible()
    expect(page.get_by_text("There is no silence")).to_be_visible()
    assert fleet.get("silences") == []


def test_an_alert_leads_to_a_silence_of_it(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/condensation")
    page.get_by_role("main").get_by_role("link", name="Silence").click()
    expect(page.get_by_role("combobox", name="Alert")).to_have_value("condensation")


def test_what_the_registry_refuses_is_told(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/silences?alert=condensatoin")
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("alert")).to_contain_text("there is no alert 'condensatoin'")


def event(episode: str, key: str, event: str) -> dict[str, Any]:
    return {
        "alert": "damp",
        "key": [key],
        "episode": episode,
        "event": event,
        "start": SINCE,
        "end": SINCE,
        "alarms": 1,
        "row": {"rh": 95.5},
        "severity": "page",
        "labels": {},
    }


@pytest.fixture
def episodes(with_kafka: Running) -> Iterator[Running]:
    """An alert `damp` with two open episodes and a closed one."""
    with_kafka.sql("CREATE ALERT damp AS SELECT station, rh FROM air WHERE rh > 90;")
    producer = Producer({"bootstrap.servers": with_kafka.bootstrap})
    for one in (event(OPEN, "k1", "opened"), event(OTHER, "k2", "opened"), event(CLOSED, "k3", "closed")):
        producer.produce(EPISODES, orjson.dumps(one), b"k", 0)
    assert producer.flush(30) == 0
    yield with_kafka
    with_kafka.sql("DROP ALERT damp;")


def test_an_open_episode_is_acknowledged_and_silenced(episodes: Running, page: Page) -> None:
    page.goto(f"{episodes.server.url}/#/alerts/damp")
    table = page.get_by_role("table", name="Episodes")
    expect(table.get_by_role("row")).to_have_count(1 + 3)
    row, other = (
        table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=k)) for k in ("k1", "k2")
    )
    # Nobody has to look after an episode that is closed.
    expect(table.get_by_role("button", name="Acknowledge")).to_have_count(2)
    row.get_by_role("button", name="Acknowledge").click()
    dialog = page.get_by_role("dialog", name="Acknowledge the episode of key k1?")
    dialog.get_by_role("textbox", name="Your name").fill("Ada")
    dialog.get_by_role("textbox", name="Comment").fill("on my way")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("The episode of key k1 is acknowledged.")).to_be_visible()
    expect(row).to_contain_text("by Ada: on my way")
    assert [one["episode"] for one in episodes.get("acknowledgements")] == [OPEN]
    row.get_by_role("button", name="Take back").click()
    acknowledge = "Acknowledge the episode of key k1"
    expect(row.get_by_role("button", name=acknowledge, exact=True)).to_be_visible()
    assert episodes.get("acknowledgements") == []
    row.get_by_role("link", name="Silence key k1").click()
    expect(page.get_by_role("textbox", name="Key")).to_have_value("k1")
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("table", name="Silences")).to_contain_text("key k1")
    page.go_back()
    expect(row).to_contain_text("silenced")
    # It opened before there was a silence.
    expect(row).to_contain_text("its opening was sent before, so its close will be sent, too")
    expect(other).not_to_contain_text("silenced")
    row.get_by_role("link", name="silenced").click()
    page.get_by_role("button", name="End the silence").click()
    expect(page.get_by_text("There is no silence")).to_be_visible()


def test_times_in_keys_are_shown_as_times(with_kafka: Running, page: Page) -> None:
    with_kafka.sql(
        "CREATE STREAM ovens (oven VARCHAR KEY, batch TIMESTAMP KEY, ts TIMESTAMP, temp DOUBLE, "
        "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"
        "CREATE ALERT hot_batch AS SELECT oven, batch, temp FROM ovens WHERE temp > 300;"
    )
    opened = {**event(OPEN, "k1", "opened"), "alert": "hot_batch", "key": ["k1", SINCE]}
    producer = Producer({"bootstrap.servers": with_kafka.bootstrap})
    producer.produce(EPISODES, orjson.dumps(opened), b"k", 0)
    assert producer.flush(30) == 0
    try:
        page.goto(f"{with_kafka.server.url}/#/alerts/hot_batch")
        key = f"k1, {exact_text(SINCE)}"
        expect(page.get_by_role("table", name="Episodes").get_by_role("rowheader")).to_have_text(key)
        expect(page.get_by_role("button", name=f"Acknowledge the episode of key {key}")).to_be_visible()
    finally:
        with_kafka.sql("DROP ALERT hot_batch; DROP STREAM ovens;")
