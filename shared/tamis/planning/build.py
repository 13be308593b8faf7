"""From what is defined to the plan of the whole fleet. Pure: the registry passes in all that it remembers.

    built = build_plan(
        version, catalog,
        partitions=8,
        versions={"condensation": 3},      # alert -> the plan version that made its present definition;
                                           # an alert that is not in it is new, and gets `version`
        retiring=[Retiring(old_alert, 3, 7)],  # made by plan 3, replaced by plan 7, still running
        subscriptions=[Subscription("lease/…", "air", filter, 5)],  # readers outside the fleet
        topic_numbers={("air", ("station",)): (1,)},
        placed={"condensation@3": {"a": 1}},   # reader -> by which topic each of its sources is served
        since={"edge-a/air": 1}, shard_streams={"edge-a/air": "air"},
    )
    built.plan            # the plan to write into every partition of tamis.plans
    built.topic_numbers   # the given ones and the new ones: to be remembered, and their topics created
    built.placed          # of those that had no place, or another: to be remembered
    built.choices         # why, for those that are new

Paused alerts are left out. When an alert is replaced, the registry gives the new one no version and passes
the old one in `retiring` until it may end (`tamis_registry`, protocol rule 11). An alert that is refused
(`NotAcceptedError`) must not get here; the registry asks `tamis.planning.verdict.accepted` before it takes a
statement up.

A reader stays with the topic that it was given (`tamis.planning.sharing`), and the entries of a topic follow
from its readers alone (`tamis.planning.entries`): so a topic is wider when a reader comes, narrower when one
leaves, and not in the plan without any.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tamis.messaging.topics import outside_topic
from tamis.planning.domains import domain_check
from tamis.planning.entries import Reader, entries
from tamis.planning.omission import bare
from tamis.planning.places import Places, Topic, TopicKey
from tamis.planning.plan import (
    Definition,
    Entry,
    Plan,
    StandingQuery,
    StreamColumn,
    StreamPlan,
    TopicPlan,
)
from tamis.planning.seats import Asked, Asking, Seat, same_ends, seat, wishes_of
from tamis.planning.sharing import Choice
from tamis.planning.standing import layout
from tamis.planning.subscriptions import Subscription
from tamis.planning.traffic import Estimate, Spread
from tamis.planning.verdict import Verdict, accepted
from tamis.query.model import AlertDef, Catalog, DerivedDef, StreamDef

__all__ = ["Built", "Retiring", "Subscription", "TopicKey", "build_plan", "plan_for"]


@dataclass(frozen=True)
class Retiring:
    """The old definition of a replaced alert, made by plan `version` and replaced by plan `successor`."""

    alert: AlertDef
    version: int
    successor: int


@dataclass(frozen=True)
class Built:
    """A plan, and what of it has to be remembered: the numbers of all topics that ever were, which of them
    the joiner doesn't find (`outside`, by stream), and the topic of each source of the readers that had no
    place before. `choices`: why, where it wasn't given by itself.
    """

    plan: Plan
    topic_numbers: Mapping[TopicKey, tuple[int, ...]]
    placed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)
    outside: Mapping[str, frozenset[int]] = field(default_factory=dict)
    parts: Parts | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Parts:
    """What a plan was put together from, for the next one. `definitions`: in the order of `asking`, None
    where it isn't an alert that asks.
    """

    streams: Mapping[str, StreamDef]
    derived: Mapping[str, DerivedDef]
    estimates: Mapping[str, Estimate]
    spreads: Mapping[str, Spread]
    asking: Sequence[Asking]
    definitions: Sequence[Definition | StandingQuery | None]
    seats: Mapping[str, Seat]
    places: Places
    topics: Mapping[Topic, TopicPlan]


def build_plan(
    version: int,
    catalog: Catalog,
    *,
    partitions: int,
    versions: Mapping[str, int],
    topic_numbers: Mapping[TopicKey, tuple[int, ...]],
    placed: Mapping[str, Mapping[str, int]] | None = None,
    retiring: Sequence[Retiring] = (),
    subscriptions: Sequence[Subscription] = (),
    since: Mapping[str, int] | None = None,
    shard_streams: Mapping[str, str] | None = None,
) -> Built:
    """The plan `version` for everything in `catalog`; see the module's docstring.

    Raises NotAcceptedError where an alert or a derived stream of the catalogue is not accepted.
    """
    known = placed or {}
    running = [(old.alert, old.version) for old in retiring]
    running += [
        (alert, versions.get(name, version))
        for name, alert in catalog.alerts.items()
        if name not in catalog.paused
    ]
    asking = [
        *(
            Asked(reader := definition_id(a.name, made), a, made, known.get(reader, {}))
            for a, made in running
        ),
        *(Asked(one.id, one, one.version, known.get(one.id, {})) for one in subscriptions),
    ]
    return plan_for(
        version,
        catalog,
        asking,
        partitions=partitions,
        topic_numbers=topic_numbers,
        outside={},
        retiring={definition_id(old.alert.name, old.version): old.successor for old in retiring},
        since=since or {},
        shard_streams=shard_streams or {},
    )


def plan_for(
    version: int,
    catalog: Catalog,
    asking: Sequence[Asking],
    *,
    partitions: int,
    topic_numbers: Mapping[TopicKey, tuple[int, ...]],
    outside: Mapping[str, frozenset[int]],
    retiring: Mapping[str, int],
    since: Mapping[str, int],
    shard_streams: Mapping[str, str],
    estimates: Mapping[str, Estimate] | None = None,
    before: Built | None = None,
) -> Built:
    """The same for readers in whatever form they ask. `estimates`: of streams of which readings were
    observed, by which readers choose that have no place yet. What is the same object as in `before`, any plan
    that was built before, is taken from there: a change costs what it touches. It makes no other difference.
    """
    parts = _usable(before, catalog, estimates or {}) or _nothing(catalog, estimates or {})
    first, last = same_ends(parts.asking, asking)
    behind, ends = len(parts.asking) - last, len(asking) - last
    seats = dict(parts.seats)
    wanted = [_wanted(one, catalog) for one in asking[first:ends]]
    now = {one.id: one for one in wanted if one is not None}
    fresh = [one for one in now.values() if one.id not in seats or not seats[one.id].serves(one)]
    gone = [one.id for some in parts.asking[first:behind] if (one := some.asked) is not None]
    places = Places(version, parts.spreads, topic_numbers, outside, parts.places)
    for reader in {*(one.id for one in fresh), *(reader for reader in gone if reader not in now)}:
        if (left := seats.pop(reader, None)) is not None:
            places.leave(left.wishes, left.numbers)
    wishes = {one.id: wishes_of(one, catalog) for one in fresh}
    places.seat((wish for some in wishes.values() for wish in some), {one.id: one.numbers for one in fresh})
    for one in fresh:
        seats[one.id] = seat(one, wishes[one.id], places, catalog)
    definitions = [
        *parts.definitions[:first],
        *(None if one is None else seats[one.id].definition for one in wanted),
        *parts.definitions[behind:],
    ]
    topics = _topics(catalog, seats, places, parts.topics)
    plan = Plan(
        version=version,
        partitions=partitions,
        streams=_streams(catalog, topics),
        definitions=tuple(one for one in definitions if isinstance(one, Definition)),
        since=dict(since),
        shard_streams=dict(shard_streams),
        retiring=dict(retiring),
        standing=tuple(one for one in definitions if isinstance(one, StandingQuery)),
    )
    parts = replace(
        parts, asking=tuple(asking), definitions=definitions, seats=seats, places=places, topics=topics
    )
    return Built(plan, places.numbers, places.placed, places.choices, places.outside, parts)


def _usable(before: Built | None, catalog: Catalog, estimates: Mapping[str, Estimate]) -> Parts | None:
    """Parts that rest on the same streams and estimates."""
    parts = before.parts if before else None
    if (
        parts
        and _same(parts.streams, catalog.streams)
        and _same(parts.derived, catalog.derived)
        and _same(parts.estimates, estimates)
    ):
        return parts
    return None


def _same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return list(one) == list(other) and all(map(operator.is_, one.values(), other.values()))


def _nothing(catalog: Catalog, estimates: Mapping[str, Estimate]) -> Parts:
    spreads = {name: Spread(stream, estimates.get(name)) for name, stream in catalog.streams.items()}
    places = Places(0, spreads, {}, {})
    streams, derived = dict(catalog.streams), dict(catalog.derived)
    return Parts(streams, derived, dict(estimates), spreads, (), (), {}, places, {})


def _wanted(one: Asking, catalog: Catalog) -> Asked | None:
    """The reader, unless it subscribes to a stream that there isn't."""
    asked = one.asked
    if asked is not None and isinstance(asked.origin, Subscription):
        return asked if asked.origin.stream in catalog.streams else None
    return asked


