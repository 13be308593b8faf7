"""Readiness probe of Kafka: asks the broker every few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
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
