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
        before=built,                  # a plan that was built before: what is as it was is taken from it
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
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from tamis.messaging.topics import stream_topic
from tamis.planning.definitions import define
from tamis.planning.domains import domain_check
from tamis.planning.entries import Reader, entries
from tamis.planning.omission import bare
from tamis.planning.places import Places, Topic, TopicKey, Wish
from tamis.planning.plan import Definition, Entry, Plan, StreamColumn, StreamPlan, TopicPlan
from tamis.planning.sharing import Choice
from tamis.planning.subscriptions import Subscription, subscriber
from tamis.planning.traffic import Spread
from tamis.planning.verdict import Verdict, accepted
from tamis.query.model import AlertDef, Catalog, DerivedDef, StreamDef

__all__ = ["Built", "Retiring", "Subscription", "TopicKey", "build_plan"]


@dataclass(frozen=True)
class Retiring:
    """The old definition of a replaced alert, made by plan `version` and replaced by plan `successor`."""

    alert: AlertDef
    version: int
    successor: int


@dataclass(frozen=True)
class Built:
    """A plan, and what of it has to be remembered: the numbers of all topics that ever were, and the topic of
    each source of the readers that had no place before. `choices`: why, where it wasn't given by itself.
    """

    plan: Plan
    topic_numbers: Mapping[TopicKey, tuple[int, ...]]
    placed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)
    parts: Parts | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Parts:
    """What a plan was put together from, for the next one: parts whose origin is the same object are used
    again.
    """

    streams: Mapping[str, StreamDef]
    derived: Mapping[str, DerivedDef]
    spreads: Mapping[str, Spread]
    retiring: frozenset[str]
    seats: Mapping[str, Seat]
    places: Places
    topics: Mapping[Topic, TopicPlan]


@dataclass(frozen=True)
class Seat:
    """A reader with its places, and what follows from these alone. `definition`: None outside the fleet."""

    origin: AlertDef | Subscription
    wishes: tuple[Wish, ...]
    numbers: Mapping[str, int]
    definition: Definition | None
    readers: tuple[Reader, ...]


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
    before: Built | None = None,
) -> Built:
    """The plan `version` for everything in `catalog`; see the module's docstring. `before`, any plan that was
    built before, makes no difference but in time.

    Raises NotAcceptedError where an alert or a derived stream of the catalogue is not accepted.
    """
    made, origins = _origins(version, catalog, versions, retiring, subscriptions)
    ends = frozenset(definition_id(old.alert.name, old.version) for old in retiring)
    places_before = placed or {}
    parts = _usable(before, catalog)
    seats = parts.seats if parts else {}
    moved = ends ^ parts.retiring if parts else ends
    fresh = {
        reader
        for reader, origin in origins.items()
        if (seat := seats.get(reader)) is None
        or seat.origin is not origin
        or seat.numbers != places_before.get(reader)
        or reader in moved
    }
    gone = [reader for reader in seats if reader not in origins or reader in fresh]
    if parts and not _in_order(seats, origins, fresh.union(gone)):
        parts, seats, gone, fresh = None, {}, [], set(origins)
    spreads = parts.spreads if parts else {name: Spread(one) for name, one in catalog.streams.items()}
    places = Places(spreads, topic_numbers, parts.places if parts else None)
    for reader in gone:
        places.leave(seats[reader].wishes, seats[reader].numbers)
    wishes = {
        reader: _wishes(reader, origin, catalog, new=made[reader] == version)
        for reader, origin in origins.items()
        if reader in fresh
    }
    places.seat((wish for some in wishes.values() for wish in some), places_before, list(origins))
    seated = {
        reader: _seat(origin, made[reader], catalog, wishes[reader], places.placed[reader])
        if reader in fresh
        else seats[reader]
        for reader, origin in origins.items()
    }
    topics = _topics(catalog, seated, places, parts.topics if parts else {})
    plan = Plan(
        version=version,
        partitions=partitions,
        streams=_streams(catalog, topics),
        definitions=tuple(one.definition for one in seated.values() if one.definition is not None),
        since=dict(since or {}),
        shard_streams=dict(shard_streams or {}),
        retiring={definition_id(old.alert.name, old.version): old.successor for old in retiring},
    )
    rest = Parts(dict(catalog.streams), dict(catalog.derived), spreads, ends, seated, places, topics)
    return Built(plan, places.numbers, places.placed, places.choices, rest)


