"""What a topic keeps for its readers: entries, few enough that no two do the same (cai-2021, section 4.2).

Of readers equal in filter, omission key and value the least interval serves all, since what it keeps holds
what any longer one keeps, and so does the union of their sides. A reader that needs every tuple of its
filter serves all whose filter is narrower, whatever they omit on.

Entries follow from the readers alone, never from the entries before: what a plan no longer has ends, and
what it has anew starts without brackets, so that nobody's promise rests on tuples published under an older
definition.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

import numpy as np

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr, conjuncts
from tamis.planning.hulls import possible, shape
from tamis.planning.omission import Omission, bare
from tamis.planning.plan import Entry, Input
from tamis.planning.remembered import MOST, Remembered
from tamis.predicates import Predicate, implies
from tamis.predicates.boxes import inside
from tamis.query.model import Window

# Entries without omission that are compared with all others: that takes some milliseconds. Of more only equal
# ones are merged, which costs an edge nothing: it evaluates them together.
MOST_COMPARED = 100

# Where a reader stands among those of a topic: the plan version that made it, its name, and its alias.
Place = tuple[int, str, str]


@dataclass(frozen=True)
class Reader:
    """One input of a definition and what may be omitted for it. `counted`: of a standing query."""

    source: Input
    omission: Omission
    version: int
    max_delay: int | None
    counted: bool = False


def entries(readers: Iterable[Reader]) -> tuple[Entry, ...]:
    """What a topic keeps for these readers, in their order."""
    return Entries().changed((), [((at, "", ""), reader) for at, reader in enumerate(readers)]).kept


@dataclass(frozen=True, slots=True)
class _Group:
    """Readers that one entry serves: each with its place, in their order."""

    members: tuple[tuple[Place, Entry], ...]
    entry: Entry

    @property
    def place(self) -> Place:
        """Where the entry stands among others."""
        return self.members[0][0]

    @staticmethod
    def of(members: tuple[tuple[Place, Entry], ...], found: Sequence[Entry]) -> _Group:
        """The group, with the entry that serves all of some."""
        if len(found) == 1:
            return _Group(members, found[0])
        sides = {entry.sides for entry in found}
        delays = [entry.max_delay for entry in found if entry.max_delay is not None]
        entry = replace(
            found[0],
            interval=min(entry.interval for entry in found),
            sides=sides.pop() if len(sides) == 1 else "both",
            max_delay=min(delays, default=None),
            serves=max(entry.serves for entry in found),
        )
        return _Group(members, entry)


class Entries:
    """The entries of a topic. A change of readers costs what it touches: all are compared anew only where it
    changes which filters count as the widest.
    """

    def __init__(self) -> None:
        self._numbers: dict[_Same, int] = {}
        self._groups: dict[int, _Group] = {}
        self._next = 0
        # Those without omission that others are compared with, and those that ever were, as readers are gone
        # through in order; by which of them each group is served (itself, where by none), and the converse.
        self._widest: list[int] = []
        self._ever: set[int] = set()
        self._by: dict[int, int] = {}
        self._under: dict[int, set[int]] = {}
        # No group without omission stands behind this place.
        self._last: Place = (-1, "", "")
        self._places: list[Place] = []
        self._kept: list[Entry] = []
        self._stale = False

    @property
    def kept(self) -> tuple[Entry, ...]:
        """The entries, in the order of the first reader of each."""
        return tuple(self._kept)

    def changed(self, gone: Sequence[tuple[Place, Reader]], come: Sequence[tuple[Place, Reader]]) -> Entries:
        """The entries once some readers have left and others have come."""
        new = self._copy()
        new._stale = 2 * (len(gone) + len(come)) > len(self._groups)
        for place, reader in gone:
            new._leave(place, _entry(reader))
        for place, reader in come:
            new._join(place, _entry(reader))
        if new._stale:
            new._arrange()
        return new

    def _copy(self) -> Entries:
        new = Entries()
        new._numbers, new._groups, new._next = dict(self._numbers), dict(self._groups), self._next
        new._widest, new._ever, new._by = list(self._widest), set(self._ever), dict(self._by)
        new._under = dict(self._under)
        new._last, new._places, new._kept = self._last, list(self._places), list(self._kept)
        return new

    def _join(self, place: Place, entry: Entry) -> None:
        same = _same(entry)
        number = self._numbers.get(same)
        if number is not None:
            before = self._groups[number]
            members = list(before.members)
            insort(members, (place, entry), key=itemgetter(0))
            self._regroup(number, _Group.of(tuple(members), (before.entry, entry)))
            return
        number = self._numbers[same] = self._next
        self._next += 1
        self._groups[number] = _Group(((place, entry),), entry)
        if self._stale:
            return
        by = next((w for w in self._widest if _within(entry, self._groups[w].entry)), number)
        if entry.interval == 0:
            room = len(self._widest) < MOST_COMPARED
            self._stale = place < self._last or (by == number and room)
            self._last = max(self._last, place)
        if not self._stale:
            self._serve(number, by)

    def _leave(self, place: Place, entry: Entry) -> None:
        same = _same(entry)
        number = self._numbers[same]
        before = self._groups[number]
        rest = tuple(member for member in before.members if member[0] != place)
        if rest:
            self._regroup(number, _Group.of(rest, [entry for _, entry in rest]))
            return
        del self._numbers[same], self._groups[number]
        self._stale |= number in self._ever
        if self._stale:
            return
        by = self._by.pop(number)
        if by == number:
            self._show(before.place, None)
        else:
            self._under[by] = self._under[by] - {number}
            self._renew(by)

    def _regroup(self, number: int, group: _Group) -> None:
        """Other readers of a group."""
        before, self._groups[number] = self._groups[number], group
        whole, moved = group.entry.interval == 0, group.place != before.place
        self._stale |= whole != (before.entry.interval == 0) or (whole and moved)
        if self._stale:
            return
        by = self._by[number]
        if by != number:
            self._renew(by)
            return
        if moved:
            self._show(before.place, None)
        self._renew(number)

    def _serve(self, number: int, by: int) -> None:
        """Let a new group be served by `by`."""
        self._by[number] = by
        if by != number:
            self._under[by] = self._under.get(by, set()) | {number}
        self._renew(by)

    def _renew(self, number: int) -> None:
        """Show what serves a group, and others perhaps."""
        group = self._groups[number]
        serves = [self._groups[other].entry.serves for other in self._under.get(number, ())]
        if self._by[number] == number:
            serves.append(group.entry.serves)
        most = max(serves, default=None)
        if most is None:
            self._show(group.place, None)
        else:
            same = most == group.entry.serves
            self._show(group.place, group.entry if same else replace(group.entry, serves=most))

    def _show(self, place: Place, entry: Entry | None) -> None:
        """Set the entry at a place; None: there is none."""
        at = bisect_left(self._places, place)
        there = at < len(self._places) and self._places[at] == place
        if there and entry is not None:
            self._kept[at] = entry
        elif entry is not None:
            self._places.insert(at, place)
            self._kept.insert(at, entry)
        elif there:
            del self._places[at], self._kept[at]

    def _arrange(self) -> None:
        """Compare all groups anew."""
        ordered = sorted(self._groups, key=lambda number: self._groups[number].place)
        found = {number: self._groups[number].entry for number in ordered}
        wholes = [number for number in ordered if found[number].interval == 0]
        self._last = self._groups[wholes[-1]].place if wholes else (-1, "", "")
        self._widest, self._ever = [], set()
        for number in wholes:
            if len(self._widest) < MOST_COMPARED and not any(
                _within(found[number], found[wide]) for wide in self._widest
            ):
                self._ever.add(number)
                still = [wide for wide in self._widest if not _within(found[wide], found[number])]
                self._widest = [*still, number]
        self._by, self._under = {}, {}
        widest = self._widest
        may_lie = possible([entry.filter for entry in found.values()], [found[w].filter for w in widest])
        for number, may in zip(ordered, may_lie, strict=True):
            near = (widest[at] for at in np.flatnonzero(may))
            by = next((wide for wide in near if _within(found[number], found[wide])), number)
            self._by[number] = by
            if by != number:
                self._under.setdefault(by, set()).add(number)
        self._places, self._kept = [], []
        for number in ordered:
            if self._by[number] == number or number in self._under:
                self._renew(number)
        self._stale = False


# What readers must agree in for one entry to serve them.
_Same = tuple[Expr | None, tuple[str, ...], Expr | None, Window | None]


def _same(entry: Entry) -> _Same:
    return entry.filter, entry.omission_key, entry.value, entry.window


_ENTRIES = Remembered[Entry](MOST)


def _entry(reader: Reader) -> Entry:
    return _ENTRIES.one(reader, partial(_made, reader))


def _made(reader: Reader) -> Entry:
    omission = reader.omission
    omits = omission.interval > 0
    # What omits nothing is decided at once: neither value nor delay matter, nor any key but the partition's.
    return Entry(
        filter=bare(omission.entry_filter),
        omission_key=omission.key if omits else reader.source.partition_key,
        value=bare(omission.value) if omits else None,
        interval=omission.interval,
        sides=omission.sides if omits and omission.sides is not None else "both",
        max_delay=reader.max_delay if omits else None,
        serves=reader.version,
        window=omission.window,
    )


def _within(entry: Entry, other: Entry) -> bool:
    """Whether all that passes the filter of `entry` passes that of `other`: exact where both compare
    attributes with constants, else as their conjuncts say.
    """
    if other.filter is None or entry is other:
        return True
    if entry.filter is None:
        return False
    narrow, wide = shape(entry.filter), shape(other.filter)
    if narrow is not None and wide is not None:
        if narrow.plain and wide.plain and not inside(narrow.hull, wide.hull):
            return False
        # Of differences of DOUBLE columns it can't always be told; then only what both say in the same
        # words counts.
        with suppress(RefusedError):
            return implies(narrow.boxes, wide.boxes)
    if entry.filter == other.filter:
        return True
    return set(conjuncts(other.filter)) <= set(conjuncts(entry.filter))


def boxes(filter_: Expr) -> Predicate | None:
    """The filter as boxes; None where it isn't one of them, or one of too many to compare in passing."""
    found = shape(filter_)
    return None if found is None else found.boxes
