"""Evaluation of EXISTS and NOT EXISTS: the rows of a definition, each once.

Combinations of the row's inputs and of those under EXISTS are found by the temporal join; each becomes one
row, however many tuples under EXISTS join it. A row is then left out if tuples under NOT EXISTS join it.

With EXISTS alone, a row is given with the first tuple that completes it. A row of old tuples that already had
a partner among the old tuples was given before. The tuples under EXISTS are therefore kept until no other
tuple of their input can join the same row (`time_distances.Joined.reach`). With NOT EXISTS, a row is given
when frontiers have decided it (`decided_rows`).

Late tuples: a row with a late tuple that would have been decided earlier is not given, because the tuples
that could exclude it may have been removed. `late` counts these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tamis.expressions.vectors import Mask
from tamis.identity_cache import IdentityCache
from tamis.operators.time_join.decided_rows import Passed, crossing, decided, known, times_of, waits
from tamis.operators.time_join.exact_threshold import ExactCheck
from tamis.operators.time_join.temporal_join import (
    BLOCK,
    JoinedColumns,
    Rows,
    SortedRows,
    Tuples,
    blocks,
    cached_check,
    combinations,
    expand,
    passing,
    residual_check,
    windows,
)
from tamis.operators.time_join.time_bounds import joined
from tamis.plan.model import Absence, Definition, Input

ByAlias = Mapping[str, Rows]


@dataclass(frozen=True)
class Found:
    """Rows as row numbers of tuples, one array for each input of `row_inputs`. `late`: the number of rows
    that were not given because a tuple was late.
    """

    rows: tuple[Rows, ...]
    late: int


def tests_existence(definition: Definition) -> bool:
    """Tell if the definition has EXISTS or NOT EXISTS."""
    return bool(definition.exists or definition.absences)


def row_inputs(definition: Definition) -> tuple[Input, ...]:
    """The inputs that rows consist of."""
    return _parts(definition).rows


def existing_rows(
    definition: Definition,
    tuples: Mapping[str, Tuples],
    passed: Passed,
    masks: Sequence[Mask] | None = None,
    *,
    until: int | None = None,
) -> Found:
    """The rows of a definition that are given now, each once; parameters as of `temporal_join.combinations`.

    `passed` are the frontiers. Tuples that are marked new have arrived since the evaluation before.
    """
    if masks is None:
        masks = [passing(source, tuples[source.alias]) for source in definition.inputs]
    by_alias = {source.alias: mask for source, mask in zip(definition.inputs, masks, strict=True)}
    parts, awaited = _parts(definition), waits(definition)
    candidates = _candidates(definition, tuples, by_alias, passed, until)
    names = [source.alias for source in parts.rows]
    times = times_of(tuples, candidates)
    new = {alias: tuples[alias].new[candidates[alias]] for alias in names}
    fresh = np.any(list(new.values()), axis=0)
    kept = decided(awaited, times, passed.now) & known(awaited, times, passed.complete)
    given = ~fresh & decided(awaited, times, passed.before)
    if definition.exists and given.any():
        old = {
            alias: by_alias[alias] & ~tuples[alias].new & (tuples[alias].versions >= definition.version)
            for alias in definition.exists
        }
        some = np.flatnonzero(given)
        given[some] = _joined_by(definition, None, tuples, old, rows=_taken(candidates, some))
    kept &= ~given
    late = np.zeros(len(kept), np.bool_)
    for wait in awaited:
        for alias in names:
            behind = new[alias] & (times[alias] < passed.before[alias])
            late |= kept & behind & decided((wait,), times, passed.before)
    kept &= ~late
    rows = _taken(candidates, np.flatnonzero(kept))
    for absence in definition.absences:
        rows = _taken(rows, np.flatnonzero(_comparable(absence, tuples, rows)))
        excluded = _joined_by(definition, absence, tuples, by_alias, rows=rows)
        rows = _taken(rows, np.flatnonzero(~excluded))
    return Found(tuple(rows[alias] for alias in names), int(late.sum()))


def _comparable(absence: Absence, tuples: Mapping[str, Tuples], rows: ByAlias) -> Mask:
    """The mask of rows without NULL in the columns that the absence equates with its own. For columns of the
    partition key, `_candidates` has left such rows out: a tuple with NULL in its key joins nothing.
    """
    found = np.ones(len(next(iter(rows.values()))), np.bool_)
    for column in (column for pair in absence.equalities for column in pair):
        if column.alias in rows:
            null = tuples[column.alias].columns[column.name].null
            if null is not None:
                found &= ~null[rows[column.alias]]
    return found


def _taken(rows: ByAlias, which: Rows) -> dict[str, Rows]:
    return {alias: picked[which] for alias, picked in rows.items()}


def _candidates(
    definition: Definition,
    tuples: Mapping[str, Tuples],
    masks: Mapping[str, Mask],
    passed: Passed,
    until: int | None,
) -> dict[str, Rows]:
    """The combinations of row inputs, each once, that have a new tuple or may be decided now, and whose
    tuples under EXISTS are there.
    """
    parts, awaited = _parts(definition), waits(definition)
    names = [source.alias for source in parts.rows]
    marked = {}
    for source in parts.base.inputs:
        mine = tuples[source.alias]
        new = mine.new
        if awaited and source.alias in names:
            new = new | crossing(awaited, source.alias, mine.times, passed)
        marked[source.alias] = Tuples(mine.times, mine.keys, mine.versions, new, mine.columns)
    at = [i for i, source in enumerate(parts.base.inputs) if source.alias in names]
    keyed = [masks[source.alias] & (tuples[source.alias].keys >= 0) for source in parts.base.inputs]
    found = [
        np.unique(np.stack([block[i] for i in at]), axis=1)
        for block in combinations(parts.base, marked, [np.flatnonzero(mask) for mask in keyed], until=until)
    ]
    rows = np.concatenate([np.empty((len(at), 0), np.int64), *found], axis=1)
    if definition.exists:
        rows = np.unique(rows, axis=1)
    return dict(zip(names, rows, strict=True))


@dataclass(frozen=True)
class _Parts:
    """`base`: the definition without its absences; `rows`: the inputs of its rows."""

    base: Definition
    rows: tuple[Input, ...]


def _parts(definition: Definition) -> _Parts:
    """The parts of a definition, always the same objects."""
    return _PARTS.one(definition, partial(_make_parts, definition))


_PARTS = IdentityCache[_Parts]()


def _make_parts(definition: Definition) -> _Parts:
    absent = {alias for absence in definition.absences for alias in absence.aliases}
    inputs = tuple(source for source in definition.inputs if source.alias not in absent)
    rows = tuple(source for source in inputs if source.alias not in definition.exists)
    return _Parts(replace(definition, inputs=inputs, exists=(), absences=()), rows)


def _joined_by(
    definition: Definition,
    absence: Absence | None,
    tuples: Mapping[str, Tuples],
    masks: Mapping[str, Mask],
    *,
    rows: ByAlias,
) -> Mask:
    """The mask of the rows that tuples of an absence join, or those under EXISTS without an absence. `masks`:
    the tuples of these inputs that may take part.
    """
    parts = _parts(definition)
    aliases = definition.exists if absence is None else absence.aliases
    inputs = (*parts.rows, *(source for source in definition.inputs if source.alias in aliases))
    if absence is None:
        check = cached_check(parts.base)
    else:
        check = _CHECKS.one(absence, partial(residual_check, absence))
    sides = {
        alias: SortedRows.of(tuples[alias], np.flatnonzero(masks[alias] & (tuples[alias].keys >= 0)))
        for alias in aliases
    }
    search = _Search(inputs, tuples, sides, joined(definition).hidden[aliases[0]].upper, check)
    found = np.zeros(len(next(iter(rows.values()))), np.bool_)
    search.mark(found, np.arange(len(found)), dict(rows), list(aliases))
    return found


_CHECKS = IdentityCache[ExactCheck | None]()


@dataclass(frozen=True)
class _Search:
    """Search for the partners of rows in one input after the other. It ends for a row with the first
    combination that meets the conditions.
    """

    inputs: Sequence[Input]
    tuples: Mapping[str, Tuples]
    sides: Mapping[str, SortedRows]
    upper: Mapping[tuple[str, str], int]
    check: ExactCheck | None

    def mark(self, found: Mask, owner: Rows, chosen: dict[str, Rows], left: list[str]) -> None:
        """Mark in `found` the rows `owner`, one for each combination `chosen`, that tuples of the inputs
        `left` join.
        """
        if not left:
            which = np.arange(len(owner))
            if self.check is not None:
                picked = [chosen[source.alias] for source in self.inputs]
                which = self.check.met(JoinedColumns(self.inputs, self.tuples, picked), len(owner))
            found[owner[which]] = True
            return
        alias, side = left[0], self.sides[left[0]]
        first = next(iter(chosen))
        keys = self.tuples[first].keys[chosen[first]]
        start, stop = windows(side.keys, side.times, keys, *self._span(chosen, alias, len(owner)))
        if len(left) == 1 and self.check is None:
            found[owner[stop > start]] = True
            return
        for which, begin, end in self._blocks(found, owner, start, stop):
            probe, partner = expand(begin, end)
            longer = {name: picked[which][probe] for name, picked in chosen.items()}
            self.mark(found, owner[which][probe], longer | {alias: side.rows[partner]}, left[1:])

    @staticmethod
    def _blocks(found: Mask, owner: Rows, start: Rows, stop: Rows) -> Iterator[tuple[Rows, Rows, Rows]]:
        """Ranges of partners, without those of rows that are found in an earlier block."""
        for which, begin, end in blocks(start, stop, BLOCK):
            left = ~found[owner[which]]
            yield which[left], begin[left], end[left]

    def _span(self, chosen: ByAlias, alias: str, size: int) -> tuple[Rows, Rows]:
        """The least and the greatest time of input `alias` for each combination."""
        low = np.full(size, -(2**61), np.int64)
        high = np.full(size, 2**61, np.int64)
        for name, picked in chosen.items():
            times = self.tuples[name].times[picked]
            if (name, alias) in self.upper:
                np.maximum(low, times - self.upper[name, alias], out=low)
            if (alias, name) in self.upper:
                np.minimum(high, times + self.upper[alias, name], out=high)
        return low, high
