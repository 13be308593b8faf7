"""Errors of the connection to Kafka as messages with the address, the cause, and the setting to check.

Without a broker, calls of librdkafka raise "Broker transport failure". Only the client's error callback
learns the cause, such as a wrong password. `Connection` is that callback: it remembers the cause and adds
it to the error of the call.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from tamis.errors import UnavailableError

T = TypeVar("T")

AUTHENTICATION_FAILED = "authentication failed"  # the beginning of each message about it

BOOTSTRAP = "TAMIS_KAFKA_BOOTSTRAP"

GRANT_HINT = "grant it: docs/security.md lists the rights of each service"


def variable(field: str) -> str:
    """The environment variable of a field of KafkaSettings."""
    return f"TAMIS_KAFKA_{field.upper()}"


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster in messages: its address, and this client's login.

    `principal` is the client's name in ACLs, as far as its settings show it. `setting` returns the name by
    which the user sets a field of KafkaSettings.
    """

    bootstrap: str
    mechanism: str | None = None
    principal: str = "User:ANONYMOUS"
    setting: Callable[[str], str] = variable

    @staticmethod
    def of(config: Mapping[str, Any], setting: Callable[[str], str] = variable) -> Cluster:
        """The cluster of a client with this configuration of confluent-kafka.

        >>> Cluster.of({"bootstrap.servers": "k:1", "sasl.username": "edge"}).principal
        'User:edge'
        """
        name = config.get("sasl.username") or config.get("sasl.oauthbearer.client.id")
        principal = f"User:{name}" if name else "User:ANONYMOUS"
        if not name and (config.get("ssl.certificate.location") or config.get("ssl.certificate.pem")):
            # The broker makes the name from the certificate's subject by rules that only the broker knows.
            principal = f"the principal of {setting('ssl_certificate')}"
        return Cluster(str(config["bootstrap.servers"]), config.get("sasl.mechanism"), principal, setting)


# Errors that say that no broker answers, but not the cause.
NO_BROKER = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
}
_AUTHENTICATION = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
NOT_AUTHORIZED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}

# Text that librdkafka adds to the cause: the broker, and the time until the failure.
_BROKER = re.compile(r"^\S+/(bootstrap|\d+): ")
_AFTER = re.compile(r" \(after \d+ms in state (?:[^()]|\([^()]*\))*\)")
_SASL = re.compile(r"^(SASL authentication error: )?(Authentication failed: )?", re.IGNORECASE)
_JAVA = re.compile(r"S(?:asl|sl)AuthenticationException: ([^\n]*)|: ([^\n]*token endpoint[^\n]*)")
# What the Java client says where a right is missing: "Not authorized to access topics: [tamis.alarms]".
_JAVA_RIGHTS = re.compile(r"(?:Topic|Group|Cluster|TransactionalId)AuthorizationException: ([^\n]*)")


class NotAuthorizedError(UnavailableError):
    """This client lacks a right in Kafka; it may be granted while the client runs."""


class Connection:
    """The error callback of one client: pass it as `error_cb`, which the client calls in its own `poll`.

    Thread-safe. `tell` is called once with each new error.
    """

    def __init__(self, cluster: Cluster, *, tell: Callable[[UnavailableError], None] | None = None) -> None:
        self._cluster, self._tell = cluster, tell
        self._lock = threading.Lock()
        self._cause: KafkaError | None = None
        self._trouble: UnavailableError | None = None

    @staticmethod
    def of(config: Mapping[str, Any]) -> Connection:
        """The connection of a client with this configuration."""
        return Connection(Cluster.of(config))

    def __call__(self, error: KafkaError) -> None:
        """Take an error that the client reports."""
        with self._lock:
            if error.code() != KafkaError._ALL_BROKERS_DOWN or self._cause is None:
                self._cause = error
            before, self._trouble = self._trouble, self._explain(error)
            trouble = self._trouble
        if self._tell is not None and str(before) != str(trouble):
            self._tell(trouble)

    def not_authorized(self, what: str) -> NotAuthorizedError:
        """The error of a call for which this client lacks the right `what`."""
        return not_authorized(self._cluster, what)

    def answered(self) -> None:
        """The broker has answered: forget earlier errors."""
        with self._lock:
            self._cause = self._trouble = None

    @property
    def trouble(self) -> UnavailableError | None:
        """The last error since the broker answered."""
        with self._lock:
            return self._trouble

    def error(self, error: KafkaError | KafkaException) -> UnavailableError:
        """The error of a call, with the cause that the client reported before."""
        with self._lock:
            return self._explain(error)

    def _explain(self, error: KafkaError | KafkaException) -> UnavailableError:
        found = _kafka_error(error)
        if found.code() in NO_BROKER and self._cause is not None:
            found = self._cause
        return unavailable(found, self._cluster)


