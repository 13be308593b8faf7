"""Lines about partial aggregates and readings on the page of an alert, in a real Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.console.registry_in_memory import RegistryInMemory

pytestmark = pytest.mark.console

ROWS = (
    "SELECT station, window_end, {} AS m FROM TUMBLE(air, ts, INTERVAL '{}' MINUTE)"
    " GROUP BY station, window_end"
)
SHARED = (
    f"CREATE ALERT mean AS {ROWS.format('avg(temp)', 1)}; CREATE ALERT most AS {ROWS.format('max(temp)', 5)};"
)
WIDTHS = (1280, 390)


@pytest.mark.parametrize("width", WIDTHS)
def test_alert_says_what_edges_send_and_with_whom_it_shares_the_rows(
    fleet: RegistryInMemory, page: Page, width: int
) -> None:
    fleet.sql(SHARED)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{fleet.url}/#/alerts/mean")
    sent = page.get_by_role("region", name="Explanation").get_by_role("list", name="Sent of air")
    lines = sent.get_by_role("listitem")
    expect(lines.nth(0)).to_have_text(
        "sent to Kafka: partial aggregates, for each station and pane between multiples of 60 s and 300 s"
        " a row with the count of readings, count, sum and greatest value of temp"
    )
    expect(lines.nth(1)).to_have_text(
        re.compile(r"^in topic tamis\.stream\.air\.\d, shared with alert most: ")
    )
    expect(lines.nth(2)).to_contain_text("a shard sends about")
    place = sent.bounding_box()
    assert place is not None and place["x"] >= 0 and place["x"] + place["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # One alert less: the page follows the plan, not the text of the alert.
    fleet.sql("DROP ALERT most;")
    page.reload()
    expect(lines.nth(1)).to_have_text(re.compile(r"^in topic tamis\.stream\.air\.\d$"))


def test_join_by_time_has_only_its_omission(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/condensation")
    explanation = page.get_by_role("region", name="Explanation")
    expect(explanation).to_contain_text("What edges omit")
    expect(explanation.get_by_role("list", name=re.compile("Sent of"))).to_have_count(0)


def test_readings_that_go_one_by_one_have_their_reason(fleet: RegistryInMemory, page: Page) -> None:
    fleet.sql(f"CREATE ALERT mean WITH (edge = 'raw') AS {ROWS.format('avg(temp)', 1)};")
    page.goto(f"{fleet.url}/#/alerts/mean")
    expect(page.get_by_role("list", name="Sent of air").get_by_role("listitem")).to_have_text(
        ["sent to Kafka: readings one by one, since the alert says WITH (edge = 'raw')"]
    )
