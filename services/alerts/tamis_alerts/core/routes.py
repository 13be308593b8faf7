"""Routes: which sinks are notified of an episode, by its alert, its severity and its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Route:
    """Sinks of the episodes that meet all conditions. None, or no labels: every episode meets it.

    `go_on`: the routes after it are looked at, too.
    """

    sinks: frozenset[str]
    alerts: frozenset[str] | None = None
    severities: frozenset[str] | None = None
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    go_on: bool = False

    def matches(self, episode: Mapping[str, Any]) -> bool:
        """True if an event of an episode meets all conditions."""
        return (
            (self.alerts is None or episode["alert"] in self.alerts)
            and (self.severities is None or (episode["severity"] or "") in self.severities)
            and all(episode["labels"].get(name, "") in values for name, values in self.labels.items())
        )


def is_routed(routes: Sequence[Route], sink: str, episode: Mapping[str, Any]) -> bool:
    """True if a sink is notified of an episode: one of the routes that count for it names the sink.

    These are the routes that match, in their order, up to the first one that doesn't go on. Without routes,
    every sink is notified.
    """
    for route in routes:
        if route.matches(episode):
            if sink in route.sinks:
                return True
            if not route.go_on:
                return False
    return not routes
