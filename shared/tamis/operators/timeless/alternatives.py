"""Evaluators of the alternatives of a query: over one stream, with DISTINCT, and their choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.bounded.timeless.minimised_alternatives import Minimal, Numbers, numbers
from tamis.bounded.timeless.translate import Translation
from tamis.difference_bounds import Closure
from tamis.expressions.evaluate import holds
from tamis.operators.contract import Batch
from tamis.operators.kept_columns import KeptColumns, Values
from tamis.operators.synopses.columns import Ints
from tamis.operators.synopses.evaluator import Evaluator
from tamis.operators.synopses.synopsis import Entry
from tamis.operators.timeless.counting import CountingAlternative
from tamis.operators.timeless.matches import Alternative, AlternativeTuples, Matches, Wanted
from tamis.plan.conjunction import Conjunction


class SingleStreamAlternative:
    """See `Alternative`."""

    entries = 0

    def __init__(self, translation: Translation, minimal: Minimal, wanted: Wanted) -> None:
        self._tuples, self._wanted = AlternativeTuples(translation, minimal), wanted

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """See `Alternative`."""
        (stream,) = self._tuples.query.streams
        if stream not in batches:
            return Matches.none(self._wanted)
        batch, places = batches[stream], np.flatnonzero(of == list(batches).index(stream))
        at = np.flatnonzero(self._tuples.belonging(0, batch, len(places)))
        # Sources that were eliminated have the same tuple as the remaining one.
        read = (*self._wanted.columns, *self._wanted.aggregated)
        columns = {(one.alias, one.name): batch[one.name].take(at) for one in read}
        return Matches.single(places[at], columns, self._wanted)

    def dumped(self) -> list[Any]:
        """See `Alternative`."""
        return []

    def restore(self, dumped: list[Any]) -> None:
        """See `Alternative`."""


@dataclass(frozen=True)
class _Arrivals:
    """Tuples of one stream, some of which must be pushed: their positions, their kept values, the numbers of
    all nodes, and for each occurrence of the stream the mask of the tuples to push there.
    """

    places: Ints
    values: list[Values]
    pushed: Mapping[int, tuple[list[bool], list[Numbers | None]]]


class DistinctAlternative:
    """See `Alternative`. `asked` is the conjunction of the evaluator."""

    def __init__(
        self,
        translation: Translation,
        minimal: Minimal,
        kept: KeptColumns,
        wanted: Wanted,
        asked: tuple[Conjunction, Closure] | None = None,
    ) -> None:
        self._tuples, self._wanted, self._kept = AlternativeTuples(translation, minimal), wanted, kept
        self._query = minimal.conjunction
        self._stands, self._codes, self._joins = minimal.representatives, translation.codes, translation.joins
        holding = self._hold if translation.joins else None
        self._evaluator = Evaluator(self._query, minimal.closure, holding, asked)

    @property
    def entries(self) -> int:
        """See `Alternative`."""
        return self._evaluator.entries

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """See `Alternative`."""
        aliases, streams = self._query.aliases, self._query.streams
        found: list[list[Values]] = [[] for _ in aliases]
        places: list[int] = []
        for place, occurrence, values, carried in self._arrivals(batches, of):
            for chosen, _ in self._evaluator.push(occurrence, values, carried):
                places.append(place)
                for column, payload in zip(found, chosen, strict=True):
                    column.append(payload)  # type: ignore[arg-type]
        columns = {
            (alias, name): vector
            for alias, stream, own in zip(aliases, streams, found, strict=True)
            for name, vector in self._kept.vectors(stream, own).items()
        }
        for gone, left in self._stands.items():
            columns |= {(gone, name): vector for (alias, name), vector in columns.items() if alias == left}
        return Matches.single(np.array(places, np.int64), columns, self._wanted)

    def _arrivals(self, batches: Mapping[str, Batch], of: Ints) -> Iterator[tuple[int, int, Numbers, Values]]:
        """The tuples that must be pushed, in order: position, occurrence, numbers, kept values."""
        parts = [
            self._arrived(stream, batch, np.flatnonzero(of == number))
            for number, (stream, batch) in enumerate(batches.items())
            if stream in self._query.streams
        ]
        turns = sorted(
            (place, number, row)
            for number, part in enumerate(parts)
            for row, place in enumerate(part.places.tolist())
        )
        for place, number, row in turns:
            part = parts[number]
            for occurrence, (pushed, columns) in part.pushed.items():
                if pushed[row]:
                    yield place, occurrence, _at(columns, row), part.values[row]

    def _arrived(self, stream: str, batch: Batch, places: Ints) -> _Arrivals:
        rows, query, evaluator = len(places), self._query, self._evaluator
        moving = {
            i: self._tuples.belonging(i, batch, rows) for i, one in enumerate(query.streams) if one == stream
        }
        some = np.zeros(rows, np.bool_)
        for i, mask in moving.items():
            at = np.flatnonzero(mask)
            told = {query.nodes[node - 1].column: node for node in evaluator.insert_nodes(i)}
            own = {name: batch[name].take(at) for name in told}
            mask[at] = evaluator.inserts(i, self._tuples.columns(told.values(), own), len(at))
            some |= mask
        at = np.flatnonzero(some)
        own = {name: batch[name].take(at) for name in self._kept.names[stream]}
        return _Arrivals(
            places[at],
            self._kept.values(stream, own, len(at)),
            {i: (mask[at].tolist(), self._numbers(i, own)) for i, mask in moving.items()},
        )

    def _hold(self, chosen: Sequence[Entry]) -> bool:
        columns = {}
        for alias, stream, entry in zip(self._query.aliases, self._query.streams, chosen, strict=True):
            one = self._kept.vectors(stream, [entry.payload])  # type: ignore[list-item]
            columns.update({(alias, name): vector for name, vector in one.items()})
        return all(bool(holds(expr, columns, 1)[0]) for expr in self._joins)

    def _numbers(self, occurrence: int, batch: Batch) -> list[Numbers | None]:
        """The values of every node of an occurrence as numbers."""
        found: list[Numbers | None] = [None]
        for node in self._query.nodes:
            own = node.occurrence == occurrence
            found.append(numbers(batch[node.column], self._codes) if own else None)
        return found

    def dumped(self) -> list[Any]:
        """See `Alternative`: all entries, by occurrence and cell."""
        return [
            [[one.payload for one in cell.values()] for cell in synopsis.buckets]
            for synopsis in self._evaluator.synopses
        ]

    def restore(self, dumped: list[Any]) -> None:
        """See `Alternative`."""
        for occurrence, (stream, cells) in enumerate(zip(self._query.streams, dumped, strict=True)):
            for cell, entries in enumerate(cells):
                kept = [tuple(one) for one in entries]
                columns = self._numbers(occurrence, self._kept.vectors(stream, kept))
                for row, carried in enumerate(kept):
                    self._evaluator.synopses[occurrence].restore(cell, _at(columns, row), carried, 1)


def _at(numbers: Sequence[Numbers | None], row: int) -> Numbers:
    return [None if column is None else column[row] for column in numbers]


def compile_alternative(
    translation: Translation,
    minimal: Minimal,
    kept: KeptColumns,
    wanted: Wanted,
    asked: tuple[Conjunction, Closure] | None = None,
) -> Alternative:
    """The evaluator of an alternative, with empty state. `asked`: with DISTINCT, a wider conjunction and its
    closure may decide which tuples are kept; None if it is the query's own.
    """
    if len(minimal.conjunction.streams) == 1:
        return SingleStreamAlternative(translation, minimal, wanted)
    if minimal.conjunction.distinct:
        return DistinctAlternative(translation, minimal, kept, wanted, asked)
    return CountingAlternative(translation, minimal, kept, wanted)
