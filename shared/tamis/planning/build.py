"""From what is defined to the plan of the whole fleet. Pure: the registry passes in all that it remembers.

    built = build_plan(
        version, catalog,
        partitions=8,
        versions={"condensation": 3},      # alert -> the plan version that made its present definition;
                                           # an alert that is not in it is new, and gets `version`
        retiring=[Retiring(old_alert, 3, 7)],  # made by plan 3, replaced by plan 7, still running
        topic_numbers={("air", ("station",)): 1},
        since={"edge-a/air": 1}, shard_streams={"edge-a/air": "air"},
    )
    built.plan            # the plan to write into every partition of tamis.plans
    built.topic_numbers   # the given ones and the new ones: to be remembered, and their topics created

Paused alerts are left out. When an alert is replaced, the registry gives the new one no version and passes
the old one in `retiring` until it may end (`tamis_registry`, protocol rule 11). An alert that is refused
(`NotAcceptedError`) must not get here; the registry asks `tamis.planning.verdict.accepted` before it takes a
statement up.

Entries follow from the definitions alone (`tamis.planning.entries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tamis.messaging.topics import stream_topic
from tamis.planning.definitions import define
from tamis.planning.domains import domain_check
from tamis.planning.entries import Reader, entries
from tamis.planning.omission import bare
from tamis.planning.plan import Definition, Entry, Plan, StreamColumn, StreamPlan, TopicPlan
from tamis.planning.verdict import accepted
from tamis.query.model import AlertDef, Catalog, DerivedDef, StreamDef

TopicKey = tuple[str, tuple[str, ...]]  # (stream, partition key)


@dataclass(frozen=True)
class Retiring:
    """The old definition of a replaced alert, made by plan `version` and replaced by plan `successor`."""

    alert: AlertDef
    version: int
    successor: int


@dataclass(frozen=True)
class Built:
    """A plan, and the numbers of all topics that ever were."""

    plan: Plan
    topic_numbers: Mapping[TopicKey, int]


def build_plan(
    version: int,
    catalog: Catalog,
    *,
    partitions: int,
    versions: Mapping[str, int],
    topic_numbers: Mapping[TopicKey, int],
    retiring: Sequence[Retiring] = (),
    since: Mapping[str, int] | None = None,
    shard_streams: Mapping[str, str] | None = None,
) -> Built:
    """The plan `version` for everything in `catalog`; see the module's docstring.

    Raises NotAcceptedError where an alert or a derived stream of the catalogue is not accepted.
    """
    numbers = dict(topic_numbers)

    def topic_of(stream: str, key: tuple[str, ...]) -> str:
        if (stream, key) not in numbers:
            used = [number for (name, _), number in numbers.items() if name == stream]
            numbers[stream, key] = max(used, default=0) + 1
        return stream_topic(stream, numbers[stream, key])

    running = [(old.alert, old.version) for old in retiring]
    running += [
        (alert, versions.get(name, version))
        for name, alert in catalog.alerts.items()
        if name not in catalog.paused
    ]
    readers: list[Reader] = []
    definitions: list[Definition] = []
    for alert, made in running:
        verdict = accepted(alert, catalog)
        definition = define(alert, made, verdict, topic_of)
        definitions.append(definition)
        readers += [
            Reader(source, omission, made, alert.options.max_delay)
            for source, omission in zip(definition.inputs, verdict.omissions, strict=True)
        ]
    derived = [_derived_topic(one, catalog) for one in catalog.derived.values()]
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
        retiring={f"{old.alert.name}@{old.version}": old.successor for old in retiring},
    )
    return Built(plan, numbers)


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
    out = []
    for name, group in by_name.items():
        needed = {column for reader in group for column in reader.source.columns}
        projection = tuple(c.name for c in stream.columns if c.name in needed)
        out.append(TopicPlan(name, group[0].source.partition_key, projection, entries(group)))
    return tuple(out)


def _derived_topic(derived: DerivedDef, catalog: Catalog) -> tuple[str, TopicPlan]:
    """A derived stream's base stream and its own topic: every tuple that passes, as its SELECT makes it."""
    verdict = accepted(derived, catalog)
    (omission,) = verdict.omissions
    stream = verdict.analysis.streams[omission.alias]
    key = verdict.keys.partition[omission.alias]
    entry = Entry(bare(omission.filter), key, None, 0, "both", None, 0)
    select = tuple((output.name, bare(output.expr)) for output in derived.query.select)
    return stream.name, TopicPlan(stream_topic(derived.name, 1), key, (), (entry,), select)
