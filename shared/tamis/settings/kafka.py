"""Settings of the connection to Kafka: plain on loopback by default, with TLS and SASL if set."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import FilePath, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from tamis.errors import InputError
from tamis.settings.secret_files import EnvironmentSettings

# Errors of the client reach us as errors. Its log adds only what is critical.
_LIBRARY_LOG_LEVEL = 2
_LIBRARY_LOG = logging.getLogger("tamis.librdkafka")

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_PASSWORD = ("sasl_username", "sasl_password")
_TOKEN = ("oauth_token_url", "oauth_client_id", "oauth_client_secret")
_CERTIFICATE = ("ssl_certificate", "ssl_key")

# Properties of a client with a path, and those with the text of the file.
_TEXTS = {
    "ssl.ca.location": "ssl.ca.pem",
    "ssl.certificate.location": "ssl.certificate.pem",
    "ssl.key.location": "ssl.key.pem",
    "https.ca.location": "https.ca.pem",
}

# A property of the JVM: the token endpoints that its Kafka clients may call. Newer clients call no others.
_ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_JAVA_SECURITY = "org.apache.kafka.common.security"


class KafkaSettings(EnvironmentSettings):
    """Connection to the cluster, from `TAMIS_KAFKA_…`."""

    model_config = SettingsConfigDict(
        env_prefix="TAMIS_KAFKA_", frozen=True, env_ignore_empty=True, hide_input_in_errors=True
    )

    bootstrap: str = "127.0.0.1:9092"
    """Addresses of brokers, separated by commas."""
    security_protocol: Protocol = "PLAINTEXT"
    """`SSL` encrypts the connection, `SASL` proves who the client is."""
    sasl_mechanism: Mechanism | None = None
    """How the client proves who it is. With `OAUTHBEARER` it gets its tokens by the grant
    `client_credentials`.
    """
    sasl_username: str | None = None
    """User name, for all mechanisms but `OAUTHBEARER`."""
    sasl_password: SecretStr | None = None
    """Password of this user."""
    oauth_token_url: str | None = None
    """Address of the token endpoint, for `OAUTHBEARER`."""
    oauth_client_id: str | None = None
    """Name of the client at the token endpoint."""
    oauth_client_secret: SecretStr | None = None
    """Secret of this client."""
    oauth_scope: str | None = None
    """Scope of the tokens, if the token endpoint needs one."""
    oauth_ca: FilePath | None = None
    """PEM file of the authorities that the token endpoint's certificate rests on. By default those of the
    system.
    """
    ssl_ca: FilePath | None = None
    """PEM file of the authorities that the brokers' certificates rest on. By default those of the system."""
    ssl_certificate: FilePath | None = None
    """PEM file of the client's certificate, if the brokers ask for one."""
    ssl_key: FilePath | None = None
    """PEM file of the key of this certificate."""
    ssl_key_password: SecretStr | None = None
    """Password of this key, if it is encrypted."""

    def setting(self, field: str) -> str:
        """The name by which the user sets a field."""
        return f"TAMIS_KAFKA_{field.upper()}"

    @property
    def with_sasl(self) -> bool:
        """True if the client proves its identity by a password or a token."""
        return self.security_protocol.startswith("SASL")

    @property
    def with_tls(self) -> bool:
        """True if the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if faults := list(self._faults()):
            raise ValueError("; ".join(faults))
        return self

    def _faults(self) -> Iterator[str]:
        needed: tuple[str, ...] = ()
        if self.with_sasl:
            login = _TOKEN if self.sasl_mechanism == "OAUTHBEARER" else _PASSWORD
            needed = ("sasl_mechanism", *login)
            what = f"{self.security_protocol} with {self.sasl_mechanism}" if self.sasl_mechanism else ""
            if missing := self._names(field for field in needed if not getattr(self, field)):
                yield f"{what or self.security_protocol} needs {missing}"
        unused = [f for f in ("sasl_mechanism", *_PASSWORD, *_TOKEN) if f not in needed and getattr(self, f)]
        if not self.with_tls:
            unused += [field for field in _CERTIFICATE if getattr(self, field)]
        if unused:
            protocol, mechanism = self.setting("security_protocol"), self.setting("sasl_mechanism")
            which = f"{protocol} and {mechanism} say" if self.with_sasl else f"{protocol} says"
            yield f"{self._names(unused)} would not be used as {which}"
        pair = [field for field in _CERTIFICATE if getattr(self, field)]
        if len(pair) == 1:
            yield f"{self._names(pair)} needs {self._names(set(_CERTIFICATE) - set(pair))}"

    def _names(self, fields: Any) -> str:
        *others, last = [self.setting(field) for field in fields] or [""]
        return f"{', '.join(others)} and {last}" if others else last

    def client_config(self, **more: Any) -> dict[str, Any]:
        """Configuration of a confluent-kafka client, with `more` added (`_` stands for `.`)."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "log_level": _LIBRARY_LOG_LEVEL,
            "logger": _LIBRARY_LOG,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": _revealed(self.sasl_password),
            "ssl.ca.location": str(self.ssl_ca) if self.ssl_ca else None,
            "ssl.certificate.location": str(self.ssl_certificate) if self.ssl_certificate else None,
            "ssl.key.location": str(self.ssl_key) if self.ssl_key else None,
            "ssl.key.password": _revealed(self.ssl_key_password),
        }
        if self.sasl_mechanism == "OAUTHBEARER":
            config |= {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": self.oauth_token_url,
                "sasl.oauthbearer.client.id": self.oauth_client_id,
                "sasl.oauthbearer.client.secret": _revealed(self.oauth_client_secret),
                "sasl.oauthbearer.scope": self.oauth_scope,
                "https.ca.location": str(self.oauth_ca) if self.oauth_ca else None,
            }
        config.update({name.replace("_", "."): value for name, value in more.items()})
        return {name: value for name, value in config.items() if value is not None}

    def portable_config(self) -> dict[str, str]:
        """Configuration of a confluent-kafka client on another machine: certificates as texts, not paths."""
        config = self.client_config()
        del config["logger"]
        for name, text in _TEXTS.items():
            if path := config.pop(name, None):
                config[text] = Path(path).read_text()
        return {name: str(value) for name, value in config.items()}

    def java_config(self) -> dict[str, str]:
        """Configuration of the Java client; Spark's connector takes it with the prefix `kafka.`. Raises
        InputError if the Java client can't read the key.
        """
        config = {"bootstrap.servers": self.bootstrap, "security.protocol": self.security_protocol}
        if self.sasl_mechanism == "OAUTHBEARER":
            config |= self._java_token()
        elif self.sasl_mechanism and self.sasl_username and self.sasl_password:
            module = "plain.PlainLoginModule" if self.sasl_mechanism == "PLAIN" else "scram.ScramLoginModule"
            config["sasl.mechanism"] = self.sasl_mechanism
            config["sasl.jaas.config"] = _jaas(
                module, username=self.sasl_username, password=self.sasl_password.get_secret_value()
            )
        # Texts in PEM, not paths: executors of Spark on other machines don't have the files.
        if self.ssl_ca:
            config["ssl.truststore.type"] = "PEM"
            config["ssl.truststore.certificates"] = self.ssl_ca.read_text()
        if self.ssl_certificate and self.ssl_key:
            config["ssl.keystore.type"] = "PEM"
            config["ssl.keystore.certificate.chain"] = self.ssl_certificate.read_text()
            config["ssl.keystore.key"] = self._java_key(self.ssl_key.read_text())
            if self.ssl_key_password:
                config["ssl.key.password"] = self.ssl_key_password.get_secret_value()
        return config

    def java_properties(self) -> dict[str, str]:
        """System properties that the JVM of a Java client needs."""
        return {_ALLOWED_URLS: self.oauth_token_url} if self.oauth_token_url else {}

    def _java_token(self) -> dict[str, str]:
        options = {"clientId": self.oauth_client_id, "clientSecret": _revealed(self.oauth_client_secret)}
        if self.oauth_scope:
            options["scope"] = self.oauth_scope
        if self.oauth_ca:
            # The connection to the token endpoint has settings of its own, here and not beside the broker's.
            options |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": self.oauth_ca.read_text(),
            }
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": _jaas("oauthbearer.OAuthBearerLoginModule", **options),
            "sasl.login.callback.handler.class": (
                f"{_JAVA_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.oauthbearer.token.endpoint.url": self.oauth_token_url or "",
        }

    def _java_key(self, text: str) -> str:
        if "PRIVATE KEY" in text and not ("BEGIN PRIVATE" in text or "BEGIN ENCRYPTED PRIVATE" in text):
            raise InputError(
                "the Java client reads keys in PKCS #8 only",
                where=self.setting("ssl_key"),
                hint="convert it: openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW",
            )
        return text


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None


def _jaas(module: str, **options: str | None) -> str:
    pairs = "".join(f" {name}={jaas_string(value or '')}" for name, value in options.items())
    return f"{_JAVA_SECURITY}.{module} required{pairs};"


def jaas_string(text: str) -> str:
    """A value as JAAS quotes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
