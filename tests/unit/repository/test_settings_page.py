"""The page of settings is made from the models, and has every variable."""

from __future__ import annotations

import re

from tests.unit.repository import settings_page

from tamis.settings.known_variables import KNOWN, SECRETS
from tamis.settings.secret_files import SUFFIX


def test_the_page_is_up_to_date() -> None:
    """After a change: `python -m tests.unit.repository.settings_page`."""
    assert settings_page.PAGE.read_text() == settings_page.page()


def test_every_variable_that_services_know_is_on_the_page_once() -> None:
    shown = re.findall(r"^\| `(TAMIS_\w+)` \| (\w*)", settings_page.PAGE.read_text(), re.M)
    names = [name for name, _ in shown]
    assert sorted(names) == sorted(KNOWN - {f"{name}{SUFFIX}" for name in SECRETS})
    assert {name for name, kind in shown if kind == "secret"} == SECRETS
