"""Alarms of a batch of Kafka records; records that can't be read are counted and logged."""

from __future__ import annotations

import time

import numpy as np
import orjson

from tamis.messaging.records import END_OF_TIME, canonical_key
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.application.consumer import Batch
from tamis_alerts.core.episodes import Alarm

log = get_logger("alerts")


def read_batch(batch: Batch, metrics: Metrics) -> list[tuple[bytes, Alarm]]:
    """The alarms of a batch that can be read, with their keys."""
    found: list[tuple[bytes, Alarm]] = []
    arrivals: dict[str, list[int]] = {}
    for record in batch.records:
        try:
            alarm, arrived = read_alarm(record.key, record.value or b"")
        except (ValueError, KeyError, TypeError) as error:
            metrics.inc("tamis_dead_letters_total", service="alerts", reason="undecodable")
            log.error("an alarm can't be read", offset=record.offset, error=repr(error))
            continue
        found.append((record.key, alarm))
        if arrived is not None:
            arrivals.setdefault(alarm.alert, []).append(arrived)
    for alert, times in arrivals.items():
        seconds = np.maximum(0.0, time.time() - np.array(times) / 1e6)
        metrics.observe_many("tamis_alarm_latency_seconds", seconds, query=alert)
    return found


def read_alarm(key: bytes | None, value: bytes) -> tuple[Alarm, int | None]:
    """The alarm of a record, and the time at which its last tuple arrived in Kafka (microseconds; None if the
    record doesn't have it).

    Raises ValueError, KeyError or TypeError for a record that the joiner didn't write. The record's key is
    checked, too, because it is the key of the state store.
    """
    raw = orjson.loads(value)
    alarm = Alarm(raw["alert"], tuple(raw["key"]), raw["id"], raw["event_time"], raw["row"])
    arrived = raw.get("arrived")
    kinds = (type(alarm.alert), type(raw["key"]), type(alarm.id), type(alarm.event_time), type(alarm.row))
    if kinds != (str, list, str, int, dict) or type(arrived) not in (int, type(None)):
        raise TypeError("a field of the alarm has the wrong type")
    if abs(alarm.event_time) > END_OF_TIME or key != canonical_key((alarm.alert, *alarm.key)):
        raise ValueError("the alarm's time or its record's key is not the joiner's")
    return alarm, arrived
