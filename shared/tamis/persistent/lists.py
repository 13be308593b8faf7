"""Immutable sequence in chunks; a copy with a replaced part shares all other chunks.

A plan, a topic and the registry's state are sequences of thousands of objects, of which a change replaces a
few. To copy a list of ten thousand references takes longer than to plan one of them, because each reference
is counted in an object somewhere else in memory.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, count, repeat
from typing import Generic, TypeVar, overload

T = TypeVar("T")
R = TypeVar("R")

# Items of a chunk that is made anew; it is divided when it has twice as many. A change copies a chunk, and a
# reference to each chunk: of ten thousand items, 79 chunks.
CHUNK = 128

Chunks = tuple[tuple[T, ...], ...]


class _Missing:
    """In place of a result that isn't known; None may be a result."""


_MISSING = _Missing()


class PersistentList(Sequence[T], Generic[T]):
    """An immutable sequence. A change costs a copy of one chunk, and of the references to all chunks.

    >>> letters = PersistentList("abcd")
    >>> list(letters.spliced(1, 3, "xyz")), letters[1:3], letters == tuple("abcd")
    (['a', 'x', 'y', 'z', 'd'], ('b', 'c'), True)
    """

    __slots__ = ("_chunks", "_known_ends", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._chunks: Chunks[T] = (
            items.chunks if isinstance(items, PersistentList) else _divided(tuple(items))
        )
        self._length = sum(map(len, self._chunks))
        self._known_ends: tuple[int, ...] | None = None

    @classmethod
    def of_chunks(cls, chunks: Chunks[T], length: int | None = None) -> PersistentList[T]:
        """The sequence of these chunks, which may be empty. `length`: the number of items, if it is known."""
        made = cls.__new__(cls)
        made._chunks = chunks
        made._length = sum(map(len, chunks)) if length is None else length
        made._known_ends = None
        return made

    @property
    def chunks(self) -> Chunks[T]:
        """The items in chunks. Sequences with the same chunk have the same objects in it."""
        return self._chunks

    def __len__(self) -> int:
        """The number of items."""
        return self._length

    def __iter__(self) -> Iterator[T]:
        """The items in order."""
        return chain.from_iterable(self._chunks)

    def __reversed__(self) -> Iterator[T]:
        """The items from the last to the first."""
        return chain.from_iterable(map(reversed, reversed(self._chunks)))

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...

    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        """An item, or a slice as a tuple."""
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            found = self._between(start, stop) if step > 0 else tuple(self)
            return found[::step] if step > 0 else found[at]
        if at < 0:
            at += self._length
        if not 0 <= at < self._length:
            raise IndexError("no item has this index")
        ends = self._ends
        chunk = bisect_right(ends, at)
        return self._chunks[chunk][at - ends[chunk]]

    def spliced(self, start: int, stop: int, items: Iterable[T]) -> PersistentList[T]:
        """A copy with `items` in place of those from `start` to before `stop`."""
        chunks = self._chunks
        if not chunks:
            return PersistentList(items)
        ends = self._ends
        first = min(bisect_right(ends, start), len(chunks) - 1)
        last = min(bisect_right(ends, stop, lo=first), len(chunks) - 1)
        begin = ends[first] - len(chunks[first])
        head = chunks[first][: start - begin]
        tail = chunks[last][stop - (ends[last] - len(chunks[last])) :]
        middle = (*head, *items, *tail)
        # Small chunks are joined with the one before, or many removed items would leave many of them.
        if 2 * len(middle) < CHUNK and first and len(chunks[first - 1]) + len(middle) < 2 * CHUNK:
            first -= 1
            middle = chunks[first] + middle
        return PersistentList.of_chunks((*chunks[:first], *_divided(middle), *chunks[last + 1 :]))

    def appended(self, item: T) -> PersistentList[T]:
        """A copy with one more item at the end."""
        chunks = self._chunks
        if not chunks or len(chunks[-1]) >= 2 * CHUNK - 1:
            return self.spliced(self._length, self._length, (item,))
        return PersistentList.of_chunks((*chunks[:-1], (*chunks[-1], item)), self._length + 1)

    def followed_by(self, *others: Sequence[T]) -> PersistentList[T]:
        """The items of this sequence and then those of others, in the same chunks."""
        more = chain.from_iterable(PersistentList(one).chunks for one in others)
        return PersistentList.of_chunks((*self._chunks, *more))

    def common_ends(self, other: PersistentList[T]) -> tuple[int, int]:
        """The lengths of the longest common prefix and suffix, by identity.

        Both have each of their items only once in them, if the two sequences differ.
        """
        mine, others = self._chunks, other._chunks
        shorter = min(len(self), len(other))
        same = _count_same(mine, others, min(len(mine), len(others)))
        prefix = sum(map(len, mine[:same]))
        one, two = (chain.from_iterable(chunks[same:]) for chunks in (mine, others))
        prefix += _count_same(one, two, shorter - prefix)
        same = _count_same(reversed(mine), reversed(others), min(len(mine), len(others)))
        suffix = sum(map(len, mine[len(mine) - same :]))
        if suffix < shorter - prefix:
            back = (reversed(chunks[: len(chunks) - same]) for chunks in (mine, others))
            one, two = (chain.from_iterable(map(reversed, chunks)) for chunks in back)
            suffix += _count_same(one, two, shorter - suffix)
        return prefix, min(suffix, shorter - prefix)

    def __eq__(self, other: object) -> bool:
        """True for a sequence of this kind, or a tuple, with equal items."""
        if isinstance(other, PersistentList):
            if self._chunks == other._chunks:  # the same objects are compared first
                return True
        elif not isinstance(other, tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    def __hash__(self) -> int:
        """The hash of the tuple of the items, which is equal."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """The items, as of a list."""
        return f"PersistentList({list(self)!r})"

    @property
    def _ends(self) -> tuple[int, ...]:
        """The number of items up to the end of each chunk."""
        if self._known_ends is None:
            self._known_ends = tuple(accumulate(map(len, self._chunks)))
        return self._known_ends

    def _between(self, start: int, stop: int) -> tuple[T, ...]:
        if start >= stop:
            return ()
        ends = self._ends
        first, last = bisect_right(ends, start), bisect_right(ends, stop - 1)
        begin = ends[first] - len(self._chunks[first])
        if first == last:
            return self._chunks[first][start - begin : stop - begin]
        found = tuple(chain.from_iterable(self._chunks[first : last + 1]))
        return found[start - begin : stop - begin]


def not_none(
    items: PersistentList[T | None],
    before: PersistentList[T | None] | None = None,
    of_before: Sequence[T] = (),
) -> PersistentList[T]:
    """The items that are not None. `of_before`: the result for `before`, from which it takes what both share.

    >>> some = not_none(PersistentList([1, None, 2]))
    >>> list(some)
    [1, 2]
    """
    chunks = items.chunks
    if (
        before is None
        or not isinstance(of_before, PersistentList)
        or len(of_before.chunks) != len(before.chunks)
    ):
        return PersistentList.of_chunks(tuple(_not_none(chunk) for chunk in chunks))
    known, found = before.chunks, of_before.chunks
    shorter = min(len(chunks), len(known))
    first = _count_same(chunks, known, shorter)
    last = min(_count_same(reversed(chunks), reversed(known), shorter), shorter - first)
    made = [_not_none(chunk) for chunk in chunks[first : len(chunks) - last]]
    return PersistentList.of_chunks((*found[:first], *made, *found[len(found) - last :]))


def mapped(
    items: PersistentList[T],
    function: Callable[[T], R],
    before: PersistentList[T],
    of_before: PersistentList[R],
) -> PersistentList[R]:
    """The results of a function for all items, in the same chunks.

    `of_before`: the results for `before`, from which those of the same objects are taken, wherever they are.

    >>> some = PersistentList(["a", "bc"])
    >>> list(mapped(some, len, PersistentList(), PersistentList()))
    [1, 2]
    """
    known = {id(one): found for one, found in zip(before.chunks, of_before.chunks, strict=True)}
    kept = set(map(id, items.chunks))
    single: dict[int, R | _Missing] = {}
    for one, found in zip(before.chunks, of_before.chunks, strict=True):
        if id(one) not in kept:
            single.update(zip(map(id, one), found, strict=True))
    made: list[tuple[R, ...]] = []
    for chunk in items.chunks:
        same = known.get(id(chunk))
        if same is None:
            results = map(single.get, map(id, chunk), repeat(_MISSING))
            pairs = zip(chunk, results, strict=True)
            same = tuple(function(item) if isinstance(one, _Missing) else one for item, one in pairs)
        made.append(same)
    return PersistentList.of_chunks(tuple(made))


def _not_none(chunk: tuple[T | None, ...]) -> tuple[T, ...]:
    return tuple(one for one in chunk if one is not None)


def _count_same(one: Iterable[object], other: Iterable[object], most: int) -> int:
    """The number of items until two sequences have different objects; `most` if they never do."""
    return next(compress(count(), map(operator.is_not, one, other)), most)


def _divided(items: tuple[T, ...]) -> Chunks[T]:
    if len(items) < 2 * CHUNK:
        return (items,) if items else ()
    return tuple(items[at : at + CHUNK] for at in range(0, len(items), CHUNK))
