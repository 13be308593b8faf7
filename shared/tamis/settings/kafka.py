"""How every service reaches Kafka: plain on loopback by default, TLS and SASL where they are set."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

# What matters of the client comes as errors; of its own log only what nothing else would tell.
_LIBRARY_LOG_LEVEL = 2
_LIBRARY_LOG = logging.getLogger("tamis.librdkafka")


class KafkaSettings(BaseSettings):
    """Connection to the cluster, from `TAMIS_KAFKA_…`."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_KAFKA_", frozen=True)

    bootstrap: str = "127.0.0.1:9092"
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ssl_ca: Path | None = None  # PEM file of the authorities to trust; the system's where not set
    ssl_certificate: Path | None = None  # PEM files of the client
    ssl_key: Path | None = None
    ssl_key_password: SecretStr | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_mechanism and self.sasl_username and self.sasl_password
        ):
            raise ValueError(
                f"{self.security_protocol} needs TAMIS_KAFKA_SASL_MECHANISM, …_USERNAME and …_PASSWORD"
            )
        return self

    def client_config(self, **more: Any) -> dict[str, Any]:
        """librdkafka's configuration for a confluent-kafka client; `more` with `_` for `.` is added."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "log_level": _LIBRARY_LOG_LEVEL,
            "logger": _LIBRARY_LOG,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": self.sasl_password.get_secret_value() if self.sasl_password else None,
            "ssl.ca.location": str(self.ssl_ca) if self.ssl_ca else None,
            "ssl.certificate.location": str(self.ssl_certificate) if self.ssl_certificate else None,
            "ssl.key.location": str(self.ssl_key) if self.ssl_key else None,
            "ssl.key.password": self.ssl_key_password.get_secret_value() if self.ssl_key_password else None,
        }
        config.update({name.replace("_", "."): value for name, value in more.items()})
        return {name: value for name, value in config.items() if value is not None}

    def java_config(self) -> dict[str, str]:
        """The Java client's configuration, as Spark's connector takes it behind `kafka.`."""
        config = {"bootstrap.servers": self.bootstrap, "security.protocol": self.security_protocol}
        if self.sasl_mechanism and self.sasl_username and self.sasl_password:
            module = "plain.PlainLoginModule" if self.sasl_mechanism == "PLAIN" else "scram.ScramLoginModule"
            secret = self.sasl_password.get_secret_value()
            config["sasl.mechanism"] = self.sasl_mechanism
            config["sasl.jaas.config"] = (
                f"org.apache.kafka.common.security.{module} required "
                f"username={_jaas_string(self.sasl_username)} password={_jaas_string(secret)};"
            )
        if self.ssl_ca:
            config["ssl.truststore.type"] = "PEM"
            config["ssl.truststore.location"] = str(self.ssl_ca)
        if self.ssl_certificate and self.ssl_key:
            # The Java client wants both in one PEM text.
            config["ssl.keystore.type"] = "PEM"
            config["ssl.keystore.certificate.chain"] = self.ssl_certificate.read_text()
            config["ssl.keystore.key"] = self.ssl_key.read_text()
            if self.ssl_key_password:
                config["ssl.key.password"] = self.ssl_key_password.get_secret_value()
        return config


def _jaas_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
