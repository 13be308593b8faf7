"""Credentials of Faust's connection to Kafka, from the settings that all services share."""

from __future__ import annotations

import ssl
from typing import Any

from faust.auth import OAuthCredentials, SASLCredentials, SSLCredentials
from faust.types.auth import AuthProtocol

from tamis.settings import KafkaSettings
from tamis_alerts.application.oauth_tokens import TokenProvider


def credentials(kafka: KafkaSettings) -> Any:
    """Faust's `broker_credentials`; None without TLS and SASL."""
    if kafka.security_protocol == "PLAINTEXT":
        return None
    context = _tls(kafka) if kafka.with_tls else None
    if not kafka.with_sasl:
        return SSLCredentials(context)
    found: Any
    if kafka.sasl_mechanism == "OAUTHBEARER":
        found = OAuthCredentials(oauth_cb=TokenProvider(kafka), ssl_context=context)
    else:
        found = SASLCredentials(
            mechanism=kafka.sasl_mechanism,
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value() if kafka.sasl_password else None,
            ssl_context=context,
        )
    found.protocol = AuthProtocol[kafka.security_protocol]
    return found


def _tls(kafka: KafkaSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(kafka.ssl_ca) if kafka.ssl_ca else None)
    if kafka.ssl_certificate:
        secret = kafka.ssl_key_password.get_secret_value() if kafka.ssl_key_password else None
        key = str(kafka.ssl_key) if kafka.ssl_key else None
        context.load_cert_chain(str(kafka.ssl_certificate), key, secret)
    return context
