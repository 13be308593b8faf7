"""Error codes of librdkafka about single records."""

from __future__ import annotations

from confluent_kafka import KafkaError

TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
# A record that is refused with one of these codes will always be refused.
REFUSED = TOO_LARGE | {KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP}
PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
# Another record was refused, and this one fails with its request or with the whole producer.
COLLATERAL = {
    KafkaError._GAPLESS_GUARANTEE,
    KafkaError._FATAL,
    KafkaError._INVALID_DIFFERENT_RECORD,
}
