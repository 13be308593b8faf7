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

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr, conjuncts
from tamis.planning.omission import Omission, bare
from tamis.planning.plan import Entry, Input, Sides
from tamis.planning.remembered import MOST, Remembered
from tamis.predicates import Predicate, implies
from tamis.predicates.boxes import Box, inside
from tamis.predicates.cover.zones import compares

# Clauses of a filter: with as many on both sides a comparison takes milliseconds.
MOST_CLAUSES = 50
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
    for entry in merged.values():
        by = next((wide for wide in widest if _within(entry, wide)), entry)
        served[id(by)] = max(served.get(id(by), 0), entry.serves)
    return tuple(
        entry if entry.serves == served[id(entry)] else replace(entry, serves=served[id(entry)])
        for entry in merged.values()
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
    narrow, wide = _shape(entry.filter), _shape(other.filter)
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


@dataclass(frozen=True)
class _Shape:
    """A filter as boxes, and their hull in the attributes that all of them limit. `plain`: no attributes are
    compared with each other.
    """

    boxes: Predicate
    hull: Box
    plain: bool


_SHAPES = Remembered[_Shape | None](MOST)


def _shape(filter_: Expr) -> _Shape | None:
    def make() -> _Shape | None:
        try:
            found = Predicate.of(filter_, budget=MOST_CLAUSES)
        except RefusedError:
            return None
        return _Shape(found, _hull(found.boxes), not any(map(compares, found.boxes)))

    return _SHAPES.one(filter_, make)


def _hull(found: tuple[Box, ...]) -> Box:
    """The least box around some; of none at all, one around everything."""
    return {
        name: (min(box[name][0] for box in found), max(box[name][1] for box in found))
        for name in (found[0] if found else ())
        if all(name in box for box in found)
    }


def boxes(filter_: Expr) -> Predicate | None:
    """The filter as boxes; None where it isn't one of them, or one of too many to compare in passing."""
    shape = _shape(filter_)
    return None if shape is None else shape.boxes
