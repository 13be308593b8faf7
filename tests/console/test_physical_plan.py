"""The physical plan on the page of an alert, in a real Chromium."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.console.registry_in_memory import RegistryInMemory

pytestmark = pytest.mark.console

WINDOWS = """CREATE ALERT mean AS SELECT station, window_end, avg(temp) AS m
  FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) GROUP BY station, window_end;"""


def test_boxes_of_operators_go_from_edges_to_the_joiner(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/condensation")
    plan = page.get_by_role("region", name="Physical plan").get_by_role("region", name="Operators")
    boxes = plan.locator(".operator")
    expect(boxes).to_have_count(3)
    # In the order of the rows, which is also that of reading.
    expect(boxes.locator("strong")).to_have_text(["Scan air as a", "Scan surface as s", "TimeJoin"])
    expect(boxes.locator(".place")).to_have_text(["edge", "edge", "joiner"])
    places = [box.bounding_box() for box in boxes.all()]
    scan, _, join = [one for one in places if one is not None]
    assert scan["x"] + scan["width"] < join["x"]
    expect(boxes.nth(0)).to_contain_text("a tuple between two higher ones within 60 s is omitted")
    bound = f"{fleet.get('alerts')[0]['bound']:,}"
    expect(boxes.nth(2)).to_contain_text(f"at most {bound} tuples")
    expect(boxes.nth(2)).to_contain_text("tuples of a for 992 s and of s for 992 s of event time")


def test_tree_is_there_as_text(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/condensation")
    plan = page.get_by_role("region", name="Physical plan")
    plan.get_by_text("As text").click()
    text = plan.locator("pre").inner_text()
    lines = text.splitlines()
    assert lines[0] == "TimeJoin  (joiner)" and "  ->  Scan surface as s  (edge)" in lines


def test_plan_of_a_paused_alert_comes_back_when_it_is_resumed(fleet: RegistryInMemory, page: Page) -> None:
    fleet.sql(f"{WINDOWS} PAUSE ALERT mean;")
    page.goto(f"{fleet.url}/#/alerts/mean")
    plan = page.get_by_role("region", name="Physical plan")
    expect(plan).to_contain_text("There is no plan: the alert is paused")
    fleet.sql("RESUME ALERT mean;")
    expect(plan.locator(".operator strong")).to_have_text(["Scan air", "PartialAggregates", "Windows"])


def test_boxes_stand_below_each_other_on_a_phone(fleet: RegistryInMemory, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{fleet.url}/#/alerts/condensation")
    boxes = page.locator(".operator")
    expect(boxes).to_have_count(3)
    places = [one for box in boxes.all() if (one := box.bounding_box()) is not None]
    assert [one["y"] for one in places] == sorted(one["y"] for one in places)
    assert all(one["x"] + one["width"] <= 390 for one in places)


def test_registry_without_the_plan_says_so(fleet: RegistryInMemory, page: Page) -> None:
    def refuse(route: object) -> None:
        route.fulfill(status=503, json={"title": "Not available now", "detail": "Kafka is away"})  # type: ignore[attr-defined]

    page.route("**/v1/alerts/condensation/plan", refuse)
    page.goto(f"{fleet.url}/#/alerts/condensation")
    expect(page.get_by_role("region", name="Physical plan")).to_contain_text("Kafka is away")
    assert httpx.get(f"{fleet.url}/v1/alerts/condensation/plan").status_code == httpx.codes.OK
