"""Tuples that stand for others in conditions `a != b` between sources.

A tuple u joins every tuple r of the other sources with `a != b` that fulfils the other conditions. It isn't
needed if each such r joins one of the tuples that are at least as good as u: if there are no values b, none
of them u's own, that exclude all of these tuples. At most 2^n tuples are needed for n inequations
(docs/bounded.md, "Representatives").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Columns, Value, Vector
from tamis.operators.representatives.synopsis import group_rows, leading
from tamis.operators.row_store import TextCodes
from tamis.operators.synopses.row_numbering import RowNumbering, grown
from tamis.plan.nodes import Cover

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Entry:
    """A kept tuple: its value as a number (the greatest is the best), its sides of the inequations, and all
    of its columns (empty while it isn't known yet).
    """

    lead: int
    sides: tuple[Value, ...]
    values: tuple[Value, ...] = ()


class Inequations:
    """The tuples of each group that are needed for any values on the other sides of `!=`."""

    def __init__(self, cover: Cover, types: Sequence[Type]) -> None:
        self._cover, self._types = cover, tuple(types)
        self._codes: TextCodes = {}
        self._numbers = RowNumbering(2 * len(cover.equal))
        self._groups: dict[int, list[_Entry]] = {}
        # Of groups with as many tuples as can be needed: no tuple that is at most as good changes them.
        self._full = np.zeros(0, np.bool_)
        self._worst = np.zeros(0, np.int64)
        # The tuples of the last `change` in order, each with its group.
        self._changed: list[tuple[int, _Entry]] = []

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def change(self, columns: Columns, size: int) -> Ints:
        """The tuples for which no tuples before them stand. A tuple with NULL on a side joins nothing."""
        at, leads = leading(self._cover, columns, size)
        groups = self._numbers.of(group_rows(self._cover.equal, columns, size, self._codes)[at])
        self._full = grown(self._full, len(self._numbers), fill=False)
        self._worst = grown(self._worst, len(self._numbers))
        left = np.flatnonzero(~self._full[groups] | (leads > self._worst[groups]))
        at, leads, groups = at[left], leads[left], groups[left]
        sides = [evaluate(one, columns, size).take(at).to_list() for one in self._cover.unequal]
        found: dict[int, list[_Entry]] = {}
        places, self._changed = [], []
        for place, group, lead, *own in zip(
            at.tolist(), groups.tolist(), leads.tolist(), *sides, strict=True
        ):
            if None in own:
                continue
            known = found.get(group) or self._groups.get(group, [])
            entry = _Entry(lead, tuple(own))
            if not _covered(entry, known):
                found[group] = _needed([*known, entry])
                places.append(place)
                self._changed.append((group, entry))
        return np.array(places, np.int64)

    def keep(self, changed: Sequence[Vector]) -> None:
        """Add the tuples, and drop those that aren't needed any more."""
        lists = [one.to_list() for one in changed]
        rows = list(zip(*lists, strict=True)) if lists else [()] * len(self._changed)
        for (group, entry), values in zip(self._changed, rows, strict=True):
            known = self._groups.get(group, [])
            kept = self._groups[group] = _needed([*known, _Entry(entry.lead, entry.sides, values)])
            self._full[group] = len(kept) == 2 ** len(self._cover.unequal)
            self._worst[group] = min(one.lead for one in kept)

    def kept(self) -> list[Vector]:
        """The columns of all kept tuples, by group."""
        rows = [entry.values for group in self._groups.values() for entry in group]
        by_column = zip(*rows, strict=True) if rows else ([] for _ in self._types)
        return [Vector.from_list(list(v), kind) for v, kind in zip(by_column, self._types, strict=True)]


def _needed(entries: list[_Entry]) -> list[_Entry]:
    """The entries without those for which others stand; the worst are left out first."""
    left = sorted(entries, key=lambda one: one.lead)
    for entry in list(left):
        others = [one for one in left if one is not entry]
        if _covered(entry, others):
            left = others
    return left


def _covered(entry: _Entry, others: Sequence[_Entry]) -> bool:
    better = [one.sides for one in others if one.lead >= entry.lead]
    return not _excludable(entry.sides, better, {})


def _excludable(own: tuple[Value, ...], others: list[tuple[Value, ...]], chosen: dict[int, Value]) -> bool:
    """True if values of the other sides, none of them equal to `own`, exclude all of `others`."""
    left = [one for one in others if all(one[place] != value for place, value in chosen.items())]
    if not left:
        return True
    first = left[0]
    return any(
        _excludable(own, left, {**chosen, place: value})
        for place, value in enumerate(first)
        if place not in chosen and value != own[place]
    )
