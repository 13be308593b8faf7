"""Evaluators of the alternatives of a query: over one stream, with DISTINCT, and their choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr
from tamis.operators.contract import Batch
from tamis.operators.kept_columns import KeptColumns, Values
from tamis.operators.synopses.columns import Ints
from tamis.operators.synopses.evaluator import Evaluator
from tamis.operators.synopses.synopsis import Entry
from tamis.operators.timeless.counting import CountingAlternative
from tamis.operators.timeless.matches import Alternative, AlternativeTuples, Matches, Wanted
from tamis.operators.tuple_values import Numbers
from tamis.plan import nodes
from tamis.plan.conjunction import with_extreme


class SingleStreamAlternative:
    """Alternative over one stream: each tuple that meets the conditions is a row, and nothing is kept."""

    entries = 0

    def __init__(self, tuples: AlternativeTuples, wanted: Wanted) -> None:
        self._tuples, self._wanted = tuples, wanted

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """The tuples that meet the conditions, each as a match of its own."""
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
        """An empty list, because there is no state."""
        return []

    def restore(self, dumped: list[Any]) -> None:
        """Do nothing, because there is no state."""


@dataclass(frozen=True)
class _Arrivals:
    """Tuples of one stream, some of which must be pushed: their positions, their kept values, the numbers of
    all nodes, and for each occurrence of the stream the mask of the tuples to push there.
    """

    places: Ints
    values: list[Values]
    pushed: Mapping[int, tuple[list[bool], list[Numbers | None]]]


class DistinctAlternative:
    """Alternative over several streams under DISTINCT: each bucket keeps one tuple, which stands for all of
    its tuples.
    """

    def __init__(
        self,
        node: nodes.Alternative,
        tuples: AlternativeTuples,
        joins: Sequence[Expr],
        kept: KeptColumns,
        wanted: Wanted,
    ) -> None:
        self._tuples, self._wanted, self._kept, self._joins = tuples, wanted, kept, joins
        self._query, self._stands = node.conjunction, node.stands
        wider = None if node.extreme is None else with_extreme(tuples.query, tuples.closure, *node.extreme)
        self._evaluator = Evaluator(self._query, tuples.closure, self._hold if joins else None, wider)
        # Batches number texts as they come, and entries by their letters: the two orders differ.
        kinds = {at: one.kind for at, one in enumerate(self._query.nodes, 1)}
        self._ordered_texts = any(
            one.bound < 0 and kinds.get(one.left) == kinds.get(one.right) == "text"
            for one in self._query.differences
        )

    @property
    def entries(self) -> int:
        """The number of entries of all synopses."""
        return self._evaluator.entries

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """Push the tuples one by one; returns the combinations with kept tuples that they complete."""
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
        for gone, left in self._stands:
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
            if self._ordered_texts:
                some |= mask
                continue
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
            found.append(self._tuples.numbers(batch[node.column]) if own else None)
        return found

    def dumped(self) -> list[Any]:
        """The kept values of all entries as JSON, by occurrence and cell."""
        return [
            [[one.payload for one in cell.values()] for cell in synopsis.buckets]
            for synopsis in self._evaluator.synopses
        ]

    def restore(self, dumped: list[Any]) -> None:
        """Restore the dumped entries of all synopses."""
        for occurrence, (stream, cells) in enumerate(zip(self._query.streams, dumped, strict=True)):
            for cell, entries in enumerate(cells):
                kept = [tuple(one) for one in entries]
                columns = self._numbers(occurrence, self._kept.vectors(stream, kept))
                for row, carried in enumerate(kept):
                    self._evaluator.synopses[occurrence].restore(cell, _at(columns, row), carried, 1)


def _at(numbers: Sequence[Numbers | None], row: int) -> Numbers:
    return [None if column is None else column[row] for column in numbers]


def alternatives(matching: nodes.Matching, kept: KeptColumns, wanted: Wanted) -> list[Alternative]:
    """The evaluators of all alternatives, with empty state."""
    return [_alternative(one, matching, kept, wanted) for one in matching.alternatives]


def _alternative(
    node: nodes.Alternative, matching: nodes.Matching, kept: KeptColumns, wanted: Wanted
) -> Alternative:
    tuples = AlternativeTuples(node, matching.numbers)
    match node.keeps:
        case "nothing":
            return SingleStreamAlternative(tuples, wanted)
        case "representatives":
            return DistinctAlternative(node, tuples, matching.joins, kept, wanted)
        case "counts":
            return CountingAlternative(tuples, matching.joins, kept, wanted)
        case _:
            assert_never(node.keeps)
