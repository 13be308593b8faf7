"""Difference of two sequences of immutable objects, by identity, from their common prefix and suffix.

A plan, a topic and the registry's state are sequences of thousands of objects of which a change replaces a
few that are next to each other. The comparison runs in C and does not look into any object. Of persistent
lists only the chunks are compared that the two don't share.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import compress, count
from typing import NamedTuple, TypeVar

from tamis.persistent.lists import PersistentList

T = TypeVar("T")


class Splice(NamedTuple):
    """The replacement of `old[start:old_stop]` by `new[start:new_stop]`; everything around it is the same."""

    start: int
    old_stop: int
    new_stop: int

    def __bool__(self) -> bool:
        """True if the sequences differ."""
        return self.start < max(self.old_stop, self.new_stop)

    def removed(self, old: Sequence[T]) -> Sequence[T]:
        """The replaced items of the old sequence, or of a sequence parallel to it."""
        return old[self.start : self.old_stop]

    def added(self, new: Sequence[T]) -> Sequence[T]:
        """The items of the new sequence that replace them."""
        return new[self.start : self.new_stop]

    def applied(self, old: Sequence[T], added: Sequence[T]) -> Sequence[T]:
        """A sequence parallel to the old one, with `added` in place of what was removed. It is persistent if
        the old one is.
        """
        if isinstance(old, PersistentList):
            return old.spliced(self.start, self.old_stop, added)
        return [*old[: self.start], *added, *old[self.old_stop :]]


def identity_diff(old: Sequence[object], new: Sequence[object]) -> Splice:
    """The splice that makes the new sequence of the old one.

    >>> a, b, c = "a", "b", "c"
    >>> identity_diff([a, b, c], [a, c])
    Splice(start=1, old_stop=2, new_stop=1)
    >>> bool(identity_diff([a], [a])), identity_diff([a, c], [a, b, c]).applied([1, 3], [2])
    (False, [1, 2, 3])
    """
    if isinstance(old, PersistentList) and isinstance(new, PersistentList):
        prefix, suffix = old.common_ends(new)
        return Splice(prefix, len(old) - suffix, len(new) - suffix)
    shorter = min(len(old), len(new))
    prefix = next(compress(count(), map(operator.is_not, old, new)), shorter)
    suffix = next(compress(count(), map(operator.is_not, reversed(old), reversed(new))), shorter)
    suffix = min(suffix, shorter - prefix)
    return Splice(prefix, len(old) - suffix, len(new) - suffix)
