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
    built.placed          # of all that run now: to be remembered
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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tamis.messaging.topics import stream_topic
from tamis.planning.definitions import define
from tamis.planning.domains import domain_check
from tamis.planning.entries import Reader, entries
from tamis.planning.omission import bare
from tamis.planning.places import Places, TopicKey, Wish
from tamis.planning.plan import Definition, Entry, Plan, StreamColumn, StreamPlan, TopicPlan
from tamis.planning.remembered import MOST, Latest, Remembered
from tamis.planning.sharing import Choice
from tamis.planning.subscriptions import Subscription, subscriber
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
    """A plan, and what of it has to be remembered: the numbers of all topics that ever were, and of each
    reader the number of the topic by source. `choices`: of readers without a place before, by source.
    """

    plan: Plan
    topic_numbers: Mapping[TopicKey, tuple[int, ...]]
    placed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)


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
    running = [(old.alert, old.version) for old in retiring]
    running += [
        (alert, versions.get(name, version))
        for name, alert in catalog.alerts.items()
        if name not in catalog.paused
    ]
    alerts = [(alert, made, _verdict(alert, catalog)) for alert, made in running]
    outside = [one for one in subscriptions if one.stream in catalog.streams]
    wishes = [wish for alert in alerts for wish in _wishes(*alert, new=alert[1] == version)]
    keys: dict[str, TopicKey] = {name: (name, stream.key) for name, stream in catalog.streams.items()}
    wishes += [
        Wish(
            one.id, "", keys[one.stream], one.filter, subscriber=True, whole=True, new=one.version == version
        )
        for one in outside
    ]
    places = Places(catalog.streams, topic_numbers, placed or {})
    places.seat(wishes)
    readers: list[Reader] = []
    definitions: list[Definition] = []
    for alert, made, verdict in alerts:
        definition, its_readers = _defined(
            alert, made, verdict, places.placed[definition_id(alert.name, made)]
        )
        definitions.append(definition)
        readers += its_readers
    readers += [_subscriber(one, catalog.streams[one.stream], places.placed[one.id][""]) for one in outside]
    derived = [_derived_topic(one, _verdict(one, catalog)) for one in catalog.derived.values()]
    streams = tuple(
        _stream(stream, readers, [topic for base, topic in derived if base == stream.name])
        for stream in catalog.streams.values()
    )
    plan = Plan(
        version=version,
        partitions=partitions,
        streams=streams,
        definitions=tuple(definitions),
        since=dict(since or {}),
        shard_streams=dict(shard_streams or {}),
        retiring={definition_id(old.alert.name, old.version): old.successor for old in retiring},
    )
    return Built(plan, places.numbers, places.placed, places.choices)


def definition_id(alert: str, version: int) -> str:
    """How plans and frontiers name a definition."""
    return f"{alert}@{version}"


# A plan is built at every change of one query: what was made for the others is found again.
_VERDICTS = Remembered[Verdict](MOST)
_WISHES = Remembered[list[Wish]](MOST)
_DEFINED = Remembered[tuple[Definition, list[Reader]]](MOST)
_SUBSCRIBERS = Remembered[Reader](MOST)
_SHARED = Latest[TopicPlan](MOST)


def _verdict(query: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    return _VERDICTS.get((query, *_read(query, catalog)), None, lambda: accepted(query, catalog))


def _read(query: AlertDef | DerivedDef, catalog: Catalog) -> Iterator[StreamDef | DerivedDef]:
    """The definitions on which a verdict rests, beside the query's own."""
    for source in query.query.sources:
        if (derived := catalog.derived.get(source.stream)) is not None:
            yield derived
            yield from _read(derived, catalog)
        elif (stream := catalog.streams.get(source.stream)) is not None:
            yield stream


def _wishes(alert: AlertDef, made: int, verdict: Verdict, *, new: bool) -> list[Wish]:
    def make() -> list[Wish]:
        return [
            Wish(
                definition_id(alert.name, made),
                omission.alias,
                (verdict.analysis.streams[omission.alias].name, verdict.keys.partition[omission.alias]),
                bare(omission.filter),
                subscriber=False,
                whole=omission.interval == 0,
                new=new,
            )
            for omission in verdict.omissions
        ]

    return _WISHES.get((alert, verdict), (made, new), make)


def _defined(
    alert: AlertDef, made: int, verdict: Verdict, numbers: Mapping[str, int]
) -> tuple[Definition, list[Reader]]:
    """An alert as the joiner runs it, and its readers; `numbers`: of its topics, by source."""
    streams = verdict.analysis.streams

    def make() -> tuple[Definition, list[Reader]]:
        topics = {alias: stream_topic(streams[alias].name, number) for alias, number in numbers.items()}
        definition = define(alert, made, verdict, topics)
        return definition, [
            Reader(source, omission, made, alert.options.max_delay)
            for source, omission in zip(definition.inputs, verdict.omissions, strict=True)
        ]

    return _DEFINED.get((alert, verdict), (made, *sorted(numbers.items())), make)


def _subscriber(one: Subscription, stream: StreamDef, number: int) -> Reader:
    topic = stream_topic(stream.name, number)
    return _SUBSCRIBERS.get((one, stream), topic, lambda: subscriber(one, stream, topic))


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


def _stream(stream: StreamDef, readers: Iterable[Reader], derived: list[TopicPlan]) -> StreamPlan:
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
        topics=(*_topics(stream, readers), *derived),
    )


def _topics(stream: StreamDef, readers: Iterable[Reader]) -> tuple[TopicPlan, ...]:
    """The shared topics of a stream with the entries that its readers need."""
    by_name: dict[str, list[Reader]] = {}
    for reader in readers:
        if reader.source.stream == stream.name:
            by_name.setdefault(reader.source.topic, []).append(reader)
    return tuple(
        _SHARED.get(name, (stream, *group), partial(_topic, stream, name, group))
        for name, group in by_name.items()
    )


def _topic(stream: StreamDef, name: str, readers: list[Reader]) -> TopicPlan:
    needed = {column for reader in readers for column in reader.source.columns}
    projection = tuple(c.name for c in stream.columns if c.name in needed)
    return TopicPlan(name, readers[0].source.partition_key, projection, entries(readers))


def _derived_topic(derived: DerivedDef, verdict: Verdict) -> tuple[str, TopicPlan]:
    """A derived stream's base stream and its own topic: every tuple that passes, as its SELECT makes it."""
    (omission,) = verdict.omissions
    stream = verdict.analysis.streams[omission.alias]
    key = verdict.keys.partition[omission.alias]
    entry = Entry(bare(omission.filter), key, None, 0, "both", None, 0)
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    return stream.name, TopicPlan(stream_topic(derived.name, 1), key, (), (entry,), select)
