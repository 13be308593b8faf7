"""Waits for Kafka: the readiness probe, which asks the broker every few seconds, and the wait for topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tamis.messaging.authorization import RightsCheck
from tamis.messaging.connection import AUTHENTICATION_FAILED, Connection
from tamis.settings import KafkaSettings
from tamis.telemetry.health import Health
from tamis.telemetry.logs import get_logger
from tamis.telemetry.threads import BackgroundThread

_log = get_logger("kafka")

PERIOD_SECONDS = 5.0
TIMEOUT_SECONDS = 4.0  # of one question
# Without an answer for this long a service isn't ready. A broker restarts in less.
AWAY_SECONDS = 30.0


class KafkaProbe(BackgroundThread):
    """Sets the check `kafka` of a service's health, in its own thread, until it is closed.

    A broker that is away counts only after `away` seconds, since services survive a short absence. A rejected
    password counts at once, since waiting doesn't help. So does a right that the `service` needs and lacks.
    `planned` returns the stream topics that it uses. With `optional`, readiness also says which rights it
    lacks that it needs only for something; it is ready without them.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        health: Health,
        *,
        service: str | None = None,
        planned: Callable[[], Iterable[str]] = tuple,
        optional: bool = False,
        away: float = AWAY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("kafka-probe", TIMEOUT_SECONDS + 1)
        self._health, self._away, self._clock = health, away, clock
        self._planned = planned
        self._connection = Connection.of(settings.client_config())
        config: dict[str, Any] = {**settings.client_config(), "error_cb": self._connection}
        self._client = AdminClient(config)
        self._rights = RightsCheck(self._client, settings, service) if service else None
        self._optional = (
            RightsCheck(self._client, settings, service, optional=True) if service and optional else None
        )
        self._answered_at = clock()
        self._reported: str | None = None
        self._noted = ""

    def look(self) -> None:
        """Ask the broker once, and report the outcome to the health."""
        try:
            known = self._client.list_topics(timeout=TIMEOUT_SECONDS).topics
            missing = self._rights.missing({*known, *self._planned()}) if self._rights else None
            lacking = self._optional.missing(known) if self._optional else None
        except KafkaException as error:
            self._client.poll(0)  # calls the error callback, which has the cause
            reason = str(self._connection.error(error))
            silent = self._clock() - self._answered_at
            if AUTHENTICATION_FAILED in reason or silent >= self._away:
                self._report(reason)
            return
        self._connection.answered()
        self._answered_at = self._clock()
        self._report(str(missing) if missing else None)
        self._note(str(lacking) if lacking else "")

    def _run(self, closing: threading.Event) -> None:
        while not closing.is_set():
            self.look()
            closing.wait(PERIOD_SECONDS)

    def _note(self, lacking: str) -> None:
        self._health.note("kafka", lacking)
        if lacking != self._noted:
            self._noted = lacking
            _log.warning("goes on without a right", reason=lacking or "no right is missing any more")

    def _report(self, reason: str | None) -> None:
        self._health.check("kafka", reason)
        if reason != self._reported:
            self._reported = reason
            if reason is None:
                _log.info("Kafka answers again")
            else:
                _log.error("not ready", reason=reason)


REQUEST_SECONDS = 5.0
PAUSE_SECONDS = 0.5


def wait_for_topics(
    settings: KafkaSettings,
    names: Sequence[str],
    health: Health,
    stopping: threading.Event,
    service: str | None = None,
) -> int | None:
    """The partition count of the first of the topics, once all of them exist and the `service` has the rights
    that it needs; None if `stopping` is set before. Meanwhile the service isn't ready, and the log has each
    new reason once.
    """
    connection = Connection.of(settings.client_config())
    client: dict[str, Any] = {**settings.client_config(), "error_cb": connection}
    admin = AdminClient(client)
    rights = RightsCheck(admin, settings, service) if service else None
    logged = ""
    while not stopping.is_set():
        health.beat()
        try:
            found = admin.list_topics(timeout=REQUEST_SECONDS).topics
            connection.answered()
            denied = rights.missing(found) if rights else None
            missing = next((name for name in names if name not in found), None)
            if missing is None and denied is None:
                return len(found[names[0]].partitions)
            reason = str(denied or f"there is no topic {missing} yet; the registry makes it")
        except KafkaException as error:
            admin.poll(0)  # the callback of the connection gets the cause, such as a wrong password
            reason = str(connection.error(error))
        if reason != logged:
            _log.warning("waiting", reason=reason)
            logged = reason
        health.not_ready(reason)
        stopping.wait(PAUSE_SECONDS)
    return None