def unavailable(error: KafkaError | KafkaException, cluster: Cluster) -> UnavailableError:
    """An error of librdkafka as an UnavailableError with the address, the cause, and the setting to check.

    >>> said = "Connection refused (after 0ms in state CONNECT, 1 identical error(s) suppressed)"
    >>> print(unavailable(KafkaError(KafkaError._TRANSPORT, said), Cluster("127.0.0.1:9092")))
    Kafka at 127.0.0.1:9092: can't be reached: Connection refused; check that it is up, and \
TAMIS_KAFKA_BOOTSTRAP and TAMIS_KAFKA_SECURITY_PROTOCOL
    """
    found = _kafka_error(error)
    code, text = found.code(), _AFTER.sub("", _BROKER.sub("", found.str()))
    where, setting = kafka_at(cluster.bootstrap), cluster.setting
    bootstrap, protocol = setting("bootstrap"), setting("security_protocol")
    if code in _AUTHENTICATION:
        return authentication_failed(cluster, text)
    if code == KafkaError._SSL or "SSL" in text:
        return UnavailableError(
            f"the TLS handshake failed: {text}",
            where=where,
            hint=f"check {protocol}, {setting('ssl_ca')} and {setting('ssl_certificate')}",
        )
    if code == KafkaError._RESOLVE:
        return UnavailableError(text, where=where, hint=f"check {bootstrap}")
    if code in NOT_AUTHORIZED:
        return not_authorized(cluster, text)
    if code in NO_BROKER:
        return UnavailableError(
            f"can't be reached: {text}",
            where=where,
            hint=f"check that it is up, and {bootstrap} and {protocol}",
        )
    return UnavailableError(text, where=where, hint="check that it is up and can be reached")


def not_authorized(cluster: Cluster, what: str) -> NotAuthorizedError:
    """The principal lacks a right: `what` says which, as well as is known.

    >>> print(not_authorized(Cluster("k:1", principal="User:edge"), "no Write on topic tamis.acks"))
    Kafka at k:1: not authorized: User:edge: no Write on topic tamis.acks; \
grant it: docs/security.md lists the rights of each service
    """
    return NotAuthorizedError(
        f"not authorized: {cluster.principal}: {what}", where=kafka_at(cluster.bootstrap), hint=GRANT_HINT
    )


def authentication_failed(cluster: Cluster, reason: str) -> UnavailableError:
    """The broker rejects the user or the password; `reason` is the broker's or the client's text.

    >>> print(authentication_failed(Cluster("127.0.0.1:9092"), "Invalid username or password"))
    Kafka at 127.0.0.1:9092: authentication failed: Invalid username or password; check \
TAMIS_KAFKA_SASL_USERNAME and TAMIS_KAFKA_SASL_PASSWORD
    """
    setting = cluster.setting
    check = f"{setting('sasl_username')} and {setting('sasl_password')}"
    if "not valid in current SASL state" in reason:
        reason = "this port of the broker has no SASL"
        check = f"{setting('bootstrap')} and {setting('security_protocol')}"
    elif "mechanism" in reason.lower() and "invalid credentials" not in reason:
        check = setting("sasl_mechanism")
    elif cluster.mechanism == "OAUTHBEARER":
        url, client = setting("oauth_token_url"), setting("oauth_client_id")
        check = f"{url}, {client}, {setting('oauth_client_secret')} and {setting('oauth_scope')}"
    return UnavailableError(
        f"{AUTHENTICATION_FAILED}: {_SASL.sub('', reason)}",
        where=kafka_at(cluster.bootstrap),
        hint=f"check {check}",
    )


def from_java(text: str, cluster: Cluster) -> UnavailableError | None:
    """The rejected login or the missing right in the log or the exception of the Java client (Spark); None if
    it has neither.

    >>> trace = "Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: Invalid password"
    >>> print(from_java(trace, Cluster("k:1")))
    Kafka at k:1: authentication failed: Invalid password; check \
TAMIS_KAFKA_SASL_USERNAME and TAMIS_KAFKA_SASL_PASSWORD
    >>> from_java("java.lang.OutOfMemoryError", Cluster("k:1"))
    """
    if (refused := _JAVA_RIGHTS.search(text)) is not None:
        return not_authorized(cluster, refused[1])
    found = _JAVA.search(text)
    return authentication_failed(cluster, found[1] or found[2]) if found else None


def kafka_at(bootstrap: str) -> str:
    """The `where` of an error of this Kafka."""
    return f"Kafka at {bootstrap}"


def _kafka_error(error: KafkaError | KafkaException) -> KafkaError:
    if isinstance(error, KafkaException):
        first = error.args[0]
        assert isinstance(first, KafkaError)
        return first
    return error


def answer_within(question: Future[T], seconds: float) -> T:
    """The answer to a question, which comes within `seconds`. Raises KafkaException.

    If the broker is away or changes meanwhile, librdkafka may leave a question open for ever, whatever its
    timeout is.
    """
    try:
        return question.result(seconds)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Kafka's client gave no answer")) from None


def listed_offset(question: Future[Any], seconds: float) -> int:
    """The offset of a partition, 0 or more. Blocks until the answer has come.

    Raises KafkaException if the offset isn't known now. If no broker answers in time, librdkafka gives the
    offset -1001 and no error. A reader that took it for an end would start again at the beginning.
    """
    offset = int(answer_within(question, seconds).offset)
    if offset < 0:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Kafka gave no offset in time"))
    return offset
