"""Episodes of one alert and key: alarms that follow one another within the gap are one episode.

Episodes are session windows over alarms. Alarms arrive in any order of event time, because shards differ, and
may arrive again after a crash. So a key may have several runs of alarms at the same time. An alarm that lies
between two runs merges them, and an alarm that arrived before changes nothing. An episode closes when the
frontier is past its last alarm by more than the gap, independent of the clock: no later alarm can then belong
to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import msgspec
import orjson
from msgspec import Raw, Struct
from msgspec.structs import replace

from tamis.messaging.column_names import UNNAMED, ColumnNames
from tamis_alerts.core.alarm_ids import AlarmIds, Chunk
from tamis_alerts.core.rules import Rule

# Hexadecimal digits of an identity that are kept: half of its 128 bits are enough to distinguish the alarms
# of one key.
ID_DIGITS = 16

Event = Literal["opened", "open", "closed"]


class Alarm(Struct, gc=False):
    """The fields of an alarm that episodes need. Times are in microseconds; `row` is a JSON object that may
    share memory with the alarm's record. `arrived` is the time at which the alarm's last tuple came to an
    edge.
    """

    alert: str
    key: tuple[Any, ...]
    id: str
    event_time: int
    row: Raw
    arrived: int | None = None


class Run(Struct, gc=False):
    """A run of alarms: their least and greatest event time, their number, and the row of the first one.

    `episode` is the identity of the opened episode; it is empty while the run is shorter than the alert's
    `for`. `told` is the end of the episode in its last event. The changelog uses the names of these fields,
    and earlier versions end at a field that they don't know: no field may be added.
    """

    start: int
    end: int
    alarms: int
    row: Raw
    episode: str = ""
    told: int = 0


class Opening(Struct, gc=False):
    """Severity and labels with which an episode was opened, and the names of its columns.

    `columns` has those of its key's values. Openings of earlier versions don't say which columns are times.
    """

    severity: str | None
    labels: Mapping[str, str]
    columns: tuple[str, ...]
    key_times: tuple[str, ...] = ()
    row_times: tuple[str, ...] = ()

    @staticmethod
    def of(rule: Rule) -> Opening:
        """The opening of an episode now."""
        names = rule.names
        return Opening(rule.severity, rule.labels_by_name, names.key, names.key_times, names.row_times)

    @property
    def names(self) -> ColumnNames:
        """The names of the columns."""
        return ColumnNames(self.columns, self.key_times, self.row_times)


class _Record(Struct):
    """A record of the changelog. Versions before the chunks wrote `seen`: identities with event times.

    `openings`: by episode; earlier versions leave them out, and ignore them.
    """

    runs: tuple[Run, ...] = ()
    openings: dict[str, Opening] = {}
    open: Chunk | None = None
    seen: dict[str, int] | None = None


_read_record = msgspec.json.Decoder(_Record).decode
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class KeyState:
    """State of one alert and key: its runs of alarms, and the identities of the alarms.

    The runs are in the order of time. No two overlap, because an alarm within a run belongs to it.
    `openings`: those of the open episodes, by identity.
    """

    runs: tuple[Run, ...] = ()
    openings: dict[str, Opening] = field(default_factory=dict)
    alarm_ids: AlarmIds = field(default_factory=AlarmIds)

    def __bool__(self) -> bool:
        return bool(self.runs or self.alarm_ids)

    def to_bytes(self) -> bytes | None:
        """The record of the changelog, without the closed chunks of identities; None if the state is
        empty.
        """
        if not self:
            return None
        openings = {"openings": self.openings} if self.openings else {}
        return _encode({"runs": self.runs, **openings, "open": self.alarm_ids.open_chunk()})

    def restore(self, record: bytes | None) -> None:
        """Take a record of `to_bytes`. Raises msgspec.MsgspecError if it is none."""
        found = _Record() if record is None else _read_record(record)
        for run in found.runs:
            # A row that shares memory with the record would keep all of it in memory.
            run.row = run.row.copy()
        # Earlier versions wrote the runs in the order of their last alarms.
        self.runs = tuple(sorted(found.runs, key=lambda run: run.start))
        self.openings = found.openings
        chunk = found.open
        if found.seen is not None:
            chunk = Chunk(0, max(found.seen.values(), default=0), list(found.seen))
        self.alarm_ids.restore_open(chunk)


class Episode(Struct, gc=False):
    """A record of `tamis.episodes`: an episode has opened, has grown (`open`), or has closed.

    `names` are in headers of the record.
    """

    alert: str
    key: tuple[Any, ...]
    episode: str
    event: Event
    start: int
    end: int
    alarms: int
    row: Raw
    severity: str | None
    labels: Mapping[str, str]
    names: ColumnNames = UNNAMED

    def to_bytes(self) -> bytes:
        """The record's value."""
        return _encode({name: getattr(self, name) for name in MEMBERS})

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """The record's headers."""
        return self.names.headers


