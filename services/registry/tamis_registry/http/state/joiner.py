"""The joiner over HTTP: how far it has come, what it waits for, and what it keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from fastapi import FastAPI
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from tamis.messaging.records import Frontier, StreamState
from tamis.operators.windows.boundaries import rightly_behind
from tamis.plan.model import Definition, StandingQuery, StreamPlan
from tamis.planning.queries.definitions import definition_id
from tamis_registry.core.heartbeats import SECOND, joiner_process, joiner_reported
from tamis_registry.core.shards.fleet_reports import AWAY_AFTER
from tamis_registry.core.status import View, named
from tamis_registry.http.common.parts import as_json
from tamis_registry.registry_loop import RegistryLoop

_TUPLES = Field(description="Retained tuples in its state")
_BEHIND = Field(
    description="Microseconds by which event time lies behind the joiner's clock, beyond what partial "
    "aggregates wait for: a pane and the delay of their stream; null if not known yet"
)


class JoinerPartition(TypedDict):
    """One output partition, as the joiner reported it last."""

    partition: int
    plan: Annotated[int, Field(description="The plan version that it uses")]
    time: Annotated[int, Field(description="When it was reported, by the joiner's clock, in microseconds")]
    frontier: Annotated[
        int | None, Field(description="Alarms below this event time are complete; null if not known yet")
    ]
    behind: Annotated[int | None, _BEHIND]
    tuples: Annotated[int, _TUPLES]
    bytes: int
    parked: Annotated[int, Field(description="Records that wait for a newer plan")]


class SlowestShard(TypedDict):
    """The listed shard with the least watermark."""

    shard: str
    watermark: int


class JoinerTopic(TypedDict):
    """A topic over all partitions."""

    topic: str
    stream: str
    frontier: Annotated[int | None, Field(description="The least one; null until each partition has one")]
    behind: Annotated[int | None, _BEHIND]
    tuples: Annotated[int, _TUPLES]
    bytes: int
    slowest: Annotated[
        SlowestShard | None,
        Field(description="The shard that holds the frontier back, if edges tell; null if the joiner hangs"),
    ]
    why: Annotated[list[str], Field(description="Reasons why its frontier may not move on")]


class JoinerDefinition(TypedDict):
    """A definition of an alert. A replaced alert has two for a while."""

    definition: Annotated[str, Field(description="As `alert@version`")]
    alert: str
    live: Annotated[int, Field(description="Live tuples or entries of synopses, over all partitions")]
    bound: Annotated[int | None, Field(description="Their proven bound; null without a number")]
    bytes: int
    alarms: Annotated[int, Field(description="Of the alert, since the beginning of the joiner's state")]
    missed: Annotated[int, Field(description="Tuples that came too late to count for it")]


class Joiner(TypedDict):
    """The joiner, from its newest report of each output partition and its heartbeats."""

    state: Annotated[
        Literal["running", "behind", "silent", "unknown"],
        Field(description="`silent`: it has reported nothing for longer than its heartbeats explain"),
    ]
    why: Annotated[list[str], Field(description="Why it is silent or behind; empty if it isn't")]
    reported_ago: Annotated[
        int | None, Field(description="Seconds since its newest report; null if there is none")
    ]
    process: Annotated[
        str | None, Field(description="Its process and host; null if a joiner of an earlier release runs")
    ]
    plan: Annotated[int, Field(description="The plan version that all partitions use; 0 if not known")]
    partitions: list[JoinerPartition]
    topics: list[JoinerTopic]
    definitions: list[JoinerDefinition]
    late: Annotated[int, Field(description="Late tuples so far")]
    parked: Annotated[int, Field(description="Records that wait for a newer plan")]
    dead: Annotated[dict[str, int], Field(description="Dead letters so far, by reason")]


# The joiner writes frontiers with each batch, and there are batches as long as any shard is active.
STALLED_AFTER = 60_000_000  # microseconds


def joiner_routes(app: FastAPI, loop: RegistryLoop) -> None:
    """Add the route."""

    @app.get(
        "/v1/joiner",
        summary="The joiner: how far it has come, and what it keeps",
        description="From its newest record of each output partition, which the topic `tamis.frontiers` has, "
        "and from its heartbeats.",
        tags=["Joiner"],
        response_model=Joiner,
    )
    def joiner() -> Response:
        with loop.reading() as (registry, now):
            return as_json(joiner_document(registry.view(now)))


def joiner_document(view: View) -> dict[str, Any]:
    """The state of the joiner by partition, topic and definition."""
    frontiers = [view.seen.frontiers.get(number) for number in range(view.state.partitions)]
    known = [one for one in frontiers if one is not None]
    why = _why(view, frontiers)
    # No shard holds back a joiner that doesn't work.
    works = not view.joiner_silent and _stalled(view, known) is None
    behind = rightly_behind(view.plan)
    reported = joiner_reported(view.seen)
    return {
        "state": _state(view, known, why),
        "why": why,
        "reported_ago": None if reported is None else max(0, view.now - reported) // SECOND,
        "process": joiner_process(view.seen),
        "plan": view.joined,
        "partitions": [_partition(one, behind) for one in known],
        "topics": [
            _topic(view, stream, topic.name, known, works=works, behind=behind.get(topic.name, 0))
            for stream in view.plan.streams
            for topic in stream.topics
        ],
        "definitions": [_definition(query, known) for query in view.plan.queries],
        "late": sum(one.late for one in known),
        "parked": sum(one.parked for one in known),
        "dead": _sums(one.dead for one in known),
    }


def _state(view: View, known: list[Frontier], why: list[str]) -> str:
    if view.joiner_silent:
        return "silent"
    return "unknown" if not known else "behind" if why else "running"


def _stalled(view: View, known: list[Frontier]) -> str | None:
    """The reason why the joiner, which is alive, seems to hang in a batch; None if it doesn't."""
    active = any(state == "active" for states in view.shard_states.values() for state, _ in states)
    silence = view.now - max((one.time for one in known), default=view.now)
    if not active or silence <= STALLED_AFTER:
        return None
    return f"the joiner has ended no batch for {silence // SECOND} s, though shards are active"


