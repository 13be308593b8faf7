"""What each alert, stream and edge is doing, and why: derived from state and what was seen, never stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tamis.planning.plan import Definition, Plan
from tamis_registry.core.retirement import still_needed
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import Shard, State, Stored

AlertState = Literal["starting", "running", "degraded", "paused", "refused"]
ShardState = Literal["waiting", "active", "behind", "away", "gone", "ended"]

# How long a shard and the joiner may take over a new plan before they count as behind.
GRACE = 10_000_000


@dataclass(frozen=True)
class Activation:
    """From which event time a shard obeys which plan version, microseconds."""

    plan: int
    since: int


@dataclass(frozen=True)
class AlertStatus:
    """State of one alert, with its reasons in words; `retiring` says why an old definition still runs."""

    state: AlertState
    why: tuple[str, ...] = ()
    activations: dict[str, Activation] = field(default_factory=dict)
    retiring: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """All that a status is derived from. `published` is when the plan was written, microseconds."""

    state: State
    seen: Seen
    plan: Plan
    published: int
    now: int

    @property
    def settled(self) -> bool:
        """Whether everyone had time to take up the newest plan."""
        return self.now - self.published > GRACE

    def definition(self, alert: str, version: int) -> Definition | None:
        """The definition in the plan."""
        return next((d for d in self.plan.definitions if (d.alert, d.version) == (alert, version)), None)


def shard_state(view: View, shard: Shard) -> tuple[ShardState, str]:
    """State of a shard that is or was listed, and why."""
    if shard.since is None and shard.gone is None:
        return "waiting", f"shard {shard.name} waits: stream {shard.stream} is not defined or it fell silent"
    if shard.since is None:
        match shard.reason:
            case "ended":
                return "ended", f"shard {shard.name} has ended (plan {shard.gone})"
            case "silent":
                return (
                    "gone",
                    f"shard {shard.name} was silent for too long and is declared gone (plan {shard.gone})",
                )
            case _:
                return "gone", f"shard {shard.name} was delisted by plan {shard.gone}"
    if view.seen.away(shard.name, view.now):
        seconds = view.seen.silence(shard.name, view.now) // 1_000_000
        return "away", f"shard {shard.name} has said nothing for {seconds} s"
    if not view.seen.obeys(shard.name, shard.since):
        return "waiting", f"shard {shard.name} has not taken up plan {shard.since}, which lists it"
    if not view.seen.obeys(shard.name, view.plan.version):
        return "behind", f"shard {shard.name} does not obey plan {view.plan.version} yet"
    return "active", ""


def alert_status(view: View, alert: Stored) -> AlertStatus:
    """State of an alert."""
    if alert.refusal:
        return AlertStatus("refused", (alert.refusal,))
    if alert.paused:
        return AlertStatus("paused", ("RESUME ALERT starts it again",))
    definition = view.definition(alert.name, alert.version)
    if definition is None:
        return AlertStatus("starting", ("its plan is being written",))
    streams = sorted({source.stream for source in definition.inputs})
    listed = view.state.listed(streams)
    activations = {
        shard.name: Activation(*found)
        for shard in listed
        if (found := view.seen.activation(shard.name, max(alert.version, shard.since or 0)))
    }
    retiring = {
        old.id: still_needed(old_definition, old.successor, view.state, view.seen)
        or "ends with the next plan"
        for old in view.state.retiring.values()
        if old.alert == alert.name and (old_definition := view.definition(old.alert, old.version))
    }
    unable = sorted({f.unable[alert.name] for f in view.seen.frontiers.values() if alert.name in f.unable})
    if unable:
        why = tuple(f"the joiner can't evaluate it: {reason}" for reason in unable)
        return AlertStatus("degraded", why, activations, retiring)
    starting = _starting(view, alert, streams, listed)
    if starting:
        return AlertStatus("starting", tuple(starting), activations, retiring)
    degraded = _degraded(view, streams)
    return AlertStatus("degraded" if degraded else "running", tuple(degraded), activations, retiring)


def _starting(view: View, alert: Stored, streams: list[str], listed: list[Shard]) -> list[str]:
    """What is missing before the alert's definition is obeyed by all that were listed when it was made."""
    known = {shard.stream for shard in view.state.shards.values() if shard.since is not None or shard.gone}
    why = [f"no shard of stream {s} has announced itself yet" for s in streams if s not in known]
    why += [
        f"shard {shard.name} has not taken up plan {alert.version} yet"
        for shard in listed
        if (shard.since or 0) <= alert.version and not view.seen.obeys(shard.name, alert.version)
    ]
    frontiers = [view.seen.frontiers.get(p) for p in range(view.state.partitions)]
    if any(f is None or f.plan < alert.version for f in frontiers):
        why.append(f"the joiner has not taken up plan {alert.version} in every partition yet")
    return why


def _degraded(view: View, streams: list[str]) -> list[str]:
    why = []
    for shard in sorted(view.state.shards.values(), key=lambda s: s.name):
        if shard.stream in streams:
            state, reason = shard_state(view, shard)
            if state in ("away", "gone") or (state in ("behind", "waiting") and view.settled):
                why.append(reason)
    frontiers = [view.seen.frontiers.get(p) for p in range(view.state.partitions)]
    if view.settled and any(f is None or f.plan < view.plan.version for f in frontiers):
        why.append(f"the joiner has not taken up plan {view.plan.version} in every partition yet")
    return why
