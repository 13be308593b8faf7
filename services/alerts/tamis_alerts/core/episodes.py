"""Episodes of one alert and key: alarms that follow one another within the gap are one episode.

Alarms come in any order of event time (shards differ), and again after a crash; so a key may have several
episodes under way at once, which merge when an alarm lies between them, and an alarm that was seen before
changes nothing. An episode closes when the frontier has passed its last alarm by the gap, whatever the
clock says: no alarm that belongs to it can come any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any, Literal

import orjson

from tamis_alerts.core.rules import Rule

# Of an identity of 128 bits half is enough to tell the alarms of one key apart, and is kept for each of them.
REMEMBERED = 16

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
    seen: tuple[tuple[str, int], ...] = ()

    def to_bytes(self) -> bytes:
        """As it is kept in the table."""
        return orjson.dumps(asdict(self))

    @staticmethod
    def from_bytes(value: bytes) -> KeyState:
        """The state of bytes written by `to_bytes`."""
        raw = orjson.loads(value)
        return KeyState(tuple(Run(**run) for run in raw["runs"]), tuple((i, t) for i, t in raw["seen"]))


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
    new: bool = True  # False: the alarm was a duplicate


def take(state: KeyState, alarm: Alarm, rule: Rule) -> Step:
    """One alarm."""
    identity = alarm.id[:REMEMBERED]
    if any(known == identity for known, _ in state.seen):
        return Step(state, (), new=False)
    near = [r for r in state.runs if r.start - rule.gap <= alarm.event_time <= r.end + rule.gap]
    apart = tuple(r for r in state.runs if r not in near)
    run = _merged([*near, Run(alarm.event_time, alarm.event_time, 1, alarm.row)])
    events = []
    # A second episode that turns out to be part of the first one is over; the first goes on.
    for swallowed in (r for r in near if r.episode and r.episode != run.episode):
        events.append(_event(alarm, swallowed, "closed", rule))
    if not run.episode and run.end - run.start >= rule.for_:
        run = replace(run, episode=_identity(alarm, run), told=run.end)
        events.append(_event(alarm, run, "opened", rule))
    elif run.episode and run.end - run.told >= rule.gap:
        # Not at every alarm: whoever follows an episode wants to know that it lasts, not each reading.
        run = replace(run, told=run.end)
        events.append(_event(alarm, run, "open", rule))
    seen = (*state.seen, (identity, alarm.event_time))
    return Step(KeyState((*apart, run), seen), tuple(events))


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
            tuple((known, time) for known, time in state.seen if time + rule.memory >= frontier),
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
