"""Status of alerts, streams and edges, with reasons; derived from state and reports, never stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Literal

from tamis.durations import iso_text
from tamis.identity_cache import IdentityCache
from tamis.plan.model import Definition, Plan, StandingQuery
from tamis.planning.queries.definitions import definition_id
from tamis_registry.core.heartbeats import joiner_silent
from tamis_registry.core.plan.retirement import still_needed, unproven
from tamis_registry.core.shards.backfill import lacks, waits_for
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.shards.membership import unmissed
from tamis_registry.core.state.model import FORGOTTEN, Retiring, Shard, State, Stored

AlertState = Literal["starting", "running", "degraded", "paused", "refused"]
ShardState = Literal["waiting", "active", "behind", "away", "gone", "unused", "ended"]

# The reasons that a status names of one kind: an alert may wait for thousands of shards.
MOST_REASONS = 20

# How long a shard and the joiner may take over a new plan before they count as behind.
GRACE = 10_000_000


@dataclass(frozen=True)
class Activation:
    """A plan version that a shard uses, and the event time from which it uses it, in microseconds."""

    plan: int
    since: int


@dataclass(frozen=True)
class AlertStatus:
    """State of one alert, with its reasons; `retiring`: the reasons why old definitions still run."""

    state: AlertState
    why: tuple[str, ...] = ()
    activations: dict[str, Activation] = field(default_factory=dict)
    retiring: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """All data from which a status is derived.

    `published`: the time at which the plan was written, microseconds.
    """

    state: State
    seen: FleetReports
    plan: Plan
    published: int
    now: int
    _unproven: IdentityCache[bool] = field(default_factory=IdentityCache)

    def unproven(self, definition: Definition | StandingQuery) -> bool:
        """True if no bound of the definition's memory is proven, and the user allowed it to run. It is
        computed once for a definition, because metrics need it for all definitions.
        """
        return self._unproven.one(definition, lambda: unproven(definition))

    @cached_property
    def _definitions(self) -> dict[str, Definition | StandingQuery]:
        return {definition_id(d.alert, d.version): d for d in self.plan.queries}

    @cached_property
    def shards(self) -> dict[str, list[Shard]]:
        """The shards that are or were listed, by stream, in the order of their names."""
        found: dict[str, list[Shard]] = {}
        for _, shard in sorted(self.state.shards.items()):
            if not self.forgotten(shard):
                found.setdefault(shard.stream, []).append(shard)
        return found

    def forgotten(self, shard: Shard) -> bool:
        """True for a shard that somebody gave up, or whose stream was dropped, and that no edge reports."""
        return shard.reason in FORGOTTEN and not self.seen.present(shard.name, self.now)

    @cached_property
    def shard_states(self) -> dict[str, list[tuple[ShardState, str]]]:
        """The states of the shards, with reasons."""
        return {
            stream: [shard_state(self, shard) for shard in found] for stream, found in self.shards.items()
        }

    @cached_property
    def reporting_edges(self) -> dict[str, bool]:
        """The edges that report now; True for those of which a source fails."""
        found: dict[str, bool] = {}
        for name, ack in (*self.seen.acks.items(), *self.seen.edges.items()):
            if self.seen.present(name, self.now):
                found[ack.edge] = found.get(ack.edge, False) or bool(ack.failing)
        return found

    def edge(self, shard: Shard) -> str:
        """The edge that acknowledged a shard last, or for which it was listed if none has."""
        # Shards of Kafka sources move between the edges of a consumer group, and stay listed meanwhile.
        ack = self.seen.acks.get(shard.name)
        return shard.edge if ack is None else ack.edge

    def lacks_source(self, shard: Shard) -> bool:
        """True if a silent shard's edge reports without it, and not since a source fails: an edge that was
        started with another configuration has no source for the shard any more.
        """
        return self.seen.away(shard.name, self.now) and self.reporting_edges.get(self.edge(shard)) is False

    def unused(self, shard: Shard) -> bool:
        """True if a silent shard never had a reading, its edge is alive, and nobody misses it."""
        found = unmissed(self.seen.acks.get(shard.name), self.shards.get(shard.stream, ()))
        return found and not self.seen.away(shard.name, self.now)

    @cached_property
    def lagging(self) -> dict[str, list[tuple[Shard, int]]]:
        """By stream, the listed shards that don't use the newest plan yet, with the version that they use."""
        found: dict[str, list[tuple[Shard, int]]] = {}
        for stream, shards in self.shards.items():
            used = ((shard, self.seen.used(shard.name)) for shard in shards if shard.since is not None)
            found[stream] = [(shard, plan) for shard, plan in used if plan < self.plan.version]
        return found

    @cached_property
    def begun(self) -> set[str]:
        """The streams that have or had a shard."""
        return {
            stream
            for stream, shards in self.shards.items()
            if any(shard.since is not None or shard.gone for shard in shards)
        }

    @cached_property
    def troubles(self) -> dict[str, tuple[str, ...]]:
        """By stream, the reasons why its shards make alerts degraded."""
        return {
            stream: (f"no source of stream {stream} sends readings",)
            if all(state == "unused" for state, _ in found)
            else named(
                reason
                for state, reason in found
                if state in ("away", "gone") or (state in ("behind", "waiting") and self.settled)
            )
            for stream, found in self.shard_states.items()
        }

    @cached_property
    def joined(self) -> int:
        """The plan version that the joiner uses in every partition; 0 if it hasn't reported one."""
        found = [self.seen.frontiers.get(partition) for partition in range(self.state.partitions)]
        return min((0 if one is None else one.plan for one in found), default=0)

    @cached_property
    def joiner_silent(self) -> tuple[str, ...]:
        """The reason why the joiner counts as silent; empty if it doesn't."""
        reason = joiner_silent(self.seen, self.now)
        return () if reason is None else (reason,)

    @cached_property
    def unable(self) -> dict[str, tuple[str, ...]]:
        """By alert, the reasons why the joiner can't evaluate it."""
        reasons: dict[str, set[str]] = {}
        for frontier in self.seen.frontiers.values():
            for alert, reason in frontier.unable.items():
                reasons.setdefault(alert, set()).add(reason)
        return {alert: tuple(sorted(found)) for alert, found in reasons.items()}

    @cached_property
    def retiring(self) -> dict[str, list[Retiring]]:
        """The old definitions that still run, by alert."""
        found: dict[str, list[Retiring]] = {}
        for old in self.state.retiring.values():
            found.setdefault(old.alert, []).append(old)
        return found

    @property
    def settled(self) -> bool:
        """True if all services had time to start using the newest plan."""
        return self.now - self.published > GRACE

    def definition(self, alert: str, version: int) -> Definition | StandingQuery | None:
        """The definition in the plan."""
        return self._definitions.get(definition_id(alert, version))


