"""Trials in the editor, on the readings of a real broker: alarms, cancelling by keyboard, refusals."""

from __future__ import annotations

import time
from collections.abc import Iterator

import orjson
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, Route, expect
from tests.console.conftest import SINCE
from tests.integration.registry.conftest import Running

pytestmark = pytest.mark.console
SECOND = 1_000_000
OVENS = """
CREATE STREAM oven (name VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, rh DOUBLE, WATERMARK FOR ts AS ts);
CREATE ALERT warm AS SELECT name, ts, temp FROM oven WHERE temp > 10;
"""
HOT = "CREATE ALERT hot AS SELECT name, ts, ts AS seen, temp FROM oven WHERE temp > 205;"


@pytest.fixture(scope="module")
def ovens(with_kafka: Running) -> Iterator[Running]:
    """Twelve readings of `oven`, a second apart, from 200 to 211 degrees."""
    with_kafka.sql(OVENS)
    (topic,) = with_kafka.get("streams/oven")["topics"]
    producer = Producer({"bootstrap.servers": with_kafka.bootstrap})
    began = time.time_ns() // 1_000_000
    for number in range(12):
        reading = {"name": "one", "ts": SINCE + number * SECOND, "temp": 200.0 + number}
        value = {**reading, "_": {"shard": "oven:kitchen/ovens", "plan": 3, "activation": SINCE}}
        producer.produce(topic, orjson.dumps(value), b'["one"]', 0, timestamp=began + number)
    assert producer.flush(30) == 0
    yield with_kafka
    with_kafka.sql("DROP ALERT warm; DROP STREAM oven;")


def write(page: Page, ovens: Running, text: str) -> None:
    page.goto(f"{ovens.server.url}/#/new")
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.insert_text(text)


def test_a_text_is_tried_and_shows_its_alarms(ovens: Running, page: Page) -> None:
    write(page, ovens, HOT)
    button = page.get_by_role("button", name="Try it on recent readings")
    expect(button).to_be_enabled()
    button.click()
    trial = page.get_by_role("region", name="Trial", exact=True)
    expected = ovens.call("POST", "/v1/try", HOT).json()
    assert expected["row_count"] == 6
    expect(trial.get_by_role("status")).to_have_text("Trial of hot: 6 alarms from 12 readings.")
    rows = trial.get_by_role("table", name="Trial: alarms").get_by_role("row")
    expect(rows).to_have_count(1 + 6)
    assert rows.nth(1).get_by_role("cell").all_inner_texts() == [
        "one",
        "2023-11-14T22:13:26Z",
        "2023-11-14T22:13:26Z",
        "206",
    ]
    figure = trial.get_by_role("figure")
    expect(figure).to_contain_text("hot.temp: 206 to 211")
    expect(figure).not_to_contain_text("seen")
    expect(figure.locator("canvas")).to_be_visible()
    sent = expected["inputs"]["oven"]["retained"]
    expect(
        trial.get_by_role("list", name="Readings that were looked at").get_by_role("listitem")
    ).to_have_text(
        "oven: 12 readings over 11 s, from 2023-11-14T22:13:20Z on; "
        f"edges would send {sent} ({100 * sent // 12} %)."
    )
    expect(trial.get_by_text(expected["note"])).to_be_visible()
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\n-- later")
    expect(trial.get_by_text("The text has changed since this trial.")).to_be_visible()
    assert "hot" not in {alert["name"] for alert in ovens.get("alerts")}


def test_one_of_several_queries_is_chosen(ovens: Running, page: Page) -> None:
    write(page, ovens, f"{HOT} CREATE ALERT cold AS SELECT name, ts FROM oven WHERE temp < 5;")
    trial = page.get_by_role("region", name="Trial", exact=True)
    button = trial.get_by_role("button", name="Try it on recent readings")
    chosen = trial.get_by_role("combobox", name="Query")
    expect(chosen).to_have_value("cold")
    button.click()
    expect(trial.get_by_text("These readings raise no alarm.")).to_be_visible()
    chosen.select_option("hot")
    button.click()
    expect(trial.get_by_role("table", name="Trial: alarms").get_by_role("row")).to_have_count(1 + 6)


def test_a_trial_is_begun_and_cancelled_by_keyboard(ovens: Running, page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)  # there is no answer

    page.route("**/v1/try?**", hold)
    write(page, ovens, HOT)
    trial = page.get_by_role("region", name="Trial", exact=True)
    button = trial.get_by_role("button", name="Try it on recent readings")
    expect(button).to_be_enabled()
    button.focus()
    page.keyboard.press("Enter")
    expect(trial.get_by_role("status")).to_contain_text("running the query")
    expect(button).to_be_focused()
    page.keyboard.press("Tab")
    expect(trial.get_by_role("button", name="Cancel trial")).to_be_focused()
    with page.expect_event("requestfailed"):
        page.keyboard.press("Enter")
    expect(button).to_be_focused()
    expect(trial.get_by_role("button", name="Cancel trial")).to_have_count(0)
    expect(trial.get_by_role("alert")).to_have_count(0)
    page.unroute("**/v1/try?**")
    page.keyboard.press("Enter")
    expect(trial.get_by_role("table", name="Trial: alarms").get_by_role("row")).to_have_count(1 + 6)
    assert len(held) == 1


def test_a_trial_says_why_it_is_not_possible(ovens: Running, page: Page) -> None:
    write(page, ovens, "CREATE ALERT damp AS SELECT name, rh FROM oven WHERE rh > 80;")
    trial = page.get_by_role("region", name="Trial", exact=True)
    trial.get_by_role("button", name="Try it on recent readings").click()
    refusal = trial.get_by_role("alert")
    expect(refusal).to_contain_text("no topic of stream oven has rh, since no query in service reads it")
    expect(refusal).to_contain_text("tamis run")
