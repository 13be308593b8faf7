"""Settings come from the environment, complain by variable name, and never show a secret."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pydantic_settings import BaseSettings

from tamis.errors import InputError
from tamis.settings import KafkaSettings, ServiceSettings, load
from tamis_joiner.settings import JoinerSettings


def test_plain_on_loopback_by_default() -> None:
    assert load(KafkaSettings).client_config() == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "PLAINTEXT",
        "log_level": 2,
        "logger": logging.getLogger("tamis.librdkafka"),
    }
    assert load(ServiceSettings).telemetry_host == "127.0.0.1"


def test_a_client_that_reaches_no_broker_writes_nothing_past_the_logs(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(KafkaException):
        AdminClient(KafkaSettings(bootstrap="127.0.0.1:1").client_config()).list_topics(timeout=0.3)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "variable", "value"),
    [
        (ServiceSettings, "TAMIS_TELEMETRY_PORT", "99999"),
        (ServiceSettings, "TAMIS_TELEMETRY_PORT", "-1"),
        (JoinerSettings, "TAMIS_JOINER_BATCH", "0"),
        (JoinerSettings, "TAMIS_JOINER_MEMORY", "lots"),
    ],
)
def test_what_cannot_be_is_named_by_its_variable(
    settings: type[BaseSettings], variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"environment: {variable}: "):
        load(settings)


def test_sasl_reaches_both_clients_and_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SASL_MECHANISM": "SCRAM-SHA-512",
        "SASL_USERNAME": "edge",
        "SASL_PASSWORD": 'hush"\\',
    }.items():
        monkeypatch.setenv(f"TAMIS_KAFKA_{name}", value)
    settings = load(KafkaSettings)
    assert settings.client_config(linger_ms=5)["sasl.password"] == 'hush"\\'
    assert settings.client_config(linger_ms=5)["linger.ms"] == 5
    assert settings.java_config()["sasl.jaas.config"].endswith(r'username="edge" password="hush\"\\";')
    assert "hush" not in repr(settings) + str(settings)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TAMIS_KAFKA_SECURITY_PROTOCOL", "SASL_SSL", "needs TAMIS_KAFKA_SASL_MECHANISM"),
        ("TAMIS_KAFKA_SECURITY_PROTOCOL", "NONSENSE", "TAMIS_KAFKA_SECURITY_PROTOCOL: "),
    ],
)
def test_mistakes_name_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=said) as caught:
        load(KafkaSettings)
    assert "NONSENSE" not in str(caught.value)
