"""Credentials of Faust's connection to Kafka, and its OAuth tokens, from the settings of all services."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Any

import httpx
from aiokafka.abc import AbstractTokenProvider
from faust.auth import OAuthCredentials, SASLCredentials, SSLCredentials
from faust.types.auth import AuthProtocol

from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger


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


REQUEST_SECONDS = 10.0
# The share of a token's lifetime after which a new one is fetched. The Java client takes the same.
RENEWAL = 0.8
# The lifetime of a token whose endpoint says none.
UNKNOWN_LIFETIME_SECONDS = 300.0

log = get_logger("alerts.kafka")


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Fetches a token when a connection needs one, and keeps it until it is due for renewal."""

    def __init__(self, kafka: KafkaSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`kafka` has the settings of OAUTHBEARER. `clock`: monotonic seconds."""
        self._kafka, self._clock = kafka, clock
        self._token, self._renew_at = "", 0.0
        self._lock = asyncio.Lock()

    async def token(self) -> str:
        """A valid token. Raises UnavailableError if the endpoint gives none."""
        async with self._lock:
            if not self._token or self._clock() >= self._renew_at:
                try:
                    self._token, seconds = await self._fetch()
                except UnavailableError as error:
                    # aiokafka would show only that the connection failed.
                    log.error("no token for Kafka", reason=str(error))
                    raise
                self._renew_at = self._clock() + RENEWAL * seconds
            return self._token

    async def _fetch(self) -> tuple[str, float]:
        kafka, secret = self._kafka, self._kafka.oauth_client_secret
        assert kafka.oauth_token_url is not None
        assert kafka.oauth_client_id is not None
        assert secret is not None
        form = {"grant_type": "client_credentials"}
        if kafka.oauth_scope:
            form["scope"] = kafka.oauth_scope
        trusted = ssl.create_default_context(cafile=str(kafka.oauth_ca) if kafka.oauth_ca else None)
        try:
            async with httpx.AsyncClient(verify=trusted, timeout=REQUEST_SECONDS) as client:
                answer = await client.post(
                    kafka.oauth_token_url,
                    data=form,
                    auth=(kafka.oauth_client_id, secret.get_secret_value()),
                )
        except httpx.HTTPError as error:
            raise self._unavailable(f"can't be reached: {str(error) or type(error).__name__}") from None
        if answer.status_code != httpx.codes.OK:
            raise self._unavailable(f"answers HTTP {answer.status_code}: {_reason(answer)}")
        try:
            document: dict[str, Any] = answer.json()
            return str(document["access_token"]), float(document.get("expires_in", UNKNOWN_LIFETIME_SECONDS))
        except (ValueError, TypeError, KeyError):
            raise self._unavailable("gave an answer without access_token") from None

    def _unavailable(self, what: str) -> UnavailableError:
        setting = self._kafka.setting
        return UnavailableError(
            f"the token endpoint {what}",
            where=self._kafka.oauth_token_url,
            hint=f"check {setting('oauth_token_url')}, {setting('oauth_client_id')} and "
            f"{setting('oauth_client_secret')}",
        )


def _reason(answer: httpx.Response) -> str:
    """The error code of RFC 6749, section 5.2; other fields of the answer might repeat what was sent."""
    try:
        return str(answer.json()["error"])
    except (ValueError, TypeError, KeyError):
        return answer.reason_phrase
