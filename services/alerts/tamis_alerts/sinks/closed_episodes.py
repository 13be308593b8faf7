"""Episodes that have closed since one of their events was written, as the topic of episodes tells."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from tamis.messaging.connection import Connection
from tamis.messaging.topics import EPISODES
from tamis_alerts.kafka_reads import read_to_end
from tamis_alerts.sinks.notification import read_episode


def closed_episodes(
    consumer: Consumer, connection: Connection, events: Mapping[str, tuple[int, int]]
) -> set[str]:
    """Those of the episodes that have closed. `events` has an event of each: its partition and its offset in
    the topic of episodes. `consumer` must have `enable.partition.eof` set.

    The topic is read from the first of these events on, since all events of an episode are in one partition.
    Raises UnavailableError and KafkaException.
    """
    starts: dict[int, int] = {}
    for partition, offset in events.values():
        starts[partition] = min(offset, starts.get(partition, offset))
    if not starts:
        return set()
    found = set()
    places = [TopicPartition(EPISODES, partition, offset) for partition, offset in starts.items()]
    for message in read_to_end(consumer, connection, places, batch=500):
        try:
            event = read_episode(message.value() or b"")
        except ValueError:
            continue  # the queue of the sink has told of it
        if event["event"] == "closed" and event["episode"] in events:
            found.add(event["episode"])
    return found
