"""Wait for the topics that a service needs; the registry creates them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tamis.messaging.authorization import RightsCheck
from tamis.messaging.connection import Connection
from tamis.settings import KafkaSettings
from tamis.telemetry.health import Health
from tamis.telemetry.logs import get_logger

_log = get_logger("kafka")

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
