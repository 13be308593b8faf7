"""Choice of the topic that serves a new reader at the least cost (kuntschke-2006, section 1; decision 18).

The cost of a topic is the share of the stream that is written to it, the same share once for each of its
consumers, and a constant for having the topic. Consumers are the joiner, which reads a topic once for all
of its alerts, and each subscriber outside the fleet. A new reader goes where the total cost grows least: to
a topic that already has its tuples, to a topic that is widened, to a topic of its own, or to the topic of
a derived stream that has its tuples.

A reader keeps the topic that it was given as long as it is served.

The load of the topics is updated when requests come and go. The cost of an update depends on the number of
changed requests, not on the number of all requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Expr
from tamis.identity_diff import identity_diff
from tamis.persistent.dicts import PersistentDict
from tamis.persistent.lists import PersistentList
from tamis.predicates.boxes import EVERYTHING
from tamis.predicates.matching import surely_implies
from tamis.predicates.predicate import Predicate
from tamis.sharing.bounding_boxes import Bools, box_filter, overlap_volumes
from tamis.sharing.entries import SortKey
from tamis.sharing.selectivity import BoxUnion, Floats, volume

TopicKey = tuple[str, tuple[str, ...]]  # (stream, partition key)
# A topic of a stream and key: its number, or the name of the derived stream whose topic it is.
TopicId = int | str

# With more clauses, the check whether a topic covers a filter takes more than milliseconds, and is left out.
MOST_CLAUSES = 1_000

# The constant cost of a topic, as a share of its stream: the brokers keep its partitions, and each shard
# writes its progress to each of them. With 8 partitions and a commit a second, that is 5 % of a shard of
# 160 tuples/s.
TOPIC = 0.05

_NEEDS_ALL = (
    "; edges then publish to it every reading that passes its filter, though other readers may need fewer"
)

How = Literal["as it is", "widened", "own", "kept", "derived"]


@dataclass(frozen=True)
class ReadRequest:
    """One input of a reader: the tuples of a stream that pass `filter` (over bare column names), by key.

    `complete`: the reader needs every tuple, without omission. `version`: the plan version that made the
    reader. `columns`: the columns that it reads, for a reader that may read the topic of a derived stream.
    `groups`: the columns of groups of a reader for which edges can publish partial aggregates.
    `tuples_are_cheaper`: a topic of its own with tuples takes fewer bytes; once it is assigned to one, it has
    no `groups`.
    """

    reader: str
    alias: str
    key: TopicKey
    filter: Expr | None
    subscriber: bool
    complete: bool
    version: int
    columns: frozenset[str] | None = None
    groups: tuple[Expr, ...] | None = None
    tuples_are_cheaper: bool = False

    @property
    def sort_key(self) -> SortKey:
        """The order of the requests of a topic: a request of a new plan comes after all others."""
        return self.version, self.reader, self.alias

    @cached_property
    def predicate(self) -> Predicate | None:
        """The filter as boxes; None without a filter, or where it has no such form."""
        found = None if self.filter is None else box_filter(self.filter)
        return None if found is None else found.predicate


@dataclass(frozen=True, eq=False)
class TopicLoad:
    """The read requests of a topic in order, and what they need together.

    `box_counts`: the number of boxes of each request; `candidate`: the topic as `CandidateTopics` compares
    it; `complete`: for each filter of complete requests, the number of requests; `clauses`: the number of
    all their boxes.
    """

    requests: Sequence[ReadRequest]
    box_counts: npt.NDArray[np.int64]
    candidate: Candidate
    complete: PersistentDict[Expr | None, int]
    clauses: int

    @staticmethod
    def empty(number: int, dimensions: int) -> TopicLoad:
        """The load of a topic without requests."""
        none = np.empty((0, dimensions))
        candidate = Candidate(number, BoxUnion(none, none, 0.0), joiner=False, subscribers=0)
        return TopicLoad(PersistentList(), np.empty(0, np.int64), candidate, PersistentDict(), 0)

    def updated(
        self, requests: Sequence[ReadRequest], passed: Callable[[Expr | None], BoxUnion]
    ) -> TopicLoad:
        """The load of these requests; `passed` estimates the tuples that pass a filter."""
        diff = identity_diff(self.requests, requests)
        if not diff:
            return self
        removed, added = diff.removed(self.requests), diff.added(requests)
        parts = [passed(request.filter) for request in added]
        counts = np.array([len(part.lower) for part in parts], np.int64)
        complete, clauses = self.complete.copy(), self.clauses
        for change, some in ((-1, removed), (1, added)):
            for request in some:
                if request.complete:
                    complete[request.filter] = complete.get(request.filter, 0) + change
                    if not complete[request.filter]:
                        del complete[request.filter]
                    clauses += change * _clauses(request)
        subscribers = self.candidate.subscribers
        subscribers += sum(one.subscriber for one in added) - sum(one.subscriber for one in removed)
        first = int(self.box_counts[: diff.start].sum())
        behind = first + int(self.box_counts[diff.start : diff.old_stop].sum())
        union = self.candidate.passed.replaced(first, behind, parts)
        candidate = Candidate(self.candidate.number, union, subscribers < len(requests), subscribers)
        box_counts = np.concatenate([self.box_counts[: diff.start], counts, self.box_counts[diff.old_stop :]])
        return TopicLoad(requests, box_counts, candidate, complete, clauses)

    def covers(self, request: ReadRequest) -> bool:
        """True if its filter certainly implies the union of the filters of complete requests."""
        if None in self.complete or request.filter in self.complete:
            return True
        needed = Predicate((EVERYTHING,), {}) if request.filter is None else request.predicate
        if needed is None or self.clauses > MOST_CLAUSES:
            return False
        # A topic can have thousands of requests, and often none of them is complete.
        complete = [one for one in self.requests if one.complete] if self.complete else []
        known = [one.predicate for one in complete if one.predicate is not None]
        union = [box for found in known for box in found.boxes]
        types = {name: kind for found in known for name, kind in found.types.items()}
        return surely_implies(needed, Predicate(tuple(union), types))


def _clauses(request: ReadRequest) -> int:
    return 0 if request.predicate is None else len(request.predicate.boxes)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A topic in service that a new reader could be given.

    `passed`: the tuples that pass its readers' filters; `joiner`: whether alerts read it; `subscribers`:
    the number of readers outside the fleet.
    """

    number: int
    passed: BoxUnion
    joiner: bool
    subscribers: int

    @property
    def consumers(self) -> int:
        """The number of consumers that read the whole topic."""
        return self.subscribers + self.joiner


