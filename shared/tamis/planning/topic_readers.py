"""Readers of streams (alerts and subscriptions): their read requests, and their plan with topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Expr, conjunction, conjuncts
from tamis.plan.model import Definition, StandingQuery
from tamis.plan.omission import Omission, bare
from tamis.planning.join_verdict import JoinVerdict, accepted
from tamis.planning.link.placement import groups_of
from tamis.planning.queries.definitions import define, read_columns
from tamis.planning.queries.former_definitions import Former, former_catalog, former_domains
from tamis.planning.queries.standing_queries import is_standing, judged, standing_query
from tamis.planning.stream_plans import stream_read
from tamis.query.model import AlertDef, Catalog
from tamis.sharing.entries import ReaderInput
from tamis.sharing.topic_assignment import TopicAssignment
from tamis.sharing.topic_choice import ReadRequest, TopicId
from tamis.sharing.topic_plans import Subscription, subscriber


@dataclass(frozen=True)
class Reader:
    """An alert as plan `version` made it, or a subscription. `numbers`: its known topics by alias. `former`:
    definitions that have changed since, and that the alert reads as they were.
    """

    id: str
    origin: AlertDef | Subscription
    version: int
    numbers: Mapping[str, TopicId]
    former: tuple[Former, ...] = ()

    @property
    def as_reader(self) -> Reader:
        """The reader itself, so that each `Reader` is a `ReaderSource`."""
        return self


class ReaderSource(Protocol):
    """An object of the caller's state that may be a reader; the same object always gives the same reader."""

    @property
    def as_reader(self) -> Reader | None:
        """The reader; None for an object that isn't a reader, such as a paused alert."""
        ...


@dataclass(frozen=True)
class AssignedReader:
    """A reader with its topics, and the parts of the plan that follow from the reader and its topics alone.

    `definition`: None for a subscription; `inputs`: by alias.
    """

    reader: Reader
    requests: tuple[ReadRequest, ...]
    numbers: Mapping[str, TopicId]
    definition: Definition | StandingQuery | None
    inputs: Mapping[str, ReaderInput]

    def is_for(self, reader: Reader) -> bool:
        """True if it was made for an equal reader with the same topics."""
        mine = self.reader
        same = mine.origin is reader.origin and mine.version == reader.version
        same &= mine.former == reader.former
        return same and self.numbers == reader.numbers


def read_requests(reader: Reader, catalog: Catalog) -> tuple[ReadRequest, ...]:
    """The read requests of a reader. Raises NotAcceptedError."""
    origin = reader.origin
    if isinstance(origin, Subscription):
        key = origin.stream, catalog.streams[origin.stream].key
        return (_request(reader, "", key, origin.filter, subscriber=True),)
    own = former_catalog(catalog, reader.former, origin)
    if is_standing(origin, own):
        query = judged(origin, own)
        return tuple(
            _request(
                reader,
                feed.stream.name,
                (_read(reader, feed.stream.name), feed.partition_key),
                feed.filter,
                complete=feed.stream.name not in query.represented,
                groups=None if feed.stream.base else groups_of(query.lower),
                tuples_are_cheaper=query.tuples_are_cheaper,
            )
            for feed in query.layout.feeds
        )
    verdict = _verdict(origin, own, reader.former)
    streams, keys = verdict.analysis.streams, verdict.keys.partition
    return tuple(
        _request(
            reader,
            omission.alias,
            (_read(reader, streams[omission.alias].name), keys[omission.alias]),
            bare(omission.filter),
            complete=omission.interval == 0,
            columns=_columns(origin, verdict, omission) if catalog.derived else None,
        )
        for omission in verdict.omissions
    )


def _read(reader: Reader, stream: str) -> str:
    """The stream that a reader reads in place of the one in its SQL."""
    return stream_read(reader.origin, reader.version, stream)


