"""Rows under SELECT that a batch completes, in columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tamis.expressions.nodes import Column
from tamis.expressions.vectors import Mask, Vector
from tamis.operators.aggregates.accumulators import Measure, PartialAggregates
from tamis.operators.aggregates.kernels import Integers
from tamis.operators.contract import Batch
from tamis.operators.row_store import TextCodes, as_numbers
from tamis.operators.synopses.columns import Column as Coded
from tamis.operators.synopses.columns import Ints
from tamis.operators.synopses.evaluator import Filter
from tamis.operators.tuple_values import Numbers, numbers, passing
from tamis.plan import nodes

Name = tuple[str, str]  # alias and column


@dataclass(frozen=True)
class Wanted:
    """The data needed of each row: values of columns, and partial aggregates of other columns."""

    columns: tuple[Column, ...]
    aggregated: Mapping[Column, tuple[Measure, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Matches:
    """Combinations of tuples and buckets.

    `places`: the positions of the tuples that complete them, ascending. `columns`: values. `weights`: the
    number of rows that each combination stands for. `aggregated`: partial aggregates of all these rows.
    """

    places: Ints
    columns: Mapping[Name, Vector]
    weights: Integers
    aggregated: Mapping[Name, PartialAggregates]

    @staticmethod
    def single(places: Ints, columns: Mapping[Name, Vector], wanted: Wanted) -> Matches:
        """Combinations of single tuples, each of which is one row."""
        return Matches(
            places,
            {(one.alias, one.name): columns[one.alias, one.name] for one in wanted.columns},
            np.ones(len(places), np.int64),
            {
                (one.alias, one.name): PartialAggregates.of(columns[one.alias, one.name], measures)
                for one, measures in wanted.aggregated.items()
            },
        )

    @staticmethod
    def none(wanted: Wanted) -> Matches:
        """No combinations."""
        read = (*wanted.columns, *wanted.aggregated)
        columns = {(one.alias, one.name): Vector.from_list([], one.type) for one in read}
        return Matches.single(np.zeros(0, np.int64), columns, wanted)

    @staticmethod
    def merged(parts: Sequence[Matches]) -> Matches:
        """The matches of several alternatives by position; at least one, all with the same columns and
        measures.
        """
        if len(parts) == 1:
            return parts[0]
        places = np.concatenate([one.places for one in parts])
        order = np.argsort(places, kind="stable")
        first = parts[0]
        return Matches(
            places[order],
            {name: Vector.concat([one.columns[name] for one in parts]).take(order) for name in first.columns},
            np.concatenate([one.weights for one in parts])[order],
            {
                name: PartialAggregates.concat([one.aggregated[name] for one in parts]).take(order)
                for name in first.aggregated
            },
        )


class Alternative(Protocol):
    """One alternative of a query, with its state."""

    @property
    def entries(self) -> int:
        """The number of its synopsis entries."""

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """The matches that the tuples of batches complete. `of`: for each tuple, in order, the number of its
        batch. The tuple is the next one of that batch.
        """

    def dumped(self) -> list[Any]:
        """The state, as JSON."""

    def restore(self, dumped: list[Any]) -> None:
        """Restore a dumped state."""


class AlternativeTuples:
    """The tuples of an alternative, by the occurrences of their streams."""

    def __init__(self, node: nodes.Alternative, constants: Mapping[str, int]) -> None:
        """`constants`: the numbers of the constant texts in the conjunction."""
        self.query = query = node.conjunction
        closure = query.closure()
        assert closure is not None, "an alternative doesn't contradict itself"
        self.closure = closure
        self._constants = constants
        # Codes of texts in the columns that define buckets: no more than entries have.
        self._texts: TextCodes = dict(self._constants)
        self._conditions = node.conditions
        self._filters = [Filter(query, closure, i) for i in range(len(query.streams))]

    def numbers(self, vector: Vector) -> Numbers:
        """The values of a column as numbers, None for NULL."""
        return numbers(vector, self._constants)

    def belonging(self, occurrence: int, batch: Batch, rows: int) -> Mask:
        """The mask of a batch's tuples that meet all conditions on their source and belong to this
        alternative.
        """
        query = self.query
        belongs = passing(self._conditions[occurrence], query.aliases[occurrence], batch, rows)
        at = np.flatnonzero(belongs)
        if len(at):
            codes = dict(self._constants)
            columns = {
                node: as_numbers(batch[query.nodes[node - 1].column].take(at), codes)
                for node in query.own(occurrence)
            }
            belongs[at] = self._filters[occurrence].keeps(columns, len(at))
        return belongs

    def columns(self, wanted: Iterable[int], batch: Batch) -> dict[int, Coded]:
        """The values of nodes of one occurrence; equal values have the same number in every batch."""
        return {node: as_numbers(batch[self.query.nodes[node - 1].column], self._texts) for node in wanted}
