"""Threads of the service that watch Kafka: metrics of the joiner's state, and the ids of topics.

`kafka_monitor` follows the joiner's own frontier records and the plans in a thread. `state_metrics` turns
them into metrics, and `lost_records` counts records that Kafka deleted before they were read. `topic_ids`
asks Kafka for the ids of the topics, by which the joiner sees that a topic was created again.
"""
