"""Episodes of one alert and key: alarms that follow one another within the gap are one episode.

Episodes are session windows over alarms. Alarms arrive in any order of event time, because shards differ, and
may arrive again after a crash. So a key may have several runs of alarms at the same time. An alarm that lies
between two runs merges them, and an alarm that arrived before changes nothing. An episode closes when the
frontier is past its last alarm by more than the gap, independent of the clock: no later alarm can then belong
to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal

import orjson

from tamis_alerts.core.alarm_ids import AlarmIds
from tamis_alerts.core.rules import Rule

# Hexadecimal digits of an identity that are kept: half of its 128 bits are enough to distinguish the alarms
# of one key.
ID_DIGITS = 16

Event = Literal["opened", "open", "closed"]


@dataclass(frozen=True)
class Alarm:
    """The fields of an alarm that episodes need. `event_time` is in microseconds."""

    alert: str
    key: tuple[Any, ...]
    id: str
    event_time: int
    row: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run of alarms: their least and greatest event time, their number, and the row of the first one.

    `episode` is the identity of the opened episode; it is empty while the run is shorter than the alert's
    `for`. `told` is the end of the episode in its last event. The changelog uses the names of these fields.
    """

    start: int
    end: int
    alarms: int
    row: dict[str, Any]
    episode: str = ""
    told: int = 0


@dataclass
class KeyState:
    """State of one alert and key: its runs of alarms, and the identities of the alarms."""

    runs: tuple[Run, ...] = ()
    alarm_ids: AlarmIds = field(default_factory=AlarmIds)

    def __bool__(self) -> bool:
        return bool(self.runs or self.alarm_ids)

    def to_bytes(self) -> bytes | None:
        """The record of the changelog, without the closed chunks of identities; None if the state is
        empty.
        """
        return orjson.dumps({"runs": self.runs, "open": self.alarm_ids.open_chunk()}) if self else None

    def restore(self, record: bytes | None) -> None:
        """Take a record of `to_bytes`."""
        raw: dict[str, Any] = {"runs": ()} if record is None else orjson.loads(record)
        self.runs = tuple(Run(**run) for run in raw["runs"])
        self.alarm_ids.restore_open(raw.get("open"))
        if "seen" in raw:  # an older version had no chunks
            old = raw["seen"]
            self.alarm_ids.restore_open(
                {"number": 0, "latest": max(old.values(), default=0), "ids": list(old)}
            )


@dataclass(frozen=True)
class Episode:
    """A record of `tamis.episodes`: an episode has opened, has grown (`open`), or has closed."""

    alert: str
    key: tuple[Any, ...]
    episode: str
    event: Event
    start: int
    end: int
    alarms: int
    row: dict[str, Any]
    severity: str | None
    labels: dict[str, str]

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps(self)


@dataclass(frozen=True)
class Step:
    """The events that follow from a change of a state. `changed` is false if the state is the same."""

    events: tuple[Episode, ...]
    new: int = 0  # number of alarms that had not come before
    changed: bool = True


def take(state: KeyState, alarms: Sequence[Alarm], rule: Rule) -> Step:
    """Add alarms of one alert and key to its state, in the order of their arrival."""
    runs, new = state.runs, 0
    events: list[Episode] = []
    for alarm in alarms:
        if state.alarm_ids.add(alarm.id[:ID_DIGITS], alarm.event_time):
            new += 1
            runs, more = _with(runs, alarm, rule)
            events += more
    state.runs = runs
    return Step(tuple(events), new, changed=new > 0)


def _with(runs: tuple[Run, ...], alarm: Alarm, rule: Rule) -> tuple[tuple[Run, ...], list[Episode]]:
    near = [r for r in runs if r.start - rule.gap <= alarm.event_time <= r.end + rule.gap]
    apart = tuple(r for r in runs if not r.start - rule.gap <= alarm.event_time <= r.end + rule.gap)
    run = _extended(near[0], alarm) if len(near) == 1 else _merged([*near, _alone(alarm)])
    # A second episode that turns out to be part of the first one is over; the first goes on.
    events = [
        _event(alarm, absorbed, "closed", rule)
        for absorbed in near
        if absorbed.episode and absorbed.episode != run.episode
    ]
    if not run.episode and run.end - run.start >= rule.for_:
        run = replace(run, episode=_identity(alarm, run), told=run.end)
        events.append(_event(alarm, run, "opened", rule))
    elif run.episode and run.end - run.told >= rule.gap:
        # Not for every alarm: readers of the topic want to know that the episode lasts, not each reading.
        run = replace(run, told=run.end)
        events.append(_event(alarm, run, "open", rule))
    return (*apart, run), events


def advance(alert: str, key: tuple[Any, ...], state: KeyState, frontier: int, rule: Rule) -> Step:
    """Advance `state` to the frontier of the alert's topics: close episodes and remove old identities."""
    over = [r for r in state.runs if r.end + rule.gap < frontier]
    forgotten = state.alarm_ids.forget(frontier - rule.memory)
    if not over:
        return Step((), changed=forgotten)
    at = Alarm(alert, key, "", 0, {})
    events = tuple(_event(at, r, "closed", rule) for r in over if r.episode)
    state.runs = tuple(r for r in state.runs if r.end + rule.gap >= frontier)
    return Step(events)


def _alone(alarm: Alarm) -> Run:
    return Run(alarm.event_time, alarm.event_time, 1, alarm.row)


def _extended(run: Run, alarm: Alarm) -> Run:
    # The same as `_merged` with one run, in a fifth of the time.
    first = alarm.event_time < run.start
    return Run(
        alarm.event_time if first else run.start,
        max(run.end, alarm.event_time),
        run.alarms + 1,
        alarm.row if first else run.row,
        run.episode,
        run.told,
    )


def _merged(runs: Sequence[Run]) -> Run:
    first = min(runs, key=lambda r: (not r.episode, r.start))
    return Run(
        start=min(r.start for r in runs),
        end=max(r.end for r in runs),
        alarms=sum(r.alarms for r in runs),
        row=min(runs, key=lambda r: r.start).row,
        episode=first.episode,
        told=first.told,
    )


def _identity(alarm: Alarm, run: Run) -> str:
    # When the alarms come again after a crash, in the same order, the episode gets the same identity.
    text = orjson.dumps([alarm.alert, alarm.key, run.start])
    return blake2b(text, digest_size=16).hexdigest()


def _event(alarm: Alarm, run: Run, event: Event, rule: Rule) -> Episode:
    return Episode(
        alert=alarm.alert,
        key=alarm.key,
        episode=run.episode,
        event=event,
        start=run.start,
        end=run.end,
        alarms=run.alarms,
        row=run.row,
        severity=rule.severity,
        labels=dict(rule.labels),
    )
