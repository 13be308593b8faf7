"""Threads of the service that watch Kafka: metrics of the joiner's state, and the ids of topics.

Begin with `kafka_monitor`, which follows the joiner's own frontier records and the plans in a thread, and
turns them into metrics. `deletions` counts records that Kafka deleted before they were read, and asks Kafka
for the ids of the topics, by which the joiner sees that a topic was created again.
"""
