"""The client of the registry: a registry that hangs."""

from __future__ import annotations

import socket
import time

import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.web import registry_client


def test_a_registry_that_hangs_is_told_within_the_time_of_a_get(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process: the system takes its connections, and nobody answers."""
    assert registry_client.GET_SECONDS <= 15
    monkeypatch.setattr(registry_client, "GET_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        url = f"http://127.0.0.1:{hung.getsockname()[1]}"
        began = time.monotonic()
        done = CliRunner().invoke(main, ["get", "--registry", url])
        assert time.monotonic() - began < 10
    assert done.exit_code == 2
    assert f"{url}: the registry took the request and did not answer within 0.5 s; it hangs" in done.output
