"""Cache of results by the identity of immutable inputs.

A change of one query among thousands leaves the objects of all others as they are. Comparing them by value
would take longer than planning the change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

# More than the readers of the largest fleet.
DEFAULT_CAPACITY = 50_000
# A smaller cache is not searched for results that are no longer needed.
_SMALL = 1_000


class IdentityCache(Generic[T]):
    """Cache of results by the identity of the objects that they were computed from, and a small extra key.

    Threads may share a cache: two that miss a result at the same time both compute it, and one is kept.

    >>> lengths = IdentityCache[int](2)
    >>> word = "abc"
    >>> lengths.get((word,), 0, lambda: len(word)), lengths.get((word,), 0, lambda: -1)
    (3, 3)
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        """The cache is emptied when it holds `capacity` results and another one comes."""
        self._capacity = capacity
        # The objects are kept: while they live, no other object can have their identity.
        self._known: dict[Hashable, tuple[tuple[object, ...], T]] = {}
        self._next_sweep = _SMALL

    def __len__(self) -> int:
        """The number of results."""
        return len(self._known)

    def get(self, objects: tuple[object, ...], extra: Hashable, make: Callable[[], T]) -> T:
        """The cached result for these objects and `extra`; `make` computes a missing one."""
        key = (tuple(map(id, objects)), extra)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._capacity:
                self._known = {}
            found = self._known[key] = (objects, make())
        return found[1]

    def find(self, objects: tuple[object, ...], extra: Hashable) -> tuple[T] | None:
        """The cached result in a tuple; None where the cache has no result for these objects."""
        found = self._known.get((tuple(map(id, objects)), extra))
        return None if found is None else (found[1],)

    def put(self, objects: tuple[object, ...], extra: Hashable, result: T) -> None:
        """Add a result that another process computed from equal objects."""
        self.get(objects, extra, lambda: result)

    def retain(self, live: Iterable[object]) -> None:
        """Remove the results of objects that are no longer in use: keep those computed from `live` alone.

        Costs little when it is called after every change: it does nothing until the cache has doubled.
        """
        if len(self._known) < self._next_sweep:
            return
        kept = {*map(id, live), id(None)}
        # Other threads may add results meanwhile. `list(self._known.items())` makes a tuple of each result,
        # so that the garbage collector may run in it and let another thread in; `copy` is not interrupted.
        known = {
            key: found for key, found in self._known.copy().items() if kept.issuperset(map(id, found[0]))
        }
        self._known, self._next_sweep = known, max(_SMALL, 2 * len(known))

    def one(self, source: object, make: Callable[[], T]) -> T:
        """`get` for a single object without an extra key, in less time."""
        found = self._known.get(id(source))
        if found is None:
            if len(self._known) >= self._capacity:
                self._known = {}
            found = self._known[id(source)] = ((source,), make())
        return found[1]