def _why(view: View, frontiers: list[Frontier | None]) -> list[str]:
    """The reasons why the joiner is silent or behind."""
    if view.joiner_silent:
        return list(view.joiner_silent)
    missing = [number for number, one in enumerate(frontiers) if one is None]
    if len(missing) == len(frontiers):
        return ["the joiner has reported nothing yet"]
    why = [f"the joiner has reported nothing yet about partition {number}" for number in missing]
    known = [one for one in frontiers if one is not None]
    if (stalled := _stalled(view, known)) is not None:
        why.append(stalled)
    if view.settled:
        why += [
            f"partition {one.partition} uses plan {one.plan}, and the newest is plan {view.plan.version}"
            for one in known
            if one.plan < view.plan.version
        ]
    unable = {alert: reason for one in known for alert, reason in one.unable.items()}
    why += [f"alert {alert} can't be evaluated: {reason}" for alert, reason in sorted(unable.items())]
    return list(named(why))


def _partition(one: Frontier, behind: Mapping[str, int]) -> dict[str, Any]:
    """`behind`: by topic of partial aggregates, how far its frontier may lie behind."""
    reached = {topic: state.frontier for topic, state in one.topics.items() if not state.void}
    frontiers = reached.values()
    lags = [one.time - at - behind.get(topic, 0) for topic, at in reached.items() if at is not None]
    return {
        "partition": one.partition,
        "plan": one.plan,
        "time": one.time,
        "frontier": None if None in frontiers else min((f for f in frontiers if f is not None), default=None),
        "behind": None if None in frontiers or not lags else max(0, *lags),
        "tuples": sum(state.tuples for state in one.topics.values()),
        "bytes": sum(state.bytes for state in one.topics.values()),
        "parked": one.parked,
    }


