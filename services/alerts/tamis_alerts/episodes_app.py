"""Faust application that turns alarms into episodes.

A crash between two writes loses nothing, because the order of the writes is fixed. The event of an episode is
in Kafka before the changelog has the new state, and the changelog is in Kafka before the offsets of the
alarms are committed. Records that are repeated after a crash have the same identity as before: an alarm has
its `id`, an event its episode and kind. Sinks read the topic of episodes, each with its own queue.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import faust
import msgspec
import numpy as np
import orjson

from tamis.messaging.records import END_OF_TIME, canonical_key
from tamis.messaging.topics import ALARMS
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.core.episodes import Alarm, advance, take
from tamis_alerts.core.rules import Rule
from tamis_alerts.faust_consumer import Batch, install_consumer
from tamis_alerts.fleet_view import FleetView
from tamis_alerts.state_store import Change, StateStore

log = get_logger("alerts")

_decode = msgspec.json.Decoder(Alarm).decode


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


# Batches that wait for the agent. More would only fill memory: while the agent works, new alarms become part
# of the next fetch.
WAITING = 2
POLL_SECONDS = 0.02
ADVANCE_SECONDS = 0.5

NO_PARTITIONS = (
    f"this worker has no partition of {ALARMS}: other workers have them all. It takes over when one of them "
    "ends. Start no more workers than there are partitions (TAMIS_PARTITIONS of the registry)"
)


class EpisodesApp:
    """The agent, the timer and the rebalance callbacks of the application. A lock ensures that only one of
    them changes the state store at a time.
    """

    def __init__(self, app: faust.App, view: FleetView, store: StateStore, metrics: Metrics) -> None:
        """Declare agent, timer and callbacks on `app`."""
        self._app, self._view, self._store, self._metrics = app, view, store, metrics
        self._lock = asyncio.Lock()
        alarms = app.topic(ALARMS, key_serializer="raw", value_serializer="raw", maxsize=WAITING)
        app.agent(alarms, name="alarms")(self._on_alarms)
        app.timer(interval=ADVANCE_SECONDS)(self._on_frontiers)
        # Faust would keep only a weak reference to a bound method, which is gone at once.
        app.on_partitions_revoked.connect(self._on_revoked, weak=False)
        install_consumer(app, self._on_assigned)

    # ---- alarms and frontiers

    async def _on_alarms(self, stream: Any) -> None:
        async for event in stream.noack().events():
            try:
                taken = await self._take(event.message.tp.partition, event.value)
            except Exception as error:
                # Faust would continue with the next batch, and commit its offset.
                await self._app.crash(error)
                raise
            if taken:
                event.ack()

    async def _take(self, partition: int, batch: Batch) -> bool:
        """Take a batch of alarms; False if the partition now belongs to another worker, which begins at
        the committed offset and so reads the batch again.
        """
        while not has_states(self._app):
            await asyncio.sleep(POLL_SECONDS)
        async with self._lock:
            if partition not in self._store.partitions:
                return False
            changes: list[Change] = []
            new, repeated = Counter[str](), Counter[str]()
            for key, alarms in read_batch(batch, self._metrics).items():
                alert = alarms[0].alert
                entry = self._store.entry(key, alert, alarms[0].key, partition)
                step = take(entry.state, alarms, self._rule(self._view.rules, alert))
                new[alert] += step.new
                if step.new < len(alarms):
                    repeated[alert] += len(alarms) - step.new
                if step.changed:
                    changes.append((key, entry, step.events))
            for outcome, counts in (("new", new), ("duplicate", repeated)):
                for alert, count in counts.items():
                    self._metrics.inc("tamis_alerts_alarms_total", count, query=alert, outcome=outcome)
            await self._write(changes)
        return True

    async def _on_frontiers(self) -> None:
        """Advance all episodes to the frontiers whose alarms have been processed."""
        if not has_states(self._app):
            return
        async with self._lock:
            processed = self._view.take_processed()
            if processed is None:
                return
            opened: Counter[str] = Counter(dict.fromkeys(processed.rules, 0))
            changes: list[Change] = []
            for key, entry in self._store.entries.items():
                rule = self._rule(processed.rules, entry.alert)
                if entry.alert in processed.frontiers:
                    frontier = processed.frontiers[entry.alert]
                    step = advance(entry.alert, entry.key, entry.state, frontier, rule)
                    if step.changed:
                        changes.append((key, entry, step.events))
                opened[entry.alert] += sum(bool(run.episode) for run in entry.state.runs)
            await self._write(changes)
            for alert, count in opened.items():
                self._metrics.set("tamis_episodes_open", count, query=alert)

    def _rule(self, rules: Mapping[str, Rule], alert: str) -> Rule:
        return rules.get(alert) or self._view.former_rules.get(alert) or _default_rule(alert)

    async def _write(self, changes: list[Change]) -> None:
        await self._store.write(changes)
        counts = Counter((event.alert, event.event) for _, _, events in changes for event in events)
        for (alert, event), count in counts.items():
            self._metrics.inc("tamis_episodes_total", count, query=alert, event=event)

    # ---- partitions

    async def _on_revoked(self, *_: Any, **__: Any) -> None:
        # The lock lets a write end before another worker gets the partitions.
        async with self._lock:
            self._store.partitions = frozenset()

    async def _on_assigned(self, partitions: set[int]) -> None:
        async with self._lock:
            await asyncio.to_thread(self._store.load, partitions)
        self._metrics.set("tamis_alerts_partitions", len(partitions))
        if partitions:
            count = len(self._store.entries)
            log.info("assigned", topic=ALARMS, partitions=sorted(partitions), states=count)
        else:
            log.warning(NO_PARTITIONS)


def has_states(app: faust.App) -> bool:
    """True if the worker has its partitions, and their states."""
    tables: Any = app.tables
    return not app.rebalancing and bool(tables.recovery.completed.is_set())


def _default_rule(alert: str) -> Rule:
    """The rule of an alert that was dropped before this process started. Its last alarms still belong to some
    episode.
    """
    return Rule(
        alert, gap=60_000_000, for_=0, memory=3_600_000_000, severity=None, labels=(), topics=frozenset()
    )
