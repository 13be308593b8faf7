"""Writer of the parts of plans, by which an edge reads no more of a plan than its streams need."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tamis.errors import TamisError
from tamis.messaging.topics import PLAN_KEY, part_topic
from tamis.plan.document import LARGEST
from tamis.plan.parts import PartRecord, parts
from tamis.settings import KafkaSettings
from tamis.telemetry.logs import get_logger
from tamis_registry.kafka.topic_admin import TopicAdmin

_log = get_logger("registry.kafka")

CLOSING_SECONDS = 2.0


class PlanParts:
    """Writes the part of each stream once the plan is written.

    Edges do without parts that are missing, and read whole plans. So no failure here may stop the registry,
    nobody waits for the records, and the producer is another one than that of the transactions: an error of
    rights would end its transactions.
    """

    def __init__(self, kafka: KafkaSettings, topics: TopicAdmin) -> None:
        self._topics = topics
        self._known: set[str] = set()  # streams whose parts have a topic
        self._reason = ""  # of the last failure, which is told once
        config = kafka.client_config(
            enable_idempotence=True,
            message_max_bytes=LARGEST,
            compression_type="zstd",
            linger_ms=0,
        )
        self._producer = Producer({**config, "on_delivery": self._delivered})

    def write(self, plan: bytes, ends: Sequence[int]) -> None:
        """Write the parts of all streams. They say where the plan ends in each partition of its topic."""
        try:
            found = parts(plan)
            if missing := found.keys() - self._known:
                self._topics.ensure_parts(missing)
                self._known |= missing
            for stream, part in found.items():
                self._producer.produce(part_topic(stream), PartRecord(ends, part).encode(), PLAN_KEY, 0)
                self._producer.poll(0)
        except (TamisError, KafkaException, BufferError) as error:
            self._failed(error)

    def close(self) -> None:
        """Send what is left, and close the connection."""
        self._producer.flush(CLOSING_SECONDS)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed(error)

    def _failed(self, error: object) -> None:
        if str(error) != self._reason:
            self._reason = str(error)
            _log.warning("parts of plans can't be written; edges read whole plans", reason=self._reason)
