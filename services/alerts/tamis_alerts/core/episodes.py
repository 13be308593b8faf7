"""Episodes of one alert and key: alarms that follow one another within the gap are one episode.

Alarms come in any order of event time (shards differ), and again after a crash; so a key may have several
episodes under way at once, which merge when an alarm lies between them, and an alarm that was seen before
changes nothing. An episode closes when the frontier has passed its last alarm by the gap, whatever the
clock says: no alarm that belongs to it can come any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal

import orjson

from tamis_alerts.core.rules import Rule

# Of an identity of 128 bits half is enough to tell the alarms of one key apart, and is kept for each of them.
REMEMBERED = 16

# The identities of one key are one value of the table, written with each batch: at most 0.6 MB of them. A
# key that raises more before the frontier passes may count an alarm twice after a crash; its episodes stay
# what they are.
MOST = 20_000

Event = Literal["opened", "open", "closed"]


@dataclass(frozen=True)
class Alarm:
    """What of an alarm an episode needs. `event_time` is microseconds."""

    alert: str
    key: tuple[Any, ...]
    id: str
    event_time: int
    row: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """Alarms in a row: their least and greatest event time, how many they are, and the first one's row.

    `episode` is the identity under which it was opened; empty while it is shorter than the alert's `for`.
    `told` is the end that was last told.
    """

    start: int
    end: int
    alarms: int
    row: dict[str, Any]
    episode: str = ""
    told: int = 0


@dataclass(frozen=True)
class KeyState:
    """All that is remembered of one alert and key; `seen` has the identities of alarms and their event
    times.
    """

    runs: tuple[Run, ...] = ()
    seen: Mapping[str, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """As it is kept in the table."""
        return orjson.dumps({"runs": self.runs, "seen": self.seen})

    @staticmethod
    def from_bytes(value: bytes) -> KeyState:
        """The state of bytes written by `to_bytes`."""
        raw = orjson.loads(value)
        return KeyState(tuple(Run(**run) for run in raw["runs"]), raw["seen"])


@dataclass(frozen=True)
class Episode:
    """A record of `tamis.episodes`: an episode opened, went on (`open`), or closed."""

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
    """A new state, and what is to be told of it."""

    state: KeyState
    events: tuple[Episode, ...]
    new: tuple[bool, ...] = ()  # for each alarm taken whether it was one that had not come before


def take(state: KeyState, alarms: Sequence[Alarm], rule: Rule) -> Step:
    """Alarms of one alert and key, in the order in which they came."""
    seen, runs = dict(state.seen), state.runs
    events: list[Episode] = []
    new: list[bool] = []
    for alarm in alarms:
        identity = alarm.id[:REMEMBERED]
        new.append(identity not in seen)
        if new[-1]:
            seen[identity] = alarm.event_time
            runs, told = _with(runs, alarm, rule)
            events += told
    if len(seen) > MOST:
        latest = sorted(seen.items(), key=lambda known: known[1])[-MOST:]
        seen = dict(latest)
    return Step(KeyState(runs, seen), tuple(events), tuple(new))


def _with(runs: tuple[Run, ...], alarm: Alarm, rule: Rule) -> tuple[tuple[Run, ...], list[Episode]]:
    near = [r for r in runs if r.start - rule.gap <= alarm.event_time <= r.end + rule.gap]
    apart = tuple(r for r in runs if r not in near)
    run = _merged([*near, Run(alarm.event_time, alarm.event_time, 1, alarm.row)])
    # A second episode that turns out to be part of the first one is over; the first goes on.
    events = [
        _event(alarm, swallowed, "closed", rule)
        for swallowed in near
        if swallowed.episode and swallowed.episode != run.episode
    ]
    if not run.episode and run.end - run.start >= rule.for_:
        run = replace(run, episode=_identity(alarm, run), told=run.end)
        events.append(_event(alarm, run, "opened", rule))
    elif run.episode and run.end - run.told >= rule.gap:
        # Not at every alarm: whoever follows an episode wants to know that it lasts, not each reading.
        run = replace(run, told=run.end)
        events.append(_event(alarm, run, "open", rule))
    return (*apart, run), events


def advance(alert: str, key: tuple[Any, ...], state: KeyState, frontier: int, rule: Rule) -> Step:
    """The frontier of all that the alert reads has come to `frontier`: close what it closes, forget what it
    may.
    """
    over = [r for r in state.runs if r.end + rule.gap < frontier]
    at = Alarm(alert, key, "", 0, {})
    events = tuple(_event(at, r, "closed", rule) for r in over if r.episode)
    return Step(
        KeyState(
            tuple(r for r in state.runs if r not in over),
            {known: time for known, time in state.seen.items() if time + rule.memory >= frontier},
        ),
        events,
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
    # The same again when the alarms come again after a crash in the same order.
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