def definition_id(alert: str, version: int) -> str:
    """How plans and frontiers name a definition."""
    return f"{alert}@{version}"


def first_plan(catalog: Catalog, *, partitions: int = 1, shards: Mapping[str, str] | None = None) -> Plan:
    """The plan of a fleet that begins with everything in `catalog`; `shards`: the stream of each shard.

    Raises NotAcceptedError where an alert or a derived stream of the catalogue is not accepted.
    """
    listed = shards or {}
    built = build_plan(
        1,
        catalog,
        partitions=partitions,
        versions={},
        topic_numbers={},
        since=dict.fromkeys(listed, 1),
        shard_streams=listed,
    )
    return built.plan


def _topics(
    catalog: Catalog, seats: Mapping[str, Seat], places: Places, before: Mapping[Topic, TopicPlan]
) -> dict[Topic, TopicPlan]:
    """The shared topics with the entries that their readers need."""
    topics = {topic: plan for topic, plan in before.items() if topic not in places.touched}
    for key, number in places.touched:
        sources = places.seated[key].get(number)
        if sources:
            readers = [seats[reader].readers[alias] for reader, alias in sources]
            topics[key, number] = _topic(catalog.streams[key[0]], key, places.name(key, number), readers)
    return topics


def _topic(stream: StreamDef, key: TopicKey, name: str, readers: list[Reader]) -> TopicPlan:
    needed = {column for reader in readers for column in reader.source.columns}
    projection = tuple(c.name for c in stream.columns if c.name in needed)
    counted = any(reader.counted for reader in readers)
    return TopicPlan(name, key[1], projection, entries(readers), counted=counted)


