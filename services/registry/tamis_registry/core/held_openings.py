"""Openings that the alerts service holds back while a silence covers their episodes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tamis.messaging.silences import Held, Silence, covers


class HeldOpening(NamedTuple):
    """An opening that one sink has not got. Silences cover its episode by these `facts`. If the episode has
    closed, nobody gets it any more.
    """

    sink: str
    episode: str
    facts: Mapping[str, Any]
    closed: bool


class HeldBack(NamedTuple):
    """The openings that a silence holds back now, one for each sink, and the number of their episodes."""

    episodes: int = 0
    notifications: int = 0


class _Facts(msgspec.Struct):
    episode: str
    alert: str
    key: tuple[Any, ...]
    severity: str | None
    labels: dict[str, str]


def held_opening(held: Held) -> HeldOpening:
    """The opening of a record."""
    facts = msgspec.convert(held.event, _Facts)
    return HeldOpening(held.sink, facts.episode, msgspec.structs.asdict(facts), held.closed is not None)


@dataclass
class HeldOpenings:
    """The held openings of all sinks, by the keys of their records in Kafka."""

    _records: dict[bytes, HeldOpening] = field(default_factory=dict)

    def take(self, key: bytes, opening: HeldOpening | None) -> None:
        """Take a record. None: it was removed."""
        self._records.pop(key, None)
        if opening is not None and not opening.closed:
            self._records[key] = opening

    def of_sinks(self, sinks: Container[str] | None) -> list[HeldOpening]:
        """Those of some sinks; None: all of them. The openings of a sink that was removed stay in Kafka."""
        return [one for one in self._records.values() if sinks is None or one.sink in sinks]


def held_back(silences: Iterable[Silence], openings: Sequence[HeldOpening], now: int) -> dict[str, HeldBack]:
    """Counts of the openings that each active silence holds back now, by its identity. An opening that
    several silences cover counts for each of them.
    """
    by_alert: dict[str, list[HeldOpening]] = {}
    for one in openings:
        by_alert.setdefault(one.facts["alert"], []).append(one)
    found = {}
    for silence in silences:
        if not silence.start <= now < silence.until:
            continue
        # There may be thousands of both.
        of_alerts = openings if silence.alerts is None else _of(by_alert, silence.alerts)
        covered = [one.episode for one in of_alerts if covers(silence, one.facts, now)]
        found[silence.id] = HeldBack(len(set(covered)), len(covered))
    return found


def _of(by_alert: Mapping[str, list[HeldOpening]], alerts: Iterable[str]) -> list[HeldOpening]:
    return [one for alert in dict.fromkeys(alerts) for one in by_alert.get(alert, ())]
