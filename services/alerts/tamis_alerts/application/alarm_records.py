"""Alarms of a batch of Kafka records; records that can't be read are counted and logged."""

from __future__ import annotations

import time

import msgspec
import numpy as np
import orjson

from tamis.messaging.records import END_OF_TIME, canonical_key
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.application.consumer import Batch
from tamis_alerts.core.episodes import Alarm

_decode = msgspec.json.Decoder(Alarm).decode

log = get_logger("alerts")


def read_batch(batch: Batch, metrics: Metrics) -> dict[bytes, list[Alarm]]:
    """The alarms of a batch that can be read, by the keys of their records, in the order of the records."""
    found: dict[bytes, list[Alarm]] = {}
    arrivals: dict[str, list[int]] = {}
    for record in batch.records:
        try:
            alarm = read_alarm(record.key, record.value or b"")
        except (ValueError, msgspec.MsgspecError) as error:
            metrics.inc("tamis_dead_letters_total", service="alerts", reason="undecodable")
            log.error("an alarm can't be read", offset=record.offset, error=repr(error))
            continue
        found.setdefault(record.key, []).append(alarm)
        if alarm.arrived is not None:
            arrivals.setdefault(alarm.alert, []).append(alarm.arrived)
    for alert, times in arrivals.items():
        seconds = np.maximum(0.0, time.time() - np.array(times) / 1e6)
        metrics.observe_many("tamis_alarm_latency_seconds", seconds, query=alert)
    return found


def read_alarm(key: bytes | None, value: bytes) -> Alarm:
    """The alarm of a record.

    Raises ValueError or msgspec.MsgspecError for a record that the joiner didn't write. The record's key is
    checked, too, because it is the key of the state store.
    """
    try:
        alarm = _decode(value)
        row = orjson.loads(memoryview(alarm.row))  # the decoder doesn't look into the row, as sinks do
        expected = canonical_key((alarm.alert, *alarm.key))
    except (TypeError, RecursionError) as error:
        # Integers beyond 64 bits, and values that are nested too deeply.
        raise ValueError(f"the alarm has a value that the joiner doesn't write: {error}") from error
    if not isinstance(row, dict):
        raise ValueError("the alarm's row is no object")
    if abs(alarm.event_time) > END_OF_TIME or abs(alarm.arrived or 0) > END_OF_TIME or key != expected:
        raise ValueError("a time of the alarm or its record's key is not the joiner's")
    return alarm
