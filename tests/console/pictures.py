"""Pictures of the pages of the console for docs/images/console: `make console-pictures`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import httpx
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from tests.console.conftest import CHROMIUM
from tests.console.running_fleet import STATIONS, running_fleet

from tamis.local.fleet import Fleet

PICTURES = Path(__file__).parents[2] / "docs/images/console"
# Pixels. Longer pages are cut off.
DESK, PHONE = (1200, 800), (390, 844)
MOST_HEIGHT = 1500
COLOURS = 255  # with these, a picture of text has half of the bytes
# A plan reaches edge and joiner, and an alarm the page, within seconds; on a busy machine within minutes.
SOON = 120_000
WRONG = """CREATE ALERT warm WITH (severity = 'page') AS
SELECT station, ts, temp
FROM air
WHERE tmep > 21.5;
"""
CLOSE = """CREATE ALERT close AS
SELECT a.station, a.ts, a.temp - s.temp AS difference
FROM air a JOIN surface s
  ON a.station = s.station
  AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE a.temp - s.temp > 11.5;
"""
# Of an hour each; the second begins in a day.
SILENCES: list[dict[str, Any]] = [
    {"alerts": ["condensation"], "keys": [["k2"]], "by": "ada", "comment": "the window is open for painting"},
    {"alerts": ["condensation"], "starts_in": 86_400_000_000, "by": "ada", "comment": "heating is serviced"},
]


def silence(fleet: Fleet) -> None:
    """Make the silences that the pictures show."""
    hour = 3_600_000_000
    for one in SILENCES:
        begins = time.time_ns() // 1000 + one.get("starts_in", 0)
        body = {name: value for name, value in one.items() if name != "starts_in"}
        body |= {"from": begins, "until": begins + hour}
        httpx.post(f"{fleet.registry_url}/v1/silences", json=body, timeout=30).raise_for_status()


def fleet_page(page: Page) -> None:
    attention = page.get_by_role("region", name="Needs attention")
    expect(attention).to_contain_text("became dead letters", timeout=SOON)


def stream_page(page: Page) -> None:
    expect(page.get_by_role("table", name="Newest readings").get_by_role("row").nth(20)).to_be_visible()
    drawn(page.get_by_role("figure"))


def alert_page(page: Page) -> None:
    alarms = page.get_by_role("table", name="Alarms", exact=True).get_by_role("row")
    expect(alarms.nth(4 * STATIONS)).to_be_visible(timeout=SOON)
    drawn(page.get_by_role("figure"))
    expect(page.get_by_role("region", name="Explanation")).to_contain_text("accepted")


def mistake_page(page: Page) -> None:
    write(page, WRONG)
    expect(page.get_by_text("did you mean 'temp'?").first).to_be_visible()


def trial_page(page: Page) -> None:
    write(page, CLOSE)
    button = page.get_by_role("button", name="Try it on recent readings")
    expect(button).to_be_enabled()
    button.click()
    trial = page.get_by_role("region", name="Trial", exact=True)
    expect(trial.get_by_role("table", name="Trial: alarms")).to_be_visible()
    drawn(trial.get_by_role("figure"))


def silences_page(page: Page) -> None:
    """Two silences are made before the picture is taken: one lasts, the other begins later."""
    rows = page.get_by_role("table", name="Silences").get_by_role("row")
    expect(rows).to_have_count(1 + len(SILENCES))
    expect(rows.filter(has_text="active")).to_have_count(1)


def dead_letters_page(page: Page) -> None:
    expect(page.get_by_role("table", name="Dead letters")).to_be_visible(timeout=SOON)


# The name of each picture, the address, and what to wait for.
PAGES: list[tuple[str, str, Callable[[Page], None]]] = [
    ("fleet", "", fleet_page),
    ("stream", "#/streams/air", stream_page),
    ("alert", "#/alerts/condensation", alert_page),
    ("new-mistake", "#/new", mistake_page),
    ("new-trial", "#/new", trial_page),
    ("silences", "#/silences", silences_page),
    ("dead-letters", "#/dead-letters", dead_letters_page),
]
DARK = ("alert",)
ON_A_PHONE = ("fleet", "new-trial")


def write(page: Page, text: str) -> None:
    """Write a text in the editor, and leave it."""
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.insert_text(text)
    page.get_by_role("heading", level=1).click()


def drawn(figure: Locator) -> None:
    expect(figure.locator("canvas").first).to_be_visible(timeout=SOON)


def take(browser: Browser, fleet: Fleet, name: str, mode: Literal["light", "dark"], phone: bool) -> None:
    """One picture, in a browser of its own."""
    width, height = PHONE if phone else DESK
    viewport = {"width": width, "height": height}
    _, address, wait = next(one for one in PAGES if one[0] == name)
    with browser.new_context(color_scheme=mode, viewport=viewport, reduced_motion="reduce") as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{fleet.registry_url}/{address}")
        expect(page.get_by_role("status").filter(has_text="Connection:")).to_contain_text("Live")
        wait(page)
        expect(page.get_by_text("Loading …")).to_have_count(0)
        bottom = page.evaluate("document.querySelector('main').getBoundingClientRect().bottom")
        taken = Image.open(BytesIO(page.screenshot(full_page=True))).convert("RGB")
    cut = taken.crop((0, 0, taken.width, min(round(bottom), taken.height, MOST_HEIGHT)))
    path = PICTURES / f"{name}{'-dark' if mode == 'dark' else ''}{'-phone' if phone else ''}.png"
    # This way of choosing colours keeps those of small signs.
    cut.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        running_fleet(Path(directory)) as fleet,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        silence(fleet)
        for name, _, _ in PAGES:
            take(browser, fleet, name, "light", phone=False)
        for name in DARK:
            take(browser, fleet, name, "dark", phone=False)
        for name in ON_A_PHONE:
            take(browser, fleet, name, "light", phone=True)
        browser.close()


if __name__ == "__main__":
    main()
