"""Sender of a service's heartbeats, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tamis.messaging.connection import Connection
from tamis.messaging.heartbeats import Heartbeat
from tamis.messaging.topics import HEARTBEATS
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis.telemetry.threads import BackgroundThread

PERIOD_SECONDS = 2.0
# One that comes later says nothing about now.
LATE_SECONDS = 5.0
# The main loop of a service that has not run for longer hangs, and then the service sends no heartbeat.
LOOP_SECONDS = 5.0

# The client says the first one if it has found out before.
_NO_TOPIC = (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
_WHY_NO_TOPIC = (
    f"there is no topic {HEARTBEATS}: the registry makes it at its start, unless it is of an older release"
)

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
        late = int(LATE_SECONDS * 1000)
        # A topic is taken to be missing after the second time (by default 30 s), before records are late.
        options = kafka.client_config(
            linger_ms=0, message_timeout_ms=late, topic_metadata_propagation_max_ms=late // 2
        )
        self._producer = Producer({**options, "error_cb": self._connection})
        self._logged = ""

    def _run(self, closing: threading.Event) -> None:
        while not closing.is_set():
            heartbeat = self._make()
            if heartbeat is not None:
                self._send(heartbeat.to_bytes())
            self._producer.poll(0)
            closing.wait(PERIOD_SECONDS)

    def _send(self, value: bytes) -> None:
        try:
            self._producer.produce(HEARTBEATS, value, self._key, 0, on_delivery=self._answered)
        except KafkaException as error:
            self._answered(error.args[0], None)

    def _answered(self, error: KafkaError | None, _: Message | None) -> None:
        if error is None:
            why = ""
        elif error.code() in _NO_TOPIC:
            why = _WHY_NO_TOPIC
        else:
            why = str(self._connection.error(error))
        if why and why != self._logged:
            _log.warning("the registry gets no heartbeat of this service", reason=why)
        self._logged = why
