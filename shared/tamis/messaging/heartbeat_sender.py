"""Sender of a service's heartbeats, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, Producer

from tamis.messaging.connection import Connection
from tamis.messaging.heartbeats import Heartbeat
from tamis.messaging.topics import HEARTBEATS
from tamis.settings import KafkaSettings
from tamis.telemetry.background_thread import BackgroundThread
from tamis.telemetry.logs import get_logger

PERIOD_SECONDS = 2.0
# One that comes later says nothing about now.
LATE_SECONDS = 5.0
# The main loop of a service that has not run for longer hangs, and then the service sends no heartbeat.
LOOP_SECONDS = 5.0

_log = get_logger("kafka")


class HeartbeatSender(BackgroundThread):
    """Sends what `make` returns as the record `key`, every few seconds; nothing where it returns None.

    A service works without heartbeats, so errors are only logged.
    """

    def __init__(self, kafka: KafkaSettings, key: str, make: Callable[[], Heartbeat | None]) -> None:
        super().__init__("heartbeat", PERIOD_SECONDS)
        self._key, self._make = key.encode(), make
        config = kafka.client_config()
        self._connection = Connection.of(config)
        options = kafka.client_config(linger_ms=0, message_timeout_ms=int(LATE_SECONDS * 1000))
        self._producer = Producer({**options, "error_cb": self._connection})
        self._logged = ""

    def _run(self, closing: threading.Event) -> None:
        while not closing.is_set():
            heartbeat = self._make()
            if heartbeat is not None:
                self._producer.produce(
                    HEARTBEATS, heartbeat.to_bytes(), self._key, 0, on_delivery=self._answered
                )
            self._producer.poll(0)
            closing.wait(PERIOD_SECONDS)

    def _answered(self, error: KafkaError | None, _: Message) -> None:
        why = "" if error is None else str(self._connection.error(error))
        if why and why != self._logged:
            _log.warning("the registry gets no heartbeat of this service", reason=why)
        self._logged = why
