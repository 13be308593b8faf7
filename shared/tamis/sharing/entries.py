"""Entries of a topic: the filters and omission rules that together serve all of its readers.

Readers that agree in filter, omission key and value share an entry with the least interval and the union of
their sides: the tuples that the least interval retains include the tuples that a longer one retains
(cai-2021, section 4.2). A reader that needs every tuple of its filter serves all readers with narrower
filters, whatever their omission.

Entries follow from the readers alone, never from the entries before. An entry that is new in a plan starts
without brackets and an entry that is no longer in the plan ends, so no reader relies on tuples that were
published under an older definition.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

import numpy as np

from tamis.declarations.definitions import Window
from tamis.expressions.nodes import Expr, conjuncts
from tamis.persistent.dicts import PersistentDict
from tamis.persistent.lists import PersistentList
from tamis.plan.model import Entry, Input, PartialAggregation, Representation
from tamis.plan.omission import Omission, bare
from tamis.predicates.boxes import inside
from tamis.predicates.matching import surely_implies
from tamis.sharing.bounding_boxes import BoxFilter, box_filter, may_imply

# At most this many entries without omission are compared with all other entries, which takes some
# milliseconds. Beyond that number only equal entries are merged; an edge evaluates equal filters once in
# any case.
MOST_COMPARED = 100

# The order of the readers of a topic: the plan version that made the reader, its name, and the input's alias.
SortKey = tuple[int, str, str]
_FIRST: SortKey = (-1, "", "")  # before the key of any reader


@dataclass(frozen=True)
class ReaderInput:
    """One input of a reader, and its omission. `counted`: the reader is a standing query. `partials`: what
    edges can publish for it in place of tuples.
    """

    source: Input
    omission: Omission
    version: int
    max_delay: int | None
    counted: bool = False
    partials: PartialAggregation | None = None

    @cached_property
    def entry(self) -> Entry:
        """The entry for this input alone."""
        return _entry(self)


def entries(inputs: Iterable[ReaderInput]) -> tuple[Entry, ...]:
    """The entries for these inputs, in their order."""
    return tuple(Entries().changed((), [((at, "", ""), one) for at, one in enumerate(inputs)]).kept)


@dataclass(frozen=True)
class _Group:
    """Inputs that share one entry, in order, each with its sort key and the entry for it alone."""

    members: tuple[tuple[SortKey, Entry], ...]
    entry: Entry

    @property
    def sort_key(self) -> SortKey:
        """The sort key of the first input."""
        return self.members[0][0]

    @cached_property
    def boxes(self) -> BoxFilter | None:
        """The filter of the first member as boxes; all members have equal filters."""
        filter_ = self.entry.filter
        return None if filter_ is None else box_filter(filter_)

    @staticmethod
    def of(members: tuple[tuple[SortKey, Entry], ...], found: Sequence[Entry]) -> _Group:
        """The group of `members` with one entry that serves all of `found`."""
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
            null_keys=any(entry.null_keys for entry in found),
        )
        return _Group(members, entry)


class Entries:
    """The entries of a topic.

    A group has the inputs that share an entry. A group is *complete* if its entry publishes every tuple.
    Another group needs no entry of its own if its filter implies the filter of a complete group: then that
    group *serves* it. Only the widest complete groups serve others; a group that nobody else serves is
    served by itself.

    The cost of a change depends on the number of changed inputs. Only if the set of the widest complete
    groups changes, all groups are compared again.
    """

    def __init__(self) -> None:
        self._numbers: PersistentDict[_Same, int] = PersistentDict()
        self._groups: PersistentDict[int, _Group] = PersistentDict()
        self._next = 0
        # Complete groups with which all groups are compared, and all groups that were among them at some
        # time while the inputs were compared in order.
        self._widest: list[int] = []
        self._ever_widest: set[int] = set()
        # The group that serves each group, and the other groups that a group serves.
        self._server: PersistentDict[int, int] = PersistentDict()
        self._served: PersistentDict[int, PersistentDict[int, None]] = PersistentDict()
        # The greatest sort key of a complete group.
        self._last_complete: SortKey = _FIRST
        self._sort_keys: PersistentList[SortKey] = PersistentList()
        self._kept: PersistentList[Entry] = PersistentList()
        self._stale = False

    @property
    def kept(self) -> PersistentList[Entry]:
        """The entries, in the order of the first input of each."""
        return self._kept

    def changed(
        self, removed: Sequence[tuple[SortKey, ReaderInput]], added: Sequence[tuple[SortKey, ReaderInput]]
    ) -> Entries:
        """The entries without some inputs and with some others."""
        new = self._copy()
        new._stale = 2 * (len(removed) + len(added)) > len(self._groups)
        for sort_key, one in removed:
            new._remove(sort_key, one.entry)
        for sort_key, one in added:
            new._add(sort_key, one.entry)
        if new._stale:
            new._compare_all()
        return new

    def _copy(self) -> Entries:
        new = Entries()
        new._numbers, new._groups, new._next = self._numbers.copy(), self._groups.copy(), self._next
        new._widest, new._ever_widest = self._widest, self._ever_widest  # replaced as a whole
        new._server, new._served = self._server.copy(), self._served.copy()
        new._last_complete = self._last_complete
        new._sort_keys, new._kept = self._sort_keys, self._kept
        return new

    def _add(self, sort_key: SortKey, entry: Entry) -> None:
        same = _same(entry)
        number = self._numbers.get(same)
        if number is not None:
            before = self._groups[number]
            members = list(before.members)
            insort(members, (sort_key, entry), key=itemgetter(0))
            self._replace(number, _Group.of(tuple(members), (before.entry, entry)))
            return
        number = self._numbers[same] = self._next
        self._next += 1
        self._groups[number] = _Group(((sort_key, entry),), entry)
        if self._stale:
            return
        group = self._groups[number]
        server = next((wide for wide in self._widest if _implies(group, self._groups[wide])), number)
        if entry.complete:
            room = len(self._widest) < MOST_COMPARED
            self._stale = sort_key < self._last_complete or (server == number and room)
            self._last_complete = max(self._last_complete, sort_key)
        if not self._stale:
            self._serve(number, server)

    def _remove(self, sort_key: SortKey, entry: Entry) -> None:
        same = _same(entry)
        number = self._numbers[same]
        before = self._groups[number]
        rest = tuple(member for member in before.members if member[0] != sort_key)
        if rest:
            self._replace(number, _Group.of(rest, [entry for _, entry in rest]))
            return
        del self._numbers[same], self._groups[number]
        self._stale |= number in self._ever_widest
        if self._stale:
            return
        server = self._server.pop(number)
        if server == number:
            self._set(before.sort_key, None)
        else:
            self._served[server] = self._served[server].copy()
            del self._served[server][number]
            self._refresh(server)

    def _replace(self, number: int, group: _Group) -> None:
        """Replace a group by one with other members."""
        before, self._groups[number] = self._groups[number], group
        complete, moved = group.entry.complete, group.sort_key != before.sort_key
        self._stale |= complete != before.entry.complete or (complete and moved)
        if self._stale:
            return
        server = self._server[number]
        if server != number:
            self._refresh(server)
            return
        if moved:
            self._set(before.sort_key, None)
        self._refresh(number)

    def _serve(self, number: int, server: int) -> None:
        """Let a new group be served by the group `server`."""
        self._server[number] = server
        if server == number:
            self._refresh(number)
            return
        known = self._served.get(server)
        self._served[server] = PersistentDict() if known is None else known.copy()
        self._served[server][number] = None
        # The others that the server serves are in what is kept for it.
        group, serves = self._groups[server], self._groups[number].entry.serves
        at = self._place(group.sort_key)
        if at is not None:
            serves = max(serves, self._kept[at].serves)
        self._set(group.sort_key, _serving(group.entry, serves))

    def _refresh(self, number: int) -> None:
        """Set the entry of a group, which may serve other groups, or remove it if the group serves nobody."""
        group = self._groups[number]
        serves = [self._groups[other].entry.serves for other in self._served.get(number, ())]
        if self._server[number] == number:
            serves.append(group.entry.serves)
        most = max(serves, default=None)
        if most is None:
            self._set(group.sort_key, None)
        else:
            self._set(group.sort_key, _serving(group.entry, most))

    def _set(self, sort_key: SortKey, entry: Entry | None) -> None:
        """Set the kept entry with this sort key; None removes it."""
        at = self._place(sort_key)
        if at is None and entry is None:
            return
        start = bisect_left(self._sort_keys, sort_key) if at is None else at
        stop = start if at is None else at + 1
        self._kept = self._kept.spliced(start, stop, () if entry is None else (entry,))
        if at is None or entry is None:
            self._sort_keys = self._sort_keys.spliced(start, stop, () if entry is None else (sort_key,))

    def _place(self, sort_key: SortKey) -> int | None:
        """The place of the kept entry with this sort key; None if there is none."""
        keys = self._sort_keys
        if not keys or sort_key > keys[-1]:
            return None
        at = bisect_left(keys, sort_key)
        return at if keys[at] == sort_key else None

    def _compare_all(self) -> None:
        """Compare all groups with the widest complete groups, from the beginning."""
        ordered = sorted(self._groups, key=lambda number: self._groups[number].sort_key)
        found = {number: self._groups[number] for number in ordered}
        complete = [number for number in ordered if found[number].entry.complete]
        self._last_complete = self._groups[complete[-1]].sort_key if complete else _FIRST
        self._widest, self._ever_widest = [], set()
        for number in complete:
            if len(self._widest) < MOST_COMPARED and not any(
                _implies(found[number], found[wide]) for wide in self._widest
            ):
                self._ever_widest.add(number)
                still = [wide for wide in self._widest if not _implies(found[wide], found[number])]
                self._widest = [*still, number]
        server_of: dict[int, int] = {}
        served: dict[int, dict[int, None]] = {}
        widest = self._widest
        candidates = may_imply(
            [group.boxes for group in found.values()], [found[wide].boxes for wide in widest]
        )
        for number, row in zip(ordered, candidates, strict=True):
            possible = (widest[at] for at in np.flatnonzero(row))
            server = next((wide for wide in possible if _implies(found[number], found[wide])), number)
            server_of[number] = server
            if server != number:
                served.setdefault(server, {})[number] = None
        self._server = PersistentDict(server_of)
        self._served = PersistentDict({server: PersistentDict(some) for server, some in served.items()})
        self._sort_keys, self._kept = PersistentList(), PersistentList()
        for number in ordered:
            if server_of[number] == number or number in served:
                self._refresh(number)
        self._stale = False


# The fields of an entry in which inputs must agree to share it.
_Same = tuple[Expr | None, tuple[str, ...], Expr | None, Window | None, bool, Representation | None]


def _same(entry: Entry) -> _Same:
    same = entry.filter, entry.omission_key, entry.value, entry.window, entry.exact
    return *same, entry.representation


def _serving(entry: Entry, version: int) -> Entry:
    """The entry with the newest version that it serves."""
    return entry if entry.serves == version else replace(entry, serves=version)


def _entry(one: ReaderInput) -> Entry:
    omission = one.omission
    omits = omission.interval > 0
    # Without omission a tuple is decided at once: value, delay and keys other than the partition's have no
    # effect.
    return Entry(
        filter=bare(omission.entry_filter),
        omission_key=omission.key if omits else one.source.partition_key,
        value=bare(omission.value) if omits else None,
        interval=omission.interval,
        sides=omission.sides if omits and omission.sides is not None else "both",
        max_delay=one.max_delay if omits else None,
        serves=one.version,
        window=omission.window,
        exact=omission.exact,
        null_keys=omits and omission.null_keys,
        representation=one.source.representation,
    )


def _implies(group: _Group, other: _Group) -> bool:
    """True if the filter of `group` certainly implies the filter of `other`.

    By their conjuncts if one of them is no predicate, or nothing is proved.
    """
    mine, others = group.entry.filter, other.entry.filter
    if others is None or group is other:
        return True
    if mine is None:
        return False
    narrow, wide = group.boxes, other.boxes
    if narrow is not None and wide is not None:
        if narrow.plain and wide.plain and not inside(narrow.bounding_box, wide.bounding_box):
            return False
        if surely_implies(narrow.predicate, wide.predicate):
            return True
    return mine == others or set(conjuncts(others)) <= set(conjuncts(mine))
