"""Ids of the topics that the joiner reads. A topic that is created again under its name gets another id."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from tamis.errors import UnavailableError
from tamis.messaging.connection import Connection
from tamis.messaging.topics import JOINER_PATTERN
from tamis.settings import KafkaSettings
from tamis.telemetry.threads import BackgroundThread

REQUEST_SECONDS = 5.0
PERIOD_SECONDS = 2.0

# What a broker says that gives topics no ids.
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_PATTERN = re.compile(JOINER_PATTERN)


class TopicIds(BackgroundThread):
    """Asks Kafka for the ids. While the context is open, a thread asks every few seconds."""

    def __init__(self, kafka: KafkaSettings) -> None:
        super().__init__("topic-ids", REQUEST_SECONDS + 1)
        self._connection = Connection.of(kafka.client_config())
        config: dict[str, Any] = {**kafka.client_config(), "error_cb": self._connection}
        self._client = AdminClient(config)
        self.newest: dict[str, str] = {}  # the last answer

    def ask(self) -> dict[str, str]:
        """The ids by topic. Raises UnavailableError if Kafka doesn't answer."""
        try:
            known = self._client.list_topics(timeout=REQUEST_SECONDS).topics
            names = [name for name in known if _PATTERN.fullmatch(name)]
            asked = self._client.describe_topics(TopicCollection(names), request_timeout=REQUEST_SECONDS)
            found = {name: str(answer.result().topic_id) for name, answer in asked.items()}
        except KafkaException as error:
            self._client.poll(0)  # calls the error callback, which has the cause
            raise self._connection.error(error) from error
        self._connection.answered()
        self.newest = {name: topic_id for name, topic_id in found.items() if topic_id != _NO_ID}
        return self.newest

    def _run(self, closing: threading.Event) -> None:
        while not closing.wait(PERIOD_SECONDS):
            # The probe of Kafka reports that Kafka is away.
            with suppress(UnavailableError):
                self.ask()
