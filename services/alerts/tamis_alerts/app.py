"""The Faust application: alarms into episodes, episodes to their sinks.

Order of writing, so that a crash between any two steps loses nothing: an episode's event is in Kafka before
the table says that it was told, and the table's changelog is in Kafka before the alarms' offsets are
committed. What is done twice after a crash has the same identity: an alarm is known by its `id`, an event
by its episode and kind.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import faust
import orjson
from faust.types import EventT

from tamis.messaging.records import END_OF_TIME, canonical_key
from tamis.messaging.topics import ALARMS, EPISODES, MAX_RECORD_BYTES
from tamis.telemetry import Metrics, get_logger
from tamis_alerts.core.episodes import Alarm, Episode, KeyState, Step, advance, take
from tamis_alerts.core.idle import Idle
from tamis_alerts.core.rules import Rule
from tamis_alerts.sinks import Sinks
from tamis_alerts.view import FleetView

# Alarms that come within this time share one write to the table: far below what anybody notices.
WITHIN_SECONDS = 0.05
BATCH = 1000
# Told events of a key that are remembered: a repeat comes from a crash just before.
TOLD = 64
# Longer than a notification can take with all its attempts.
FORGET_SECONDS = 600.0

Change = tuple[bytes, Step]  # of a key's state, and what is to be told of it

log = get_logger("alerts")


@dataclass(frozen=True)
class Parts:
    """What the agents work with."""

    view: FleetView
    sinks: Sinks
    metrics: Metrics


def build(app: faust.App, parts: Parts) -> None:
    """Declare topics, tables, agents and timers on `app`."""
    alarms = app.topic(ALARMS, key_serializer="raw", value_serializer="raw")
    episodes = app.topic(EPISODES, key_serializer="raw", value_serializer="raw")
    # Alarms are keyed by alert and key and partitioned by Kafka's own partitioner, and so are the tables:
    # changes outside of a stream (a frontier has passed) then land in the same partition as those inside.
    table = partial(
        app.Table,
        key_type=bytes,
        value_type=bytes,
        use_partitioner=True,
        extra_topic_configs={"max.message.bytes": str(MAX_RECORD_BYTES)},
    )
    states, told = table("episodes"), table("told")
    for kept in (states, told):
        # The broker's default: Faust's setting for all topics can't say so, and is 1.
        kept.changelog_topic.replicas = -1
    turn, idle = asyncio.Lock(), Idle(FORGET_SECONDS)

    async def apply(changes: Sequence[Change]) -> None:
        # All on their way before the first is waited for: one by one, each would take a request of its own.
        sent = [
            await episodes.send(key=key, value=event.to_bytes())
            for key, step in changes
            for event in step.events
        ]
        await asyncio.gather(*sent)
        for key, step in changes:
            for event in step.events:
                parts.metrics.inc("tamis_episodes_total", query=event.alert, event=event.event)
            if step.state.runs or step.state.seen:
                states[key] = step.state.to_bytes()
            else:
                states.pop(key, None)

    @app.agent(alarms, name="alarms")
    async def on_alarms(stream: Any) -> None:
        async for batch in stream.take_events(BATCH, within=WITHIN_SECONDS):
            async with turn:
                by_key: dict[bytes, list[Alarm]] = {}
                for event in batch:
                    alarm = _alarm(event, parts.metrics)
                    if alarm is not None:
                        by_key.setdefault(event.message.key or b"", []).append(alarm)
                changes: list[Change] = []
                for key, some in by_key.items():
                    state = KeyState.from_bytes(states[key]) if key in states else KeyState()
                    rule = parts.view.rules.get(some[0].alert) or _unknown(some[0].alert)
                    step = take(state, some, rule)
                    for new in step.new:
                        outcome = "new" if new else "duplicate"
                        parts.metrics.inc("tamis_alerts_alarms_total", query=some[0].alert, outcome=outcome)
                    changes.append((key, step))
                await apply(changes)
                await app.producer.flush()

    @app.agent(episodes, name="notifications")
    async def on_episodes(stream: Any) -> None:
        async for event in stream.events():
            try:
                key, episode = event.message.key or b"", asdict(Episode(**orjson.loads(event.message.value)))
            except (ValueError, TypeError) as error:
                _unreadable("episode", event, parts.metrics, error)
                continue
            done = orjson.loads(told[key]) if key in told else []
            mark = f"{episode['episode']}:{episode['event']}"
            if episode["event"] != "open" and mark in done:
                continue
            await parts.sinks.notify(episode)
            if episode["event"] != "open":
                told[key] = orjson.dumps([*done, mark][-TOLD:])
                await app.producer.flush()

    @app.timer(interval=0.5)  # type: ignore[untyped-decorator]
    async def on_frontier() -> None:
        passed = parts.view.passed
        if passed is None or app.rebalancing or app.in_recovery:
            return
        parts.view.passed = None
        async with turn:
            opened: dict[str, int] = dict.fromkeys(passed.rules, 0)
            changes: list[Change] = []
            for key in list(states.keys()):
                alert, *rest = orjson.loads(key)
                state = KeyState.from_bytes(states[key])
                rule = passed.rules.get(alert) or _unknown(alert)
                if alert in passed.frontiers:
                    step = advance(alert, tuple(rest), state, passed.frontiers[alert], rule)
                    if step.events or step.state != state:
                        changes.append((key, step))
                    state = step.state
                opened[alert] = opened.get(alert, 0) + sum(bool(run.episode) for run in state.runs)
            await apply(changes)
            for key in idle.over(list(told.keys()), states, time.monotonic()):
                told.pop(key, None)
            for alert, count in opened.items():
                parts.metrics.set("tamis_episodes_open", count, query=alert)


def _unknown(alert: str) -> Rule:
    # An alarm of an alert that was dropped in between still belongs to some episode.
    return Rule(
        alert, gap=60_000_000, for_=0, memory=3_600_000_000, severity=None, labels=(), topics=frozenset()
    )


def _alarm(event: EventT[Any], metrics: Metrics) -> Alarm | None:
    try:
        alarm, arrived = read_alarm(event.message.key, event.message.value or b"")
    except (ValueError, KeyError, TypeError) as error:
        _unreadable("alarm", event, metrics, error)
        return None
    if arrived is not None:
        metrics.observe(
            "tamis_alarm_latency_seconds", max(0.0, time.time() - arrived / 1e6), query=alarm.alert
        )
    return alarm


def _unreadable(what: str, event: EventT[Any], metrics: Metrics, error: Exception) -> None:
    metrics.inc("tamis_dead_letters_total", service="alerts", reason="undecodable")
    log.error(f"an {what} can't be read", offset=event.message.offset, error=repr(error))


def read_alarm(key: bytes | None, value: bytes) -> tuple[Alarm, int | None]:
    """The alarm of a record, and when its last tuple reached its edge (microseconds; None where not told).

    Raises ValueError, KeyError or TypeError for whatever else somebody has sent. The record's key is that of
    the table, and so it too must be the joiner's.
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
