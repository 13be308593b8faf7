"""Assignment of read requests to topics: assigned requests keep their topic, new requests choose in turn.

Derived streams are sources of other queries. A derived stream filters one stream, and its topic has every
tuple that passes. An alert over the same stream may read this topic if its filter implies the derived
stream's filter, and if the topic has all columns that the alert reads. The edges then publish these tuples
once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.expressions.nodes import Expr, conjunction, conjuncts
from tamis.messaging.topics import outside_topic, stream_topic
from tamis.persistent.dicts import PersistentDict
from tamis.persistent.lists import PersistentList
from tamis.predicates.matching import surely_implies
from tamis.sharing.bounding_boxes import BoxFilter, box_filter
from tamis.sharing.selectivity import BoxUnion, SelectivityEstimator
from tamis.sharing.topic_choice import CandidateTopics, Choice, How, ReadRequest, TopicId, TopicKey, TopicLoad

Source = tuple[str, str]  # (reader, alias)
Topic = tuple[TopicKey, TopicId]
Requests = PersistentDict[Source, ReadRequest]

# The topics of a stream with partial aggregates: each takes about 130 bytes of what a broker keeps with an
# offset, 4,096 bytes by default.
MOST_PARTIAL = 16

# Costs that differ by less are equal: shares are sums of rounded numbers.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class DerivedSource:
    """A derived stream whose topic the joiner reads.

    `filter`: over bare columns of the base stream; `columns`: the columns of the base stream that its
    messages have unchanged.
    """

    name: str
    topic: str
    filter: Expr | None
    columns: frozenset[str]


def implies_filter(narrow: Expr | None, wide: Expr | None) -> bool:
    """True if every tuple that passes `narrow` certainly passes `wide`; None lets every tuple pass.

    Each conjunct of `wide` must be a conjunct of `narrow`, or follow from those conjuncts of `narrow` that
    are predicates (`tamis.predicates`): comparisons of columns and linear forms. A tuple passes a filter that
    is true, and not one that is NULL.
    """
    known = dict.fromkeys(conjuncts(narrow))
    boxes: BoxFilter | None = None
    for part in conjuncts(wide):
        if part in known:
            continue
        boxes = boxes or _boxes(list(known))
        target = box_filter(part)
        if boxes is None or target is None or not surely_implies(boxes.predicate, target.predicate):
            return False
    return True


def _boxes(parts: list[Expr]) -> BoxFilter | None:
    """The conjuncts that are unions of boxes, together as boxes; None if there are none, or too many."""
    found = conjunction(tuple(part for part in parts if box_filter(part)))
    return None if found is None else box_filter(found)


PartialForm = tuple[Expr | None, tuple[Expr, ...]]
"""The filter and the columns of groups of partial aggregates."""


def partial_form(requests: Sequence[ReadRequest]) -> PartialForm | None:
    """The form of the partial aggregates that serve all of these requests; None if some of them needs tuples,
    or if they differ.
    """
    form: PartialForm | None = None
    for request in requests:
        if request.groups is None or (form is not None and form != (request.filter, request.groups)):
            return None
        form = request.filter, request.groups
    return form


class TopicAssignment:
    """The topic of each read request in one plan version.

    The loads of topics whose readers have not changed are taken from the assignment before, so the cost of
    a change does not depend on the number of readers.

    `requests`: the requests of each topic; `numbers`: all topic numbers that a stream and key ever had;
    `outside`: by stream, the numbers of topics that the joiner doesn't read; `assigned`: the topics
    of requests assigned in this version, by reader and alias; `choices`: the reasons for new ones;
    `touched`: topics with other readers than before. `derived`: the derived streams that may serve requests
    of a stream and key. `aggregated`: the names of topics that have or had partial aggregates;
    `running`: of those that have them in the plan before.
    """

    def __init__(
        self,
        version: int,
        estimators: Mapping[str, SelectivityEstimator],
        numbers: Mapping[TopicKey, tuple[int, ...]],
        outside: Mapping[str, frozenset[int]],
        before: TopicAssignment | None = None,
        *,
        derived: Mapping[TopicKey, Sequence[DerivedSource]] | None = None,
        aggregated: Collection[str] = (),
        running: Collection[str] = (),
    ) -> None:
        """The assignment of plan `version`, so far the same as `before`.

        The loads of streams that have another estimator than `before` are estimated again.
        """
        self._version = version
        self._estimators = estimators
        self.numbers = dict(numbers)
        self.outside = dict(outside)
        self.derived = {(key, one.name): one for key, some in (derived or {}).items() for one in some}
        self._derived_of = derived or {}
        self._aggregated, self._running = aggregated, running
        self.assigned: dict[str, dict[str, TopicId]] = {}
        self.choices: dict[str, dict[str, Choice]] = {}
        self.touched: set[Topic] = set()
        known = before.requests if before else {}
        self.requests: dict[TopicKey, dict[TopicId, Requests]] = {
            key: dict(numbered) for key, numbered in known.items()
        }
        self._loads: dict[tuple[TopicKey, int], TopicLoad] = {}
        self._outdated: set[Topic] = set()  # topics whose known load lacks changes of requests
        self._unsorted: set[Topic] = set()
        if before is not None:
            old = before._estimators
            same = {name for name, estimator in estimators.items() if old.get(name) is estimator}
            self._loads = {topic: load for topic, load in before._loads.items() if topic[0][0] in same}
            self._outdated = {topic for topic in before._outdated if topic in self._loads}

    def requests_of(self, key: TopicKey, number: TopicId) -> PersistentList[ReadRequest]:
        """The requests of a topic, in order."""
        found = self.requests[key].get(number)
        return PersistentList() if found is None else found.value_list

    def name(self, key: TopicKey, number: TopicId) -> str:
        """The name of a topic."""
        if isinstance(number, str):
            return self.derived[key, number].topic
        named = outside_topic if number in self.outside.get(key[0], ()) else stream_topic
        return named(key[0], number)

    def remove(self, requests: Iterable[ReadRequest], numbers: Mapping[str, TopicId]) -> None:
        """Remove the requests of a reader from their topics; `numbers`: their topics by alias."""
        for request in requests:
            del self._writable((request.key, numbers[request.alias]))[request.reader, request.alias]

    def assign(self, requests: Iterable[ReadRequest], known: Mapping[str, Mapping[str, TopicId]]) -> None:
        """Assign each request to a topic; `known`: the topics of earlier plans, by reader and alias.

        Requests with a known topic are assigned first, so that the other requests see the load of all of
        them.
        """
        waiting = []
        for request in requests:
            number = known[request.reader].get(request.alias)
            if isinstance(number, str):
                if not self._still_serves(number, request):
                    waiting.append(request)
                    continue
            elif number is None and request.version != self._version:
                # Records of earlier releases have no topic numbers: each stream and key had one topic.
                number = min(set(self.numbers.get(request.key, ())) - self._hidden(request), default=None)
            if number is None or not self._fits(request, number):
                waiting.append(request)
            else:
                self._add(request, number)
        self._sort()
        for request in waiting:
            choice = self._choose(request)
            self._add(request, choice.topic)
            self.choices.setdefault(request.reader, {})[request.alias] = choice
        self._sort()
        # So that the first source of the next reader needs no new load.
        for key, number in self._loads.keys() & self._outdated:
            self._load(key, number)

    def _sort(self) -> None:
        """Order the requests of each topic: a restart adds them in another order, with the same result."""
        for key, number in self.touched:
            if not self.requests[key].get(number):
                self.requests[key].pop(number, None)
                if isinstance(number, int):
                    self._loads.pop((key, number), None)
        for key, number in self._unsorted:
            ordered = sorted(self.requests[key][number].items(), key=lambda pair: pair[1].sort_key)
            self.requests[key][number] = PersistentDict(ordered)
        self._unsorted = set()

    def _add(self, request: ReadRequest, number: TopicId) -> None:
        if request.tuples_are_cheaper and not self._has_partials(request.key, number):
            request = replace(request, groups=None)
        self.assigned.setdefault(request.reader, {})[request.alias] = number
        requests = self._writable((request.key, number))
        if requests and request.sort_key < requests.value_list[-1].sort_key:
            self._unsorted.add((request.key, number))
        requests[request.reader, request.alias] = request

    def _has_partials(self, key: TopicKey, number: TopicId) -> bool:
        """True if a topic has had partial aggregates in a plan before: there is no way back to tuples."""
        return isinstance(number, int) and self.name(key, number) in self._aggregated

    def _fits(self, request: ReadRequest, number: TopicId) -> bool:
        """False if a topic is not to be used again, or has partial aggregates, and this request needs others,
        or tuples: it went to other readers while this one was paused.
        """
        if isinstance(number, int) and number not in self.numbers.get(request.key, ()):
            return False
        if not self._has_partials(request.key, number):
            return True
        if self.name(request.key, number) not in self._running and self._full(request.key[0]):
            return False
        present = self.requests.get(request.key, {}).get(number)
        others = [] if present is None else present.value_list
        return request.groups is not None and partial_form((*others, request)) is not None

    def _full(self, stream: str) -> bool:
        """True if as many topics of a stream have partial aggregates as may have them."""
        keys = [key for key in self.numbers if key[0] == stream]
        names = {self.name(key, number) for key in keys for number in self.numbers[key]}
        return len(names & set(self._running)) >= MOST_PARTIAL

    def assigned_request(self, request: ReadRequest) -> ReadRequest:
        """A request of this version as its topic serves it."""
        topic = request.key, self.assigned[request.reader][request.alias]
        return self.requests[topic[0]][topic[1]][request.reader, request.alias]

    def _writable(self, topic: Topic) -> Requests:
        """The requests of a topic, to be changed; the assignment before has its own copy."""
        key, number = topic
        numbered = self.requests.setdefault(key, {})
        if topic not in self.touched:
            self.touched.add(topic)
            numbered[number] = numbered[number].copy() if number in numbered else PersistentDict()
        self._outdated.add(topic)
        return numbered.setdefault(number, PersistentDict())

    def _choose(self, request: ReadRequest) -> Choice:
        need, basis = self._need(request), self._estimators[request.key[0]].basis(request.filter)
        used = self.requests.get(request.key, {}).keys() - self._hidden(request)
        numbers = sorted(number for number in used if isinstance(number, int))
        partial = {number: form for number in numbers if (form := self._partial_form(request.key, number))}
        if request.groups is not None:
            same = [number for number, form in partial.items() if form == (request.filter, request.groups)]
            if request.tuples_are_cheaper:
                same = [number for number in same if self._has_partials(request.key, number)]
            if same:
                share = need.share
                return Choice(same[0], "as it is", share, share, basis, partial=True)
        numbers = [number for number in numbers if number not in partial]
        loads = {number: self._load(request.key, number, request.reader) for number in numbers}
        candidates = [load.candidate for load in loads.values()]
        topic, share, cost = CandidateTopics(candidates, need.lower.shape[1]).choose(need, request.subscriber)
        covered = topic is not None and loads[topic.number].covers(request)
        aggregated = request.groups is not None and not request.tuples_are_cheaper
        if aggregated and not covered and self._partial_topics(request) < MOST_PARTIAL:
            number = self._free_number(request, partials=True)
            return Choice(number, "own", 0.0, need.share, basis, partial=True)
        if not covered and cost < _TIE:
            # Conditions of which nothing is known are taken to let every tuple pass. A topic with all tuples
            # by that estimate may still lack those of the request.
            cost = 2 * need.share
        derived = self._cheapest_derived(request, cost)
        if derived is not None:
            part = self._share(derived, request.key[0])
            return Choice(derived.name, "derived", part, part, basis)
        if topic is None:
            return Choice(self._free_number(request), "own", 0.0, need.share, basis)
        how: How = "as it is" if covered else "widened"
        return Choice(topic.number, how, topic.passed.share, share, basis)

    def _partial_form(self, key: TopicKey, number: TopicId) -> PartialForm | None:
        """Filter and groups of a topic with partial aggregates; None for one with tuples."""
        return partial_form(self.requests_of(key, number))

    def _partial_topics(self, request: ReadRequest) -> int:
        """The number of topics of the request's stream whose readers agree in partial aggregates."""
        stream = request.key[0]
        return sum(
            self._partial_form(key, number) is not None
            for key, numbered in self.requests.items()
            if key[0] == stream
            for number in numbered
        )

    def _cheapest_derived(self, request: ReadRequest, cost: float) -> DerivedSource | None:
        """The derived stream that serves a request at the least cost, if it costs less than `cost`.

        Its topic is written in any case. The cost of the first alert that reads it is the share of the
        stream that the joiner then reads, and that of further alerts is 0.
        """
        if request.columns is None:
            return None
        readers = self.requests.get(request.key, {})
        found = sorted(
            (0.0 if readers.get(one.name) else share, share, at, one)
            for at, one in enumerate(self._derived_of.get(request.key, ()))
            if request.columns <= one.columns
            for share in (self._share(one, request.key[0]),)
        )
        return next(
            (
                one
                for its_cost, _, _, one in found
                if its_cost < cost - _TIE and implies_filter(request.filter, one.filter)
            ),
            None,
        )

    def _still_serves(self, name: str, request: ReadRequest) -> bool:
        """True if the derived stream that served a request in earlier plans still can."""
        one = self.derived.get((request.key, name))
        return one is not None and request.columns is not None and request.columns <= one.columns

    def _share(self, one: DerivedSource, stream: str) -> float:
        return self._estimators[stream].passed(one.filter).share

    def kept(self, request: ReadRequest, number: TopicId) -> Choice:
        """The choice of a request that keeps its topic."""
        if isinstance(number, str):
            share = self._share(self.derived[request.key, number], request.key[0])
        else:
            share = self._load(request.key, number).candidate.passed.share
        basis = self._estimators[request.key[0]].basis(request.filter)
        partial = self._partial_form(request.key, number) is not None
        return Choice(number, "kept", share, share, basis, partial)

    def _hidden(self, request: ReadRequest) -> frozenset[int]:
        """The topics that can't serve a request: alerts need a topic that the joiner reads."""
        return frozenset() if request.subscriber else self.outside.get(request.key[0], frozenset())

    def _load(self, key: TopicKey, number: int, chooser: str | None = None) -> TopicLoad:
        """The load of a topic, for the choice of a reader.

        A load with only some sources of that reader is not kept: it would be in memory beside the next one,
        which has all sources and can follow from the load before.
        """
        topic = key, number
        known = self._loads.get(topic)
        if known is not None and topic not in self._outdated:
            return known
        estimator = self._estimators[key[0]]
        before = known or TopicLoad.empty(number, estimator.dimensions)
        requests = self.requests_of(key, number)
        load = before.updated(requests, estimator.passed)
        if not requests or requests[-1].reader != chooser:
            self._loads[topic] = load
            self._outdated.discard(topic)
        return load

    def _need(self, request: ReadRequest) -> BoxUnion:
        return self._estimators[request.key[0]].passed(request.filter)

    def _free_number(self, request: ReadRequest, *, partials: bool = False) -> int:
        """The number of a topic without readers, or else a number that the stream never had. A topic that had
        partial aggregates is for `partials` only.
        """
        (stream, _), known = request.key, self.numbers.get(request.key, ())
        outside = self.outside.get(stream, frozenset())
        free = [
            number
            for number in known
            if number not in self.requests.get(request.key, {})
            and (number in outside) is request.subscriber
            and (partials or not self._has_partials(request.key, number))
        ]
        if free:
            return min(free)
        used = [n for (name, _), numbers in self.numbers.items() for n in numbers if name == stream]
        number = max(used, default=0) + 1
        self.numbers[request.key] = (*known, number)
        if request.subscriber:
            self.outside[stream] = outside | {number}
        return number
