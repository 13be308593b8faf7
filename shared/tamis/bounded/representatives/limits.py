"""Columns with a limited number of values, over all alternatives of a query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tamis.bounded.timeless.translate import Translation, translate
from tamis.difference_bounds import Closure
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.operators.synopses.bound import Factor, values_of
from tamis.plan.conjunction import Conjunction, spread
from tamis.query.model import Catalog, TimelessSelect


class Limits:
    """The values that columns can have in tuples which are part of a row.

    `possible`: False if the conditions contradict each other.
    """

    def __init__(self, query: TimelessSelect, catalog: Catalog) -> None:
        self.translation: Translation = translate(query, catalog, checks=True)
        branches = self.translation.branches
        self.possible = bool(branches)
        self._number = {column: at for at, column in enumerate(self.translation.columns, 1)}
        if self.possible:
            closures = [branch.closure for branch in branches]
            size = range(len(closures[0].rows))
            # The weakest bounds of all alternatives are closed, too.
            self._closure = Closure([[max(c.rows[i][j] for c in closures) for j in size] for i in size])
            every = [branch.conjunction for branch in branches]
            self._query = _weakest(every)
            # NULL has a number of its own in the alternatives that demand it.
            nulls = [{one.nodes[at].null for one in every} for at in range(len(every[0].nodes))]
            self._sometimes_null = {at for at, found in enumerate(nulls, 1) if len(found) > 1}

    def limited(self, column: Column) -> bool:
        """True if the column has few values, or is one of a KEY whose number is declared."""
        node = self._number.get(column)
        if node is None or node in self._sometimes_null:
            return False
        if any(node in group.nodes for group in self._query.key_limits):
            return True
        dense = column.type is Type.DOUBLE
        return self._closure.values(node) == 1 if dense else self._closure.bounded(node)

    def factors(self, columns: Iterable[Column]) -> list[Factor]:
        """The number of combinations of limited columns, as factors of a product."""
        return values_of(self._query, self._closure, [self._number[column] for column in columns])

    def count(self, column: Column) -> float:
        """The number of values of a limited column."""
        return math.prod(factor.count for factor in self.factors([column]))

    def distances(self, column: Column, other: Column) -> float:
        """The number of differences that two columns of one source can have."""
        node, its = self._number.get(column), self._number.get(other)
        return math.inf if node is None or its is None else spread(self._closure, node, its)

    def conditions(self, alias: str) -> Iterator[Expr]:
        """The limits of the columns of a source as conditions on its tuples: a tuple beyond them, or with
        NULL in a comparison, is part of no row.
        """
        yield from self.translation.not_null[alias]
        for column, node in self._number.items():
            one = self._query.nodes[node - 1]
            if column.alias == alias and self._closure.bounded(node) and not (one.nullable or one.null):
                yield from _within(column, self._closure, node, self.translation.codes)


def _weakest(every: list[Conjunction]) -> Conjunction:
    """A conjunction with the nodes as they are in any of the alternatives."""
    nodes = tuple(
        replace(
            several[0],
            nullable=any(one.nullable for one in several),
            null=all(one.null for one in several),
        )
        for several in zip(*(one.nodes for one in every), strict=True)
    )
    return replace(every[0], nodes=nodes)


def _within(column: Column, closure: Closure, node: int, codes: Mapping[str, int]) -> Iterator[Expr]:
    low, high = int(closure.lower(node)), int(closure.upper(node))
    if column.type is Type.VARCHAR:
        texts = [text for text, code in codes.items() if low <= code <= high]
        every = [Call("=", (column, Literal(text, Type.VARCHAR)), Type.BOOLEAN) for text in texts]
        yield every[0] if len(every) == 1 else Call("or", tuple(every), Type.BOOLEAN)
    elif column.type.integral:
        for op, value in ((">=", low), ("<=", high)):
            # As the same condition is written in SQL.
            whole = Type.INT if abs(value) < 2**31 else Type.BIGINT
            kind = column.type if column.type is Type.TIMESTAMP else whole
            yield Call(op, (column, Literal(value, kind)), Type.BOOLEAN)
