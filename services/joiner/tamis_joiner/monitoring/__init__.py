"""Metrics of the joiner's state, made in the service and not in Spark's workers.

`kafka_monitor` follows the joiner's own frontier records and the plans in a thread. `state_metrics` turns
them into metrics, and `lost_records` counts records that Kafka deleted before they were read.
"""
