"""Open pages follow what happens, by the server-sent events of a registry on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import orjson
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Locator, Page, Request, TimeoutError, expect
from tests.integration.registry.conftest import Running

from tamis.messaging.topics import ALARMS, EPISODES

pytestmark = pytest.mark.console
# The page's clock moves only by `follow`, and its timer would read everything again after 15 s.
BEFORE_THE_TIMER = 12_000
EXTRA = "CREATE ALERT extra AS SELECT station, rh FROM air WHERE rh < 5;"


@pytest.fixture
def stopped_clock(page: Page) -> Page:
    """A page whose timers wait until the test moves its clock."""
    page.clock.install()
    return page


@pytest.fixture
def extra(with_kafka: Running) -> Iterator[Running]:
    """A registry without the alert `extra`, before and after."""
    yield with_kafka
    if any(alert["name"] == "extra" for alert in with_kafka.get("alerts")):
        with_kafka.sql("DROP ALERT extra;")


def open_page(page: Page, address: str, whole: Locator) -> None:
    """Open a page, and stop its clock when it listens to events and has read all that it shows."""
    asked: set[Request] = set()

    # Playwright takes no methods of built-in types.
    def begun(request: Request) -> None:
        asked.add(request)

    def ended(request: Request) -> None:
        asked.discard(request)

    page.on("request", begun)
    page.on("requestfinished", ended)
    page.goto(address)
    expect(whole).to_be_visible()
    connection = page.get_by_role("status").filter(has_text="Connection:")
    expect(connection).to_contain_text("Live")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    page.clock.run_for(1000)  # the page reads once more when it begins to listen
    # The jump of the clock may break the connection off, and what happens until the next one isn't announced.
    follow(page, connection.filter(has_text="Live"))
    while any(not request.url.endswith("/v1/events") for request in asked):
        page.wait_for_event("requestfinished")


def follow(page: Page, wanted: Locator, *, there: bool = True) -> None:
    """Wait until the page shows something, in less of its own time than its timer needs. An event may take
    much longer by the clock of the machine.
    """
    state: Literal["attached", "detached"] = "attached" if there else "detached"
    for _ in range(0, BEFORE_THE_TIMER, 100):
        page.clock.run_for(100)
        try:
            wanted.first.wait_for(state=state, timeout=400)
        except TimeoutError:
            continue
        return
    raise AssertionError(f"{wanted} {'never came' if there else 'stays'}")


def test_a_change_by_http_appears_and_disappears(extra: Running, stopped_clock: Page) -> None:
    page = stopped_clock
    alerts = page.get_by_role("table", name="Alerts")
    open_page(page, extra.server.url, alerts)
    link = alerts.get_by_role("link", name="extra")
    expect(link).to_have_count(0)
    extra.sql(EXTRA)
    follow(page, link)
    extra.sql("DROP ALERT extra;")
    follow(page, link, there=False)


def test_a_new_alarm_appears_and_a_new_episode_is_announced(extra: Running, stopped_clock: Page) -> None:
    page = stopped_clock
    extra.sql(EXTRA)
    address = f"{extra.server.url}/#/alerts/extra"
    open_page(page, address, page.get_by_role("heading", name="Alarms", exact=True))
    new = {"alert": "extra", "key": ["attic"]}
    alarm = {**new, "id": "attic 1", "event_time": 1, "row": {"dew": 9.0}, "tuples": {}}
    episode = {**new, "episode": "e1", "event": "opened", "start": 1_700_000_000_000_000, "end": 1}
    more = {"alarms": 1, "row": {}, "severity": None, "labels": {}}
    producer = Producer({"bootstrap.servers": extra.bootstrap})
    producer.produce(ALARMS, orjson.dumps(alarm), b"k", 0)
    producer.produce(EPISODES, orjson.dumps({**episode, **more}), b"k", 0)
    assert producer.flush(30) == 0
    follow(page, page.get_by_role("table", name="Alarms", exact=True).get_by_text("attic"))
    announced = "New episode of key attic at 2023-11-14T22:13:20Z"
    follow(page, page.locator("[aria-live]").filter(has_text=announced))


def test_a_page_that_lost_the_registry_says_so_and_comes_back(with_kafka: Running, page: Page) -> None:
    page.goto(with_kafka.server.url)
    connection = page.get_by_role("status").filter(has_text="Connection:")
    expect(connection).to_contain_text("Live")
    page.route("**/v1/**", lambda route: route.abort())
    page.reload()
    expect(connection).to_contain_text("No answer")
    expect(page.get_by_role("alert")).to_contain_text("The registry doesn't answer.")
    expect(page.get_by_text("Loading")).to_have_count(0)
    page.unroute("**/v1/**")
    expect(connection).to_contain_text("Live", timeout=30_000)
    expect(page.get_by_role("table", name="Alerts")).to_contain_text("condensation")