def definition_id(alert: str, version: int) -> str:
    """How plans and frontiers name a definition."""
    return f"{alert}@{version}"


def _origins(
    version: int,
    catalog: Catalog,
    versions: Mapping[str, int],
    retiring: Sequence[Retiring],
    subscriptions: Sequence[Subscription],
) -> tuple[dict[str, int], dict[str, AlertDef | Subscription]]:
    """Of each reader the plan version that made it, and what it is made of, in order."""
    made = {definition_id(old.alert.name, old.version): old.version for old in retiring}
    origins: dict[str, AlertDef | Subscription] = {
        definition_id(old.alert.name, old.version): old.alert for old in retiring
    }
    for name, alert in catalog.alerts.items():
        if name not in catalog.paused:
            number = versions.get(name, version)
            made[reader := definition_id(name, number)] = number
            origins[reader] = alert
    for one in subscriptions:
        if one.stream in catalog.streams:
            made[one.id] = one.version
            origins[one.id] = one
    return made, origins


def _usable(before: Built | None, catalog: Catalog) -> Parts | None:
    """Parts whose streams are still the same."""
    parts = before.parts if before else None
    if parts and _same(parts.streams, catalog.streams) and _same(parts.derived, catalog.derived):
        return parts
    return None


def _same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return list(one) == list(other) and all(map(operator.is_, one.values(), other.values()))


def _in_order(seats: Iterable[str], origins: Iterable[str], changed: Set[str]) -> bool:
    """Whether those that stay are in the same order as before."""
    kept = [reader for reader in seats if reader not in changed]
    return kept == [reader for reader in origins if reader not in changed]


def _wishes(reader: str, origin: AlertDef | Subscription, catalog: Catalog, *, new: bool) -> tuple[Wish, ...]:
    if isinstance(origin, Subscription):
        key = origin.stream, catalog.streams[origin.stream].key
        return (Wish(reader, "", key, origin.filter, subscriber=True, whole=True, new=new),)
    verdict = accepted(origin, catalog)
    return tuple(
        Wish(
            reader,
            omission.alias,
            (verdict.analysis.streams[omission.alias].name, verdict.keys.partition[omission.alias]),
            bare(omission.filter),
            subscriber=False,
            whole=omission.interval == 0,
            new=new,
        )
        for omission in verdict.omissions
    )


def _seat(
    origin: AlertDef | Subscription,
    made: int,
    catalog: Catalog,
    wishes: tuple[Wish, ...],
    numbers: Mapping[str, int],
) -> Seat:
    topics = {wish.alias: stream_topic(wish.key[0], numbers[wish.alias]) for wish in wishes}
    if isinstance(origin, Subscription):
        reader = subscriber(origin, catalog.streams[origin.stream], topics[""])
        return Seat(origin, wishes, numbers, None, (reader,))
    verdict = accepted(origin, catalog)
    definition = define(origin, made, verdict, topics)
    readers = tuple(
        Reader(source, omission, made, origin.options.max_delay)
        for source, omission in zip(definition.inputs, verdict.omissions, strict=True)
    )
    return Seat(origin, wishes, numbers, definition, readers)


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
            readers = [_reader(seats[reader], alias) for reader, alias in sources]
            topics[key, number] = _topic(catalog.streams[key[0]], key, number, readers)
    return topics


def _reader(seat: Seat, alias: str) -> Reader:
    return next(one for one in seat.readers if one.source.alias == alias)


def _topic(stream: StreamDef, key: TopicKey, number: int, readers: list[Reader]) -> TopicPlan:
    needed = {column for reader in readers for column in reader.source.columns}
    projection = tuple(c.name for c in stream.columns if c.name in needed)
    return TopicPlan(stream_topic(stream.name, number), key[1], projection, entries(readers))


def _streams(catalog: Catalog, topics: Mapping[Topic, TopicPlan]) -> tuple[StreamPlan, ...]:
    """The streams with their topics, in the order of numbers; then those of streams derived from them."""
    of: dict[str, list[TopicPlan]] = {name: [] for name in catalog.streams}
    for topic in sorted(topics, key=operator.itemgetter(1)):
        of[topic[0][0]].append(topics[topic])
    for derived in catalog.derived.values():
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
    return stream.name, TopicPlan(stream_topic(derived.name, 1), key, (), (entry,), select)
