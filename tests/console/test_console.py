"""The console in a real Chromium, against the real application of a registry."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.console.registry_in_memory import RegistryInMemory

from tamis.messaging.heartbeats import SinkState

pytestmark = pytest.mark.console


def test_an_empty_fleet_says_what_to_do(empty: RegistryInMemory, page: Page) -> None:
    page.goto(empty.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
    expect(page.get_by_text("There is no alert yet, and no stream.")).to_be_visible()
    expect(page.get_by_text("No edge has reported yet.")).to_be_visible()
    page.get_by_role("link", name="New alert").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("New alert")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_the_fleet_shows_what_the_api_says(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(fleet.url)
    alerts = page.get_by_role("table", name="Alerts")
    row = alerts.get_by_role("row", name="condensation")
    expect(row).to_contain_text("running")
    expect(row).to_contain_text(f"1,234 of {fleet.get('alerts')[0]['bound']:,}")
    expect(page.get_by_text("Nothing needs attention")).to_be_visible()
    edges = page.get_by_role("table", name="Edges and their shards")
    expect(edges.get_by_role("row")).to_have_count(3)
    expect(edges.get_by_role("time").first).to_have_attribute("datetime", "2023-11-14T22:13:20Z")
    assert re.search(r"20\d\d", edges.get_by_role("time").first.get_attribute("title") or "")


def test_a_reason_stands_once_above_the_tables(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(fleet.url)
    expect(page.get_by_text("Nothing needs attention")).to_be_visible()
    fleet.keeps_up.clear()
    fleet.sql("CREATE ALERT dry AS SELECT station, rh FROM air WHERE rh < 5;")
    findings = page.get_by_role("region", name="Needs attention")
    expect(findings).to_contain_text("the joiner has not taken up plan")
    expect(findings.get_by_role("link", name="alert dry").first).to_be_visible()


def test_a_source_that_fails_needs_attention(fleet: RegistryInMemory, page: Page) -> None:
    fleet.failing = {"motes": "connection refused"}
    page.goto(fleet.url)
    findings = page.get_by_role("region", name="Needs attention")
    expect(findings).to_contain_text("source motes fails: connection refused")
    expect(findings).to_contain_text("edge kitchen")


def test_readings_that_became_dead_letters_need_attention_and_lead_to_these(
    fleet: RegistryInMemory, page: Page
) -> None:
    page.goto(fleet.url)
    expect(page.get_by_text("Nothing needs attention")).to_be_visible()
    fleet.dead = 3
    findings = page.get_by_role("region", name="Needs attention").get_by_role("listitem")
    finding = findings.filter(has_text="became dead letters").filter(has_text="stream air")
    expect(finding).to_contain_text(
        re.compile(r"shard air:kitchen/air: 3 of [\d,]+ readings"), timeout=30_000
    )
    finding.get_by_role("link", name="dead letters").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dead letters")


def test_an_edge_without_shards_is_listed_with_its_failing_source(
    empty: RegistryInMemory, page: Page
) -> None:
    empty.live("roof", {"plant": "connection refused"})
    page.goto(empty.url)
    row = page.get_by_role("table", name="Edges").get_by_role("row").filter(has_text="roof")
    expect(row).to_contain_text("waiting")
    expect(row).to_contain_text("has no shard: none of its sources has had a reading yet")
    findings = page.get_by_role("region", name="Needs attention")
    expect(findings).to_contain_text("source plant fails: connection refused")
    expect(findings).to_contain_text("edge roof")


def test_a_joiner_that_hangs_is_above_everything_else(fleet: RegistryInMemory, page: Page) -> None:
    fleet.failing = {"motes": "connection refused"}
    page.goto(fleet.url)
    findings = page.get_by_role("region", name="Needs attention").get_by_role("listitem")
    expect(findings.first).to_contain_text("source motes fails")
    fleet.joiner_hangs.set()
    silent = "the joiner has reported nothing since"
    expect(findings.first).to_contain_text(silent, timeout=40_000)
    expect(findings.first).to_contain_text("silent")
    expect(findings.first.get_by_role("link", name="alert condensation")).to_be_visible()
    # Answers of different moments have one reason.
    expect(page.get_by_role("region", name="Needs attention").get_by_text(silent)).to_have_count(1)
    joiner = page.get_by_role("region", name="Joiner")
    expect(joiner.get_by_role("group", name="What holds the joiner back")).to_have_count(0)
    fleet.joiner_hangs.clear()
    expect(findings.first).to_contain_text("source motes fails", timeout=20_000)


def test_a_sink_that_takes_nothing_needs_attention(fleet: RegistryInMemory, page: Page) -> None:
    fleet.sinks = {"log": SinkState(), "pager": SinkState(waiting=3, error="HTTP status 503")}
    page.goto(fleet.url)
    told = "sink pager: 3 notifications wait: HTTP status 503"
    expect(page.get_by_role("region", name="Needs attention")).to_contain_text(told, timeout=20_000)
    sinks = page.get_by_role("table", name="Sinks of notifications")
    expect(sinks.get_by_role("row", name="pager")).to_contain_text("failing")
    expect(sinks.get_by_role("row", name="log")).to_contain_text("delivering")


def test_a_stream_shows_shards_topics_and_readers(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(fleet.url)
    page.get_by_role("table", name="Streams").get_by_role("link", name="air").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Stream air")
    shards = page.get_by_role("table", name="Shards")
    expect(shards.get_by_role("row", name="air:kitchen/air")).to_contain_text("active")
    expect(page.get_by_text(fleet.get("streams/air")["topics"][0]).first).to_be_visible()
    expect(page.get_by_role("table", name="Alerts that read the stream")).to_contain_text("condensation")


def test_an_alert_without_omission_is_named_where_a_user_asks_why_all_is_retained(
    fleet: RegistryInMemory, page: Page
) -> None:
    sql = fleet.get("alerts/condensation")["sql"]
    fast = re.sub(r"condensation WITH \(max_delay = '[^']*'\)", "fast WITH (max_delay = '0')", sql)
    fleet.sql(f"{fast};")
    page.goto(f"{fleet.url}/#/streams/air")
    topic = fleet.get("streams/air")["topics"][0]
    readers = page.get_by_role("table", name=f"Readers of {topic}").get_by_role("row")
    expect(readers.filter(has_text="alert fast")).to_contain_text("omits nothing: max_delay = 0")
    expect(readers.filter(has_text="alert condensation")).to_contain_text("60 s")
    expect(page.get_by_text("Nothing is omitted: with max_delay = 0").first).to_be_visible()
    page.goto(f"{fleet.url}/#/alerts/condensation")
    topics = page.get_by_role("table", name="Topics of the alert")
    row = topics.get_by_role("row").filter(has_text=topic)
    expect(row).to_contain_text("alert fast (a) omits nothing: max_delay = 0")
    row.get_by_role("link", name="alert fast").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Alert fast")
    expect(topics.get_by_role("row").filter(has_text=topic)).to_contain_text("none")


def test_an_alert_is_paused_resumed_and_dropped(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/condensation")
    expect(page.get_by_text("a tuple between two higher ones within 60 s is omitted").first).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Alert condensation: paused.")).to_be_visible()
    assert fleet.get("alerts/condensation")["state"] == "paused"
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Alert condensation: resumed.")).to_be_visible()
    page.get_by_role("button", name="Drop").click()
    dialog = page.get_by_role("dialog", name="Drop alert condensation?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert fleet.get("alerts/condensation")["state"] != "paused"
    page.get_by_role("button", name="Drop").click()
    dialog.get_by_role("button", name="Drop alert").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
    assert fleet.get("alerts") == []


def test_an_unknown_alert_and_an_unknown_page_are_told(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/hot")
    expect(page.get_by_role("alert").first).to_contain_text("there is no alert 'hot'")
    page.goto(f"{fleet.url}/#/somewhere")
    expect(page.get_by_role("heading", level=1)).to_contain_text("There is no page")


def test_a_keyboard_reaches_the_content_first(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(fleet.url)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert page.evaluate("location.hash") == ""


@pytest.mark.parametrize(
    "address", ["", "#/alerts/condensation", "#/streams/air", "#/new", "#/silences", "#/dead-letters"]
)
def test_a_phone_scrolls_in_one_direction(fleet: RegistryInMemory, page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{fleet.url}/{address}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_load_state("load")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_alert_is_written_corrected_and_applied(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/new")
    editor = page.get_by_role("textbox", name="SQL")
    editor.click()
    page.keyboard.type("CREATE ALERT hot AS SELECT station, temp FROM air WHERE tmep > 35;", delay=2)
    mistake = page.get_by_role("listitem").filter(has_text="did you mean 'temp'?")
    expect(mistake).to_be_visible()
    expect(page.get_by_role("button", name="Apply")).to_be_disabled()
    expect(page.locator(".cm-lintRange-error")).to_have_text("tmep")
    mistake.get_by_role("button").click()
    expect(editor).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Delete")
    page.keyboard.type("temp")
    explanation = page.get_by_role("region", name="Explanation")
    expect(explanation).to_contain_text("alert hot accepted")
    topic = explanation.locator("dl div").filter(has=page.get_by_text("Topic", exact=True))
    expect(topic).to_contain_text(re.compile(r"^Topictamis\.stream\.air\.\d+: "))
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("link", name="alert hot").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Alert hot")
    assert fleet.get("alerts/hot")["sql"].endswith("WHERE temp > 35")


def test_a_refused_query_shows_its_repairs(empty: RegistryInMemory, page: Page) -> None:
    empty.sql("CREATE STREAM bids (item INT, price BIGINT); CREATE STREAM asks (item INT, price BIGINT);")
    page.goto(f"{empty.url}/#/new")
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.insert_text(
        "CREATE ALERT crossed AS SELECT b.item FROM bids b, asks a "
        "WHERE a.price <= b.price AND a.item = b.item AND b.item BETWEEN 1 AND 3;"
    )
    explanation = page.get_by_role("region", name="Explanation")
    expect(explanation).to_contain_text("unbounded")
    expect(explanation.get_by_text("SELECT DISTINCT")).to_be_visible()
    expect(page.get_by_role("button", name="Apply")).to_be_disabled()


def test_an_alert_is_replaced(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/alerts/condensation")
    page.get_by_role("link", name="Replace").click()
    editor = page.get_by_role("textbox", name="SQL")
    expect(editor).to_contain_text("CREATE OR REPLACE ALERT condensation")
    editor.click()
    page.keyboard.press("Control+End")
    for _ in "0.5;\n":
        page.keyboard.press("Backspace")
    page.keyboard.type("0.7 AND a.temp > 10;")
    explanation = page.get_by_role("region", name="Explanation")
    expect(explanation.get_by_role("heading", name="What it changes in condensation of plan")).to_be_visible()
    expect(explanation).to_contain_text("air as a: the filter of edges is empty and becomes temp > 10")
    expect(explanation).to_contain_text(
        "while condensation@2 runs on, edges retain what either definition needs"
    )
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("replaced alert condensation")).to_be_visible()
    assert fleet.get("alerts/condensation")["sql"].endswith("> 0.7 AND a.temp > 10")


def test_the_editor_completes_and_can_be_left_by_keyboard(fleet: RegistryInMemory, page: Page) -> None:
    page.goto(f"{fleet.url}/#/new")
    editor = page.get_by_role("textbox", name="SQL")
    editor.click()
    page.keyboard.type("sel", delay=20)
    page.get_by_role("option", name="SELECT").click()
    expect(editor).to_contain_text("SELECT")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()


def test_the_page_and_its_files_have_a_strict_policy(empty: RegistryInMemory) -> None:
    index = httpx.get(f"{empty.url}/")
    assert "script-src 'self'" in index.headers["content-security-policy"]
    assert "unsafe" not in index.headers["content-security-policy"]
    files = re.findall(r'(?:src|href)="([^"]+)"', index.text)
    assert len(files) == 3
    for file in files:
        answer = httpx.get(empty.url + file)
        assert answer.status_code == httpx.codes.OK and answer.headers["x-content-type-options"] == "nosniff"
        again = httpx.get(empty.url + file, headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == httpx.codes.NOT_MODIFIED and not again.content
