"""Who is on a topic, and what their filters let pass together: of thousands a change costs what it
touches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr
from tamis.planning.entries import boxes
from tamis.planning.remembered import same_ends
from tamis.planning.sharing import Served
from tamis.planning.traffic import Footprint
from tamis.predicates import Predicate, implies
from tamis.predicates.boxes import EVERYTHING

TopicKey = tuple[str, tuple[str, ...]]  # (stream, partition key)

# Clauses beyond which nobody asks whether a topic serves a filter as it is: it takes more than milliseconds.
MOST_CLAUSES = 1_000


@dataclass(frozen=True)
class Wish:
    """A source of a reader: the tuples of a stream that pass `filter` (over bare column names), by key.

    `whole`: without omission. `made`: the plan version with which the reader came.
    """

    reader: str
    alias: str
    key: TopicKey
    filter: Expr | None
    subscriber: bool
    whole: bool
    made: int

    @property
    def place(self) -> tuple[int, str, str]:
        """The order of those of a topic. A wish that comes with a new plan is behind all others."""
        return self.made, self.reader, self.alias


@dataclass(frozen=True, eq=False)
class Crowd:
    """The wishes of a topic in their order. `sizes`: how many boxes each has; `served`: what a new reader is
    told of the topic. Of wishes without omission `whole` counts the filters, and `clauses` all their boxes.
    """

    wishes: Sequence[Wish]
    sizes: npt.NDArray[np.int64]
    served: Served
    whole: dict[Expr | None, int]
    clauses: int

    @staticmethod
    def nobody(number: int, dimensions: int) -> Crowd:
        """That of an empty topic."""
        none = np.empty((0, dimensions))
        served = Served(number, Footprint(none, none, 0.0), joiner=False, subscribers=0)
        return Crowd((), np.empty(0, np.int64), served, {}, 0)

    def now(self, wishes: Sequence[Wish], footprint: Callable[[Expr | None], Footprint]) -> Crowd:
        """The crowd with these wishes, of which most were there before."""
        first, last = same_ends(self.wishes, wishes)
        behind = len(self.wishes) - last
        gone, come = self.wishes[first:behind], wishes[first : len(wishes) - last]
        if not gone and not come:
            return self
        parts = [footprint(wish.filter) for wish in come]
        before = int(self.sizes[:first].sum())
        removed = int(self.sizes[first:behind].sum())
        counts = np.array([len(part.lower) for part in parts], np.int64)
        whole, clauses = dict(self.whole), self.clauses
        for change, some in ((-1, gone), (1, come)):
            for wish in some:
                if wish.whole:
                    whole[wish.filter] = whole.get(wish.filter, 0) + change
                    if not whole[wish.filter]:
                        del whole[wish.filter]
                    clauses += change * _clauses(wish.filter)
        outside = self.served.subscribers
        outside += sum(wish.subscriber for wish in come) - sum(wish.subscriber for wish in gone)
        passes = self.served.passes.changed(before, before + removed, parts)
        served = Served(self.served.number, passes, outside < len(wishes), outside)
        sizes = np.concatenate([self.sizes[:first], counts, self.sizes[behind:]])
        return Crowd(wishes, sizes, served, whole, clauses)

    def has(self, filter_: Expr | None) -> bool:
        """Whether all that passes the filter passes one of those that are served whole, for all that is
        known.
        """
        if None in self.whole or filter_ in self.whole:
            return True
        wanted = Predicate((EVERYTHING,), {}) if filter_ is None else boxes(filter_)
        if wanted is None or self.clauses > MOST_CLAUSES:
            return False
        filters = [wish.filter for wish in self.wishes if wish.whole]
        known = [found for one in filters if one is not None and (found := boxes(one)) is not None]
        union = [box for found in known for box in found.boxes]
        types = {name: kind for found in known for name, kind in found.types.items()}
        try:
            return implies(wanted, Predicate(tuple(union), types))
        except RefusedError:
            return False


def _clauses(filter_: Expr | None) -> int:
    found = None if filter_ is None else boxes(filter_)
    return 0 if found is None else len(found.boxes)
