"""Dictionary in the order of insertion, whose copies share all items until one of them is changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import Generic, TypeVar, cast

from tamis.persistent.lists import PersistentList

K = TypeVar("K")
V = TypeVar("V")

# A copy that is changed copies the numbers of this many new keys. Those of all keys are collected in a new
# dictionary when there are more.
MOST_RECENT = 256


class PersistentDict(MutableMapping[K, V], Generic[K, V]):
    """A dictionary in the order of insertion. To copy it and to change one item costs nearly the same for any
    number of items.

    >>> one = PersistentDict({"a": 1, "b": 2})
    >>> other = one.copy()
    >>> other["c"] = 3
    >>> del other["a"]
    >>> dict(one), dict(other)
    ({'a': 1, 'b': 2}, {'b': 2, 'c': 3})
    """

    __slots__ = ("_base", "_keys", "_next", "_owned", "_recent", "_values")

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        given: dict[K, V] = dict(items)
        self._keys, self._values = PersistentList(given), PersistentList(given.values())
        # The number of each key, greater for later keys. `_base` is shared and never changes; `_recent` has
        # what differs from it, None for removed keys, and is shared until `_owned`.
        self._base: dict[K, int] = {key: at for at, key in enumerate(given)}
        self._recent: dict[K, int | None] = {}
        self._owned = True
        self._next = len(given)

    def copy(self) -> PersistentDict[K, V]:
        """A copy that can be changed independently."""
        made = cast("PersistentDict[K, V]", PersistentDict.__new__(PersistentDict))
        made._base, made._recent, made._next = self._base, self._recent, self._next
        made._keys, made._values = self._keys, self._values
        made._owned = self._owned = False
        return made

    @property
    def key_list(self) -> PersistentList[K]:
        """The keys in order, as they are now."""
        return self._keys

    @property
    def value_list(self) -> PersistentList[V]:
        """The values in order, as they are now."""
        return self._values

    def same_objects(self, other: PersistentDict[K, V]) -> bool:
        """True if both have the same objects as values under equal keys, in the same order."""
        prefix, _ = self._values.common_ends(other._values)
        return prefix == len(self) == len(other) and self._keys == other._keys

    def __getitem__(self, key: K) -> V:
        """The value of a key. Raises KeyError."""
        number = self._number(key)
        if number is None:
            raise KeyError(key)
        return self._values[self._place(key, number)]

    def __contains__(self, key: object) -> bool:
        """True if there is such a key."""
        return self._number(cast("K", key)) is not None

    def __len__(self) -> int:
        """The number of items."""
        return len(self._keys)

    def __iter__(self) -> Iterator[K]:
        """The keys in order. Changes meanwhile have no effect on it."""
        return iter(self._keys)

    def __reversed__(self) -> Iterator[K]:
        """The keys from the last to the first."""
        return reversed(self._keys)

    def items(self) -> ItemsView[K, V]:
        """The keys and values in order."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """The values in order."""
        return _Values(self)

    def __setitem__(self, key: K, value: V) -> None:
        """Set the value of a key, which keeps its place if it has one."""
        number = self._number(key)
        if number is not None:
            at = self._place(key, number)
            self._values = self._values.spliced(at, at + 1, (value,))
            return
        self._own()
        self._recent[key] = self._next
        self._next += 1
        self._keys, self._values = self._keys.appended(key), self._values.appended(value)

    def __delitem__(self, key: K) -> None:
        """Remove an item. Raises KeyError."""
        number = self._number(key)
        if number is None:
            raise KeyError(key)
        at = self._place(key, number)
        self._keys, self._values = self._keys.spliced(at, at + 1, ()), self._values.spliced(at, at + 1, ())
        self._own()
        self._recent[key] = None

    def __ior__(self, other: Mapping[K, V]) -> PersistentDict[K, V]:
        """Set all items of another mapping."""
        self.update(other)
        return self

    def __repr__(self) -> str:
        """The items, as of a dict."""
        return f"PersistentDict({dict(self.items())!r})"

    def _number(self, key: K) -> int | None:
        recent = self._recent
        return recent[key] if key in recent else self._base.get(key)

    def _place(self, key: K, number: int) -> int:
        """The place of a key in the order. It is its number, unless earlier items were removed."""
        keys = self._keys
        if number < len(keys) and keys[number] == key:
            return number
        return bisect_left(keys, number, key=lambda one: self._number(one) or 0)  # each key has a number

    def _own(self) -> None:
        """Make sure that no other dictionary has the same `_recent`, and that it is small."""
        if len(self._recent) >= MOST_RECENT:
            if len(self._keys) == self._next:  # none was removed: keys have the numbers of their places
                self._base = cast("dict[K, int]", self._base | self._recent)
            else:
                self._base = {key: at for at, key in enumerate(self._keys)}
            self._recent, self._next = {}, len(self._keys)
        elif not self._owned:
            self._recent = self._recent.copy()
        self._owned = True


def changed_keys(old: Mapping[K, object], new: Mapping[K, object]) -> tuple[list[K], list[K]]:
    """The keys that are only in `old`, and those under which `new` has another object or an object at all.

    Of persistent dictionaries, only the items between the common beginning and the common end are looked at.

    >>> one = PersistentDict({"a": "1", "b": "2"})
    >>> other = one.copy()
    >>> other["b"] = "3"
    >>> changed_keys(one, other), changed_keys(other, {"a": "1"})
    (([], ['b']), (['b'], []))
    """
    before: Iterable[K] = old
    after: Iterable[K] = new
    if isinstance(old, PersistentDict) and isinstance(new, PersistentDict):
        prefix, suffix = old.value_list.common_ends(new.value_list)
        before = old.key_list[prefix : len(old) - suffix]
        after = new.key_list[prefix : len(new) - suffix]
    gone = [key for key in before if key not in new]
    return gone, [key for key in after if key not in old or old[key] is not new[key]]


class _Items(ItemsView[K, V]):
    _mapping: PersistentDict[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return zip(self._mapping.key_list, self._mapping.value_list, strict=True)


class _Values(ValuesView[V]):
    _mapping: PersistentDict[object, V]

    def __iter__(self) -> Iterator[V]:
        return iter(self._mapping.value_list)

    def __reversed__(self) -> Iterator[V]:
        return reversed(self._mapping.value_list)
