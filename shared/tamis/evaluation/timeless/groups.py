"""The changing rows of groups: after each tuple a row for every group whose row changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.bounded.closure import Closure
from tamis.bounded.normal_form import Conjunction
from tamis.evaluation.timeless.order import interleaved
from tamis.evaluation.timeless.rows import Result, taken
from tamis.evaluation.timeless.run import Keeping, Run
from tamis.evaluation.timeless.tallies import Group, Tally
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.vectors import Vector
from tamis.planning.timeless.grouped import Part, parts, whole
from tamis.query.model import Aggregate, Catalog, Grouping, Query
from tamis.recordings.typed import Recording

Key = tuple[object, ...]


@dataclass
class _Piece:
    """What a tuple, or a bucket of them, gives to groups: the row of its first, how many, and tallies."""

    row: int
    count: int
    tallies: dict[tuple[str, str], Tally]


def _row(payload: object) -> int:
    assert isinstance(payload, _Piece)
    return payload.row


def _merge(first: object, later: object) -> None:
    assert isinstance(first, _Piece)
    assert isinstance(later, _Piece)
    first.count += later.count
    for column, tally in later.tallies.items():
        first.tallies[column].add(tally)


def _keeping(part: Part, asked: Conjunction, closure: Closure) -> Keeping:
    return Keeping(_row, (asked, closure), _merge if part.counted else None)


class _Replay:
    def __init__(
        self, query: Query, grouping: Grouping, catalog: Catalog, given: Mapping[str, Recording]
    ) -> None:
        self.grouping = grouping
        streams = {source.alias: source.stream for source in query.sources}
        read = [a.column for a in grouping.aggregates if a.column is not None]
        self.values: dict[tuple[str, str], list[Any]] = {
            (c.alias, c.name): given[streams[c.alias]].columns[c.name].to_list()
            for c in (*grouping.by, *read)
        }
        self.aggregated = {(c.alias, c.name) for c in read}
        self.groups: dict[Key, Group] = {}
        self.runs: list[tuple[Part, Run]] = [
            (part, Run(part.translation, one, given, _keeping(part, asked, closure)))
            for part in parts(query, grouping, catalog)
            for one, asked, closure in part.alternatives(grouping.aggregates)
        ]

    def payload(self, alias: str, row: int) -> _Piece:
        """A tuple as it is kept."""
        tallies = {c: Tally.of(self.values[c][row]) for c in self.aggregated if c[0] == alias}
        return _Piece(row, 1, tallies)

    def push(self, stream: str, row: int) -> dict[Key, Mapping[str, int]]:
        """A tuple: the groups that it touches, each with a row of every source's recording."""
        touched: dict[Key, Mapping[str, int]] = {}
        for part, run in self.runs:
            for chosen, count in run.push(stream, row, self.payload):
                pieces = {alias: one for alias, one in chosen.items() if isinstance(one, _Piece)}
                at = {alias: piece.row for alias, piece in pieces.items()}
                key = tuple(self.values[c.alias, c.name][at[c.alias]] for c in self.grouping.by)
                group = self.groups.setdefault(key, Group())
                self._take(part, group, pieces, count)
                touched.setdefault(key, at)
        return touched

    def _take(self, part: Part, group: Group, pieces: Mapping[str, _Piece], count: int) -> None:
        if part.counted:
            group.rows += count
        for number, aggregate in enumerate(self.grouping.aggregates):
            if aggregate.column is None or not _serves(part, number, aggregate):
                continue
            column = (aggregate.column.alias, aggregate.column.name)
            piece = pieces[column[0]]
            if whole(aggregate):
                value = self.values[column][piece.row]
                if value is not None:
                    group.values.setdefault(column, Counter())[value] += count if part.counted else 0
        for column in self.aggregated if part.counted else _extreme(part, self.grouping):
            piece = pieces[column[0]]
            times = count // piece.count if part.counted else 1
            group.tallies.setdefault(column, Tally()).add(piece.tallies[column], times)

    def kept(self) -> int:
        """Entries, groups, and the values that groups need."""
        own = sum(max(1, sum(map(len, group.values.values()))) for group in self.groups.values())
        return sum(run.evaluator.entries for _, run in self.runs) + own


def _serves(part: Part, number: int, aggregate: Aggregate) -> bool:
    """Does a part give an aggregate?"""
    if part.counted or part.extreme == number:
        return True
    return part.extreme is None and whole(aggregate)


def _extreme(part: Part, grouping: Grouping) -> list[tuple[str, str]]:
    if part.extreme is None:
        return []
    column = grouping.aggregates[part.extreme].column
    assert column is not None
    return [(column.alias, column.name)]


def replay_groups(
    query: Query, grouping: Grouping, catalog: Catalog, recordings: Mapping[str, Recording]
) -> Result:
    """Evaluate a query with aggregates over the recordings of its streams: a row for every change of a
    group's, and one that is `withdrawn` where HAVING stops to hold.

    Raises InputError where only some recordings say in which order their tuples came.
    """
    run = _Replay(query, grouping, catalog, recordings)
    keys: list[Key] = []
    steps: list[int] = []
    at: dict[str, list[int]] = {source.alias: [] for source in query.sources}
    values: list[list[Any]] = [[] for _ in grouping.aggregates]
    most = 0
    for step, (stream, row) in enumerate(interleaved(recordings)):
        for key, rows in run.push(stream, row).items():
            keys.append(key)
            steps.append(step)
            for alias, numbers in at.items():
                numbers.append(rows[alias])
            for column, aggregate in zip(values, grouping.aggregates, strict=True):
                column.append(run.groups[key].value(aggregate))
        most = max(most, run.kept())
    chosen = {alias: np.array(numbers, np.int64) for alias, numbers in at.items()}
    columns = taken(query, recordings, chosen)
    for number, (column, aggregate) in enumerate(zip(values, grouping.aggregates, strict=True)):
        columns["", str(number)] = Vector.from_list(column, aggregate.type)
    selected = {output.name: evaluate(output.expr, columns, len(keys)) for output in query.select}
    kept, withdrawn = _changes(keys, selected, _holding(grouping, columns, len(keys)))
    return Result(
        {alias: numbers[kept] for alias, numbers in chosen.items()},
        {name: vector.take(kept) for name, vector in selected.items()},
        most,
        np.array(steps, np.int64)[kept],
        None if grouping.having is None else withdrawn,
    )


def _holding(grouping: Grouping, columns: dict[tuple[str, str], Vector], count: int) -> np.ndarray:
    return np.ones(count, np.bool_) if grouping.having is None else holds(grouping.having, columns, count)


def _changes(
    keys: list[Key], selected: Mapping[str, Vector], holding: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which candidates change the row of their group, and which of them withdraw it."""
    kept: list[int] = []
    withdrawn: list[bool] = []
    last: dict[Key, Key] = {}
    lists = [vector.to_list() for vector in selected.values()]
    for place, (key, row) in enumerate(zip(keys, zip(*lists, strict=True), strict=True)):
        if holding[place] and last.get(key) != row:
            kept.append(place)
            withdrawn.append(False)
            last[key] = row
        elif not holding[place] and key in last:
            kept.append(place)
            withdrawn.append(True)
            del last[key]
    return np.array(kept, np.int64), np.array(withdrawn, np.bool_)
