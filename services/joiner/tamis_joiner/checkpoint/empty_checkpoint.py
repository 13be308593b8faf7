"""Warning about a checkpoint without a batch, where an earlier joiner has already worked with this Kafka.

A new directory is a remedy for a damaged checkpoint, so an empty one is no error. It may also be a disk that
isn't mounted.
"""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tamis.messaging.rights import READERS
from tamis.messaging.topics import FRONTIERS
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger
from tamis_joiner.checkpoint.location import Files

log = get_logger("joiner")

REQUEST_SECONDS = 5.0


def warn_if_emptied(files: Files, worked_before: Callable[[], bool]) -> bool:
    """Log a warning if the query has no batch although `worked_before` says that one has run; returns True
    then. `worked_before` is asked only about a checkpoint without a batch. Raises OSError.
    """
    if any(name.isdecimal() for name in files.names("query/offsets")) or not worked_before():
        return False
    log.warning(
        "the checkpoint is empty, and a joiner has worked with this Kafka before: topics are read from their"
        " beginning, and alarms come again with the same id; if this isn't meant, stop the joiner and restore"
        " its checkpoint",
        checkpoint=files.location.uri,
    )
    return True


def has_frontiers(kafka: KafkaSettings) -> bool:
    """True if a joiner has written frontiers to Kafka; False also if Kafka doesn't answer."""
    consumer = Consumer({**kafka.client_config(), "group.id": READERS})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(FRONTIERS, 0), timeout=REQUEST_SECONDS)
        return bool(end > 0)
    except KafkaException:
        return False
    finally:
        consumer.close()