def _verdict(alert: AlertDef, own: Catalog, former: Sequence[Former]) -> JoinVerdict:
    """The verdict on an alert with its `own` catalogue, which has `former` definitions. Its filters exclude
    readings outside of the domains of former streams.
    """
    verdict = accepted(alert, own)
    altered = {one.definition.name for one in former if isinstance(one.definition, StreamDef)}
    if not altered:
        return verdict
    return replace(verdict, omissions=tuple(_guarded(alert, verdict, o, altered) for o in verdict.omissions))


def _guarded(alert: AlertDef, verdict: JoinVerdict, omission: Omission, altered: set[str]) -> Omission:
    alias, analysis = omission.alias, verdict.analysis
    stream, key = analysis.streams[alias], verdict.keys.partition[alias]
    if stream.shown_name not in altered:
        return omission
    read = (*read_columns(alert, verdict, omission), *key, analysis.times[alias])
    domains = former_domains(stream, read, alias)
    if domains is None:
        return omission
    more = conjuncts(domains)
    return replace(
        omission,
        filter=conjunction((*conjuncts(omission.filter), *more)),
        entry_filter=conjunction((*conjuncts(omission.entry_filter), *more)),
    )


def _columns(alert: AlertDef, verdict: JoinVerdict, omission: Omission) -> frozenset[str] | None:
    """The columns of a source that the topic of a derived stream must have to serve it; None if it can't.

    With omission an alert needs fewer tuples than a derived stream has, and keeps fewer in the joiner. The
    topic of a derived stream has no earlier readings.
    """
    if omission.interval > 0 or not alert.options.read_derived or alert.options.from_ is not None:
        return None
    alias, analysis = omission.alias, verdict.analysis
    key = verdict.keys.partition[alias]
    return frozenset((*read_columns(alert, verdict, omission), *key, analysis.times[alias]))


def _request(
    reader: Reader,
    alias: str,
    key: tuple[str, tuple[str, ...]],
    filter_: Expr | None,
    *,
    subscriber: bool = False,
    complete: bool = True,
    columns: frozenset[str] | None = None,
    groups: tuple[Expr, ...] | None = None,
    tuples_are_cheaper: bool = False,
) -> ReadRequest:
    return ReadRequest(
        reader.id,
        alias,
        key,
        filter_,
        subscriber,
        complete,
        reader.version,
        columns,
        groups,
        tuples_are_cheaper,
    )


def _reading(one: ReaderInput, reader: Reader) -> ReaderInput:
    """An input of a standing query with the stream that it reads."""
    stream = _read(reader, one.source.stream)
    return one if stream == one.source.stream else replace(one, source=replace(one.source, stream=stream))


def assigned_reader(
    reader: Reader, requests: tuple[ReadRequest, ...], assignment: TopicAssignment, catalog: Catalog
) -> AssignedReader:
    """The reader with the topics that its requests were assigned to."""
    numbers = assignment.assigned[reader.id]
    topics = {request.alias: assignment.name(request.key, numbers[request.alias]) for request in requests}
    origin = reader.origin
    if isinstance(origin, Subscription):
        outside = subscriber(origin, catalog.streams[origin.stream], topics[""])
        return AssignedReader(reader, requests, numbers, None, {"": outside})
    own = former_catalog(catalog, reader.former, origin)
    if is_standing(origin, own):
        aggregated = not any(request.groups is None and request.tuples_are_cheaper for request in requests)
        found = judged(origin, own)
        query, counting = standing_query(origin, reader.version, found, topics, aggregated=aggregated)
        inputs = {one.source.stream: _reading(one, reader) for one in counting}
        query = replace(query, inputs=tuple(one.source for one in inputs.values()))
        return AssignedReader(reader, requests, numbers, query, inputs)
    verdict = _verdict(origin, own, reader.former)
    definition = define(origin, reader.version, verdict, topics)
    if origin.options.from_ is not None:
        read = tuple(replace(one, stream=_read(reader, one.stream)) for one in definition.inputs)
        definition = replace(definition, inputs=read)
    inputs = {
        source.alias: ReaderInput(source, omission, reader.version, origin.options.max_delay)
        for source, omission in zip(definition.inputs, verdict.omissions, strict=True)
    }
    return AssignedReader(reader, requests, numbers, definition, inputs)
