"""Silences: what happens to the events of episodes that they cover.

A sink gets the close of an episode exactly if it got the opening. An opening that a silence covers is held.
It is sent when no silence covers it any more, unless the episode has closed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec.structs import replace

from tamis.messaging.silences import Held, Silence, covers

Decision = Literal["tell", "hold", "skip"]


class ActiveSilences:
    """The silences that are active at a time, by the alerts that they name: there may be thousands."""

    def __init__(self, silences: Iterable[Silence], now: int) -> None:
        self._now = now
        self._of_alerts: dict[str | None, list[Silence]] = {}
        for one in silences:
            if one.start <= now < one.until:
                for alert in (None,) if one.alerts is None else one.alerts:
                    self._of_alerts.setdefault(alert, []).append(one)

    def cover(self, episode: Mapping[str, Any]) -> bool:
        """True if one of them covers an episode."""
        found = (self._of_alerts.get(alert, ()) for alert in (episode["alert"], None))
        return any(covers(one, episode, self._now) for silences in found for one in silences)


@dataclass
class HeldOpenings:
    """The held openings of one sink, by the identities of their episodes."""

    by_episode: dict[str, Held] = field(default_factory=dict)

    def decide(self, event: Mapping[str, Any], silences: Iterable[Silence], now: int) -> Decision:
        """Decide if an event is sent (`tell`), held (`hold`) or left out (`skip`)."""
        if event["event"] == "closed":
            return "skip" if event["episode"] in self.by_episode else "tell"
        covered = event["event"] == "opened" and any(covers(one, event, now) for one in silences)
        return "hold" if covered else "tell"

    def hold(self, held: Held) -> None:
        """Add an opening, or take a record of one."""
        self.by_episode[held.episode] = held

    def close(self, episode: str, offset: int) -> Held:
        """The record that says that a held episode was closed by the event at an offset."""
        held = self.by_episode[episode] = replace(self.by_episode[episode], closed=offset)
        return held

    def remove(self, episode: str) -> Held | None:
        """Remove an opening; None if it isn't held."""
        return self.by_episode.pop(episode, None)

    def foresee(
        self,
        events: Iterable[tuple[Mapping[str, Any], Decision | None]],
        silences: Iterable[Silence],
        now: int,
    ) -> Iterator[bool]:
        """For each event that waits, in the order of the queue, True if it will be sent with the silences as
        they are. An event comes with its decision if that was made.
        """
        active, held = ActiveSilences(silences, now), set(self.by_episode)
        for event, made in events:
            episode = event["episode"]
            if event["event"] != "opened":
                sent = made == "tell" if made else event["event"] != "closed" or episode not in held
            else:
                sent = made == "tell" if made else not active.cover(event)
                (held.discard if sent else held.add)(episode)
            yield sent

    def held_back(self, silences: Iterable[Silence], now: int) -> int:
        """The number of openings of open episodes that a silence covers."""
        active = ActiveSilences(silences, now)
        return sum(held.closed is None and active.cover(held.event) for held in self.by_episode.values())

    def due(self, silences: Iterable[Silence], now: int) -> Iterator[Held]:
        """The openings of open episodes that no silence covers any more."""
        active = ActiveSilences(silences, now)
        yield from (
            held for held in self.by_episode.values() if held.closed is None and not active.cover(held.event)
        )

    def is_due(self, held: Held, silences: Iterable[Silence], now: int) -> bool:
        """True if an opening is still held, its episode is open, and no silence covers it any more."""
        return (
            self.by_episode.get(held.episode) is held
            and held.closed is None
            and not any(covers(one, held.event, now) for one in silences)
        )
