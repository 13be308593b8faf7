"""Rates, watermarks and topics of a stream, and the progress of the joiner, in the console."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.console.registry_in_memory import RegistryInMemory

pytestmark = pytest.mark.console


def test_a_stream_shows_its_readings_by_decision(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/streams/air")
    region = page.get_by_role("region", name="Readings", exact=True)
    decisions = region.get_by_role("table", name="Readings by decision")
    for decision in ("published", "omitted", "filtered", "late", "dead"):
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
