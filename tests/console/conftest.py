"""Fixtures of the console's tests: registries with and without Kafka, and pages of a Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.console.registry_in_memory import PROVER, RegistryInMemory
from tests.integration.registry.conftest import Running

from tamis.local.broker import EmbeddedKafka

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SQL = (Path(__file__).parents[2] / "demo/first/alerts.sql").read_text()
# Tests run on busy machines.
expect.set_options(timeout=20_000)
# 2023-11-14T22:13:20Z
SINCE = 1_700_000_000_000_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a browser before they start a registry in vain."""
    if CHROMIUM is not None:
        return
    missing = pytest.mark.skip(reason="NOT TESTED: this machine has no Chromium (apt-get install chromium)")
    for item in items:
        if {"chromium", "page"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(missing)


@pytest.fixture(scope="session", autouse=True)
def prover() -> Iterator[None]:
    """The process of the provers, which all registries share."""
    PROVER.start()
    yield
    PROVER.close()


@pytest.fixture
def empty() -> Iterator[RegistryInMemory]:
    """A registry of a fleet in which nothing is defined."""
    with pytest.MonkeyPatch.context() as patch:
        made = RegistryInMemory(patch)
        yield made
        made.stop()


@pytest.fixture
def fleet(empty: RegistryInMemory) -> RegistryInMemory:
    """A registry with two streams and a running alert `condensation`."""
    empty.sql(SQL)
    empty.settle(("air", "surface"), live=1234, activation=SINCE)
    return empty


@pytest.fixture(scope="session")
def with_kafka(embedded: EmbeddedKafka, prover: None) -> Iterator[Running]:
    """A registry on a real broker, with two streams and the alert `condensation`. There is no edge."""
    running = Running(embedded.start(), prover=PROVER)
    try:
        running.ready().sql(SQL)
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page whose console must stay empty: the content security policy reports there, and so do faults."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    made.set_default_timeout(15_000)
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield made
    context.close()
    # The browser reports every answer with an error status; the page shows those itself.
    assert [fault for fault in faults if not fault.startswith("Failed to load resource")] == []