def _streams(catalog: Catalog, topics: Mapping[Topic, TopicPlan]) -> tuple[StreamPlan, ...]:
    """The streams with their topics, in the order of numbers; then those of streams derived from them."""
    of: dict[str, list[TopicPlan]] = {name: [] for name in catalog.streams}
    for topic in sorted(topics, key=operator.itemgetter(1)):
        of[topic[0][0]].append(topics[topic])
    for derived in catalog.derived.values():
        if derived.query.timeless:
            stream, plan = _timeless_topic(derived, catalog)
        else:
            stream, plan = _derived_topic(derived, accepted(derived, catalog))
        of[stream].append(plan)
    return tuple(_stream(stream, tuple(of[stream.name])) for stream in catalog.streams.values())


def _stream(stream: StreamDef, topics: tuple[TopicPlan, ...]) -> StreamPlan:
    return StreamPlan(
        name=stream.name,
        columns=tuple(
            StreamColumn(column.name, column.type, column.not_null, domain_check(column))
            for column in stream.columns
        ),
        time=stream.time,
        delay=stream.delay,
        idle_timeout=stream.idle_timeout,
        max_ahead=stream.max_ahead,
        max_stall=stream.max_stall,
        topics=topics,
    )


def _derived_topic(derived: DerivedDef, verdict: Verdict) -> tuple[str, TopicPlan]:
    """A derived stream's base stream and its own topic: every tuple that passes, as its SELECT makes it."""
    (omission,) = verdict.omissions
    stream = verdict.analysis.streams[omission.alias]
    key = verdict.keys.partition[omission.alias]
    entry = Entry(bare(omission.filter), key, None, 0, "both", None, 0)
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    return stream.name, TopicPlan(outside_topic(derived.name, 1), key, (), (entry,), select)


def _timeless_topic(derived: DerivedDef, catalog: Catalog) -> tuple[str, TopicPlan]:
    """The same for a stream without time."""
    (feed,) = layout(derived.query, catalog).feeds
    entry = Entry(feed.filter, feed.partition_key, None, 0, "both", None, 0)
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    name = outside_topic(derived.name, 1)
    return feed.stream.name, TopicPlan(name, feed.partition_key, (), (entry,), select, counted=True)
