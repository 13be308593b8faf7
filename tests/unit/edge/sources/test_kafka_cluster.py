"""A Kafka source on another cluster has a login of its own; the fleet's login is never sent there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tamis.errors import InputError
from tamis.messaging.connection import Cluster, authentication_failed
from tamis.settings import KafkaSettings
from tamis_edge.settings import KafkaSource, load_config
from tamis_edge.sources.opening import cluster_of

FLEET = KafkaSettings(
    bootstrap="fleet:9092",
    security_protocol="SASL_PLAINTEXT",
    sasl_mechanism="PLAIN",
    sasl_username="edge",
    sasl_password=SecretStr("hush"),
)


def source(**fields: Any) -> KafkaSource:
    return KafkaSource(kind="kafka", name="s", topic="raw", stream="air", **fields)


def test_without_an_address_it_is_the_fleets_cluster() -> None:
    assert cluster_of(source(), FLEET) is FLEET
    with pytest.raises(InputError, match=r"source s: username without `bootstrap`"):
        cluster_of(source(username="other"), FLEET)


def test_the_fleets_login_stays_with_the_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    unsecured = KafkaSettings()
    monkeypatch.setenv("TAMIS_KAFKA_SASL_PASSWORD", "hush")
    with pytest.raises(InputError, match=r"source s: `bootstrap` names another cluster.*add `security`"):
        cluster_of(source(bootstrap="other:9092"), FLEET)
    open_cluster = cluster_of(source(bootstrap="other:9092", security="PLAINTEXT"), FLEET)
    assert open_cluster.client_config()["bootstrap.servers"] == "other:9092"
    assert "hush" not in str(open_cluster.client_config())
    assert cluster_of(source(bootstrap="o:1"), unsecured).security_protocol == "PLAINTEXT"


def test_mistakes_and_errors_name_the_fields_of_the_source() -> None:
    with pytest.raises(InputError) as caught:
        cluster_of(source(bootstrap="o:1", security="SASL_SSL", mechanism="PLAIN", username="u"), FLEET)
    assert "needs `password` of the source s" in str(caught.value)
    login = {"mechanism": "PLAIN", "username": "u", "password": SecretStr("p")}
    made = cluster_of(source(bootstrap="o:1", security="SASL_SSL").model_copy(update=login), FLEET)
    assert made.client_config()["sasl.password"] == "p"
    error = authentication_failed(Cluster.of(made.client_config(), made.setting), "no")
    assert "check `username` of the source s and `password` of the source s" in str(error)


def test_the_file_has_secrets_by_name_and_paths_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_SECRET", "planted")
    (tmp_path / "ca.pem").touch()
    (tmp_path / "edge.yaml").write_text(
        "sources:\n"
        "  - {kind: kafka, name: s, topic: raw, stream: air, bootstrap: 'o:1', security: SASL_SSL,\n"
        "     mechanism: OAUTHBEARER, token_url: 'https://id/token', client_id: c, ca: ca.pem,\n"
        "     client_secret: '${OTHER_SECRET}'}\n"
    )
    (found,) = load_config(tmp_path / "edge.yaml").sources
    assert isinstance(found, KafkaSource)
    config = cluster_of(found, FLEET).client_config()
    assert config["ssl.ca.location"] == str(tmp_path / "ca.pem")
    assert config["sasl.oauthbearer.client.secret"] == "planted"
    assert "planted" not in repr(found)
