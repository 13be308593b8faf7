"""The changing rows of groups: after each tuple a row for every group whose row changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.closure import Closure
from tamis.bounded.normal_form import Conjunction
from tamis.evaluation.standing.contract import WITHDRAWN, Batch, Rows
from tamis.evaluation.standing.timeless.arrivals import arrivals
from tamis.evaluation.standing.timeless.conjunct import Conjunct, Keeping, Kept, Values
from tamis.evaluation.standing.timeless.rows import kept_columns, needed
from tamis.evaluation.standing.timeless.state import packed, unpacked
from tamis.evaluation.standing.timeless.tallies import Group, Tally
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.vectors import Vector
from tamis.planning.timeless.grouped import Part, parts, whole
from tamis.query.model import Aggregate, Catalog, Grouping, Query

Key = tuple[object, ...]
Name = tuple[str, str]  # alias and column


@dataclass
class _Piece:
    """What a tuple, or a bucket of them, gives to groups: the values of its first, how many, and tallies."""

    values: Values
    count: int
    tallies: dict[Name, Tally]

    def dumped(self) -> list[Any]:
        """As JSON; tallies in the order of their columns."""
        tallies = [self.tallies[name].dumped() for name in sorted(self.tallies)]
        return [self.values, self.count, tallies]


def _values(payload: _Piece) -> Values:
    return payload.values


def _merge(first: object, later: object) -> None:
    assert isinstance(first, _Piece)
    assert isinstance(later, _Piece)
    first.count += later.count
    for column, tally in later.tallies.items():
        first.tallies[column].add(tally)


def _keeping(kept: Kept, part: Part, asked: Conjunction, closure: Closure) -> Keeping:
    return Keeping(kept, _values, (asked, closure), _merge if part.counted else None)


@dataclass
class _Candidates:
    """Groups that tuples touched, as they were right after."""

    keys: list[Key]
    values: list[list[Any]]  # by aggregate
    completed: list[int]


class Groups:
    """A query with aggregates."""

    def __init__(self, query: Query, grouping: Grouping, catalog: Catalog) -> None:
        self.streams = frozenset(source.stream for source in query.sources)
        self._query, self._grouping = query, grouping
        self._source = {source.alias: source.stream for source in query.sources}
        read = [a.column for a in grouping.aggregates if a.column is not None]
        self._aggregated = sorted({(c.alias, c.name) for c in read})
        asked = parts(query, grouping, catalog)
        self._kept = kept_columns(
            query, catalog, [*needed(*(one.translation for one in asked)), *grouping.by, *read]
        )
        self._at = {
            (alias, name): place
            for alias, stream in self._source.items()
            for place, name in enumerate(self._kept.names[stream])
        }
        self._runs: list[tuple[Part, Conjunct]] = [
            (part, Conjunct(part.translation, one, _keeping(self._kept, part, wider, closure)))
            for part in asked
            for one, wider, closure in part.alternatives(grouping.aggregates)
        ]
        self._groups: dict[Key, Group] = {}

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `Standing`."""
        return self.take_in_turn({stream: batch}, np.zeros(rows, np.int64))

    def take_in_turn(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """See `InTurn`."""
        found = _Candidates([], [[] for _ in self._grouping.aggregates], [])
        for arrival in arrivals([one for _, one in self._runs], self._kept, batches, of):
            touched: dict[Key, None] = {}
            piece = partial(self._piece, arrival.values)
            for number, (part, conjunct) in enumerate(self._runs):
                for chosen, count in arrival.push(number, conjunct, piece):
                    touched.setdefault(self._count(part, chosen, count))
            for key in touched:
                found.keys.append(key)
                found.completed.append(arrival.place)
                for column, one in zip(found.values, self._grouping.aggregates, strict=True):
                    column.append(self._groups[key].value(one))
        return self._changes(found)

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `Standing`: without time nothing follows."""
        return self._changes(_Candidates([], [[] for _ in self._grouping.aggregates], []))

    def entries(self) -> int:
        """See `Standing`: entries, groups, and the values that groups need."""
        own = sum(max(1, sum(map(len, group.values.values()))) for group in self._groups.values())
        return sum(run.evaluator.entries for _, run in self._runs) + own

    def dump(self) -> bytes:
        """See `Standing`."""
        groups = [[key, group.dumped(self._aggregated)] for key, group in self._groups.items()]
        return packed(self._form(), [[run.dump(_Piece.dumped) for _, run in self._runs], groups])

    def load(self, state: bytes) -> None:
        """See `Standing`."""
        runs, groups = unpacked(state, self._form())
        for (_, run), dumped in zip(self._runs, runs, strict=True):
            run.load(dumped, self._restored)
        self._groups = {tuple(key): Group.restored(one, self._aggregated) for key, one in groups}

    def _form(self) -> list[Any]:
        calls = [[one.function, one.distinct] for one in self._grouping.aggregates]
        names = dict(sorted(self._kept.names.items()))
        return ["groups", calls, self._aggregated, len(self._runs), names]

    def _piece(self, values: Values, alias: str) -> _Piece:
        """A tuple as it is kept."""
        return _Piece(
            values, 1, {c: Tally.of(values[self._at[c]]) for c in self._aggregated if c[0] == alias}
        )

    def _restored(self, alias: str, dumped: list[Any]) -> _Piece:
        values, count, tallies = dumped
        own = [name for name in self._aggregated if name[0] == alias]
        return _Piece(tuple(values), count, dict(zip(own, map(Tally.restored, tallies), strict=True)))

    def _count(self, part: Part, chosen: Mapping[str, _Piece], count: int) -> Key:
        """Take joined tuples into their group, and say which one that is."""
        key = tuple(chosen[c.alias].values[self._at[c.alias, c.name]] for c in self._grouping.by)
        group = self._groups.setdefault(key, Group())
        if part.counted:
            group.rows += count
        for number, aggregate in enumerate(self._grouping.aggregates):
            if aggregate.column is None or not whole(aggregate) or not _serves(part, number, aggregate):
                continue
            column = (aggregate.column.alias, aggregate.column.name)
            value = chosen[column[0]].values[self._at[column]]
            if value is not None:
                group.values.setdefault(column, Counter())[value] += count if part.counted else 0
        for column in self._aggregated if part.counted else _extreme(part, self._grouping):
            piece = chosen[column[0]]
            times = count // piece.count if part.counted else 1
            group.tallies.setdefault(column, Tally()).add(piece.tallies[column], times)
        return key

    def _changes(self, found: _Candidates) -> Rows:
        """The candidates that change the row of their group, or withdraw it."""
        count = len(found.keys)
        by = zip(*found.keys, strict=True) if count and self._grouping.by else [()] * len(self._grouping.by)
        columns = {
            (c.alias, c.name): Vector.from_list(list(values), c.type)
            for c, values in zip(self._grouping.by, by, strict=True)
        }
        for number, aggregate in enumerate(self._grouping.aggregates):
            columns["", str(number)] = Vector.from_list(found.values[number], aggregate.type)
        selected = {output.name: evaluate(output.expr, columns, count) for output in self._query.select}
        having = self._grouping.having
        holding = np.ones(count, np.bool_) if having is None else holds(having, columns, count)
        kept, withdrawn = self._told(found.keys, list(selected.values()), holding)
        rows = Rows(selected, np.array(found.completed, np.int64)).take(np.array(kept, np.int64))
        if having is None:
            return rows
        return Rows({**rows.columns, WITHDRAWN: Vector(np.array(withdrawn, np.bool_))}, rows.completed)

    def _told(
        self, keys: Sequence[Key], selected: Sequence[Vector], holding: np.ndarray
    ) -> tuple[list[int], list[bool]]:
        kept: list[int] = []
        withdrawn: list[bool] = []
        lists = [vector.to_list() for vector in selected]
        for place, (key, row) in enumerate(zip(keys, zip(*lists, strict=True), strict=True)):
            group = self._groups[key]
            if holding[place] and group.shown != row:
                group.shown = row
            elif not holding[place] and group.shown is not None:
                group.shown = None
            else:
                continue
            kept.append(place)
            withdrawn.append(not holding[place])
        return kept, withdrawn


def _serves(part: Part, number: int, aggregate: Aggregate) -> bool:
    """Does a part give an aggregate?"""
    if part.counted or part.extreme == number:
        return True
    return part.extreme is None and whole(aggregate)


def _extreme(part: Part, grouping: Grouping) -> list[Name]:
    if part.extreme is None:
        return []
    column = grouping.aggregates[part.extreme].column
    assert column is not None
    return [(column.alias, column.name)]
