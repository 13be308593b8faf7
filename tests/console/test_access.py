"""Every page by keyboard alone, and the contrast of its texts as they are drawn, in both modes."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, TimeoutError, expect
from tests.console.registry_in_memory import RegistryInMemory

pytestmark = pytest.mark.console
ADDRESSES = ["", "#/alerts/condensation", "#/streams/air", "#/new", "#/silences", "#/dead-letters"]

# Texts of the page with a contrast below WCAG's level AA. The ground of a text is the first opaque colour
# behind it. A text in the shadow root of the editor counts too; disabled controls don't (1.4.3, "inactive").
LOW_CONTRAST = """() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const parent = (element) => element.parentElement ?? element.getRootNode().host ?? null;
  const ground = (element) => {
    for (let at = element; at; at = parent(at)) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  let texts = 0;
  const look = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) look(element.shadowRoot);
      const text = [...element.childNodes].map((n) => (n.nodeType === 3 ? n.data : "")).join("").trim();
      if (!text || element.closest("noscript, script, style, :disabled")) continue;
      if (!element.checkVisibility()) continue;
      texts += 1;
      const style = getComputedStyle(element);
      const [a, b] = [luminance(parts(style.color)), luminance(ground(element))].sort((x, y) => y - x);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const ratio = (a + 0.05) / (b + 0.05);
      if (ratio < (large ? 3 : 4.5)) found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
  };
  look(document.body);
  return { found, texts };
}"""

FOCUSED_ELEMENT = """
  let element = document.activeElement;
  while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
"""
# Marks what has the focus, and says what it is.
FOCUSED = f"""() => {{
  {FOCUSED_ELEMENT}
  if (element === document.body) return null;
  const seen = "reached" in element.dataset;
  element.dataset.reached = "";
  return {{ text: (element.ariaLabel ?? element.textContent).slice(0, 40), seen,
            editor: element.closest(".cm-content") !== null }};
}}"""
# True if the page shows what has the focus.
OUTLINED = f"""() => {{
  {FOCUSED_ELEMENT}
  for (let at = element; at; at = at.parentElement) {{
    const style = getComputedStyle(at);
    if (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) return true;
  }}
  return false;
}}"""

# Controls that no key has reached. Of radio buttons only the checked one is a stop; arrows choose another.
MISSED = """() => {
  const found = [];
  const look = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) look(element.shadowRoot);
      if (!element.matches("a[href], button, input, select, summary, .cm-content, [tabindex='0']")) continue;
      if (element.matches(":disabled, input[type=radio]:not(:checked)")) continue;
      if (!element.checkVisibility()) continue;
      if (!("reached" in element.dataset)) found.push(element.outerHTML.slice(0, 120));
    }
  };
  look(document);
  return found;
}"""


def open_page(page: Page, fleet: RegistryInMemory, address: str) -> None:
    page.goto(f"{fleet.url}/{address}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    if address == "#/new":
        expect(page.get_by_role("textbox", name="SQL")).to_be_visible()
    expect(page.get_by_text("Loading …")).to_have_count(0, timeout=30_000)


def outlined(page: Page) -> bool:
    """True if what has the focus is shown to have it, at once or soon: the editor does it after a timer."""
    try:
        page.wait_for_function(OUTLINED, timeout=5_000)
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_control_is_reached_by_tab_and_shows_its_focus(
    fleet: RegistryInMemory, page: Page, address: str
) -> None:
    open_page(page, fleet, address)
    stops: list[dict[str, Any]] = []
    unseen: list[dict[str, Any]] = []
    for _ in range(100):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop is None or stop["seen"]:
            break
        stops.append(stop)
        if not outlined(page):
            unseen.append(stop)
        if stop["editor"]:
            page.keyboard.press("Escape")  # Tab indents otherwise
    assert len(stops) >= 5
    assert unseen == []
    assert page.evaluate(MISSED) == []


def test_an_alert_is_dropped_by_keyboard(fleet: RegistryInMemory, page: Page) -> None:
    open_page(page, fleet, "#/alerts/condensation")
    page.get_by_role("button", name="Drop").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Drop alert condensation?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Drop alert")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
    assert fleet.get("alerts") == []


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_texts_have_the_contrast_of_level_aa(fleet: RegistryInMemory, chromium: Browser, mode: Any) -> None:
    fleet.keeps_up.clear()  # so that there are findings and reasons in the colours of warnings
    fleet.sql("CREATE ALERT dry AS SELECT station, rh FROM air WHERE rh < 5;")
    with chromium.new_context(color_scheme=mode, viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        for address in ADDRESSES:
            open_page(page, fleet, address)
            if address == "#/new":
                page.get_by_role("textbox", name="SQL").click()
                page.keyboard.insert_text(
                    "-- a comment\nCREATE ALERT hot AS SELECT 'x', 1 FROM air WHERE tmep > 35;"
                )
                expect(page.get_by_text("did you mean 'temp'?").first).to_be_visible()
            measured = page.evaluate(LOW_CONTRAST)
            assert measured["found"] == [], address or "#/"
            assert measured["texts"] > 5
        # The measurement finds what it should.
        page.evaluate("document.querySelector('h1').style.color = 'var(--line)'")
        assert page.evaluate(LOW_CONTRAST)["found"] != []