# The members of a record's value.
MEMBERS = tuple(name for name in Episode.__struct_fields__ if name != "names")


class Step(Struct):
    """The events that follow from a change of a state. `changed` is false if the state is the same."""

    events: tuple[Episode, ...]
    new: int = 0  # number of alarms that had not come before
    changed: bool = True


def take(state: KeyState, alarms: Sequence[Alarm], rule: Rule) -> Step:
    """Add alarms of one alert and key to its state, in the order of their arrival."""
    new = 0
    events: list[Episode] = []
    for alarm in alarms:
        if state.alarm_ids.add(alarm.id[:ID_DIGITS], alarm.event_time):
            new += 1
            _add(state, alarm, rule, events)
    return Step(tuple(events), new, new > 0)


def _add(state: KeyState, alarm: Alarm, rule: Rule, events: list[Episode]) -> None:
    """Add an alarm to the runs of a state, and what follows from it to `events`."""
    runs, time = state.runs, alarm.event_time
    lower, upper = time - rule.gap, time + rule.gap
    # Most alarms are later than all runs but the last one, so that only this one is looked at.
    first = last = len(runs)
    while first and runs[first - 1].end >= lower:
        first -= 1
        if runs[first].start > upper:
            last = first
    near = runs[first:last]
    if not near:
        run = Run(time, time, 1, alarm.row.copy())
    elif len(near) == 1:
        run = _extended(near[0], alarm)
    else:
        run = _merged([*near, Run(time, time, 1, alarm.row.copy())])
        # A second episode that turns out to be part of the first one is over; the first goes on.
        for absorbed in near:
            if absorbed.episode and absorbed.episode != run.episode:
                events.append(_closed(alarm.alert, alarm.key, absorbed, state, rule))
    if not run.episode:
        if run.end - run.start >= rule.for_:
            run.episode, run.told = _identity(alarm, run), run.end
            opening = Opening.of(rule)
            state.openings[run.episode] = opening
            events.append(_event(alarm.alert, alarm.key, run, "opened", opening))
    elif run.end - run.told >= rule.gap:
        # Not for every alarm: readers of the topic want to know that the episode lasts, not each reading.
        run.told = run.end
        events.append(_event(alarm.alert, alarm.key, run, "open", _opening(run, state, rule)))
    state.runs = (*runs[:first], run, *runs[last:])


def advance(alert: str, key: tuple[Any, ...], state: KeyState, frontier: int, rule: Rule) -> Step:
    """Advance `state` to the frontier of the alert's topics: close episodes and remove old identities."""
    forgotten = state.alarm_ids.forget(frontier - rule.memory)
    runs = state.runs
    # The runs are in the order of their ends, too.
    if not runs or runs[0].end + rule.gap >= frontier:
        return Step((), changed=forgotten)
    over = [run for run in runs if run.end + rule.gap < frontier]
    state.runs = runs[len(over) :]
    return Step(tuple(_closed(alert, key, run, state, rule) for run in over if run.episode))


def _extended(run: Run, alarm: Alarm) -> Run:
    # The same as `_merged` with one run, in less time.
    first = alarm.event_time < run.start
    return Run(
        alarm.event_time if first else run.start,
        max(run.end, alarm.event_time),
        run.alarms + 1,
        alarm.row.copy() if first else run.row,
        run.episode,
        run.told,
    )


def _merged(runs: Sequence[Run]) -> Run:
    first = min(runs, key=lambda r: (not r.episode, r.start))
    return replace(
        first,
        start=min(r.start for r in runs),
        end=max(r.end for r in runs),
        alarms=sum(r.alarms for r in runs),
        row=min(runs, key=lambda r: r.start).row,
    )


def _identity(alarm: Alarm, run: Run) -> str:
    # When the alarms come again after a crash, in the same order, the episode gets the same identity.
    text = orjson.dumps([alarm.alert, alarm.key, run.start])
    return blake2b(text, digest_size=16).hexdigest()


def _opening(run: Run, state: KeyState, rule: Rule) -> Opening:
    # Earlier versions did not keep it. Their openings had no names of the key's values, and to Alertmanager
    # the events of an episode must be of one alert.
    return state.openings.get(run.episode) or Opening(rule.severity, rule.labels_by_name, ())


def _closed(alert: str, key: tuple[Any, ...], run: Run, state: KeyState, rule: Rule) -> Episode:
    # Sinks are chosen by severity and labels: those that were told of its opening must be told of its end,
    # too, if the alert was replaced meanwhile.
    closed = _event(alert, key, run, "closed", _opening(run, state, rule))
    state.openings.pop(run.episode, None)
    return closed


def _event(alert: str, key: tuple[Any, ...], run: Run, event: Event, opening: Opening) -> Episode:
    return Episode(
        alert,
        key,
        run.episode,
        event,
        run.start,
        run.end,
        run.alarms,
        run.row,
        opening.severity,
        opening.labels,
        opening.names,
    )
