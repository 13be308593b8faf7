"""Completion by the shell: the scripts, and names of the registry."""

from __future__ import annotations

import time

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from tests.unit.cli.answering import answering

from tamis.cli import main
from tamis.local.service_process import free_ports

ANSWERS = {
    "/v1/alerts": [{"name": "hot"}, {"name": "humid"}, {"name": "cold"}],
    "/v1/edges": [{"name": "roof", "shards": [{"shard": "air:roof/mqtt"}]}],
}


def completed(arguments: list[str], begun: str) -> list[str]:
    found = ShellComplete(main, {}, "tamis", "_TAMIS_COMPLETE").get_completions(arguments, begun)
    return [one.value for one in found]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_tamis(shell: str) -> None:
    ran = CliRunner().invoke(main, ["completion", shell])
    assert ran.exit_code == 0 and f"_TAMIS_COMPLETE={shell}_complete" in ran.stdout


def test_names_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(ANSWERS) as url:
        monkeypatch.setenv("TAMIS_REGISTRY", url)
        assert completed(["get", "alerts"], "h") == ["hot", "humid"]
        assert completed(["drop", "alert"], "c") == ["cold"]
        assert completed(["watch"], "ho") == ["hot"]
        assert completed(["silence", "cold"], "hu") == ["humid"]
        assert completed(["get", "edges"], "") == ["roof"]
        assert completed(["drop", "function"], "") == []
        assert completed(["drop", "shard"], "ai") == ["air:roof/mqtt"]


def test_no_names_and_no_message_without_a_registry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAMIS_REGISTRY", f"http://127.0.0.1:{free_ports(1)[0]}")
    began = time.monotonic()
    assert completed(["get", "alerts"], "h") == []
    assert time.monotonic() - began < 30 and capsys.readouterr() == ("", "")
