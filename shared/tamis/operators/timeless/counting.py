"""Alternative over several streams with duplicates: buckets of tuples, with counts and accumulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Column, Expr, columns
from tamis.expressions.vectors import Vector
from tamis.operators.aggregates.accumulators import (
    Accumulators,
    PartialAggregates,
    times,
)
from tamis.operators.aggregates.kernels import Integers
from tamis.operators.contract import Batch
from tamis.operators.kept_columns import KeptColumns
from tamis.operators.row_store import Store
from tamis.operators.synopses.columns import Ints, Mask
from tamis.operators.synopses.counting import BatchJoin, CountingSynopses, OccurrenceRows
from tamis.operators.synopses.counting_kernels import Found
from tamis.operators.timeless.matches import AlternativeTuples, Matches, Wanted


class CountingAlternative:
    """Alternative over several streams with duplicates: each bucket keeps its first tuple, the number of its
    tuples, and partial aggregates.
    """

    def __init__(
        self, tuples: AlternativeTuples, joins: Sequence[Expr], kept: KeptColumns, wanted: Wanted
    ) -> None:
        self._tuples, self._wanted, self._joins = tuples, wanted, joins
        self._query = query = tuples.query
        self._types = [
            dict(zip(kept.names[stream], kept.types[stream], strict=True)) for stream in query.streams
        ]
        self._counted = CountingSynopses(query, tuples.closure)
        self._stores = [Store(list(types.values())) for types in self._types]
        self._accumulators = {
            column: Accumulators(column, asked) for column, asked in wanted.aggregated.items()
        }

    @property
    def entries(self) -> int:
        """The number of buckets."""
        return self._counted.entries

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """Count the tuples in their buckets; returns the combinations of tuples and buckets that they
        complete.
        """
        fresh, parts = [], []
        for i in range(len(self._query.streams)):
            columns_, places = self._fresh(i, batches, of)
            fresh.append(columns_)
            parts.append(OccurrenceRows(i, places, self._tuples.columns(self._counted.nodes(i), columns_)))
        taken = self._counted.take(parts)
        for store, new, columns_ in zip(self._stores, taken.new, fresh, strict=True):
            store.append([vector.take(new) for vector in columns_.values()], len(new))
        made = _Combinations(self._stores, fresh, taken, taken.found)
        if self._joins:
            read = {column for expr in self._joins for column in columns(expr)}
            shown = {(one.alias, one.name): made.column(*self._at(one)) for one in read}
            keep = np.ones(len(made), np.bool_)
            for expr in self._joins:
                keep &= holds(expr, shown, len(made))
            made = made.where(keep)
        return Matches(
            taken.places[made.found.event],
            {(one.alias, one.name): made.column(*self._at(one)) for one in self._wanted.columns},
            made.counts(),
            {(one.alias, one.name): self._aggregated(one, made) for one in self._wanted.aggregated},
        )

    def _at(self, column: Column) -> tuple[int, str]:
        return self._query.aliases.index(column.alias), column.name

    def _fresh(
        self, occurrence: int, batches: Mapping[str, Batch], of: Ints
    ) -> tuple[dict[str, Vector], Ints]:
        """The kept columns of the tuples that belong to an occurrence, and the positions of the tuples."""
        stream, types = self._query.streams[occurrence], self._types[occurrence]
        if stream not in batches:
            return {name: Vector.from_list([], kind) for name, kind in types.items()}, np.zeros(0, np.int64)
        batch, places = batches[stream], np.flatnonzero(of == list(batches).index(stream))
        at = np.flatnonzero(self._tuples.belonging(occurrence, batch, len(places)))
        return {name: batch[name].take(at) for name in types}, places[at]

    def _aggregated(self, column: Column, made: _Combinations) -> PartialAggregates:
        """The partial aggregates of a column for each combination, at the time when it arose. The new tuples
        are added to the buckets.
        """
        occurrence, name = self._at(column)
        accumulators, taken, found = self._accumulators[column], made.taken, made.found
        accumulators.grow(len(self._stores[occurrence]))
        single = PartialAggregates.of(made.fresh[occurrence][name], self._wanted.aggregated[column])
        own, bucket, last = made.own(occurrence), found.bucket[:, occurrence], found.last[:, occurrence]
        before, within = ~own & (last < 0), ~own & (last >= 0)
        old = accumulators.take(bucket[before])
        counted = np.flatnonzero((taken.occurrences == occurrence) & (taken.buckets >= 0))
        new = accumulators.add(taken.buckets[counted], single.take(taken.rows[counted]))
        at = np.empty(len(made), np.int64)
        at[own] = taken.rows[found.event[own]]
        at[before] = len(single) + np.arange(len(old))
        at[within] = len(single) + len(old) + np.searchsorted(counted, last[within])
        return PartialAggregates.concat([single, old, new]).take(at).times(made.counts(without=occurrence))

    def dumped(self) -> list[Any]:
        """The first tuples of buckets, their counts and partial aggregates, as JSON, for each occurrence."""
        by_occurrence: list[Any] = []
        for i, (alias, store) in enumerate(zip(self._query.aliases, self._stores, strict=True)):
            accumulators = [
                one.dumped(len(store)) for column, one in self._accumulators.items() if column.alias == alias
            ]
            by_occurrence.append([store.dumped(), self._counted.counts(i).tolist(), accumulators])
        return by_occurrence

    def restore(self, dumped: list[Any]) -> None:
        """Restore the dumped buckets of all occurrences."""
        for i, (alias, store, kept) in enumerate(zip(self._query.aliases, self._stores, dumped, strict=True)):
            shown, counts, accumulators = kept
            store.restore(shown, len(counts))
            read = dict(zip(self._types[i], store.all(), strict=True))
            numbers = self._tuples.columns(self._counted.nodes(i), read)
            self._counted.restore(i, numbers, np.array(counts, np.int64))
            own = [one for column, one in self._accumulators.items() if column.alias == alias]
            for one, values in zip(own, accumulators, strict=True):
                one.restore(values)


class _Combinations:
    """The combinations that a batch completes, and the places of their values."""

    def __init__(
        self, stores: list[Store], fresh: list[dict[str, Vector]], taken: BatchJoin, found: Found
    ) -> None:
        self.fresh, self.taken, self.found = fresh, taken, found
        self._stores = stores

    def __len__(self) -> int:
        return len(self.found.event)

    def where(self, keep: Mask) -> _Combinations:
        """The combinations in a mask."""
        return _Combinations(self._stores, self.fresh, self.taken, Found(*(one[keep] for one in self.found)))

    def own(self, occurrence: int) -> Mask:
        """The mask of combinations whose new tuple is at this occurrence."""
        return np.asarray(self.found.bucket[:, occurrence] < 0, np.bool_)

    def column(self, occurrence: int, name: str) -> Vector:
        """A column of the tuples at an occurrence: the new tuple's value, or the value of the first tuple of
        a bucket.
        """
        fresh, own = self.fresh[occurrence], self.own(occurrence)
        new = fresh[name].take(self.taken.rows[self.found.event[own]])
        old = self._stores[occurrence].take(list(fresh).index(name), self.found.bucket[~own, occurrence])
        at = np.empty(len(self), np.int64)
        at[own] = np.arange(len(new))
        at[~own] = len(new) + np.arange(len(old))
        values = Vector.concat([new, old]).take(at)
        return values if values.null is not None and values.null.any() else Vector(values.data)

    def counts(self, without: int = -1) -> Integers:
        """For each combination, the number of combinations of tuples that it stands for, without the factor
        of one occurrence.
        """
        count = self.found.counts
        return reduce(times, [count[:, i] for i in range(count.shape[1]) if i != without])
