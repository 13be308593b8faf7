"""Rates, watermarks and topics of a stream, and the progress of the joiner, in the console."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect
from tests.console.conftest import SINCE, SQL
from tests.console.registry_in_memory import RegistryInMemory

pytestmark = pytest.mark.console


def test_a_stream_shows_its_readings_by_decision(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/streams/air")
    region = page.get_by_role("region", name="Readings", exact=True)
    decisions = region.get_by_role("table", name="Readings by decision")
    for decision in ("published", "omitted", "filtered", "aggregated", "late", "dead"):
        expect(decisions.get_by_role("row", name=re.compile(f"^{decision}"))).to_be_visible()
    expect(decisions.get_by_role("row", name=re.compile("^omitted"))).to_contain_text(
        re.compile(r"[1-9]\d* /s")
    )
    expect(region.get_by_role("meter", name="Retained share")).to_have_attribute("value", "0.25")
    expect(region).to_contain_text("25 %")


def test_a_stream_shows_how_far_its_shards_are(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/streams/air")
    row = page.get_by_role("table", name="Shards").get_by_role("row", name="air:kitchen/air")
    # Watermark and activation.
    expect(row.get_by_text("2023-11-14T22:13:20Z")).to_have_count(2)
    expect(row).to_contain_text(re.compile(r"[1-9]\d* /s"))


def test_a_stream_shows_its_topics_with_readers_and_filters(fleet: RegistryInMemory, page: Page) -> None:
    fleet.sql("CREATE ALERT damp AS SELECT station FROM air WHERE rh > 90;")
    page.goto(f"{fleet.url}/#/streams/air")
    topic = page.get_by_role("article", name=re.compile("^Topic tamis.stream.air."))
    expect(topic.get_by_role("link", name="alert condensation (a)").first).to_be_visible()
    damp = topic.get_by_role("row", name=re.compile("^alert damp"))
    expect(damp.locator("code")).to_have_text("rh > 90")
    expect(topic.filter(has_text="live tuples, complete up to").first).to_contain_text("20 live tuples")
    # The join may omit readings, and the page says which.
    expect(topic.filter(has_text="lies between two higher ones of the same station").first).to_be_visible()
    topic.get_by_role("link", name="alert damp").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Alert damp")


def test_the_fleet_shows_how_far_the_joiner_is_and_what_holds_it_back(
    fleet: RegistryInMemory, page: Page
) -> None:
    page.goto(fleet.url)
    joiner = page.get_by_role("region", name="Joiner", exact=True)
    expect(joiner.get_by_text("running")).to_be_visible()
    reasons = joiner.get_by_role("group", name="What holds the joiner back")
    expect(reasons).to_contain_text("Partition 0 has come least far: 1 s behind partition 1.")
    expect(reasons).to_contain_text("Its slowest shard is air:kitchen/air")
    partitions = joiner.get_by_role("table", name="Partitions of the joiner").get_by_role("row")
    expect(partitions).to_have_count(1 + 2)
    expect(partitions.nth(1)).to_contain_text("2023-11-14T22:13:20Z")
    topics = joiner.get_by_role("table", name="Topics of the joiner").get_by_role("row")
    expect(topics).to_have_count(1 + 2)
    expect(
        page.get_by_role("table", name="Streams").get_by_role("row", name=re.compile("^air"))
    ).to_contain_text("25 %")


@pytest.mark.parametrize("width", [390, 1280])
def test_plans_say_when_and_why_they_were_made(fleet: RegistryInMemory, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(fleet.url)
    table = page.get_by_role("table", name="Plans")
    newest, *_ = fleet.get("plans")
    made = datetime.fromtimestamp(newest["made"] // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    expect(table.get_by_text(made).first).to_be_visible()
    expect(table).to_contain_text("Why it was made: shard air:kitchen/air came")
    expect(table).to_contain_text("CREATE ALERT condensation WITH (max_delay = '5 seconds') AS")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_the_reason_why_joins_wait_is_in_sight(empty: RegistryInMemory, page: Page, width: int) -> None:
    empty.sql(SQL)
    edge = "-".join(["kitchen"] * 12)
    empty.settle(("air", "surface"), live=1234, activation=SINCE, edge=edge)
    empty.keeps_up.clear()
    empty.sql("CREATE ALERT damp AS SELECT station FROM air WHERE rh > 90;")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(empty.url)
    table = page.get_by_role("region", name="Topics of the joiner")
    why = table.get_by_text(f"shard air:{edge}/air does not obey plan").first
    expect(why).to_contain_text("Why it waits:")
    why.scroll_into_view_if_needed()
    text, around = why.bounding_box(), table.bounding_box()
    assert text is not None and around is not None
    assert around["x"] <= text["x"] and text["x"] + text["width"] <= around["x"] + around["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The text wraps.
    assert text["height"] > 1.8 * page.evaluate("parseFloat(getComputedStyle(document.body).lineHeight)")


def test_a_joiner_that_uses_an_old_plan_needs_attention(fleet: RegistryInMemory, page: Page) -> None:
    fleet.sql("CREATE ALERT damp AS SELECT station FROM air WHERE rh > 90;")
    page.goto(fleet.url)
    expect(page.get_by_text("Nothing needs attention")).to_be_visible()
    fleet.keeps_up.clear()
    fleet.sql("CREATE ALERT wet AS SELECT station FROM air WHERE rh > 95;")
    attention = page.get_by_role("region", name="Needs attention")
    # It counts as behind only after some seconds.
    expect(attention).to_contain_text("partition 0 uses plan", timeout=40_000)
    expect(attention.get_by_text("the joiner", exact=True).first).to_be_visible()
    expect(page.get_by_role("region", name="Joiner", exact=True)).to_contain_text("Why behind:")


def test_an_alert_shows_what_the_joiner_keeps_for_it(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/condensation")
    kept = page.get_by_role("table", name="Definitions in the joiner").get_by_role("row")
    expect(kept).to_have_count(1 + 1)
    expect(kept.nth(1)).to_contain_text("condensation@")
    expect(kept.nth(1)).to_contain_text("1,234 of 19,860,000")


def test_a_fleet_without_a_joiner_says_so(empty: RegistryInMemory, page: Page) -> None:
    page.goto(empty.url)
    joiner = page.get_by_role("region", name="Joiner", exact=True)
    expect(joiner).to_contain_text("the joiner has reported nothing yet")
