"""Combinations of tuples that stand for all others, as the rows under the aggregates of a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tamis.expressions.nodes import Column, Expr
from tamis.operators.contract import Batch
from tamis.operators.representatives.join import RepresentedJoin
from tamis.operators.synopses.columns import Ints
from tamis.operators.timeless.matches import Matches, Wanted
from tamis.plan import nodes


class RepresentedMatches:
    """The combinations of a query with aggregates of which only representatives are kept, each once. Computed
    columns are computed of the joined tuples.
    """

    def __init__(self, node: nodes.Groups, wanted: Wanted) -> None:
        self._wanted = wanted
        self._columns = (*wanted.columns, *wanted.aggregated)
        computed = {(one.source, one.name): one.expr for one in node.grouping.computed}

        def meaning(column: Column) -> Expr:
            return computed.get((column.alias, column.name), column)

        self._join = RepresentedJoin(node.represented, [meaning(one) for one in self._columns])

    @property
    def entries(self) -> int:
        """The number of kept tuples."""
        return self._join.entries

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Iterator[Matches]:
        """The combinations that interleaved tuples complete, for one part of the tuples after the other."""
        for places, values in self._join.take(batches, of):
            named = zip(self._columns, values, strict=True)
            columns = {(column.alias, column.name): vector for column, vector in named}
            yield Matches.single(places, columns, self._wanted)

    def dumped(self) -> list[Any]:
        """The kept tuples, as JSON."""
        return self._join.dumped()

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore dumped tuples."""
        self._join.restore(dumped)

    def form(self) -> list[object]:
        """The form that a state must have."""
        return self._join.form()
