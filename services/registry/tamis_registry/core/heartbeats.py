"""Heartbeats of the joiner and of the workers of the alerts service, and what their silence means.

Times are microseconds of the registry's wall clock. As with shards, silence counts only while the registry
listens.

Reasons name the time of the last report, and not how long ago it was: answers of different moments have the
same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tamis.durations import iso_text
from tamis.messaging.heartbeats import ALERTS, JOINER, LATE_SECONDS, Heartbeat, SinkState
from tamis_registry.core.shards.fleet_reports import AWAY_AFTER, FleetReports

SinkStatus = Literal["delivering", "behind", "failing", "silent"]

SECOND = 1_000_000


@dataclass(frozen=True)
class SinkReport:
    """A sink over all workers of the alerts service."""

    name: str
    state: SinkStatus
    waiting: int
    unread: int
    oldest: int | None
    error: str | None
    why: str


def joiner_reported(seen: FleetReports) -> int | None:
    """The time of the newest report of the joiner; None if there is no report."""
    told = [one.time for one in seen.frontiers.values()]
    told += [seen.heartbeats[JOINER].time] if JOINER in seen.heartbeats else []
    if not told:
        return None
    return seen.services_heard.get(JOINER, max(told))


def joiner_process(seen: FleetReports) -> str | None:
    """The joiner's process and its host, as an operator looks for them; None if it hasn't told."""
    beat = seen.heartbeats.get(JOINER)
    return f"process {beat.pid} on {beat.host}" if beat is not None and beat.pid else None


def joiner_silent(seen: FleetReports, now: int) -> str | None:
    """The reason why the joiner counts as silent; None if it doesn't.

    A joiner of an earlier release sends no heartbeats. It reports only with batches, and so its silence has
    no meaning here.
    """
    reported = joiner_reported(seen)
    if JOINER not in seen.heartbeats or reported is None or not _silent(seen, JOINER, now):
        return None
    return f"the joiner has reported nothing since {iso_text(reported, 'seconds')}"


def sink_reports(seen: FleetReports, now: int) -> list[SinkReport]:
    """The sinks, by name. A worker that is silent doesn't count while another worker reports, since that one
    has its partitions.
    """
    workers = {key: beat for key, beat in seen.heartbeats.items() if key.startswith(ALERTS)}
    if not workers:
        return []
    reporting = {key: beat for key, beat in workers.items() if not _silent(seen, key, now)}
    if reporting:
        return [_report(name, states, now) for name, states in _by_sink(reporting).items()]
    newest = max(workers, key=lambda key: seen.services_heard.get(key, workers[key].time))
    reported = seen.services_heard.get(newest, workers[newest].time)
    why = f"the alerts service has reported nothing since {iso_text(reported, 'seconds')}"
    return [_silent_report(name, states, why) for name, states in _by_sink({newest: workers[newest]}).items()]


def _silent(seen: FleetReports, key: str, now: int) -> bool:
    return now - max(seen.floor, seen.services_heard.get(key, seen.floor)) > AWAY_AFTER


def _by_sink(workers: Mapping[str, Heartbeat]) -> dict[str, list[SinkState]]:
    found: dict[str, list[SinkState]] = {}
    for beat in workers.values():
        for name, state in beat.sinks.items():
            found.setdefault(name, []).append(state)
    return dict(sorted(found.items()))


def _report(name: str, states: list[SinkState], now: int) -> SinkReport:
    waiting, unread, oldest, error = _together(states)
    late = oldest is not None and now - oldest > LATE_SECONDS * SECOND
    if error is None and not late:
        return SinkReport(name, "delivering", waiting, unread, oldest, None, "")
    number = "1 notification waits" if waiting == 1 else f"{waiting:,} notifications wait"
    told = f"sink {name}: {number}"
    if oldest is not None:
        told += f", the oldest for {max(0, now - oldest) // SECOND} s"
    if unread:
        told += f"; {unread:,} more events of episodes are in Kafka"
    if error is None:
        return SinkReport(name, "behind", waiting, unread, oldest, None, told)
    return SinkReport(name, "failing", waiting, unread, oldest, error, f"{told}: {error}")


def _silent_report(name: str, states: list[SinkState], why: str) -> SinkReport:
    waiting, unread, oldest, error = _together(states)
    return SinkReport(name, "silent", waiting, unread, oldest, error, why)


def _together(states: list[SinkState]) -> tuple[int, int, int | None, str | None]:
    oldest = min((one.oldest for one in states if one.oldest is not None), default=None)
    error = next((one.error for one in states if one.error is not None), None)
    return sum(one.waiting for one in states), sum(one.unread for one in states), oldest, error
