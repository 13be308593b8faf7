"""Settings come from the environment, complain by variable name, and never show a secret."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pydantic import SecretStr
from pydantic_settings import BaseSettings

from tamis.cli import main
from tamis.errors import InputError
from tamis.messaging.connection import Cluster
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


def test_clients_elsewhere_get_certificates_and_no_paths(tmp_path: Path) -> None:
    """Its settings travel to executors on other machines."""
    (tmp_path / "ca.pem").write_text("BEGIN\nCA\nEND\n")
    settings = KafkaSettings(
        bootstrap="broker:9092",
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        oauth_token_url="https://tokens",
        oauth_client_id="joiner",
        oauth_client_secret=SecretStr("hush"),
        oauth_ca=tmp_path / "ca.pem",
        ssl_ca=tmp_path / "ca.pem",
    )
    found = settings.java_config()
    assert found["ssl.truststore.certificates"] == "BEGIN\nCA\nEND\n"
    assert r'ssl.truststore.certificates="BEGIN\nCA\nEND\n"' in found["sasl.jaas.config"]
    portable = settings.portable_config()
    assert portable["ssl.ca.pem"] == portable["https.ca.pem"] == "BEGIN\nCA\nEND\n"
    assert not any(str(tmp_path) in value for value in (*found.values(), *portable.values()))


def test_an_error_elsewhere_names_the_certificate_that_proves_who_the_client_is(tmp_path: Path) -> None:
    (tmp_path / "joiner.pem").write_text("BEGIN\nJOINER\nEND\n")
    path = tmp_path / "joiner.pem"
    settings = KafkaSettings(security_protocol="SSL", ssl_certificate=path, ssl_key=path)
    here, there = (Cluster.of(one) for one in (settings.client_config(), settings.portable_config()))
    assert here.principal == there.principal == "the principal of TAMIS_KAFKA_SSL_CERTIFICATE"


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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_MECHANISM": "PLAIN", "SASL_PASSWORD": "planted"},
            "SASL_SSL with PLAIN needs TAMIS_KAFKA_SASL_USERNAME$",
        ),
        (
            {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_MECHANISM": "OAUTHBEARER", "OAUTH_CLIENT_ID": "edge"},
            "needs TAMIS_KAFKA_OAUTH_TOKEN_URL and TAMIS_KAFKA_OAUTH_CLIENT_SECRET$",
        ),
        (
            {"SASL_PASSWORD": "planted"},
            "TAMIS_KAFKA_SASL_PASSWORD would not be used as TAMIS_KAFKA_SECURITY_PROTOCOL says$",
        ),
        (
            {
                "SECURITY_PROTOCOL": "SASL_SSL",
                "SASL_MECHANISM": "PLAIN",
                "SASL_USERNAME": "edge",
                "SASL_PASSWORD": "planted",
                "OAUTH_CLIENT_SECRET": "planted",
            },
            "OAUTH_CLIENT_SECRET would not be used as .*PROTOCOL and TAMIS_KAFKA_SASL_MECHANISM say$",
        ),
        (
            {"SECURITY_PROTOCOL": "SSL", "SSL_CERTIFICATE": __file__},
            "TAMIS_KAFKA_SSL_CERTIFICATE needs TAMIS_KAFKA_SSL_KEY$",
        ),
        ({"SECURITY_PROTOCOL": "SSL", "SSL_CA": "/planted"}, "TAMIS_KAFKA_SSL_CA: "),
    ],
)
def test_what_is_missing_or_of_no_use_is_named(
    given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(f"TAMIS_KAFKA_{name}", value)
    with pytest.raises(InputError) as caught:
        load(KafkaSettings)
    assert re.search(said, caught.value.what)
    assert "planted" not in str(caught.value)


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SASL_MECHANISM", "SASL_PASSWORD", "SSL_CA", "BOOTSTRAP"):
        monkeypatch.setenv(f"TAMIS_KAFKA_{name}", "")
    assert load(KafkaSettings) == KafkaSettings(bootstrap="127.0.0.1:9092")


def test_a_key_that_java_cannot_read_is_named(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN EC PRIVATE KEY-----\nplanted\n-----END EC PRIVATE KEY-----\n")
    settings = KafkaSettings(security_protocol="SSL", ssl_certificate=key, ssl_key=key)
    with pytest.raises(InputError, match=r"TAMIS_KAFKA_SSL_KEY: .*PKCS #8.*openssl pkcs8") as caught:
        settings.java_config()
    assert "planted" not in str(caught.value)


def test_the_data_directory_is_made_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAMIS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert load(ServiceSettings).data_directory() == Path("tamis-data")
    assert (tmp_path / "tamis-data").is_dir()
    monkeypatch.setenv("TAMIS_DATA", str(tmp_path))
    assert load(ServiceSettings).data_directory() == tmp_path


def test_services_refuse_a_data_directory_that_is_not_there(tmp_path: Path) -> None:
    """One that isn't mounted must not look like one without anything to go on from."""
    (tmp_path / "file").touch()
    cases = [
        (["edge", "--http-port", "0"], "missing", "there is no such directory"),
        (["alerts"], "missing", "there is no such directory"),
        (["joiner"], "file", "this is no directory"),
    ]
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "tamis.cli", *command],
            env={**os.environ, "TAMIS_DATA": str(tmp_path / name), "TAMIS_KAFKA_BOOTSTRAP": "127.0.0.1:1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, name, _ in cases
    ]
    for process, (_, name, words) in zip(running, cases, strict=True):
        _, told = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f"Error: TAMIS_DATA={tmp_path / name}: {words}; set TAMIS_DATA to a directory" in told
    assert not (tmp_path / "missing").exists()


def test_files_of_certificates_are_looked_at_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # the test's own process must keep its handlers
    monkeypatch.setenv("TAMIS_KAFKA_SECURITY_PROTOCOL", "SSL")
    ca = tmp_path / "ca.pem"
    monkeypatch.setenv("TAMIS_KAFKA_SSL_CA", str(ca))
    missing = CliRunner().invoke(main, ["watch"])
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "TAMIS_KAFKA_SSL_CA: Path does not point to a file" in missing.stderr
    ca.write_text("no certificate")
    wrong = CliRunner().invoke(main, ["watch", "--bootstrap", "127.0.0.1:1"])
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "the Kafka client rejects its settings: " in wrong.stderr and "ssl.ca.location" in wrong.stderr
