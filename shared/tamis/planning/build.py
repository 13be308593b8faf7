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
from tamis.planning.crowds import TopicKey
from tamis.planning.domains import domain_check
from tamis.planning.omission import bare
from tamis.planning.places import Places, Topic
from tamis.planning.plan import (
    Definition,
    Entry,
    Plan,
    StandingQuery,
    StreamColumn,
    StreamPlan,
    TopicPlan,
)
from tamis.planning.remembered import same_ends
from tamis.planning.seats import Asked, Asking, Seat, seat, wishes_of
from tamis.planning.shared_topics import Shared
from tamis.planning.sharing import Choice
from tamis.planning.standing import layout
from tamis.planning.subscriptions import Subscription
from tamis.planning.traffic import Estimate, Spread
from tamis.planning.verdict import accepted
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

    def known_as(self, asking: Sequence[Asking]) -> Built:
        """The same, for readers that ask in the same order with the places that they were given."""
        return replace(self, parts=replace(self.parts, asking=tuple(asking))) if self.parts else self

    def served(self, reader: str) -> Mapping[str, Choice]:
        """By which topic each source of a reader is served, and why; of one that there isn't, nothing."""
        parts = self.parts
        if reader in self.choices or parts is None or parts.places is None or reader not in parts.seats:
            return self.choices.get(reader, {})
        seat, places = parts.seats[reader], parts.places
        return {wish.alias: places.kept(wish, seat.numbers[wish.alias]) for wish in seat.wishes}


@dataclass(frozen=True)
class Parts:
    """What a plan was put together from, for the next one. `definitions`: in the order of `asking`, None
    where it isn't an alert that asks.
    """

    streams: Mapping[str, StreamDef] = field(default_factory=dict)
    derived: Mapping[str, Derived] = field(default_factory=dict)
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    asking: Sequence[Asking] = ()
    definitions: Sequence[Definition | StandingQuery | None] = ()
    seats: Mapping[str, Seat] = field(default_factory=dict)
    places: Places | None = None
    topics: Mapping[Topic, Shared] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Derived:
    """A derived stream's topic, and the stream that it is of."""

    definition: DerivedDef
    stream: StreamDef
    plan: TopicPlan


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
    parts = before.parts if before and before.parts else Parts()
    spreads = _spreads(catalog, estimates or {}, parts)
    seats = dict(parts.seats)
    stale, same_streams = _stale(seats, parts, catalog)
    first, last = same_ends(parts.asking, asking) if same_streams else (0, 0)
    behind, ends = len(parts.asking) - last, len(asking) - last
    wanted = [_wanted(one, catalog) for one in asking[first:ends]]
    now = {one.id: one for one in wanted if one is not None}
    fresh = [
        one for one in now.values() if one.id not in seats or one.id in stale or not seats[one.id].serves(one)
    ]
    gone = [one.id for some in parts.asking[first:behind] if (one := some.asked) is not None]
    places = Places(version, spreads, topic_numbers, outside, parts.places)
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
    derived = _derived(catalog, parts.derived)
    plan = Plan(
        version=version,
        partitions=partitions,
        streams=_streams(catalog, topics, derived),
        definitions=tuple([one for one in definitions if isinstance(one, Definition)]),
        since=dict(since),
        shard_streams=dict(shard_streams),
        retiring=dict(retiring),
        standing=tuple([one for one in definitions if isinstance(one, StandingQuery)]),
    )
    parts = Parts(dict(catalog.streams), derived, spreads, tuple(asking), definitions, seats, places, topics)
    return Built(plan, places.numbers, places.placed, places.choices, places.outside, parts)


def _spreads(catalog: Catalog, estimates: Mapping[str, Estimate], before: Parts) -> dict[str, Spread]:
    """How the streams are spread; the same objects where nothing else is known of them."""
    found = {}
    for name, stream in catalog.streams.items():
        known, estimate = before.spreads.get(name), estimates.get(name)
        same = known is not None and known.stream is stream and known.observed is estimate
        found[name] = known if known is not None and same else Spread(stream, estimate)
    return found


def _stale(seats: Mapping[str, Seat], before: Parts, catalog: Catalog) -> tuple[set[str], bool]:
    """The readers of streams that aren't the same any more, and whether all streams are."""
    known, streams = before.streams, catalog.streams
    if list(known) == list(streams) and all(map(operator.is_, known.values(), streams.values())):
        return set(), True
    other = {name for name, stream in known.items() if streams.get(name) is not stream}
    found = {reader for reader, seat in seats.items() if any(wish.key[0] in other for wish in seat.wishes)}
    return found, False


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
    catalog: Catalog, seats: Mapping[str, Seat], places: Places, before: Mapping[Topic, Shared]
) -> dict[Topic, Shared]:
    """The shared topics with the entries that their readers need."""
    topics = {topic: known for topic, known in before.items() if topic not in places.touched}
    for key, number in places.touched:
        wishes = tuple(places.seated[key].get(number, {}).values())
        if wishes:
            known = before.get((key, number)) or Shared.unread(key)
            topics[key, number] = known.now(
                places.name(key, number),
                wishes,
                lambda wish: seats[wish.reader].readers[wish.alias],
                catalog.streams[key[0]],
            )
    return topics


def _derived(catalog: Catalog, before: Mapping[str, Derived]) -> dict[str, Derived]:
    """The topics of derived streams, those that join aside."""
    found = {}
    for name, definition in catalog.derived.items():
        if definition.joins:
            continue
        known = before.get(name)
        same = known is not None and known.definition is definition
        if known is None or not same or catalog.streams.get(known.stream.name) is not known.stream:
            made = _timeless_topic if definition.query.timeless else _derived_topic
            known = made(definition, catalog)
        found[name] = known
    return found


def _streams(
    catalog: Catalog, topics: Mapping[Topic, Shared], derived: Mapping[str, Derived]
) -> tuple[StreamPlan, ...]:
    """The streams with their topics, in the order of numbers; then those of streams derived from them."""
    of: dict[str, list[TopicPlan]] = {name: [] for name in catalog.streams}
    for topic in sorted(topics, key=operator.itemgetter(1)):
        of[topic[0][0]].append(topics[topic].plan)
    for one in derived.values():
        of[one.stream.name].append(one.plan)
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


def _derived_topic(derived: DerivedDef, catalog: Catalog) -> Derived:
    """Every tuple of the base stream that passes, as SELECT makes it."""
    verdict = accepted(derived, catalog)
    (omission,) = verdict.omissions
    key = verdict.keys.partition[omission.alias]
    entry = Entry(bare(omission.filter), key, None, 0, "both", None, 0)
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    topic = TopicPlan(outside_topic(derived.name, 1), key, (), (entry,), select)
    return Derived(derived, verdict.analysis.streams[omission.alias], topic)


def _timeless_topic(derived: DerivedDef, catalog: Catalog) -> Derived:
    """The same for a stream without time."""
    (feed,) = layout(derived.query, catalog).feeds
    entry = Entry(feed.filter, feed.partition_key, None, 0, "both", None, 0)
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    name = outside_topic(derived.name, 1)
    topic = TopicPlan(name, feed.partition_key, (), (entry,), select, counted=True)
    return Derived(derived, feed.stream, topic)
