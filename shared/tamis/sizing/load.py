"""Load of a stream: readings a second, keys, and the share of the readings that edges retain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tamis.declarations.definitions import Rate
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.operators.time_join.replay import retained_rows
from tamis.plan.model import Definition, Input, Plan, TopicPlan
from tamis.query.model import Catalog
from tamis.recordings.typed import Recording
from tamis.sizing.figures import Figure

SECOND = 1_000_000


@dataclass(frozen=True)
class Given:
    """The options of `tamis size` about one stream. `rate` is that of all keys together."""

    rate: Rate | None = None
    keys: int | None = None
    retained: float | None = None
    recording: Recording | None = None


@dataclass(frozen=True)
class StreamLoad:
    """The readings of a stream. `retained` None: it is measured for each topic with the recording."""

    stream: StreamDef
    rate: Figure
    keys: Figure | None
    retained: Figure | None
    recording: Recording | None

    @property
    def proven(self) -> bool:
        """True if keys and rate of the stream are declared or given, so that they prove bounds."""
        return self.keys is not None and self.keys.basis != "measured" and self.stream.rate is not None

    def share(self, topic: TopicPlan) -> Figure:
        """The share of the readings that edges publish to a topic."""
        if self.retained is not None:
            return self.retained
        if self.recording is not None and len(self.recording):
            kept = float(retained_rows(topic, self.recording).mean())
            return Figure(kept, "share", "measured", f"replay of {len(self.recording)} readings")
        return Figure(1.0, "share", "assumed", "the worst case: give --retained or --input")


def load_of(stream: StreamDef, given: Given) -> StreamLoad:
    """The load of a stream. Raises InputError if nothing says its rate."""
    keys = _keys(stream, given)
    return StreamLoad(stream, _rate(stream, given, keys), keys, _retained(given), given.recording)


def declared(catalog: Catalog, loads: Mapping[str, StreamLoad]) -> Catalog:
    """The catalogue with the keys that were given, and with keys and rate for each stream that lacks one.

    If nothing says the number of keys, the stream counts as one key with the whole rate. A rate that isn't
    declared is the given rate, evenly distributed over the keys. Neither proves a bound: see
    `StreamLoad.proven`.
    """
    streams = dict(catalog.streams)
    for name, load in loads.items():
        stream = streams[name]
        keys = int(load.keys.value) if load.keys is not None else 1
        rate = stream.rate if load.keys is not None else None
        if rate is None:
            each = load.rate.value / keys
            per = SECOND if each >= 1 else int(SECOND / each)
            rate = Rate(max(1, int(np.ceil(each * per / SECOND))), per)
        streams[name] = replace(stream, keys=keys, rate=rate)
    return replace(catalog, streams=streams)


def _keys(stream: StreamDef, given: Given) -> Figure | None:
    if given.keys is not None:
        return Figure(given.keys, "count", "given", "--keys")
    if not stream.key:
        return Figure(1, "count", "declared", "the stream has no KEY column")
    if stream.keys is not None:
        return Figure(stream.keys, "count", "declared", "keys in CREATE STREAM")
    if given.recording is not None and len(given.recording):
        rows = zip(*(given.recording.columns[name].to_list() for name in stream.key), strict=True)
        return Figure(len(set(rows)), "count", "measured", "keys of the recording")
    return None


def _rate(stream: StreamDef, given: Given, keys: Figure | None) -> Figure:
    if given.rate is not None:
        return Figure(given.rate.count * SECOND / given.rate.per, "tuples/s", "given", "--rate")
    if stream.rate is not None and keys is not None:
        most = keys.value * stream.rate.count * SECOND / stream.rate.per
        return Figure(most, "tuples/s", "declared", "keys x rate in CREATE STREAM")
    times = (
        None if given.recording is None or stream.time is None else given.recording.columns[stream.time].data
    )
    if times is not None and len(times) > 1 and times.max() > times.min():
        span = (int(times.max()) - int(times.min())) / SECOND
        return Figure(len(times) / span, "tuples/s", "measured", "readings and time of the recording")
    raise InputError(
        f"nothing says how many readings of stream {stream.name} come",
        where="--rate",
        hint=f"add --rate {stream.name}=100/s, or declare keys and rate in CREATE STREAM",
    )


def _retained(given: Given) -> Figure | None:
    if given.retained is None:
        return None
    return Figure(given.retained, "share", "given", "--retained")


def longest_wait(topic: TopicPlan) -> float:
    """The longest time in seconds for which omission holds a tuple."""
    waits = (
        one.interval if one.max_delay is None else min(one.interval, one.max_delay)
        for one in topic.entries
        if one.interval
    )
    return max(waits, default=0) / SECOND


def readers(plan: Plan, topic: TopicPlan) -> list[tuple[Definition, Input]]:
    return [(one, source) for one in plan.definitions for source in one.inputs if source.topic == topic.name]


def _longer(plan: Plan, source: Input, definition: Definition) -> int:
    """By how much a tuple is kept longer, since other queries of the partners' topics hold tuples longer."""
    held = {
        topic.name: max((entry.interval for entry in topic.entries), default=0)
        for stream in plan.streams
        for topic in stream.topics
    }
    others = (one for one in definition.inputs if one is not source)
    return max(0, *(held.get(one.topic, 0) - one.interval for one in others), 0)


def most(plan: Plan, source: Input, definition: Definition) -> int | None:
    """The proven bound of the tuples of a source, as the joiner shows it."""
    return None if source.kept is None else source.kept.most(_longer(plan, source, definition))


def span(plan: Plan, topic: TopicPlan) -> int:
    """Microseconds for which the joiner keeps a tuple of a topic.

    Unlike the proven bound, this takes into account that with `max_delay` omission holds tuples for a
    shorter time than the omission interval.
    """
    waits = {one.name: longest_wait(one) * SECOND for stream in plan.streams for one in stream.topics}
    spans = [0]
    for definition, source in readers(plan, topic):
        if source.kept is not None and source.kept.tuples:
            others = (one for one in definition.inputs if one is not source)
            longer = max((waits[one.topic] - one.interval for one in others), default=0)
            spans.append(source.kept.span + int(longer))
    return max(spans)
