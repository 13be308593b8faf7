"""Repositioning of a shard in a partition that no longer has the shard's next offset."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tamis.telemetry.logs import get_logger
from tamis_edge.sources.kafka.shard import KafkaShard

_log = get_logger("edge.kafka")

SECONDS = 10.0  # for the question where the partition begins


def reposition(consumer: Consumer, shard: KafkaShard, lost: Callable[[int], None]) -> None:
    """Continue with the first offset that a partition has. `lost` gets the number of readings that Kafka
    deleted before they were read. If Kafka doesn't answer, the shard stays `misplaced`.
    """
    shard.at_end, shard.misplaced = False, True
    place = TopicPartition(shard.topic, shard.partition)
    try:
        first, end = consumer.get_watermark_offsets(place, timeout=SECONDS)
    except KafkaException as error:
        _log.warning("can't ask where a partition begins", shard=shard.name, error=str(error))
        return
    if shard.next is not None and shard.next < first:
        lost(first - shard.next)
        _log.error(
            "Kafka deleted readings before this edge had read them: its retention is too short",
            shard=shard.name,
            lost=first - shard.next,
            next=first,
        )
    else:
        _log.error(
            "a partition does not have the next offset: its topic may have been deleted and created again; "
            "reading goes on at the first offset that it has",
            shard=shard.name,
            offset=shard.next,
            end=end,
            next=first,
        )
    shard.next, shard.misplaced = first, False
    # The client has given the partition up: seeking in it is an error.
    at = TopicPartition(shard.topic, shard.partition, first)
    consumer.incremental_unassign([at])
    consumer.incremental_assign([at])
