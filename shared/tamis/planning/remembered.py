"""What was made of objects that never change, found again by their identity: to compare thousands of queries
by value at every change of one would take longer than to plan it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
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


class Latest(Generic[T]):
    """The newest result of each of some places, for as long as the place is made of the same objects."""

    def __init__(self, most: int) -> None:
        """All is forgotten when there are more places than `most`."""
        self._most = most
        self._known: dict[Hashable, tuple[tuple[object, ...], T]] = {}

    def get(self, place: Hashable, objects: tuple[object, ...], make: Callable[[], T]) -> T:
        """What `make` returns, or returned last."""
        found = self._known.get(place)
        if found is not None and len(found[0]) == len(objects) and all(map(operator.is_, found[0], objects)):
            return found[1]
        if len(self._known) >= self._most:
            self._known = {}
        made = make()
        self._known[place] = objects, made
        return made
