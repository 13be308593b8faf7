"""Configuration of sinks: each mistake is reported with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import InputError
from tamis_alerts.settings import Alertmanager, AlertsConfig, Webhook, load_config

EXAMPLE = Path(__file__).parents[3] / "services" / "alerts" / "example.yaml"


def load(tmp_path: Path, text: str) -> AlertsConfig:
    path = tmp_path / "alerts.yaml"
    path.write_text(text)
    return load_config(path)


def test_the_example_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", "hush")
    config = load_config(EXAMPLE)
    assert {type(sink) for sink in config.sinks} == {Webhook, Alertmanager}
    assert "hush" not in repr(config)


def test_without_a_file_or_with_an_empty_one_there_is_the_log_alone(tmp_path: Path) -> None:
    assert load_config(None) == load(tmp_path, "") == AlertsConfig()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sinks: [", "not YAML"),
        ("sinks: !!set {a, b}\n", "the file may only have texts"),
        ("sinks:\n- kind: webhook\n  url: http://a.example\n  secret: hush\n", "line 4: .*not written here"),
        ("sinks:\n- kind: webhook\n  url: http://a.example\n  secret: ${NOT_SET}\n", "NOT_SET is not set"),
        ("sinks:\n- kind: webhook\n\n  url: 5\n", "line 4: sinks.0.webhook.url"),
        ("sinks:\n- kind: pigeon\n", "line 2: "),
        ("sink: []\n", "line 1: sink"),
        ("sinks:\n- {kind: webhook, url: '${NOT_SET}'}\n", "NOT_SET is not set"),
        ("sinks:\n- {kind: webhook, url: 'http://a.example', token: hush}\n", "line 2: .*not written here"),
        (
            "sinks:\n- {kind: webhook, url: 'https://a.example', ca: no.pem}\n",
            "sink 'webhook': ca=.*no.pem: ",
        ),
        (
            "sinks:\n- {kind: webhook, url: 'http://a.example'}\n- {kind: webhook, url: 'http://b.example'}\n",
            "2 sinks are called 'webhook'",
        ),
        ("sinks:\n- {kind: webhook, url: 'http://a.example', name: log}\n", "'log' is the log's"),
        ("sinks:\n- {kind: webhook, url: 'http://a.example', name: a b}\n", "line 2: sinks.0.webhook.name"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        load(tmp_path, text)
    assert "alerts.yaml" in str(raised.value) and "hush" not in str(raised.value)


def test_address_and_token_of_a_sink_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_URL", "https://a.example/hush-path")
    monkeypatch.setenv("HOOK_TOKEN", "hush-token")
    config = load(tmp_path, "sinks:\n- {kind: webhook, url: '${HOOK_URL}', token: '${HOOK_TOKEN}'}\n")
    (sink,) = config.sinks
    assert str(sink.url) == "https://a.example/hush-path" and sink.token is not None
    assert sink.token.get_secret_value() == "hush-token"
    assert "hush" not in repr(config)
