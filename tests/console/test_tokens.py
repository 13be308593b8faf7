"""The console of a protected registry: it asks for a token, and says what a token lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect
from tests.console.conftest import SINCE, SQL
from tests.console.registry_in_memory import RegistryInMemory

from tamis.settings.token_file import TokenFile, token_entry
from tamis.web.tokens import Token, digest

pytestmark = pytest.mark.console
WRITER, READER, OPERATOR = "tamis_writer", "tamis_reader", "tamis_operator"


@pytest.fixture
def protected(tmp_path: Path) -> Iterator[RegistryInMemory]:
    """A registry with a writer's and a reader's token, neither of which may see readings."""
    entries = [
        token_entry(Token("operator", digest(WRITER), "writer")),
        token_entry(Token("screen", digest(READER), "reader")),
        token_entry(Token("night-shift", digest(OPERATOR), "reader", operate=True)),
    ]
    path = tmp_path / "tokens.yaml"
    path.write_text(yaml.safe_dump({"tokens": entries}))
    path.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        made = RegistryInMemory(patch, TokenFile(path), WRITER)
        made.sql(SQL)
        made.settle(("air", "surface"), live=1234, activation=SINCE)
        yield made
        made.stop()


def enter(page: Page, token: str) -> None:
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Use token").click()


def test_a_token_is_asked_for_kept_in_the_tab_and_forgotten(protected: RegistryInMemory, page: Page) -> None:
    page.goto(protected.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("This registry needs a token")
    expect(page.get_by_role("textbox", name="Token")).to_be_focused()
    expect(page.get_by_text("condensation")).to_have_count(0)
    enter(page, "tamis_wrong")
    expect(page.get_by_role("alert")).to_contain_text("token")
    enter(page, READER)
    expect(page.get_by_role("table", name="Alerts")).to_contain_text("condensation")
    assert READER not in page.url
    page.reload()
    expect(page.get_by_role("table", name="Alerts")).to_contain_text("condensation")
    other = page.context.new_page()
    other.goto(protected.url)
    expect(other.get_by_role("heading", level=1)).to_have_text("This registry needs a token")
    page.get_by_role("button", name="Forget token").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This registry needs a token")
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0


def test_a_reader_may_look_and_explain_but_not_change(protected: RegistryInMemory, page: Page) -> None:
    page.goto(f"{protected.url}/#/alerts/condensation")
    enter(page, READER)
    expect(page.get_by_role("region", name="Explanation")).to_contain_text("alert condensation accepted")
    for name in ("Pause", "Drop"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    for name in ("Replace", "Silence"):
        expect(page.get_by_role("main").get_by_role("link", name=name, exact=True)).to_have_count(0)
    expect(page.get_by_text("This token may look, but not change alerts")).to_be_visible()
    page.get_by_role("link", name="New alert").click()
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.insert_text("CREATE ALERT hot AS SELECT station FROM air WHERE temp > 35;")
    expect(page.get_by_role("region", name="Explanation")).to_contain_text("alert hot accepted")
    expect(page.get_by_role("button", name="Apply")).to_be_disabled()
    page.goto(f"{protected.url}/#/alerts/condensation")
    page.get_by_role("button", name="Forget token").click()
    enter(page, WRITER)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Alert condensation: paused.")).to_be_visible()


def test_a_token_with_operate_may_silence_and_another_reader_may_not(
    protected: RegistryInMemory, page: Page
) -> None:
    page.goto(f"{protected.url}/#/silences?alert=condensation")
    enter(page, READER)
    form = page.get_by_role("region", name="New silence")
    expect(form.get_by_role("combobox", name="Alert")).to_have_value("condensation")
    expect(form.get_by_role("button", name="Silence")).to_be_disabled()
    expect(form).to_contain_text("that needs the role writer, or operate: true")
    page.get_by_role("button", name="Forget token").click()
    enter(page, OPERATOR)
    # A token has a name, which counts.
    expect(form.get_by_role("combobox", name="Alert")).to_have_value("condensation")
    expect(form.get_by_role("textbox", name="Your name")).to_have_count(0)
    form.get_by_role("button", name="Silence").click()
    rows = page.get_by_role("table", name="Silences").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("night-shift")
    assert [one["by"] for one in protected.get("silences")] == ["night-shift"]


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("alerts/condensation", ("Episodes", "Alarms")),
        ("streams/air", ("Newest readings",)),
        ("dead-letters", ()),
    ],
)
def test_a_refusal_of_readings_stands_in_their_place(
    protected: RegistryInMemory, page: Page, address: str, parts: tuple[str, ...]
) -> None:
    page.goto(f"{protected.url}/#/{address}")
    enter(page, READER)
    places = [page.get_by_role("region", name=part, exact=True) for part in parts] or [
        page.get_by_role("main")
    ]
    for place in places:
        expect(place.get_by_role("alert")).to_contain_text("that needs 'readings: true'")
        expect(place.get_by_text("Loading")).to_have_count(0)


def test_a_trial_needs_the_right_to_see_readings(protected: RegistryInMemory, page: Page) -> None:
    page.goto(f"{protected.url}/#/new")
    enter(page, READER)
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.insert_text("CREATE ALERT hot AS SELECT station FROM air WHERE temp > 35;")
    trial = page.get_by_role("region", name="Trial", exact=True)
    trial.get_by_role("button", name="Try it on recent readings").click()
    expect(trial.get_by_role("alert")).to_contain_text("that needs 'readings: true'")
