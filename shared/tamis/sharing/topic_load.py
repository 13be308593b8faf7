"""Load of a topic: its read requests, and the tuples that pass their filters together.

The load is updated when requests come and go. The cost of an update depends on the number of changed
requests, not on the number of all requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr
from tamis.identity_diff import identity_diff
from tamis.persistent.dicts import PersistentDict
from tamis.persistent.lists import PersistentList
from tamis.predicates import Predicate
from tamis.predicates.boxes import EVERYTHING
from tamis.predicates.matching import implies
from tamis.sharing.bounding_boxes import box_filter
from tamis.sharing.entries import SortKey
from tamis.sharing.selectivity import BoxUnion
from tamis.sharing.topic_choice import Candidate

TopicKey = tuple[str, tuple[str, ...]]  # (stream, partition key)
# A topic of a stream and key: its number, or the name of the derived stream whose topic it is.
TopicId = int | str

# With more clauses, the check whether a topic covers a filter takes more than milliseconds, and is left out.
MOST_CLAUSES = 1_000


@dataclass(frozen=True)
class ReadRequest:
    """One input of a reader: the tuples of a stream that pass `filter` (over bare column names), by key.

    `complete`: the reader needs every tuple, without omission. `version`: the plan version that made the
    reader. `columns`: the columns that it reads, for a reader that may read the topic of a derived stream.
    """

    reader: str
    alias: str
    key: TopicKey
    filter: Expr | None
    subscriber: bool
    complete: bool
    version: int
    columns: frozenset[str] | None = None

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
        try:
            return implies(needed, Predicate(tuple(union), types))
        except RefusedError:
            return False


def _clauses(request: ReadRequest) -> int:
    return 0 if request.predicate is None else len(request.predicate.boxes)