@dataclass(frozen=True)
class Choice:
    """The topic of one read request, and the reason.

    `topic`: the number of a shared topic, or the name of the derived stream whose topic it is. `before` and
    `after`: the topic's estimated share of the stream without and with the reader; `basis`: the source of
    these estimates. `partial`: the topic has partial aggregates of that share, in place of tuples.
    """

    topic: int | str
    how: How
    before: float
    after: float
    basis: str
    partial: bool = False

    def reason(self, *, needs_all: bool) -> str:
        """The reason, for people. `needs_all`: nothing is omitted for the reader."""
        if self.partial:
            return self._of_partials()
        match self.how:
            case "derived":
                return f"reads from {self._derived()}"
            case "kept" if isinstance(self.topic, str):
                return f"continues to read from {self._derived()}"
            case "as it is":
                return f"served as it is by a topic with an estimated {_percent(self.after)} of the stream"
            case "widened":
                before, after = _percent(self.before), _percent(self.after)
                # Shares are of what passes filters, before omission.
                what = (
                    f"shares a topic whose readers' filters pass an estimated {after} of the stream already"
                    if before == after
                    else f"widens a topic from an estimated {before} to {after} of the stream, which costs "
                    "less than a topic of its own"
                )
                return what + (_NEEDS_ALL if needs_all else "")
            case "own":
                return f"a topic of its own with an estimated {_percent(self.after)} of the stream"
            case "kept":
                return f"keeps its place on a topic with an estimated {_percent(self.after)} of the stream"

    def _of_partials(self) -> str:
        sent = (
            "edges send partial aggregates of the readings that the query needs, an estimated"
            f" {_percent(self.after)} of the stream's"
        )
        match self.how:
            case "as it is":
                return f"shares the topic of alerts with the same filter and groups; {sent}"
            case "own":
                return f"a topic of its own; {sent}"
            case _:
                return f"keeps its topic; {sent}"

    def _derived(self) -> str:
        return (
            f"stream {self.topic}, which has all readings that it needs (an estimated"
            f" {_percent(self.after)} of the stream)"
        )