def named(reasons: Iterable[str]) -> tuple[str, ...]:
    """The first reasons of one kind; the last one says that there are more."""
    found = tuple(islice(reasons, MOST_REASONS + 1))
    return found if len(found) <= MOST_REASONS else (*found[:MOST_REASONS], "and further shards")


def shard_state(view: View, shard: Shard) -> tuple[ShardState, str]:
    """State of a shard that is or was listed, with the reason."""
    if shard.since is None and shard.gone is None:
        if view.state.raw_stream(shard.stream) is None:
            return "waiting", f"shard {shard.name} waits: stream {shard.stream} is not defined"
        if view.unused(shard):
            return "unused", f"shard {shard.name} has never had a reading"
        if not view.seen.away(shard.name, view.now):
            return "waiting", f"shard {shard.name} waits to be listed, or for a reading if it fell silent"
    elif shard.since is None:
        match shard.reason:
            case "ended":
                return "ended", f"shard {shard.name} has ended (plan {shard.gone})"
            case "silent" if view.unused(shard):
                return "unused", f"shard {shard.name} has never had a reading"
            case "silent":
                return (
                    "gone",
                    f"shard {shard.name} had nothing new for longer than max_stall of {shard.stream} and is"
                    f" declared gone (plan {shard.gone}); it comes back with its next reading"
                    f"{_advice(view, shard)}",
                )
            case "given_up":
                return "unused", f"shard {shard.name} was given up; it comes back with its next reading"
            case _:
                return "gone", f"shard {shard.name} was delisted by plan {shard.gone}"
    if view.seen.away(shard.name, view.now):
        since = iso_text(view.seen.last_heard(shard.name), "seconds")
        return "away", f"shard {shard.name} has said nothing since {since}{_advice(view, shard)}"
    assert shard.since is not None
    if not view.seen.obeys(shard.name, shard.since):
        return "waiting", f"shard {shard.name} has not taken up plan {shard.since}, which lists it"
    if not view.seen.obeys(shard.name, view.plan.version):
        return "behind", f"shard {shard.name} does not obey plan {view.plan.version} yet"
    return "active", ""


