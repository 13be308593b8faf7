"""What a topic keeps for its readers: entries, few enough that no two do the same (cai-2021, section 4.2).

Of readers equal in filter, omission key and value the least interval serves all, since what it keeps holds
what any longer one keeps, and so does the union of their sides. A reader that needs every tuple of its
filter serves all whose filter is narrower, whatever they omit on.

Entries follow from the readers alone, never from the entries before: what a plan no longer has ends, and
what it has anew starts without brackets, so that nobody's promise rests on tuples published under an older
definition.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr, conjuncts
from tamis.planning.hulls import possible, shape
from tamis.planning.omission import Omission, bare
from tamis.planning.plan import Entry, Input, Sides
from tamis.planning.remembered import MOST, Remembered
from tamis.predicates import Predicate, implies
from tamis.predicates.boxes import inside

# Entries without omission that are compared with all others: that takes some milliseconds. Of more only equal
# ones are merged, which costs an edge nothing: it evaluates them together.
MOST_COMPARED = 100


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
    merged: dict[tuple[object, ...], Entry] = {}
    for reader in readers:
        new = _ENTRIES.one(reader, partial(_entry, reader))
        same = (new.filter, new.omission_key, new.value, new.window)
        merged[same] = _merge(merged[same], new) if same in merged else new
    widest: list[Entry] = []
    for entry in merged.values():
        if (
            entry.interval == 0
            and len(widest) < MOST_COMPARED
            and not any(_within(entry, other) for other in widest)
        ):
            widest = [other for other in widest if not _within(other, entry)] + [entry]
    # By identity: to hash thousands of filters takes longer than to compare them.
    served: dict[int, int] = {}
    all_of_them = list(merged.values())
    may_lie = possible([entry.filter for entry in all_of_them], [wide.filter for wide in widest])
    for entry, may in zip(all_of_them, may_lie, strict=True):
        near = (widest[at] for at in np.flatnonzero(may))
        by = next((wide for wide in near if _within(entry, wide)), entry)
        served[id(by)] = max(served.get(id(by), 0), entry.serves)
    return tuple(
        entry if entry.serves == served[id(entry)] else replace(entry, serves=served[id(entry)])
        for entry in all_of_them
        if id(entry) in served
    )


_ENTRIES = Remembered[Entry](MOST)


def _entry(reader: Reader) -> Entry:
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


def _merge(a: Entry, b: Entry) -> Entry:
    sides: Sides = a.sides if a.sides == b.sides else "both"
    delays = [delay for delay in (a.max_delay, b.max_delay) if delay is not None]
    return replace(
        a,
        interval=min(a.interval, b.interval),
        sides=sides,
        max_delay=min(delays) if delays else None,
        serves=max(a.serves, b.serves),
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
