"""Expressions with few values in conditions between streams, as columns that the query computes.

`(s.x > 50) = (t.x > 50)` is no difference of columns, but only one of two values of each tuple matters. With
a computed column for each side it is one, and tuples are counted for each value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tamis.analysis.conjuncts import flatten_and
from tamis.certificates.interval_arithmetic.derivatives import NO_VARIABLE, UndefinedError, box_of
from tamis.certificates.interval_arithmetic.subdivision import derivatives_over
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, aliases, conjunction
from tamis.expressions.signatures import call
from tamis.query.computed_columns import computed_column
from tamis.query.model import Catalog, Conjunct, TimelessGroupBy

# A count is kept for each value.
_MOST_VALUES = 1000


def with_few_values(query: TimelessGroupBy, catalog: Catalog) -> TimelessGroupBy:
    """The query in which conditions over several sources read columns in place of such expressions."""
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    parts = [part for one in query.conjuncts for part in flatten_and(one.expr)]
    filters = {alias: tuple(one for one in parts if aliases(one) == {alias}) for alias in streams}
    columns = _Columns(streams, filters, dict.fromkeys(query.grouping.computed))
    conjuncts = tuple(_over_columns(one, columns) for one in query.conjuncts)
    grouping = replace(query.grouping, computed=tuple(columns.computed))
    return replace(query, conjuncts=conjuncts, grouping=grouping)


class _Columns:
    """The computed columns of a query, by alias."""

    def __init__(
        self,
        streams: Mapping[str, StreamDef],
        filters: Mapping[str, tuple[Expr, ...]],
        computed: dict[tuple[str, ColumnDef], None],
    ) -> None:
        self._streams, self._filters, self.computed = streams, filters, computed

    def instead(self, expr: Expr) -> Expr:
        """The expression with a column in place of each of its largest parts over one source that has few
        values.
        """
        if not isinstance(expr, Call):
            return expr
        limits = self._limits(expr) if len(aliases(expr)) == 1 else None
        if limits is None:
            return replace(expr, args=tuple(map(self.instead, expr.args)))
        (alias,) = aliases(expr)
        stream = self._streams[alias]
        taken: dict[str, Expr | None] = {one.name: None for one in stream.columns}
        taken |= {
            one.name: one.computed for other, one in self.computed if self._streams[other].name == stream.name
        }
        made = computed_column(expr, taken)
        if limits:
            column = Column("", made.name, made.type)
            least, most = (Literal(one, Type.BIGINT) for one in limits)
            made = replace(made, check=conjunction((call(">=", column, least), call("<=", column, most))))
        self.computed[alias, made] = None
        return Column(alias, made.name, made.type)

    def _limits(self, value: Expr) -> tuple[int, ...] | None:
        """The least and the greatest value of an expression; empty for a condition, None for many values."""
        if value.type is Type.BOOLEAN:
            return ()
        if value.type not in (Type.INT, Type.BIGINT):
            return None
        try:
            found = derivatives_over(value, box_of((value,), self._streams, self._filters), NO_VARIABLE).value
        except UndefinedError:
            return None
        least, most = float(found.lo), float(found.hi)
        return (int(least), int(most)) if 0 <= most - least < _MOST_VALUES else None


def _over_columns(conjunct: Conjunct, columns: _Columns) -> Conjunct:
    parts = tuple(
        columns.instead(part) if len(aliases(part)) > 1 else part for part in flatten_and(conjunct.expr)
    )
    expr = conjunction(parts)
    return conjunct if expr is None else replace(conjunct, expr=expr)
