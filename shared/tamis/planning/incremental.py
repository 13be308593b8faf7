"""Incremental planning: the plan of the whole fleet, built from the parts of the previous plan.

A reader stays with the topic that it was given (`tamis.sharing.topic_choice`), and the entries of a topic
follow from its readers alone (`tamis.sharing.entries`). A topic therefore widens when a reader is added,
narrows when a reader is removed, and leaves the plan with its last reader.

Parts of unchanged objects are reused from the previous plan. The cost of a change depends on the number of
changed readers, and the plan is the same as one that is built from nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from tamis.declarations.streams import StreamDef
from tamis.identity_diff import Splice, identity_diff
from tamis.persistent.dicts import PersistentDict
from tamis.persistent.lists import PersistentList, not_none
from tamis.plan.model import Definition, Plan, StandingQuery, TopicPlan
from tamis.planning.derived_topics import DerivedNumber, DerivedTopic, derived_sources, derived_topics
from tamis.planning.queries.former_definitions import Former, former_columns
from tamis.planning.stream_plans import PlannedStream, stream_plans, with_backfills
from tamis.planning.topic_readers import (
    AssignedReader,
    Reader,
    ReaderSource,
    assigned_reader,
    read_requests,
)
from tamis.query.model import AlertDef, Catalog
from tamis.sharing.selectivity import SelectivityEstimator, StreamStatistics
from tamis.sharing.topic_assignment import MOST_PARTIAL, Topic, TopicAssignment
from tamis.sharing.topic_choice import Choice, ReadRequest, TopicId, TopicKey
from tamis.sharing.topic_plans import SharedTopic, Subscription

T = TypeVar("T")


@dataclass(frozen=True)
class Built:
    """A plan, and what the caller has to keep for the next plan.

    `topic_numbers`: all numbers that the topics of a stream and key have ever had. `outside`: for each
    stream, the numbers of topics that the joiner doesn't read. `assigned`: the topics of readers that are
    new or have other topics than before, each a number or the name of a derived stream. `choices`: the
    reasons for new topics. `partials`: edges and joiner exchange partial aggregates where that is possible.
    `parts`: the parts from which the next plan is built. `represented`: the streams of which edges can
    publish representatives.
    """

    plan: Plan
    topic_numbers: Mapping[TopicKey, tuple[int, ...]]
    assigned: Mapping[str, Mapping[str, TopicId]] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)
    outside: Mapping[str, frozenset[int]] = field(default_factory=dict)
    partials: bool = True
    parts: Parts | None = field(default=None, compare=False, repr=False)
    represented: frozenset[str] = frozenset()

    @property
    def waits_for_partials(self) -> bool:
        """True if some topic could have partial aggregates, and has none until services can exchange them."""
        topics = self.parts.topics.values() if self.parts and not self.partials else ()
        return any(shared.plan.partials is not None for shared in topics)

    def with_sources(self, sources: Sequence[ReaderSource]) -> Built:
        """A copy for `sources`, in the same order, whose readers now have the topics that were assigned."""
        return (
            replace(self, parts=replace(self.parts, sources=PersistentList(sources))) if self.parts else self
        )

    def topic_choices(self, reader: str) -> Mapping[str, Choice]:
        """The topic of each source of a reader with the reason, by alias; empty for an unknown reader."""
        parts = self.parts
        if reader in self.choices or parts is None or parts.assignment is None or reader not in parts.readers:
            return self.choices.get(reader, {})
        known, assignment = parts.readers[reader], parts.assignment
        return {one.alias: assignment.kept(one, known.numbers[one.alias]) for one in known.requests}


@dataclass(frozen=True)
class PerSource(Generic[T]):
    """The objects of one kind that sources have, or None, in the order of the sources; `present` leaves out
    None.
    """

    of_sources: PersistentList[T | None] = field(default_factory=PersistentList)
    present: PersistentList[T] = field(default_factory=PersistentList)

    def changed(self, change: Splice, added: Sequence[T | None]) -> PerSource[T]:
        """The column after a change of the sources, which has `added` for the new ones."""
        items = self.of_sources.spliced(change.start, change.old_stop, added)
        return PerSource(items, not_none(items, self.of_sources, self.present))


@dataclass(frozen=True)
class Parts:
    """The parts of a plan, from which the next plan is built.

    `backfills`, `definitions`, `standing` and `former` are parallel to `sources`, with None for a source
    that has nothing of the kind: an alert WITH (from = …) with the plan version that made it, a definition, a
    standing query, former definitions of streams. A change then looks at no other source.
    """

    streams: Mapping[str, StreamDef] = field(default_factory=dict)
    derived: Mapping[str, DerivedTopic] = field(default_factory=dict)
    estimators: Mapping[str, SelectivityEstimator] = field(default_factory=dict)
    sources: PersistentList[ReaderSource] = field(default_factory=PersistentList)
    backfills: PerSource[tuple[AlertDef, int]] = field(default_factory=PerSource)
    definitions: PerSource[Definition] = field(default_factory=PerSource)
    standing: PerSource[StandingQuery] = field(default_factory=PerSource)
    former: PerSource[Sequence[Former]] = field(default_factory=PerSource)
    readers: PersistentDict[str, AssignedReader] = field(default_factory=PersistentDict)
    assignment: TopicAssignment | None = None
    topics: Mapping[Topic, SharedTopic] = field(default_factory=dict)
    planned: Mapping[str, PlannedStream] = field(default_factory=dict)


def plan_for(
    version: int,
    catalog: Catalog,
    sources: Sequence[ReaderSource],
    *,
    partitions: int,
    topic_numbers: Mapping[TopicKey, tuple[int, ...]],
    outside: Mapping[str, frozenset[int]],
    retiring: Mapping[str, int],
    since: Mapping[str, int],
    shard_streams: Mapping[str, str],
    statistics: Mapping[str, StreamStatistics] | None = None,
    derived_numbers: Mapping[str, DerivedNumber] | None = None,
    partials: Collection[str] | None = (),
    aggregated: Collection[str] = (),
    before: Built | None = None,
) -> Built:
    """The plan `version` for the readers of `sources`.

    `derived_numbers`: for each derived stream whose topic the joiner reads, the number of its topic.
    `statistics`: observed readings by stream, used to choose topics for new readers. `partials`: the
    topics that had partial aggregates in the plan before, which keep them; None if edges and joiner can't
    exchange any. `aggregated`: the topics that had some in any plan before. `before`: any earlier plan with
    its parts.

    Raises NotAcceptedError if an alert or a derived stream of the catalogue is not accepted.
    """
    parts = before.parts if before and before.parts else Parts()
    sources = PersistentList(sources)
    changes = identity_diff(parts.sources, sources)
    backfills = parts.backfills.changed(changes, [_with_history(one) for one in changes.added(sources)])
    catalog = with_backfills(catalog, backfills.present, parts.streams)
    estimators = _estimators(catalog, statistics or {}, parts)
    derived = derived_topics(catalog, derived_numbers or {}, parts.derived)
    assignment = TopicAssignment(
        version,
        estimators,
        topic_numbers,
        outside,
        parts.assignment,
        derived=derived_sources(derived),
        aggregated={*(partials or ()), *aggregated},
        running=partials or (),
    )
    changed, same_streams = _readers_of_changed_streams(parts, catalog)
    all_of_them = Splice(0, len(parts.sources), len(sources))
    diff = changes if same_streams else all_of_them
    current = [_reader(one, catalog) for one in diff.added(sources)]
    removed = [one.id for source in diff.removed(parts.sources) if (one := source.as_reader) is not None]
    readers = _assign(current, removed, parts, assignment, catalog=catalog, changed=changed)
    made = [None if one is None else readers[one.id].definition for one in current]
    definitions = parts.definitions.changed(
        diff, [one if isinstance(one, Definition) else None for one in made]
    )
    standing = parts.standing.changed(diff, [one if isinstance(one, StandingQuery) else None for one in made])
    former = parts.former.changed(diff, [(one and one.former) or None for one in current])
    topics = _topics(catalog, readers, assignment, parts.topics)
    with_partials = _aggregated(topics, partials)
    planned = stream_plans(
        catalog,
        {topic: _with_partials(shared.plan, retiring, with_partials) for topic, shared in topics.items()},
        derived,
        former_columns(catalog, former.present),
        parts.planned,
    )
    plan = Plan(
        version=version,
        partitions=partitions,
        streams=tuple(one.plan for one in planned.values()),
        definitions=definitions.present,
        since=dict(since),
        shard_streams=dict(shard_streams),
        retiring=dict(retiring),
        standing=standing.present,
    )
    parts = Parts(
        streams=dict(catalog.streams),
        derived=derived,
        estimators=estimators,
        sources=sources,
        backfills=backfills,
        definitions=definitions,
        standing=standing,
        former=former,
        readers=readers,
        assignment=assignment,
        topics=topics,
        planned=planned,
    )
    return Built(
        plan,
        assignment.numbers,
        assignment.assigned,
        assignment.choices,
        assignment.outside,
        partials is not None,
        parts,
    )


def _assign(
    current: Sequence[Reader | None],
    removed: Sequence[str],
    parts: Parts,
    assignment: TopicAssignment,
    *,
    catalog: Catalog,
    changed: set[str],
) -> PersistentDict[str, AssignedReader]:
    """Assign topics to new and changed readers, and free the topics of removed ones; returns all readers."""
    readers = parts.readers.copy()
    wanted = {one.id: one for one in current if one is not None}
    fresh = [
        one
        for one in wanted.values()
        if one.id not in readers or one.id in changed or not readers[one.id].is_for(one)
    ]
    for reader in {*(one.id for one in fresh), *(one for one in removed if one not in wanted)}:
        if (old := readers.pop(reader, None)) is not None:
            assignment.remove(old.requests, old.numbers)
    requests: dict[str, tuple[ReadRequest, ...]] = {one.id: read_requests(one, catalog) for one in fresh}
    known = {one.id: one.numbers for one in fresh}
    assignment.assign((request for some in requests.values() for request in some), known)
    for one in fresh:
        served = tuple(map(assignment.assigned_request, requests[one.id]))
        readers[one.id] = assigned_reader(one, served, assignment, catalog)
    return readers


def _estimators(
    catalog: Catalog, statistics: Mapping[str, StreamStatistics], before: Parts
) -> dict[str, SelectivityEstimator]:
    """The estimator of each stream; the same object as before where stream and statistics are the same."""
    found = {}
    for name, stream in catalog.streams.items():
        known, observed = before.estimators.get(name), statistics.get(stream.shown_name)
        same = known is not None and known.stream is stream and known.statistics is observed
        found[name] = known if known is not None and same else SelectivityEstimator(stream, observed)
    return found


def _readers_of_changed_streams(before: Parts, catalog: Catalog) -> tuple[set[str], bool]:
    """The readers of streams that have changed or gone, and whether all streams are the same as before."""
    known, streams = before.streams, catalog.streams
    if list(known) == list(streams) and all(map(operator.is_, known.values(), streams.values())):
        return set(), True
    changed = {name for name, stream in known.items() if streams.get(name) is not stream}
    found = {
        reader
        for reader, one in before.readers.items()
        if any(request.key[0] in changed for request in one.requests)
    }
    return found, False


def _with_history(source: ReaderSource) -> tuple[AlertDef, int] | None:
    """The alert WITH (from = …) of a source, with the plan version that made it; None for other sources."""
    reader = source.as_reader
    if reader is None or not isinstance(reader.origin, AlertDef) or reader.origin.options.from_ is None:
        return None
    return reader.origin, reader.version


def _reader(source: ReaderSource, catalog: Catalog) -> Reader | None:
    """The reader of a source, unless it subscribes to an unknown stream."""
    reader = source.as_reader
    if reader is not None and isinstance(reader.origin, Subscription):
        return reader if reader.origin.stream in catalog.streams else None
    return reader


def _aggregated(topics: Mapping[Topic, SharedTopic], before: Collection[str] | None) -> set[str]:
    """The names of the topics that have partial aggregates: those that had them `before`, and of each stream
    others up to the limit. Edges can't go back to tuples, because they need the form of what they have open.
    """
    names: dict[str, list[tuple[bool, int, str]]] = {}
    for (key, number), shared in topics.items():
        if before is not None and shared.plan.partials is not None and isinstance(number, int):
            name = shared.plan.name
            names.setdefault(key[0], []).append((name not in before, number, name))
    return {name for ranked in names.values() for _, _, name in sorted(ranked)[:MOST_PARTIAL]}


def _with_partials(topic: TopicPlan, retiring: Mapping[str, int], aggregated: Collection[str]) -> TopicPlan:
    """The topic with partial aggregates if it has any: its queries count until they are replaced."""
    if topic.partials is None or topic.name not in aggregated:
        return topic if topic.partials is None else replace(topic, partials=None)
    grids = topic.partials.grids
    if not any(grid.query in retiring for grid in grids):
        return topic
    until = tuple(replace(grid, until=retiring.get(grid.query)) for grid in grids)
    return replace(topic, partials=replace(topic.partials, grids=until))


def _topics(
    catalog: Catalog,
    readers: Mapping[str, AssignedReader],
    assignment: TopicAssignment,
    before: Mapping[Topic, SharedTopic],
) -> dict[Topic, SharedTopic]:
    """The shared topics with the entries that their readers need."""
    topics = {topic: known for topic, known in before.items() if topic not in assignment.touched}
    for key, number in assignment.touched:
        requests = assignment.requests_of(key, number)
        if requests:
            known = before.get((key, number)) or SharedTopic.empty(key)
            topics[key, number] = known.updated(
                assignment.name(key, number),
                requests,
                lambda request: readers[request.reader].inputs[request.alias],
                catalog.streams[key[0]],
            )
    return topics
