"""The rows under SELECT that a batch completes, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tamis.bounded.evaluate.columns import Ints
from tamis.evaluation.standing.contract import Batch
from tamis.evaluation.standing.measures import Measure
from tamis.evaluation.standing.timeless.kernels import Whole
from tamis.evaluation.standing.timeless.tallies import Tallied
from tamis.expressions.nodes import Column
from tamis.expressions.vectors import Vector

Name = tuple[str, str]  # alias and column


@dataclass(frozen=True)
class Wanted:
    """What is wanted of each row: the values of columns, and of others tallies with measures."""

    columns: tuple[Column, ...]
    tallied: Mapping[Column, tuple[Measure, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Matches:
    """Combinations of tuples and buckets: the `places` of the tuples that complete them, rising, the values
    of columns, and for how many rows each stands. Tallies are of all these rows.
    """

    places: Ints
    columns: Mapping[Name, Vector]
    weights: Whole
    tallied: Mapping[Name, Tallied]

    @staticmethod
    def single(places: Ints, columns: Mapping[Name, Vector], wanted: Wanted) -> Matches:
        """Combinations of single tuples, each of which is one row."""
        return Matches(
            places,
            {(one.alias, one.name): columns[one.alias, one.name] for one in wanted.columns},
            np.ones(len(places), np.int64),
            {
                (one.alias, one.name): Tallied.of(columns[one.alias, one.name], measures)
                for one, measures in wanted.tallied.items()
            },
        )

    @staticmethod
    def none(wanted: Wanted) -> Matches:
        """No combinations."""
        read = (*wanted.columns, *wanted.tallied)
        columns = {(one.alias, one.name): Vector.from_list([], one.type) for one in read}
        return Matches.single(np.zeros(0, np.int64), columns, wanted)

    @staticmethod
    def merged(parts: Sequence[Matches]) -> Matches:
        """Of several alternatives, by place: at least one, all with the same columns and measures."""
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
                name: Tallied.concat([one.tallied[name] for one in parts]).take(order)
                for name in first.tallied
            },
        )


class Alternative(Protocol):
    """One alternative of a query, and what is kept for it."""

    @property
    def entries(self) -> int:
        """How many entries it has."""

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """What tuples of batches complete. `of` says, for each tuple in their order, the number of its batch,
        of which it is the next one.
        """

    def dumped(self) -> list[Any]:
        """What is kept, as JSON."""

    def restore(self, dumped: list[Any]) -> None:
        """Take back what was kept."""
