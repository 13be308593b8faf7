"""Streams of a plan: columns, shared topics, topics of derived streams, and backfill streams."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.declarations.backfill import Backfill
from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import pattern_watches, window_functions
from tamis.plan.model import FormerColumns, StreamPlan, TopicPlan
from tamis.planning.derived_topics import DerivedTopic
from tamis.planning.queries.former_definitions import stream_columns
from tamis.query.model import AlertDef, Catalog
from tamis.sharing.topic_assignment import Topic


def backfill(origin: object, version: int, stream: str) -> Backfill | None:
    """The backfill stream in place of a raw stream for a reader that plan `version` made; None if it reads
    the stream itself.
    """
    since = origin.options.from_ if isinstance(origin, AlertDef) else None
    return None if since is None else Backfill.of(stream, version, since)


def stream_read(origin: object, version: int, stream: str) -> str:
    """The stream that a reader of plan `version` reads in place of the stream in its SQL."""
    found = backfill(origin, version, stream)
    return stream if found is None else found.name


def live(alert: AlertDef) -> AlertDef:
    """The alert as it runs over recordings: from their beginning, so that `from` is left out."""
    if alert.options.from_ is None:
        return alert
    return replace(alert, options=replace(alert.options, from_=None))


def with_backfills(
    catalog: Catalog, alerts: Sequence[tuple[AlertDef, int]], known: Mapping[str, StreamDef]
) -> Catalog:
    """The catalogue with the backfill streams of these alerts, each with the plan version that made it. It is
    this object if they have none. A stream that is the same in `known` stays the same object.
    """
    made = {stream.name: stream for stream in _streams(catalog, alerts)}
    if not made:
        return catalog
    found = catalog.copy()
    for name, stream in made.items():
        before = known.get(name)
        found.streams[name] = before if before == stream else stream
    return found


def _streams(catalog: Catalog, alerts: Sequence[tuple[AlertDef, int]]) -> Iterator[StreamDef]:
    for alert, version in alerts:
        for name in {source.stream for source in alert.query.sources}:
            found, stream = backfill(alert, version, name), catalog.streams.get(name)
            if found is not None and stream is not None:
                yield replace(stream, name=found.name, origin=name, begin=found.begin)


@dataclass(frozen=True, eq=False)
class PlannedStream:
    """A stream with its plan."""

    stream: StreamDef
    plan: StreamPlan

    def is_of(
        self, stream: StreamDef, topics: tuple[TopicPlan, ...], former: tuple[FormerColumns, ...]
    ) -> bool:
        """True if the plan would be the same for these."""
        same = self.stream is stream and len(self.plan.topics) == len(topics)
        return same and all(map(operator.is_, self.plan.topics, topics)) and self.plan.former == former


def stream_plans(
    catalog: Catalog,
    topics: Mapping[Topic, TopicPlan],
    derived: Mapping[str, DerivedTopic],
    former: Mapping[str, tuple[FormerColumns, ...]],
    before: Mapping[str, PlannedStream],
) -> dict[str, PlannedStream]:
    """The streams, each with its shared topics in the order of their numbers, and then its derived topics.
    Watched streams come last, by name: their order in the catalogue depends on when they were first read. So
    do backfill streams.
    `former`: the former columns of streams. `before`: the streams of an earlier plan, of which those that
    haven't changed are taken: a change concerns few of thousands of streams.
    """
    of: dict[str, list[TopicPlan]] = {name: [] for name in catalog.streams}
    numbered = [(number, key) for key, number in topics if isinstance(number, int)]
    for number, key in sorted(numbered, key=operator.itemgetter(0)):
        of[key[0]].append(topics[key, number])
    for name, one in derived.items():
        of[one.stream.name].append(one.plan_with(topics.get((one.key, name))))
    watched = sorted(name for name, stream in catalog.streams.items() if stream.base is not None)
    backfilled = sorted(name for name, stream in catalog.streams.items() if stream.origin is not None)
    ordered = (
        *(stream for stream in catalog.raw_streams.values() if stream.origin is None),
        *(catalog.streams[name] for name in (*watched, *backfilled)),
    )
    return {
        stream.name: _planned(
            stream, tuple(of[stream.name]), former.get(stream.name, ()), before.get(stream.name)
        )
        for stream in ordered
    }


def _planned(
    stream: StreamDef,
    topics: tuple[TopicPlan, ...],
    former: tuple[FormerColumns, ...],
    known: PlannedStream | None,
) -> PlannedStream:
    if known is not None and known.is_of(stream, topics, former):
        return known
    return PlannedStream(stream, _stream(stream, topics, former))


def _stream(
    stream: StreamDef, topics: tuple[TopicPlan, ...], former: tuple[FormerColumns, ...]
) -> StreamPlan:
    return StreamPlan(
        name=stream.name,
        columns=stream_columns(stream),
        time=stream.time,
        delay=stream.delay,
        idle_timeout=stream.idle_timeout,
        max_ahead=stream.max_ahead,
        max_stall=stream.max_stall,
        topics=topics,
        max_ahead_given=stream.max_ahead_given,
        value_format=stream.value_format,
        time_unit=stream.time_unit,
        base=stream.base,
        series_key=stream.key if stream.base else (),
        watches=pattern_watches(stream.watches),
        window_functions=window_functions(stream.watches),
        former=former,
        origin=stream.origin,
        begin=stream.begin,
    )