def _topic(
    view: View, stream: StreamPlan, topic: str, known: list[Frontier], *, works: bool, behind: int
) -> dict[str, Any]:
    """A topic over all partitions. Its frontier is the least one, which every partition has reached. Shards
    hold it back only if the joiner `works`. `behind`: it may lie behind so far.
    """
    states = [one.topics[topic] for one in known if topic in one.topics]
    reached = [state.frontier for state in states if state.frontier is not None]
    whole = len(reached) == len(states) == view.state.partitions
    return {
        "topic": topic,
        "stream": stream.shards_of,
        "frontier": min(reached) if whole else None,
        "behind": max(0, max(one.time for one in known) - min(reached) - behind) if whole else None,
        "tuples": sum(state.tuples for state in states),
        "bytes": sum(state.bytes for state in states),
        "slowest": _slowest(view, stream) if works else None,
        "why": _waits_for(view, stream, states) if works else [],
    }


def _waits_for(view: View, stream: StreamPlan, states: list[StreamState]) -> list[str]:
    """The reasons why the frontier of a topic may not move on. Nothing waits for one without event time."""
    if stream.time is None:
        return []
    reasons = [
        why
        for state, why in view.shard_states.get(stream.shards_of, ())
        if state in ("away", "waiting", "behind")
    ]
    reasons = reasons or _silent_source(view, stream)
    if not reasons and any(state.frontier is None and not state.void for state in states):
        reasons = ["not every shard has sent progress to every partition yet"]
    return list(named(reasons))


def _silent_source(view: View, stream: StreamPlan) -> list[str]:
    """The reasons why the joiner waits for shards of a stream with silent sources, while others go on."""
    newest = max((ack.watermark for ack in view.seen.acks.values() if ack.watermark is not None), default=0)
    found = []
    for shard in view.shards.get(stream.shards_of, ()):
        ack, silence = view.seen.acks.get(shard.name), view.seen.silence(shard.name, view.now)
        if shard.since is None or ack is None or silence <= AWAY_AFTER:
            continue
        if ack.watermark is None:
            last = "has had no reading yet"
        elif newest - ack.watermark > AWAY_AFTER:
            last = f"has had nothing new for {silence // 1_000_000} s"
        else:
            continue
        found.append(
            f"shard {shard.name} {last}; the joiner waits for it until max_stall of {stream.shards_of} has"
            f" passed, or until you give it up: tamis drop shard {shard.name}"
        )
    return found


def _slowest(view: View, stream: StreamPlan) -> dict[str, Any] | None:
    """The listed shard with the least watermark, which holds the frontier back."""
    found = [
        (ack.watermark, shard.name)
        for shard in view.shards.get(stream.shards_of, ())
        if shard.since is not None
        and (ack := view.seen.acks.get(shard.name)) is not None
        and ack.watermark is not None
    ]
    if not found:
        return None
    watermark, name = min(found)
    return {"shard": name, "watermark": watermark}


def _definition(query: Definition | StandingQuery, known: list[Frontier]) -> dict[str, Any]:
    name = definition_id(query.alert, query.version)
    told = [one.bounds[name] for one in known if name in one.bounds]
    return {
        "definition": name,
        "alert": query.alert,
        "live": sum(one.definitions.get(name, 0) for one in known),
        # The joiner knows the bound of a standing query for the rates that it has seen.
        "bound": max(told) if told else query.bound,
        "bytes": sum(one.sizes.get(name, 0) for one in known),
        "alarms": sum(one.alarms.get(query.alert, 0) for one in known),
        "missed": sum(one.missed.get(query.alert, 0) for one in known),
    }


def _sums(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in counts:
        found.update(one)
    return dict(found)
