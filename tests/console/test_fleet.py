"""The console of a running fleet: every page, and the life of an alert from a mistake to its end."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.console.running_fleet import STATIONS, running_fleet

from tamis.local.fleet import Fleet

pytestmark = [pytest.mark.console, pytest.mark.timeout(580)]
# A plan reaches edge and joiner, and an alarm the page, within seconds; on a busy machine within minutes.
SOON = 120_000
WRONG = "CREATE ALERT warm AS SELECT station, ts, temp FROM air WHERE tmep > 10;"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet whose sensors send readings."""
    with running_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


def title(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def test_every_page_of_a_running_fleet(live: Fleet, page: Page) -> None:
    page.goto(live.registry_url)
    title(page, "Fleet")
    alerts = page.get_by_role("table", name="Alerts")
    expect(alerts.get_by_role("row", name="condensation")).to_contain_text("running", timeout=SOON)
    shards = page.get_by_role("table", name="Edges and their shards").get_by_role("row")
    expect(shards).to_have_count(1 + 2)
    findings = page.get_by_role("region", name="Needs attention").get_by_role("listitem")
    finding = findings.filter(has_text="became dead letters")
    expect(finding).to_contain_text("stream air", timeout=SOON)
    expect(finding.get_by_role("link", name="dead letters")).to_be_visible()
    page.get_by_role("table", name="Streams").get_by_role("link", name="air").click()
    title(page, "Stream air")
    readings = page.get_by_role("table", name="Newest readings")
    expect(readings).to_contain_text("k1", timeout=SOON)
    page.get_by_role("table", name="Alerts that read the stream").get_by_role("link").click()
    title(page, "Alert condensation")
    expect(page.get_by_role("region", name="Explanation")).to_contain_text("alert condensation accepted")
    # The alarms come while the page is open.
    expect(page.get_by_role("table", name="Alarms", exact=True)).to_contain_text("dew", timeout=SOON)
    expect(page.get_by_role("table", name="Episodes")).to_contain_text("k", timeout=SOON)
    expect(page.get_by_role("figure").locator("canvas")).to_be_visible()
    page.get_by_role("link", name="Silences").click()
    title(page, "Silences")
    form = page.get_by_role("region", name="New silence")
    form.get_by_role("combobox", name="Alert").select_option("condensation")
    form.get_by_role("textbox", name="Key").fill("k1")
    form.get_by_role("button", name="Silence").click()
    silences = page.get_by_role("table", name="Silences")
    expect(silences).to_contain_text("key k1")
    silences.get_by_role("button", name="End the silence").click()
    expect(page.get_by_text("There is no silence")).to_be_visible()
    page.get_by_role("link", name="Dead letters").click()
    title(page, "Dead letters")
    expect(page.get_by_role("radio", name="out_of_domain")).to_be_visible(timeout=SOON)
    page.get_by_role("link", name="New alert").click()
    title(page, "New alert")
    expect(page.get_by_role("textbox", name="SQL")).to_be_visible()


def test_the_life_of_an_alert(live: Fleet, page: Page) -> None:
    page.goto(f"{live.registry_url}/#/new")
    editor = page.get_by_role("textbox", name="SQL")
    editor.click()
    page.keyboard.insert_text(WRONG)
    apply, attempt = (
        page.get_by_role("button", name=name) for name in ("Apply", "Try it on recent readings")
    )
    mistake = page.get_by_role("listitem").filter(has_text="did you mean 'temp'?")
    expect(mistake).to_be_visible()
    expect(apply).to_be_disabled()
    expect(attempt).to_be_disabled()
    mistake.get_by_role("button").click()
    for _ in "tmep":
        page.keyboard.press("Delete")
    page.keyboard.type("temp")
    explanation = page.get_by_role("region", name="Explanation")
    expect(explanation).to_contain_text("alert warm accepted")
    expect(explanation).to_contain_text("bounded")
    attempt.click()
    trial = page.get_by_role("region", name="Trial", exact=True)
    expect(trial.get_by_role("table", name="Trial: alarms").get_by_role("row").nth(STATIONS)).to_be_visible()
    expect(trial.get_by_role("list", name="Readings that were looked at")).to_contain_text("air")
    apply.click()
    page.get_by_role("link", name="alert warm").click()
    title(page, "Alert warm")
    state = page.locator(".title .state")
    expect(state).to_have_text("running", timeout=SOON)
    alarms = page.get_by_role("table", name="Alarms", exact=True)
    expect(alarms.get_by_role("row").nth(STATIONS)).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Pause").click()
    expect(state).to_have_text("paused", timeout=SOON)
    page.get_by_role("button", name="Resume").click()
    expect(state).to_have_text("running", timeout=SOON)
    page.get_by_role("link", name="Replace").click()
    title(page, "Replace warm")
    editor.click()
    page.keyboard.press("Control+End")
    for _ in "10;\n":
        page.keyboard.press("Backspace")
    page.keyboard.type("11;")
    expect(explanation).to_contain_text("temp > 11")
    apply.click()
    expect(page.get_by_text("replaced alert warm")).to_be_visible()
    page.get_by_role("link", name="alert warm").click()
    expect(page.get_by_role("region", name="SQL")).to_contain_text("temp > 11")
    expect(state).to_have_text("running", timeout=SOON)
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop alert").click()
    title(page, "Fleet")
    expect(page.get_by_role("table", name="Alerts").get_by_role("link", name="warm")).to_have_count(0)
    assert httpx.get(f"{live.registry_url}/v1/alerts/warm").status_code == httpx.codes.NOT_FOUND
