"""The rows of panes that edges send for several queries, as one of the queries reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.errors import RefusedError
from tamis.expressions.nodes import Column, Expr, substitute
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import Partial, partials
from tamis.operators.windows.table import PartialTable
from tamis.plan.nodes import Computed, Grouping


def expression_of(column: Column, computed: Sequence[Computed]) -> Expr:
    """The expression over the stream's own columns whose values a column has; these have the empty alias.

    >>> from tamis.expressions.nodes import Type
    >>> expression_of(Column("s", "x", Type.INT), ())
    Column(alias='', name='x', type=<Type.INT: 'INT'>)
    """
    names = {(one.source, one.name): one.expr for one in computed}
    expr = names.get((column.alias, column.name), column)
    return substitute(expr, lambda one: Column("", one.name, one.type))


def group_expressions(grouping: Grouping) -> list[Expr]:
    """The expressions of the columns of groups, without those of windows."""
    return [expression_of(one, grouping.computed) for one in grouping.by if one.name not in WINDOW_COLUMNS]


@dataclass(frozen=True)
class Projection:
    """Where the groups and the partial aggregates of a query are among those that edges send: the numbers of
    the columns of groups, and for each partial aggregate the number of its table and those of its measures.
    """

    groups: tuple[int, ...]
    tables: tuple[tuple[int, tuple[int, ...]], ...]

    @staticmethod
    def of(sent: Grouping, query: Grouping) -> Projection:
        """Raises RefusedError if the query needs something else than what is sent."""
        by = group_expressions(sent)
        wanted = group_expressions(query)
        if set(by) != set(wanted):
            raise RefusedError("the groups that edges send aren't those of the query", where="panes")
        known = {_kind(one, sent): (i, one) for i, one in enumerate(partials(sent.aggregates))}
        tables = []
        for partial in partials(query.aggregates):
            number, own = known.get(_kind(partial, query), (-1, partial))
            if number < 0 or not set(partial.measures) <= set(own.measures):
                raise RefusedError("edges don't send all partial aggregates of the query", where="panes")
            measures = tuple(own.measures.index(one) for one in partial.measures)
            tables.append((number, measures if partial.order is None else (0, 1)))
        return Projection(tuple(by.index(one) for one in wanted), tuple(tables))

    def project(self, rows: PaneRows) -> PaneRows:
        """The rows with the groups and the partial aggregates of the query, in its order."""
        return PaneRows(
            rows.panes,
            tuple(rows.groups[number] for number in self.groups),
            tuple(
                PartialTable(
                    rows.tables[number].keys, tuple(rows.tables[number].measures[i] for i in measures)
                )
                for number, measures in self.tables
            ),
        )


def _kind(partial: Partial, grouping: Grouping) -> tuple[object, ...]:
    """A partial aggregate without names and measures."""
    read = [column and expression_of(column, grouping.computed) for column in (partial.column, partial.order)]
    return (*read, partial.each, partial.greatest)