class CandidateTopics:
    """The topics of one stream and partition key, in columns: thousands are compared at once."""

    def __init__(self, candidates: Sequence[Candidate], dimensions: int) -> None:
        self.candidates = candidates
        if len(candidates) == 1:
            # Not copied: the one topic of a stream has the boxes of all queries.
            self._lower, self._upper = candidates[0].passed.lower, candidates[0].passed.upper
        else:
            none = np.empty((0, dimensions))
            self._lower = np.concatenate([none, *(one.passed.lower for one in candidates)])
            self._upper = np.concatenate([none, *(one.passed.upper for one in candidates)])
        counts = [len(one.passed.lower) for one in candidates]
        self._begins = np.cumsum([0, *counts], dtype=np.int64)
        self._share = np.array([one.passed.share for one in candidates], np.float64)
        self._joiner = np.array([one.joiner for one in candidates], np.bool_)
        self._subscribers = np.array([one.subscribers for one in candidates], np.float64)

    def choose(self, need: BoxUnion, subscriber: bool) -> tuple[Candidate | None, float, float]:
        """The cheapest topic for a reader (None: its own), the share of that topic with the reader, and the
        growth of the total cost.

        Of several topics with the same cost, the first one is taken.
        """
        before = self._subscribers + self._joiner
        after = self._subscribers + (1 if subscriber else 0) + (self._joiner | (not subscriber))
        best, cheapest, share = None, 2 * need.share + TOPIC, need.share
        # An upper bound of the overlap gives a lower bound of the cost. The exact overlap takes long, so it
        # is computed only for topics whose lower bound is not above the least cost found so far.
        overlap, exact = self._overlap(need)
        added = np.maximum(need.share - overlap, 0.0)
        bounds = (self._share + added) * (1 + after) - self._share * (1 + before)
        for at in np.argsort(bounds, kind="stable").tolist():
            if bounds[at] > cheapest:
                break
            union = self._share[at] + (added[at] if exact[at] else self._added(need, at))
            cost = union * (1 + after[at]) - self._share[at] * (1 + before[at])
            if cost < cheapest or (cost == cheapest and (best is None or at < best)):
                best, cheapest, share = at, cost, union
        return (None if best is None else self.candidates[best]), float(share), float(cheapest)

    def _overlap(self, need: BoxUnion) -> tuple[Floats, Bools]:
        """For each topic an upper bound of its overlap with the need, and whether the bound is exact."""
        count = len(self.candidates)
        total, exact = np.zeros(count), np.ones(count, np.bool_)
        for lower, upper in zip(need.lower, need.upper, strict=True):
            volumes, known = np.empty(count), np.empty(count, np.bool_)
            box = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
            overlap_volumes(self._lower, self._upper, self._begins, *box, volumes, known)
            total += volumes
            exact &= known
        # The boxes of a need may overlap each other.
        return total, exact if len(need.lower) == 1 else np.zeros_like(exact)

    def _added(self, need: BoxUnion, at: int) -> float:
        """The share of the need that is not yet in a topic."""
        passed = self.candidates[at].passed
        if passed.hits is not None:
            return passed.growth(need)
        first, behind = self._begins[at], self._begins[at + 1]
        topic_lower, topic_upper = self._lower[first:behind], self._upper[first:behind]
        lower = [np.maximum(topic_lower, box) for box in need.lower]
        upper = [np.minimum(topic_upper, box) for box in need.upper]
        if not lower:
            return 0.0
        return max(need.share - volume(np.concatenate(lower), np.concatenate(upper)), 0.0)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
