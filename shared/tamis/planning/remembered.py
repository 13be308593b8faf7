"""What was made of objects that never change, found again by their identity: to compare thousands of queries
by value at every change of one would take longer than to plan it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from itertools import compress, count
from typing import Generic, TypeVar

T = TypeVar("T")

# As many as the readers of the largest fleet, and some.
MOST = 50_000


class Remembered(Generic[T]):
    """Results by the objects that they were made of, and by something small beside them.

    >>> made = Remembered[int](2)
    >>> word = "abc"
    >>> made.get((word,), 0, lambda: len(word)), made.get((word,), 0, lambda: -1)
    (3, 3)
    """

    def __init__(self, most: int) -> None:
        """All is forgotten when there are more than `most`."""
        self._most = most
        # The objects are kept, so that no other can come to have their identity.
        self._known: dict[Hashable, tuple[tuple[object, ...], T]] = {}

    def get(self, objects: tuple[object, ...], beside: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, or returned before."""
        key = (tuple(map(id, objects)), beside)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._most:
                self._known = {}
            found = self._known[key] = (objects, make())
        return found[1]

    def one(self, made_of: object, make: Callable[[], T]) -> T:
        """The same for a single object and nothing beside it, in less time."""
        found = self._known.get(id(made_of))
        if found is None:
            if len(self._known) >= self._most:
                self._known = {}
            found = self._known[id(made_of)] = ((made_of,), make())
        return found[1]


def same_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many objects are the same in two rows, from the beginning and from the end: thousands are compared
    without looking at one of them.

    >>> a, b, c = "a", "b", "c"
    >>> same_ends([a, b, c], [a, c]), same_ends([a], [a])
    ((1, 1), (1, 0))
    """
    shorter = min(len(old), len(new))
    first = next(compress(count(), map(operator.is_not, old, new)), shorter)
    last = next(compress(count(), map(operator.is_not, reversed(old), reversed(new))), shorter)
    return first, min(last, shorter - first)
