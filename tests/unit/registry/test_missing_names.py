"""Errors about unknown names tell which command lists the known ones, and which address of the API."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.unit.registry.test_openapi import Made

from tamis.cli.common.state_tables import HEADINGS
from tamis.query.model import Drop
from tamis_registry.core.errors import MissingError

Listed = Literal["alert", "stream", "pattern"]


def lists(kind: str) -> str:
    assert f"{kind}s" in HEADINGS  # `tamis get` knows the word
    return f"`tamis get {kind}s` (GET /v1/{kind}s) lists"


@pytest.mark.parametrize("kind", ["alert", "stream", "pattern", "edge", "plan"])
def test_of_what_is_asked_for(kind: str) -> None:
    name = "99" if kind == "plan" else "xyzzy"
    answer = Made().client.get(f"/v1/{kind}s/{name}")
    assert answer.status_code == 404 and answer.json()["hint"].startswith(lists(kind))


@pytest.mark.parametrize("kind", ["alert", "stream", "pattern"])
def test_of_what_is_dropped(kind: Listed) -> None:
    with pytest.raises(MissingError) as missing:
        Made().registry.take([Drop(kind, "xyzzy")], 0)
    assert f"there is no {kind} 'xyzzy'; {lists(kind)}" in str(missing.value)


def test_functions_are_named_since_no_command_lists_them() -> None:
    made = Made()
    made.sql("CREATE FUNCTION twice(x DOUBLE) RETURNS DOUBLE AS x * 2;")
    with pytest.raises(MissingError, match="there is no function 'xyzzy'; known names: twice"):
        made.registry.take([Drop("function", "xyzzy")], 0)


@pytest.mark.parametrize("kind", ["silence", "acknowledgement"])
def test_of_what_is_ended(kind: str) -> None:
    with pytest.raises(MissingError) as missing:
        Made().registry.forget(f"{kind}/xyzzy".encode())
    assert lists(kind) in str(missing.value)


def test_of_a_lease() -> None:
    with pytest.raises(MissingError, match="`tamis get streams NAME --json` "):
        Made().registry.release("xyzzy", 0)