def _advice(view: View, shard: Shard) -> str:
    """The advice about a shard that is away or gone."""
    drop = f"tamis drop shard {shard.name}"
    if view.lacks_source(shard):
        edge = view.edge(shard)
        return f"; edge {edge} runs without its source: add it to the configuration again, or {drop}"
    return f"; if nothing more comes from it: {drop}"


def edge_state(view: View, edge: str) -> tuple[ShardState, str]:
    """State of an edge that has no shards, with the reason."""
    if view.seen.away(edge, view.now):
        since = iso_text(view.now - view.seen.unheard(edge, view.now), "seconds")
        return "away", f"edge {edge} has said nothing since {since}"
    why = "none of its sources has had a reading yet, or other edges read its sources"
    return "waiting", f"edge {edge} has no shard: {why}"


def alert_status(view: View, alert: Stored) -> AlertStatus:
    """State of an alert."""
    state, why = alert_state(view, alert)
    definition = None if alert.refusal or alert.paused else view.definition(alert.name, alert.version)
    if definition is None:
        return AlertStatus(state, why)
    activations = {
        shard.name: Activation(*found)
        for shard in view.state.listed({source.stream for source in definition.inputs})
        if (found := view.seen.activation(shard.name, max(alert.version, shard.since or 0)))
    }
    retiring = {
        old.id: still_needed(old_definition, old.successor, view.state, view.seen)
        or "ends with the next plan"
        for old in view.retiring.get(alert.name, ())
        if (old_definition := view.definition(old.alert, old.version))
    }
    return AlertStatus(state, why, activations, retiring)


def alert_state(view: View, alert: Stored) -> tuple[AlertState, tuple[str, ...]]:
    """State of an alert, with the reason."""
    if alert.refusal:
        return "refused", (alert.refusal,)
    if alert.paused:
        return "paused", ("RESUME ALERT starts it again",)
    definition = view.definition(alert.name, alert.version)
    if definition is None:
        return "starting", ("its plan is being written",)
    unable = view.unable.get(alert.name)
    if unable:
        return "degraded", tuple(f"the joiner can't evaluate it: {reason}" for reason in unable)
    streams = sorted({view.state.base(source.stream) for source in definition.inputs})
    starting = list(waits_for(alert, view.state, view.seen, view.now)) or _starting(view, alert, streams)
    if starting:
        return "starting", (*view.joiner_silent, *starting)
    degraded = [*view.joiner_silent, *_degraded(view, streams), *lacks(alert, view.state, view.seen)]
    return "degraded" if degraded else "running", tuple(degraded)


def _starting(view: View, alert: Stored, streams: list[str]) -> list[str]:
    """The reasons why some shards that were listed when the definition was made don't use it yet."""
    why = [
        f"no shard of stream {stream} has announced itself yet"
        for stream in streams
        if stream not in view.begun
    ]
    why += named(
        f"shard {shard.name} has not taken up plan {alert.version} yet"
        for stream in streams
        for shard, plan in view.lagging.get(stream, ())
        if (shard.since or 0) <= alert.version and plan < alert.version
    )
    if view.joined < alert.version:
        why.append(f"the joiner has not taken up plan {alert.version} in every partition yet")
    return why


def _degraded(view: View, streams: list[str]) -> list[str]:
    why = [reason for stream in streams for reason in view.troubles.get(stream, ())]
    if view.settled and view.joined < view.plan.version:
        why.append(f"the joiner has not taken up plan {view.plan.version} in every partition yet")
    return why
