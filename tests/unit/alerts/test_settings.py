"""Configuration of sinks: each mistake is reported with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import InputError
from tamis_alerts.settings import AlertsConfig, load_config
from tamis_alerts.sink_settings import Alertmanager, Email, KafkaTopic, Mqtt, PagerDuty, Slack, Webhook

EXAMPLE = Path(__file__).parents[3] / "services" / "alerts" / "example.yaml"


def load(tmp_path: Path, text: str) -> AlertsConfig:
    path = tmp_path / "alerts.yaml"
    path.write_text(text)
    return load_config(path)


def test_the_example_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOOK_SECRET", "PAGERDUTY_KEY", "MAIL_PASSWORD", "MQTT_PASSWORD"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("SLACK_URL", "https://hooks.example.com/hush")
    config = load_config(EXAMPLE)
    kinds = [Webhook, Alertmanager, Slack, PagerDuty, Email, Mqtt, KafkaTopic]
    assert [type(sink) for sink in config.sinks] == kinds
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
        ("sinks:\n- {kind: slack, url: 'ftp://a.example'}\n", "line 2: sinks.0.slack.url"),
        ("sinks:\n- {kind: pagerduty}\n", "line 2: sinks.0.pagerduty.routing_key"),
        ("sinks:\n- {kind: pagerduty, routing_key: hush}\n", "line 2: .*not written here"),
        ("sinks:\n- {kind: mqtt, topic: 'a/#'}\n", "line 2: .*published to one topic"),
        ("sinks:\n- {kind: mqtt, topic: a, password: hush}\n", "line 2: .*not written here"),
        (
            "sinks:\n- {kind: mqtt, topic: a, host: b.example, username: u, password: '${SET}'}\n",
            "line 2: .*in clear text",
        ),
        ("sinks:\n- {kind: kafka, topic: tamis.alarms}\n", "line 2: .*the fleet's own"),
        ("sinks:\n- {kind: kafka, topic: a b}\n", "line 2: sinks.0.kafka.topic"),
        ("sinks:\n- {kind: kafka, topic: a, ca: b.pem}\n", "line 2: .*TAMIS_KAFKA_"),
        ("sinks:\n- {kind: email, host: a.example, from: a@b, to: []}\n", "line 2: sinks.0.email.to"),
        (
            'sinks:\n- {kind: email, host: a.example, from: a@b, to: ["c@d\\nBcc: e@f"]}\n',
            "line 2: sinks.0.email.to",
        ),
        (
            "sinks:\n- {kind: email, host: a.example, security: none, from: a@b, to: [c@d], username: u, "
            "password: '${SET}'}\n",
            "line 2: .*in clear text",
        ),
        (
            "sinks:\n- {kind: webhook, url: 'http://a.example', token: '${SET}'}\n",
            "line 2: .*token .*in clear text",
        ),
        ("sinks:\n- {kind: slack, url: 'http://10.0.0.7/x', token: '${SET}'}\n", "line 2: .*in clear text"),
        (
            "sinks:\n- {kind: webhook, url: 'http://me:secret@10.0.0.7/x'}\n",
            "line 2: .*password .*in clear text",
        ),
        (
            "sinks:\n- {kind: pagerduty, url: 'http://a.example', routing_key: '${SET}'}\n",
            "line 2: .*routing_key .*in clear text",
        ),
        ("sinks:\n- {kind: webhook, url: 'http://a.example', name: log}\n", "'log' is the log's"),
        ("sinks:\n- {kind: webhook, url: 'http://a.example', name: a b}\n", "line 2: sinks.0.webhook.name"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "hush")
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
    assert isinstance(sink, Webhook)
    assert str(sink.url) == "https://a.example/hush-path" and sink.token is not None
    assert sink.token.get_secret_value() == "hush-token"
    assert "hush" not in repr(config)


@pytest.mark.parametrize(
    "url", ["https://a.example", "http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9"]
)
def test_secrets_are_sent_encrypted_or_to_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("SET", "hush")
    for sink in ("webhook, token: '${SET}'", "pagerduty, routing_key: '${SET}'"):
        assert load(tmp_path, f"sinks:\n- {{kind: {sink}, url: '{url}'}}\n").sinks
    assert load(tmp_path, "sinks:\n- {kind: alertmanager, url: 'http://alertmanager:9093'}\n").sinks
