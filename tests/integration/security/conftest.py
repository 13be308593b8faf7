"""One secure broker for all tests of this folder: a port for each kind of login, and ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pydantic import SecretStr
from tests.integration.security.token_endpoint import TokenEndpoint

from tamis.local.broker import EmbeddedKafka
from tamis.local.broker_security import BrokerSecurity
from tamis.settings import KafkaSettings

LOGINS = ("certificate", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
# Planted: no file, log, plan or command line may show one of them.
PASSWORD, SECRET = "planted-pässword=1,\"2'", "planted-secret&3=4"
NAMES = ("all", "edge", "registry", "joiner", "alerts", "reader", "operator", "nobody")


@dataclass(frozen=True)
class SecureKafka:
    """The broker, and the logins of its users."""

    broker: EmbeddedKafka
    security: BrokerSecurity
    endpoint: TokenEndpoint

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient(self.broker.admin_config())

    def settings(self, login: str, name: str) -> KafkaSettings:
        """The settings of a user with one of LOGINS."""
        if login == "certificate":
            return self.security.certificate_settings(name, self.broker.bootstrap)
        if login in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            return self.security.password_settings(name, login)  # type: ignore[arg-type]
        return KafkaSettings(
            bootstrap=f"127.0.0.1:{self.security.ports['OAUTHBEARER']}",
            security_protocol="SASL_SSL",
            sasl_mechanism="OAUTHBEARER",
            oauth_token_url=f"{self.endpoint.url}/token",
            oauth_client_id=name,
            oauth_client_secret=SecretStr(SECRET),
            oauth_scope="kafka fleet",
            ssl_ca=self.security.authority.certificate,
        )

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic and wait until it can be written."""
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result(10)


@pytest.fixture(scope="package")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    directory = tmp_path_factory.mktemp("secure")
    with TokenEndpoint(directory, dict.fromkeys(NAMES, SECRET)) as endpoint:
        security = BrokerSecurity(
            directory / "tls",
            dict.fromkeys(NAMES, PASSWORD),
            ("SCRAM", "PLAIN", "OAUTHBEARER"),
            f"{endpoint.url}/keys",
        )
        with EmbeddedKafka(directory / "kafka", security=security) as broker:
            yield SecureKafka(broker, security, endpoint)
